//! `feira show`: all about one lease, open or over.

use crate::args::NameArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::view::lease_object;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &NameArgs) -> Result<Exit, Failure> {
    let held = context.lease(&arguments.name).await?;
    context
        .printer
        .object(&lease_object(&held, context.now()))?;
    Ok(Exit::Done)
}
