//! `feira stop`: the machine is freed, the disk is kept. Asks nothing, since it can be undone.

use crate::args::StopArgs;
use crate::commands::end::{self, command};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::tunnel;
use crate::view::{clock_time, disk_per_day};
use protocol::order::LeaseAction;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &StopArgs) -> Result<Exit, Failure> {
    let leases = end::all_of(context, &arguments.names).await?;
    for (held, _) in &leases {
        let now = command(context, held, LeaseAction::Stop).await?;
        let (view, printer) = (&now.view, &context.printer);
        if !tunnel::answers(context, &now).await {
            printer.warn(&format!(
                "the host of {} does not answer now: what runs there goes on until it does, and is not billed",
                view.name
            ));
        }
        if !printer.format().is_for_people() {
            printer.object(&crate::view::lease_object(&now, context.now()))?;
            continue;
        }
        let until = view
            .disk_until
            .map_or_else(String::new, |at| format!(" until {}", clock_time(at)));
        printer.done(&format!(
            "{} is stopped: from now on only its disk of {} is billed, {}/day, kept{until}",
            view.name,
            view.disk,
            disk_per_day(view)
        ));
        printer.say("  its host is told to stop what runs there and to free the machine");
        printer.hint(&format!("  undo: feira resume {}", view.name));
    }
    Ok(Exit::Done)
}
