//! `feira-broker bond | refund | suspend`: hosts' money that is not a payout.

use super::Place;
use crate::admin::wire::{AdminReply, AdminRequest, HostMoney, PaymentRow, Refund, ReverseDeposit};
use crate::args;
use protocol::bounded::Text;
use protocol::ids::PaymentId;
use protocol::operator::{Exit, Failure};
use protocol::units::MicroUsd;

/// Credits a host's bond, or puts down that it went back.
pub(super) fn bond(place: &Place, typed: args::Bond) -> Result<Exit, Failure> {
    match typed {
        args::Bond::Deposit(money) => {
            let request = AdminRequest::Bond(host_money(money)?);
            done(place, &request, "bond")
        }
        args::Bond::Return(money) => {
            let request = AdminRequest::ReturnBond(host_money(money)?);
            done(place, &request, "bond")
        }
    }
}

/// Takes a deposit back, or a part of it.
pub(super) fn reverse(place: &Place, typed: args::Reverse) -> Result<Exit, Failure> {
    let request = AdminRequest::ReverseDeposit(ReverseDeposit {
        id: id_or_new(typed.id),
        deposit: typed.deposit,
        amount: typed.amount.map(positive).transpose()?,
        note: reason("--note", &typed.note)?,
    });
    done(place, &request, "deposit-reversal")
}

/// Gives a renter a part of what a lease cost back.
pub(super) fn refund(place: &Place, typed: args::Refund) -> Result<Exit, Failure> {
    let request = AdminRequest::Refund(Refund {
        id: id_or_new(typed.id),
        lease: typed.lease,
        amount: positive(typed.amount)?,
        note: reason("--note", &typed.note)?,
    });
    done(place, &request, "refund")
}

/// Lets a host take no leases, or take them again.
pub(super) fn suspend(place: &Place, typed: args::Suspend) -> Result<Exit, Failure> {
    let why = typed.why.as_deref();
    let why = why.map(|why| reason("--why", why)).transpose()?;
    let host = typed.host;
    let is_lifted = why.is_none();
    let request = AdminRequest::Suspend {
        host,
        why,
        stranger: typed.new,
    };
    let AdminReply::Noted = place.ask(&request)? else {
        return Err(place.unexpected());
    };
    if place.printer.is_json() {
        let said = serde_json::json!({
            "schema": "feira.suspend/1", "host": host.to_string(), "suspended": !is_lifted,
        });
        place.printer.document(&said);
    } else if is_lifted {
        place.printer.line(&format!("{host} may take leases again"));
    } else {
        let text = format!("{host} takes no new leases; those that it has go on");
        place.printer.line(&text);
    }
    Ok(Exit::Done)
}

/// Asks for a payment and says what came of it.
pub(super) fn done(place: &Place, request: &AdminRequest, schema: &str) -> Result<Exit, Failure> {
    let AdminReply::Payment(row) = place.ask(request)? else {
        return Err(place.unexpected());
    };
    if place.printer.is_json() {
        let schema = format!("feira.{schema}/1");
        let said = serde_json::json!({ "schema": schema, "payment": *row });
        place.printer.document(&said);
        return Ok(Exit::Done);
    }
    place.printer.line(&sentence(&row));
    if row.kind != "payout" {
        place.printer.note(&format!(
            "Its id is {0}; with --id {0} a repeat changes nothing.",
            row.payment
        ));
    }
    Ok(Exit::Done)
}

fn sentence(row: &PaymentRow) -> String {
    let PaymentRow { amount, about, .. } = row;
    let what = match (&*row.kind, &*row.status) {
        ("bond", _) => format!("{amount} credited to the bond of {about}"),
        ("bond-returned", _) => format!("{amount} of the bond of {about} are paid back"),
        ("deposit-reversed", _) => {
            format!("{amount} of the deposit {about} taken back: its renter has so much less")
        }
        ("refund", _) => format!("{amount} of {about} given back to its renter"),
        (_, "paid") => format!("payout {} of {amount} to {about} is paid", row.payment),
        (_, status) => format!("payout {} of {amount} to {about} is {status}", row.payment),
    };
    if row.before {
        return format!("nothing changed: {what} before");
    }
    what
}

fn host_money(typed: args::HostMoney) -> Result<HostMoney, Failure> {
    Ok(HostMoney {
        id: id_or_new(typed.id),
        host: typed.host,
        amount: positive(typed.amount)?,
        note: note(&typed.note)?,
        stranger: typed.new,
    })
}

/// Words without which nobody knows later why something was done.
fn reason(flag: &str, typed: &str) -> Result<Text<128>, Failure> {
    if typed.trim().is_empty() {
        let what = format!("{flag} says why, and nothing was said");
        return Err(Failure::new(Exit::Usage, what)
            .help(format!("give a reason: {flag} 'the disk was slow'")));
    }
    note(typed)
}

fn id_or_new(typed: Option<PaymentId>) -> PaymentId {
    typed.unwrap_or_else(|| PaymentId::from_bytes(rand::random()))
}

fn positive(amount: MicroUsd) -> Result<MicroUsd, Failure> {
    if amount > MicroUsd::ZERO {
        return Ok(amount);
    }
    Err(
        Failure::new(Exit::Usage, "the amount must be more than nothing")
            .help("give it in dollars, like 10 or 0.25"),
    )
}

/// What was typed as a note.
pub(super) fn note(typed: &str) -> Result<Text<128>, Failure> {
    Text::new(typed).map_err(|error| Failure::new(Exit::Usage, format!("the note: {error}")))
}
