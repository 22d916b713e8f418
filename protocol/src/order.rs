//! What a renter asks for: an order to rent, and commands about a lease it has.

use crate::bounded::{List, Text};
use crate::filter::Filter;
use crate::ids::{Digest, LeaseId, OfferId, OrderId};
use crate::job::Job;
use crate::signed::Statement;
use crate::terms::Deal;
use crate::units::{Bytes, MicroUsd, PricePerHour, Seconds};
use serde::{Deserialize, Serialize};

/// A lease's name: two words and a hyphen by default; letters, digits and hyphens.
pub type LeaseName = Text<63>;

/// Whether a name would be taken for something else where a lease is named: for an id, which begins with one
/// letter and a hyphen or is the rest of one alone, or for the word of a command (`receipt verify`). Orders
/// with such a name are refused, so that an id always means the lease whose id it is.
#[must_use]
pub fn is_reserved_name(name: &str) -> bool {
    let mut characters = name.chars();
    let begins_as_id = characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && characters.next() == Some('-');
    let is_bare_id = format!("{}{name}", LeaseId::PREFIX)
        .parse::<LeaseId>()
        .is_ok();
    begins_as_id || is_bare_id || name.eq_ignore_ascii_case("verify")
}

/// What an order is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// One offer, as the renter saw it.
    Offer {
        /// Which.
        offer: OfferId,
        /// [`crate::offer::Offer::terms_digest`] of what the renter saw and agreed to.
        terms: Digest,
    },
    /// Whichever offer is best of those that match.
    Any(Filter),
}

/// An order to rent. The same id with the same body has one effect, however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Chosen by the renter: the idempotency key.
    pub id: OrderId,
    /// What to rent.
    pub target: Target,
    /// At what price and with what claim.
    pub deal: Deal,
    /// How many GPUs; 0 for a machine without one.
    pub gpus: u16,
    /// CPU time in thousandths of a core; in proportion to the GPUs when absent.
    pub cpu_millicores: Option<u32>,
    /// RAM; in proportion to the GPUs when absent.
    pub ram: Option<Bytes>,
    /// The lease's name, unique among the renter's open leases.
    pub name: LeaseName,
    /// What to run.
    pub job: Job,
    /// Disk to keep for it.
    pub disk: Bytes,
    /// Most that an hour may cost, all in and for all GPUs together; the order is refused above it.
    pub price_max: PricePerHour,
    /// Most that the lease may cost in all; it ends by itself there.
    pub budget: MicroUsd,
    /// Longest time to run; it ends by itself there.
    pub duration_max: Option<Seconds>,
    /// Further keys that may open tunnels to the lease, beside the renter's own.
    pub access: List<crate::ids::PublicKey, 8>,
}

impl Statement for Order {
    const TYPE: &'static str = "order/v2";
}

/// What a renter can do with a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseAction {
    /// Free the resource, keep the disk.
    Stop,
    /// Start again from the kept disk, on the same host.
    Resume,
    /// End it and delete the disk. A bid that rests is withdrawn, a term that was prepaid is cancelled.
    End,
    /// Pay this much for each GPU and hour from now on: of a bid that rests, or an interruptible lease.
    SetBid(PricePerHour),
    /// Make it a contract of another kind, on the same resource.
    Convert {
        /// What it becomes.
        deal: Deal,
        /// Most that an hour of all its GPUs may cost from then on, all in with its disk. A prepaid term is bounded
        /// by what is paid in advance.
        price_max: PricePerHour,
    },
}

/// A renter's command about its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseCommand {
    /// The lease.
    pub lease: LeaseId,
    /// What to do.
    pub action: LeaseAction,
}

impl Statement for LeaseCommand {
    const TYPE: &'static str = "lease-command/v3";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_an_id_or_a_word_names_no_lease() {
        let id = LeaseId::from_bytes([7; 16]).to_string();
        let bare = id.strip_prefix("l-").unwrap_or_default().to_owned();
        for name in [
            &*id, &*bare, "l-abcd", "r-x", "h-", "K-9", "verify", "Verify",
        ] {
            assert!(is_reserved_name(name), "{name}");
        }
        for name in [
            "brave-otter",
            "l",
            "la-x",
            "7-up",
            "verify-2",
            "verified",
            "",
        ] {
            assert!(!is_reserved_name(name), "{name}");
        }
    }
}
