//! Makes an answer fit into a message: lists that are too long lose their ends. Nothing else is changed.

use protocol::bounded::List;
use protocol::lease::Access;
use protocol::message::{self, BrokerReply, Rejection};

/// The bytes of `reply`, cut to what a message may hold.
pub(super) fn encode(reply: BrokerReply) -> Vec<u8> {
    let mut reply = reply;
    loop {
        match message::encode(&reply) {
            Ok(bytes) => return bytes,
            Err(error) => {
                tracing::debug!(%error, "an answer is cut to fit");
                reply = shorter(reply);
            }
        }
    }
}

/// Each step is smaller, and the last one fits.
fn shorter(reply: BrokerReply) -> BrokerReply {
    match reply {
        BrokerReply::Leases(views) if !views.is_empty() => {
            let half = views.len() / 2;
            let kept = views.into_vec().into_iter().take(half).map(|mut view| {
                // Whoever wants to reach a lease asks for that one.
                view.access = Access::default();
                view
            });
            BrokerReply::Leases(List::first(kept))
        }
        BrokerReply::Found(mut found) if !found.offers.is_empty() => {
            let half = found.offers.len() / 2;
            found.offers = List::first(found.offers.into_vec().into_iter().take(half));
            BrokerReply::Found(found)
        }
        BrokerReply::Info(_)
        | BrokerReply::Found(_)
        | BrokerReply::Lease(_)
        | BrokerReply::Leases(_)
        | BrokerReply::Balance(_)
        | BrokerReply::Statement(_)
        | BrokerReply::Receipt(_)
        | BrokerReply::Earnings(_)
        | BrokerReply::HostEvidence(_)
        | BrokerReply::Verdicts(_)
        | BrokerReply::Transcript(_)
        | BrokerReply::Noted
        | BrokerReply::Refused(_) => BrokerReply::Refused(Rejection::Busy),
    }
}
