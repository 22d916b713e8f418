//! `feira logs`: what a lease's container wrote. Following goes on through lost connections, without losing
//! or repeating a line.

mod lines;

use crate::args::LogsArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::printer::Format;
use crate::tunnel::{self, Open};
use crate::view::{Held, phase_in_words};
use lines::{Lines, Source};
use protocol::tunnel::{Downward, Logs, Purpose};
use std::time::Duration;

/// Between tries to reach the host again.
const PAUSE: Duration = Duration::from_secs(2);
/// Tries in a row that fail before following is given up: about five minutes.
const TRIES: u32 = 150;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &LogsArgs) -> Result<Exit, Failure> {
    let held = context.lease(&arguments.name).await?;
    let as_lines = matches!(context.printer.format(), Format::Json | Format::Ndjson);
    let asked = Logs {
        follow: arguments.follow,
        since: arguments
            .since
            .map(|ago| context.now().before(ago.millis())),
        tail: arguments.tail,
        // To go on where it stopped, a follower must know the time of every line.
        timestamps: arguments.timestamps || arguments.follow || as_lines,
    };
    let mut lines = Lines::new(arguments.timestamps, as_lines);
    if arguments.follow {
        follow(context, &held, asked, &mut lines).await?;
        say_why_it_stopped(context, &held).await;
    } else {
        once(context, &held, asked, &mut lines).await?;
    }
    Ok(Exit::Done)
}

/// Reads to the end of what there is.
async fn once(
    context: &Context,
    held: &Held,
    asked: Logs,
    lines: &mut Lines,
) -> Result<(), Failure> {
    let Open { mut from_host, .. } = tunnel::open(context, held, Purpose::Logs(asked)).await?;
    loop {
        let message = from_host.next::<Downward>().await;
        match message.map_err(|error| tunnel::broken(held, &error))? {
            Some(Downward::Output(bytes)) => show(context, asked, lines, Source::Output, &bytes)?,
            Some(Downward::Errors(bytes)) => show(context, asked, lines, Source::Errors, &bytes)?,
            Some(Downward::Exit(_)) => return end(context, lines),
            Some(Downward::Broken(detail)) => {
                return Err(Failure::new(Code::TunnelBroken, detail.to_string()));
            }
            None => {
                let what = format!("the host of {} closed the connection", held.view.name);
                return Err(Failure::new(Code::TunnelBroken, what));
            }
        }
    }
}

/// Reads until the container has ended, again and again from where the connection was lost.
async fn follow(
    context: &Context,
    held: &Held,
    asked: Logs,
    lines: &mut Lines,
) -> Result<(), Failure> {
    let mut failed = 0;
    let mut held = held.clone();
    loop {
        let seen = lines.seen();
        let mut from = asked;
        if let Some(last) = lines.last_second() {
            // From the second of the last line on; what was shown of it is left out.
            from = Logs {
                since: Some(last),
                tail: None,
                ..asked
            };
        }
        let failure = match once(context, &held, from, lines).await {
            Ok(()) => return Ok(()),
            Err(failure) if is_passing(failure.code()) => failure,
            Err(failure) => return Err(failure),
        };
        failed = if lines.seen() > seen { 1 } else { failed + 1 };
        if failed > TRIES {
            return Err(failure);
        }
        if failed == 1 {
            context
                .printer
                .warn(&format!("{}; trying again", failure.what()));
        }
        lines.begin_again();
        tokio::time::sleep(PAUSE).await;
        // The host may be reached elsewhere now.
        held = context.refreshed(&held).await.unwrap_or(held);
    }
}

fn is_passing(code: Code) -> bool {
    matches!(
        code,
        Code::TunnelBroken | Code::HostUnreachable | Code::BrokerFailed
    )
}

fn show(
    context: &Context,
    asked: Logs,
    lines: &mut Lines,
    source: Source,
    bytes: &[u8],
) -> Result<(), Failure> {
    if !asked.timestamps {
        return write(context, source, bytes);
    }
    for (source, line) in lines.take(source, bytes) {
        write(context, source, &line)?;
    }
    Ok(())
}

fn end(context: &Context, lines: &mut Lines) -> Result<(), Failure> {
    for (source, line) in lines.rest() {
        write(context, source, &line)?;
    }
    Ok(())
}

fn write(context: &Context, source: Source, bytes: &[u8]) -> Result<(), Failure> {
    match source {
        Source::Output => context.printer.raw(bytes)?,
        Source::Errors => context.printer.raw_errors(bytes)?,
    }
    Ok(())
}

/// After the last line of a follower: how the lease stands.
async fn say_why_it_stopped(context: &Context, held: &Held) {
    if let Ok(now) = context.refreshed(held).await {
        let state = phase_in_words(&now.view.phase);
        context
            .printer
            .hint(&format!("── {} is {state} ──", now.view.name));
        if now.view.phase.is_open() {
            let name = &now.view.name;
            context
                .printer
                .hint(&format!("   feira resume {name}      feira end {name}"));
        }
    }
}
