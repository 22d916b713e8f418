//! Sends an order: written down first, to one broker after another only while it is certain that nothing was
//! created, and the same order again when an earlier run did not see its outcome.

use super::Offered;
use super::wish::Wish;
use crate::context::{Context, lease_of};
use crate::failure::{Code, Failure};
use crate::orders::Pending;
use crate::view::{Held, clock_time};
use protocol::ids::{BrokerId, Digest};
use protocol::message::BrokerRequest;
use protocol::order::Order;
use std::path::Path;

/// Names that are tried when two random words are taken already.
const NAMES: usize = 3;

/// An order that a broker made a lease of, and that is not over.
#[derive(Debug)]
pub(crate) struct Placed {
    /// The lease.
    pub held: Held,
    /// Its file, to be removed when the outcome was shown.
    pub pending: Pending,
}

/// Goes on with an order whose outcome an earlier run did not show; nothing when it came to nothing.
pub(super) async fn carry_on(
    context: &Context,
    pending: Pending,
) -> Result<Option<Placed>, Failure> {
    let (name, at) = (pending.order.name.clone(), clock_time(pending.placed_at));
    context
        .printer
        .say(&format!("Going on with your order of {at} ({name})"));
    match send(context, &pending.order, pending.broker).await {
        Ok(held) if held.view.phase.is_open() => Ok(Some(Placed { held, pending })),
        Ok(_) => {
            context.printer.say("That lease is over; ordering anew");
            pending.finish();
            Ok(None)
        }
        Err(failure) if is_certain(failure.code()) => {
            context.printer.say(&format!(
                "It came to nothing ({}); ordering anew",
                failure.what()
            ));
            pending.finish();
            Ok(None)
        }
        Err(failure) => Err(failure
            .help("whether the earlier order became a lease is not known: try again later")
            .help("or order another one on purpose, under a name of its own: --name")),
    }
}

/// Places the order of the best candidate; with `go_on` of the next ones too, when it is gone.
pub(super) async fn place(
    context: &Context,
    wish: &Wish,
    offered: &Offered,
    folder: &Path,
    typed: Digest,
    go_on: bool,
) -> Result<Placed, Failure> {
    let count = if go_on { offered.tries() } else { 1 };
    let mut last = super::gone();
    for index in 0..count {
        if index > 0 {
            context
                .printer
                .say(&format!("{}; taking the next offer", last.what()));
        }
        match place_one(context, wish, offered, index, folder, typed).await {
            Err(failure) if is_gone(failure.code()) => last = failure,
            result => return result,
        }
    }
    Err(last)
}

async fn place_one(
    context: &Context,
    wish: &Wish,
    offered: &Offered,
    index: usize,
    folder: &Path,
    typed: Digest,
) -> Result<Placed, Failure> {
    let routes = offered.brokers(index, context.session().await?);
    let mut order = wish.order(offered, index, context.now())?;
    let mut last = super::gone();
    let mut names_left = NAMES;
    let mut brokers = routes.iter().peekable();
    while let Some(broker) = brokers.peek() {
        let now = context.now();
        let pending = Pending::write(folder, typed, &order, **broker, now)?;
        match send(context, &order, **broker).await {
            Ok(held) => return Ok(Placed { held, pending }),
            Err(failure) if !is_certain(failure.code()) => {
                return Err(failure
                    .help("the order may have arrived: the same command again goes on with it")
                    .help("or see: feira ls"));
            }
            Err(failure) => {
                pending.finish();
                let is_name = failure.code() == Code::NameTaken && !wish.is_named();
                if is_name && names_left > 0 {
                    names_left -= 1;
                    order = wish.order(offered, index, context.now())?;
                } else if is_gone(failure.code()) {
                    last = failure;
                    brokers.next();
                } else {
                    return Err(failure);
                }
            }
        }
    }
    Err(last)
}

async fn send(context: &Context, order: &Order, broker: BrokerId) -> Result<Held, Failure> {
    let signed = context.sign(broker, order.clone())?;
    let request = BrokerRequest::Order(signed.signed().clone());
    let reply = context.session().await?.ask(broker, &request).await?;
    lease_of(broker, reply)
}

/// Whether a failure says that this broker made nothing of the order.
fn is_certain(code: Code) -> bool {
    !matches!(
        code,
        Code::BrokerFailed | Code::Busy | Code::BadReply | Code::NoBrokerAnswers | Code::FileFailed
    )
}

/// Whether another broker, or another offer, may still have what is wanted.
fn is_gone(code: Code) -> bool {
    matches!(
        code,
        Code::OfferTaken
            | Code::OfferGone
            | Code::OfferChanged
            | Code::HostGone
            | Code::HostSuspended
            | Code::OwnMachine
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_broker_is_asked_only_when_nothing_was_created() {
        for code in [
            Code::OfferTaken,
            Code::OfferGone,
            Code::OfferChanged,
            Code::HostGone,
            Code::HostSuspended,
            Code::OwnMachine,
        ] {
            assert!(is_gone(code) && is_certain(code), "{code}");
        }
        for code in [Code::BrokerFailed, Code::Busy, Code::BadReply] {
            assert!(!is_gone(code) && !is_certain(code), "{code}");
        }
        assert!(is_certain(Code::NotEnoughMoney) && !is_gone(Code::NotEnoughMoney));
    }
}
