//! `feira bid`: an interruptible lease at one's own price, and `feira bid set`: another price for a bid that is
//! there.

use crate::args::{BidArgs, BidCommand, BidSetArgs};
use crate::commands::end::command;
use crate::commands::rent;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::view::{lease_object, phase_in_words, unit};
use protocol::lease::LeaseView;
use protocol::order::LeaseAction;
use protocol::terms::ContractKind;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &BidArgs) -> Result<Exit, Failure> {
    match &arguments.command {
        Some(BidCommand::Set(set)) => set_bid(context, set).await,
        None => rent::run(context, &arguments.rent()).await,
    }
}

/// The price was typed: that is the consent.
async fn set_bid(context: &Context, arguments: &BidSetArgs) -> Result<Exit, Failure> {
    let held = context.lease(&arguments.name).await?;
    let name = &held.view.name;
    let Some(before) = held.view.bid else {
        let what = format!("{name} is {}: it has no bid", held.view.kind.word());
        return Err(Failure::new(Code::WrongPhase, what).help(format!(
            "make it one with a bid: feira convert {name} interruptible --price PRICE"
        )));
    };
    let now = command(context, &held, LeaseAction::SetBid(arguments.max_price)).await?;
    let printer = &context.printer;
    if !printer.format().is_for_people() {
        printer.object(&lease_object(&now, context.now()))?;
        return Ok(Exit::Done);
    }
    printer.done(&format!(
        "{name}: {} for {}, was {before}; {}",
        now.view.bid.unwrap_or(arguments.max_price),
        unit(now.view.gpu_count),
        phase_in_words(&now.view.phase)
    ));
    if let Some(hint) = to_win(&now.view) {
        printer.hint(&format!("  {hint}"));
    }
    Ok(Exit::Done)
}

/// What would have to be bid, where the bid of a lease does not win.
pub(crate) fn to_win(view: &LeaseView) -> Option<String> {
    let needed = view.to_win?;
    let (name, unit) = (&view.name, unit(view.gpu_count));
    if view.bid.is_some_and(|bid| bid >= needed) {
        return None;
    }
    let price = needed.amount().decimal();
    Some(match view.kind {
        ContractKind::Bid => format!("the lowest price now is {needed} for {unit}"),
        ContractKind::OnDemand | ContractKind::Interruptible | ContractKind::Reserved => format!(
            "to win now, bid {needed} for {unit}: feira bid set {name} --max-price {}",
            crate::amounts::shortened(&price)
        ),
    })
}
