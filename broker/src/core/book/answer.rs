//! What the book answers a search with: the first portions in the asked order, or why there is none.
//!
//! Must not change the book.

use super::{Book, Listing, by_job};
use crate::core::available::Available;
use protocol::bounded::List;
use protocol::filter::{Explanation, Facts, Prepared, compare};
use protocol::message::{FOUND_MAX, Found, FoundOffer, Search};
use protocol::units::Timestamp;
use std::cmp::Ordering;

/// Most bytes of offers in one answer: a message may have 256 KiB, and the rest of the answer must fit too.
const FOUND_BYTES_MAX: usize = 224 * 1024;

impl Book {
    /// The offers that stand now, can be had and match, best first; and if none does, why.
    #[must_use]
    pub fn search(
        &self,
        search: &Search,
        now: Timestamp,
        available: impl Fn(&Listing, u16) -> Option<Available>,
    ) -> Found {
        let filter = search.filter.prepare(search.need);
        let shown = || {
            self.listings
                .values()
                .filter(|listing| listing.is_fresh(now))
                .flat_map(|listing| listing.portions.iter().map(move |facts| (listing, facts)))
                .filter(|(listing, facts)| available(listing, facts.gpus()).is_some())
        };
        let mut of = 0;
        let mut matching: Vec<(&Listing, &Facts)> = Vec::new();
        for (listing, facts) in shown() {
            of += 1;
            if filter.matches(facts) {
                matching.push((listing, facts));
            }
        }
        let mut found = Found {
            matching: count(matching.len()),
            of: count(of),
            ..Found::default()
        };
        if matching.is_empty() {
            self.explain(search, &filter, shown(), &mut found);
        }
        found.offers = self.best(search, now, matching, available);
        found
    }

    /// The first of `matching` by the asked order, as many as are asked for and fit into an answer.
    fn best(
        &self,
        search: &Search,
        now: Timestamp,
        matching: Vec<(&Listing, &Facts)>,
        available: impl Fn(&Listing, u16) -> Option<Available>,
    ) -> List<FoundOffer, FOUND_MAX> {
        let order = |left: &(&Listing, &Facts), right: &(&Listing, &Facts)| -> Ordering {
            compare(&search.sort, search.need, left.1, right.1)
        };
        let wanted = usize::from(search.limit).min(FOUND_MAX);
        let matching = match &search.job {
            Some(job) => by_job::first(job, search, (wanted, now), matching, &available),
            None => {
                let mut matching = matching;
                if wanted > 0 && wanted < matching.len() {
                    matching.select_nth_unstable_by(wanted, order);
                    matching.truncate(wanted);
                }
                matching.sort_unstable_by(order);
                matching
            }
        };
        let mut room = FOUND_BYTES_MAX;
        let fitting = matching
            .into_iter()
            .take(wanted)
            .map_while(|(listing, facts)| {
                room = room.checked_sub(listing.verified.signed().size())?;
                Some(listing.found(facts, available(listing, facts.gpus())))
            });
        List::first(fitting)
    }

    fn explain<'a>(
        &self,
        search: &Search,
        filter: &Prepared,
        shown: impl Iterator<Item = (&'a Listing, &'a Facts)>,
        found: &mut Found,
    ) {
        let mut explanation = Explanation::new(search.filter.terms.len(), search.need);
        for (_, facts) in shown {
            explanation.add(facts, filter.failed(facts));
        }
        found.eliminated = explanation.eliminations();
        found.nearest = explanation.nearest().and_then(|(id, gpus)| {
            let listing = self.listings.get(&id)?;
            let facts = listing.portions.iter().find(|facts| facts.gpus() == gpus)?;
            Some(listing.found(facts, None))
        });
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
