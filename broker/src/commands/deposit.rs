//! `feira-broker deposit`: credits a renter with money that the operator received.

use super::{Place, payments};
use crate::admin::wire::{AdminReply, AdminRequest, Deposit, Deposited};
use crate::args;
use ed25519_dalek::VerifyingKey;
use protocol::bounded::Text;
use protocol::ids::{DepositId, RenterId};
use protocol::message::Rejection;
use protocol::operator::{Exit, Failure};
use protocol::units::MicroUsd;

/// Credits it once for each id, or takes one back.
pub(super) fn deposit(place: &Place, typed: args::Deposit) -> Result<Exit, Failure> {
    if let Some(args::DepositCommand::Reverse(reverse)) = typed.command {
        return payments::reverse(place, reverse);
    }
    let (Some(renter), Some(amount)) = (typed.renter, typed.amount) else {
        return Err(Failure::new(Exit::Usage, "whose deposit, and how much?")
            .help(place.command("deposit RENTER AMOUNT")));
    };
    if amount <= MicroUsd::ZERO {
        return Err(Failure::new(Exit::Usage, "a deposit is more than nothing")
            .help("give an amount in dollars, like 10 or 0.25"));
    }
    if !is_key(&renter) {
        let what = format!("{renter} is no renter's id: a letter of it is wrong");
        return Err(Failure::new(Exit::Usage, what).help("copy it from what `feira init` printed"));
    }
    let memo = Text::new(typed.memo)
        .map_err(|error| Failure::new(Exit::Usage, format!("--memo: {error}")))?;
    let id = typed
        .id
        .unwrap_or_else(|| DepositId::from_bytes(rand::random()));
    let request = Deposit {
        id,
        renter,
        amount,
        memo,
        stranger: typed.new,
    };
    // Without the sign of dollars, which a shell would take for a variable's.
    let shown = amount.to_string();
    let bare = shown.trim_start_matches('$');
    let new = if typed.new { " --new" } else { "" };
    let again = format!("deposit {renter} {bare}{new} --id {id}");
    // When there is no answer it may be on the books: the same id makes a repeat harmless.
    let unanswered = |failure: Failure| {
        let stopping = failure.what == Rejection::ShuttingDown.to_string();
        if failure.exit != Exit::Unreachable && !stopping {
            return failure;
        }
        let help = failure
            .help
            .clone()
            .unwrap_or_else(|| place.command("status"));
        failure.help(format!(
            "{help}\nthen, credited once however often: {}",
            place.command(&again)
        ))
    };
    let reply = place
        .ask(&AdminRequest::Deposit(request))
        .map_err(unanswered)?;
    let AdminReply::Deposited(deposited) = reply else {
        return Err(place.unexpected());
    };
    show(place, &deposited, typed.new);
    Ok(Exit::Done)
}

/// Shows what is on the books; `new` when the renter was never heard of.
fn show(place: &Place, deposited: &Deposited, new: bool) {
    if place.printer.is_json() {
        place
            .printer
            .document(&serde_json::json!({ "schema": "feira.deposit/1", "deposit": deposited }));
        return;
    }
    if !deposited.credited {
        place.printer.line(&format!(
            "nothing credited: {} were credited to {} with this id before; {} available",
            deposited.amount, deposited.renter, deposited.available
        ));
        return;
    }
    place.printer.line(&format!(
        "{} credited to {}: {} available",
        deposited.amount, deposited.renter, deposited.available
    ));
    let id = deposited.id;
    place.printer.note(&format!(
        "Its id is {id}; with --id {id} a repeat credits nothing more."
    ));
    if new {
        place.printer.note(&format!(
            "If the id was mistyped, take it back while it is free: {}",
            place.command(&format!("deposit reverse {id} --note WHY"))
        ));
    }
}

/// About half of all mistyped ids are no point of the curve, and money would go where nobody can take it.
fn is_key(renter: &RenterId) -> bool {
    VerifyingKey::from_bytes(renter.as_bytes()).is_ok_and(|key| !key.is_weak())
}
