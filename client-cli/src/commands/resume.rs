//! `feira resume`: starts a stopped lease again from its kept disk.

use crate::args::ResumeArgs;
use crate::commands::end::command;
use crate::commands::rent::watch_start;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::view::lease_object;
use protocol::order::LeaseAction;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &ResumeArgs) -> Result<Exit, Failure> {
    let held = context.lease(&arguments.name).await?;
    let now = command(context, &held, LeaseAction::Resume).await?;
    if arguments.detach {
        let name = &now.view.name;
        if context.printer.format().is_for_people() {
            context.printer.done(&format!("{name} is starting"));
            context
                .printer
                .hint(&format!("  feira wait {name} --for ready"));
        } else {
            context.printer.object(&lease_object(&now, context.now()))?;
        }
        return Ok(Exit::Done);
    }
    watch_start(context, &now).await
}
