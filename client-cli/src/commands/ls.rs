//! `feira ls`: one's leases with all brokers, newest first.

use crate::args::LsArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::view::lease_listing;
use protocol::message::LeaseScope;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &LsArgs) -> Result<Exit, Failure> {
    let scope = if arguments.all {
        LeaseScope::All
    } else {
        LeaseScope::Open
    };
    let leases = context.leases(scope).await?;
    context
        .printer
        .list(&lease_listing(&leases, context.now(), arguments.all))?;
    for held in leases.iter().filter(|held| held.view.low_balance) {
        let name = &held.view.name;
        context.printer.warn(&format!(
            "the money for {name} lasts less than 15 minutes: top up"
        ));
    }
    Ok(Exit::Done)
}
