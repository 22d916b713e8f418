//! `feira stop`: the machine is freed, the disk is kept. Asks nothing, since it can be undone.

use crate::args::StopArgs;
use crate::commands::end::{self, command};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Until, follow};
use crate::view::{Held, clock_time, disk_per_day, lease_object};
use protocol::order::LeaseAction;
use std::time::Duration;

/// How long the host may take to say that nothing runs any more: programs have ten seconds to end.
const STOPPED_WITHIN: Duration = Duration::from_secs(12);

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &StopArgs) -> Result<Exit, Failure> {
    let leases = end::all_of(context, &arguments.names).await?;
    let mut stopping = Vec::new();
    for (held, _) in &leases {
        stopping.push(command(context, held, LeaseAction::Stop).await?);
    }
    let waits = stopping.iter().map(|held| see_stopped(context, held));
    for (now, has_stopped) in futures::future::try_join_all(waits).await? {
        show(context, &now, has_stopped)?;
    }
    Ok(Exit::Done)
}

/// Waits for the host to say that it has stopped: the broker's word is about money, not about programs.
async fn see_stopped(context: &Context, held: &Held) -> Result<(Held, bool), Failure> {
    let stopped = follow(context, held, Until::Stopped, |_| ());
    tokio::pin!(stopped);
    if let Ok(now) = tokio::time::timeout(end::SOON, &mut stopped).await {
        return Ok((now?, true));
    }
    context.printer.say(&format!(
        "Stopping {}: its programs are told to end",
        held.view.name
    ));
    match tokio::time::timeout(STOPPED_WITHIN, &mut stopped).await {
        Ok(now) => Ok((now?, true)),
        Err(_) => Ok((held.clone(), false)),
    }
}

fn show(context: &Context, now: &Held, has_stopped: bool) -> Result<(), Failure> {
    let (view, printer) = (&now.view, &context.printer);
    if !has_stopped {
        printer.warn(&format!(
            "the host of {} has still to say that it has stopped: what runs there may go on until then, unbilled",
            view.name
        ));
    }
    if !printer.format().is_for_people() {
        return printer.object(&lease_object(now, context.now()));
    }
    let until = view
        .disk_until
        .map_or_else(String::new, |at| format!(" until {}", clock_time(at)));
    let how = if has_stopped {
        "is stopped"
    } else {
        "is billed as stopped"
    };
    printer.done(&format!(
        "{} {how}: only its disk of {} is billed, {}/day, kept{until}",
        view.name,
        view.disk,
        disk_per_day(view)
    ));
    if view.term.is_some() {
        printer.say("  the prepaid term goes on, and keeps its place");
    } else if has_stopped {
        printer.say("  the machine is freed for others");
    }
    printer.hint(&format!("  undo: feira resume {}", view.name));
    Ok(())
}
