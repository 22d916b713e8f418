//! Why an order has no place: of many reasons the one to tell.
//!
//! Must not look for a place.

use super::Seeker;
use crate::core::capacity::Misfit;
use protocol::message::Rejection;

/// An offer that is not there may come back for one that waits.
pub(super) fn gone(seeker: &Seeker<'_>) -> Misfit {
    if seeker.has_waited {
        Misfit::not_now(Rejection::OfferGone)
    } else {
        Misfit::never(Rejection::OfferGone)
    }
}

/// Of the reasons of two offers the one to tell: that it may fit later, or how little is missing.
pub(super) fn nearer(is_first: bool, known: Misfit, other: Misfit) -> Misfit {
    if is_first {
        return nothing_matches(other);
    }
    // Somebody rather pays more than go: that is to happen.
    if known.converts.is_empty() != other.converts.is_empty() {
        return if known.converts.is_empty() {
            nothing_matches(other)
        } else {
            known
        };
    }
    match (&known.rejection, &other.rejection) {
        _ if known.is_final != other.is_final => {
            if known.is_final {
                nothing_matches(other)
            } else {
                known
            }
        }
        (
            Rejection::BidTooLow { needed, .. },
            Rejection::BidTooLow {
                needed: other_needed,
                ..
            },
        ) => {
            if other_needed < needed {
                other
            } else {
                known
            }
        }
        (_, Rejection::BidTooLow { .. }) => other,
        (Rejection::OwnMachine, _) => nothing_matches(other),
        (_, _) => known,
    }
}

/// Whoever asks for any offer is told of none what only concerns that one; but that the only one is its own.
fn nothing_matches(misfit: Misfit) -> Misfit {
    let is_told = matches!(
        misfit.rejection,
        Rejection::BidTooLow { .. } | Rejection::OwnMachine
    );
    if is_told {
        return misfit;
    }
    Misfit {
        rejection: Rejection::NothingMatches,
        ..misfit
    }
}
