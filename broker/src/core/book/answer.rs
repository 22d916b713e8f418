//! What the book answers a search with: the first portions in the asked order, or why there is none.
//!
//! The index answers for all portions of which it knows whether they can be had; the others are looked at one by one,
//! and both answers become one. Must not change the book.

use super::index::Slot;
use super::portions::Question;
use super::{Book, Listing, by_job};
use crate::core::available::Available;
use protocol::bounded::List;
use protocol::filter::{Elimination, Explanation, Facts, TERMS_MAX, compare};
use protocol::message::{FOUND_MAX, Found, FoundOffer, Search};
use protocol::terms::ContractKind;
use protocol::units::{MicroUsd, Timestamp};
use std::cmp::Ordering;

/// Most bytes of offers in one answer: a message may have 256 KiB, and the rest of the answer must fit too.
const FOUND_BYTES_MAX: usize = 224 * 1024;

/// A portion of an offer.
type Portion<'a> = (&'a Listing, &'a Facts);

impl Book {
    /// The offers that stand now, can be had and match, best first; and if none does, why. `available` says of each
    /// portion what it costs, if it can be had.
    #[must_use]
    pub fn search(
        &self,
        search: &Search,
        now: Timestamp,
        available: impl Fn(&Listing, u16) -> Option<Available>,
    ) -> Found {
        let wanted = usize::from(search.limit).min(FOUND_MAX);
        let question = Question {
            filter: &search.filter,
            need: search.need,
            sort: &search.sort,
            // What a job costs is not known to the index.
            wanted: if search.job.is_some() {
                usize::MAX
            } else {
                wanted
            },
        };
        let filter = search.filter.prepare(search.need);
        // While an offer is there that does not stand any more, the index knows too much.
        let is_fresh = !self.has_expired(now);
        let mut found = Found::default();
        let mut matching: Vec<Portion<'_>> = Vec::new();
        let mut count = 0;
        let mut of = 0;
        if is_fresh {
            let matches = self.portions.search(question, search.kind, &self.listings);
            count = matches.count;
            of = self
                .portions
                .shown(&search.filter, search.kind, &self.listings);
            matching.extend(
                matches
                    .first
                    .into_iter()
                    .filter_map(|slot| self.portion_of(slot)),
            );
        }
        let others = self.others(search.kind, now, is_fresh);
        let others = others
            .filter(|(_, facts)| filter.looks_at(facts))
            .filter(|(listing, facts)| available(listing, facts.gpus()).is_some());
        let others: Vec<Portion<'_>> = others.collect();
        of += others.len();
        let fitting = others.iter().filter(|(_, facts)| filter.matches(facts));
        for portion in fitting {
            count += 1;
            matching.push(*portion);
        }
        (found.matching, found.of) = (number(count), number(of));
        if count == 0 {
            self.explain(search, (question, is_fresh), &others, &mut found);
        }
        found.offers = first(search, (wanted, now), matching, available);
        found
    }

    /// The portions that stand now, and of which the index does not know whether a lease of that kind can have them.
    fn others(
        &self,
        kind: ContractKind,
        now: Timestamp,
        is_fresh: bool,
    ) -> impl Iterator<Item = Portion<'_>> {
        let all = (!is_fresh).then(|| self.listings.values());
        let unsettled = is_fresh.then(|| self.unsettled.iter());
        let offers = unsettled
            .into_iter()
            .flatten()
            .flat_map(move |host| self.host_offers(*host, now));
        // Whether a bid can push somebody out depends on the time.
        let contested = if is_fresh && kind == ContractKind::Interruptible {
            self.portions.contested(&self.listings)
        } else {
            Vec::new()
        };
        all.into_iter()
            .flatten()
            .filter(move |listing| listing.is_fresh(now))
            .chain(offers)
            .flat_map(|listing| listing.portions.iter().map(move |facts| (listing, facts)))
            .chain(
                contested
                    .into_iter()
                    .filter_map(|slot| self.portion_of(slot)),
            )
    }

    fn portion_of(&self, slot: Slot) -> Option<Portion<'_>> {
        let (offer, gpus) = self.portions.owner(slot)?;
        let listing = self.listings.get(&offer)?;
        Some((listing, listing.facts(gpus)?))
    }

    fn has_expired(&self, now: Timestamp) -> bool {
        let first = self.by_expiry.first();
        first.is_some_and(|(expires, _)| *expires <= now)
    }

    fn explain(
        &self,
        search: &Search,
        (question, is_fresh): (Question<'_>, bool),
        others: &[Portion<'_>],
        found: &mut Found,
    ) {
        let filter = search.filter.prepare(search.need);
        let mut explanation = Explanation::new(search.filter.terms.len(), search.need);
        for (_, facts) in others {
            explanation.add(facts, filter.failed(facts));
        }
        let mut eliminated = explanation.eliminations().into_vec();
        let beside = explanation.nearest().and_then(|(id, gpus)| {
            let listing = self.listings.get(&id)?;
            Some((listing, listing.facts(gpus)?))
        });
        let mut nearest = None;
        if is_fresh {
            let explained = self.portions.explain(question, search.kind, &self.listings);
            for (known, cost) in eliminated.iter_mut().zip(explained.tests) {
                let lower = known
                    .cheapest
                    .into_iter()
                    .chain(cost.cheapest.map(MicroUsd))
                    .min();
                *known = Elimination {
                    term: known.term,
                    eliminated: known.eliminated.saturating_add(number(cost.fail)),
                    without_it: known.without_it.saturating_add(number(cost.fail_alone)),
                    cheapest: lower,
                };
            }
            nearest = explained.nearest.and_then(|slot| self.portion_of(slot));
        }
        let distance =
            |(_, facts): &Portion<'_>| (filter.failed(facts).count(), facts.rank(search.need));
        let both = nearest.into_iter().chain(beside);
        let nearest = both.min_by_key(distance);
        found.nearest = nearest.map(|(listing, facts)| listing.found(facts, None));
        found.eliminated = List::<Elimination, TERMS_MAX>::first(eliminated);
    }
}

/// The first of `matching` by the asked order, as many as are asked for and fit into an answer.
fn first(
    search: &Search,
    (wanted, now): (usize, Timestamp),
    matching: Vec<Portion<'_>>,
    available: impl Fn(&Listing, u16) -> Option<Available>,
) -> List<FoundOffer, FOUND_MAX> {
    let order = |left: &Portion<'_>, right: &Portion<'_>| -> Ordering {
        compare(&search.sort, search.need, left.1, right.1)
    };
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

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
