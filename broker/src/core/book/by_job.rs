//! The order of a search that carries a job: what the job costs until it is done, on each portion.
//!
//! Must not leave out any portion: where the job cannot be done, or nobody knows how fast, it stands last.

use super::Listing;
use crate::core::available::Available;
use protocol::cost::{Interruption, JobProfile, Site, Sites, hazard_of, rank_key};
use protocol::filter::Facts;
use protocol::message::Search;
use protocol::terms::ContractKind;
use protocol::units::Timestamp;

/// A portion of an offer.
pub(super) type Portion<'a> = (&'a Listing, &'a Facts);

/// The first `wanted` of `matching`: by the cost of the job, then as those that cost the same by the hour.
pub(super) fn first<'a>(
    job: &JobProfile,
    search: &Search,
    (wanted, now): (usize, Timestamp),
    matching: Vec<Portion<'a>>,
    available: impl Fn(&Listing, u16) -> Option<Available>,
) -> Vec<Portion<'a>> {
    let mut sites = Sites::of(job);
    let key = |(listing, facts): Portion<'a>| {
        let gpus = facts.gpus();
        let ask = listing.offer().prices.compute;
        let price = available(listing, gpus).map_or(ask, |available| available.price);
        let site = Site {
            hazard: hazard_of(listing.hazard()),
            interruption: interruption(search.kind, listing),
            ..sites.at(listing.offer(), gpus, price, now)
        };
        let (_, reliability, listed_at, id, gpus) = facts.rank(search.need);
        (rank_key(job, &site), reliability, listed_at, id, gpus)
    };
    let keys: Vec<_> = matching.iter().copied().map(key).collect();
    let mut keyed: Vec<_> = keys.into_iter().zip(matching).collect();
    if wanted > 0 && wanted < keyed.len() {
        keyed.select_nth_unstable_by_key(wanted, |(key, _)| *key);
        keyed.truncate(wanted);
    }
    keyed.sort_unstable_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, portion)| portion).collect()
}

/// How a lease of that kind is interrupted there; nobody counts how often yet.
fn interruption(kind: ContractKind, listing: &Listing) -> Option<Interruption> {
    match kind {
        ContractKind::Interruptible => Some(Interruption {
            per_hour: None,
            notice: listing.offer().limits.notice,
        }),
        ContractKind::OnDemand | ContractKind::Bid | ContractKind::Reserved => None,
    }
}
