//! Many brokers' answers as one: each offer once, in its newest form, verified, best first.
//!
//! Pure. A broker is believed in nothing that can be checked: signatures, that an offer matches, that it is
//! for that broker.

use super::candidate::{Candidate, open};
use protocol::filter::{Elimination, Facts, Prepared, SortKey, compare};
use protocol::ids::{BrokerId, OfferId};
use protocol::message::{Found, FoundOffer, Search};
use protocol::terms::{ContractKind, Need};
use protocol::verify::VerificationLevel;
use std::collections::BTreeMap;

/// What all brokers found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Finding {
    /// The offers, best first.
    pub candidates: Vec<Candidate>,
    /// How many match; those beyond the answers are counted once for each broker that lists them.
    pub matching: u32,
    /// How many can be leased now; those beyond the answers are counted once for each broker that lists them.
    pub of: u32,
    /// How many more there are that somebody has.
    pub rented: u32,
    /// When nothing matched: what each condition did.
    pub eliminated: Vec<Elimination>,
    /// When nothing matched: the nearest portion of an offer, and which conditions it fails.
    pub nearest: Option<(Candidate, Vec<usize>)>,
    /// What people should be told.
    pub warnings: Vec<String>,
}

/// Collects answers to one search.
#[derive(Debug)]
pub(super) struct Merger<'a> {
    filter: Prepared,
    terms: usize,
    sort: &'a [SortKey],
    need: Need,
    kind: ContractKind,
    limit: usize,
    offers: BTreeMap<(OfferId, u16), (Candidate, Facts)>,
    shown: u32,
    answers: usize,
    finding: Finding,
}

impl<'a> Merger<'a> {
    /// For the answers to this search.
    pub(super) fn new(search: &'a Search) -> Self {
        Self {
            filter: search.filter.prepare(search.need),
            terms: search.filter.terms.len(),
            sort: &search.sort,
            need: search.need,
            kind: search.kind,
            // What a job costs is not known here, and would not leave out the same.
            limit: match search.job {
                None => usize::from(search.limit),
                Some(_) => usize::MAX,
            },
            offers: BTreeMap::new(),
            shown: 0,
            answers: 0,
            finding: Finding::default(),
        }
    }

    /// How many brokers answered.
    pub(super) const fn answers(&self) -> usize {
        self.answers
    }

    /// Adds a broker's answer.
    pub(super) fn add(&mut self, broker: BrokerId, found: &Found) {
        self.answers += 1;
        self.finding.matching = self.finding.matching.saturating_add(found.matching);
        self.finding.of = self.finding.of.saturating_add(found.of);
        self.finding.rented = self.finding.rented.saturating_add(found.rented);
        for portion in &found.offers {
            self.shown += 1;
            match self.checked(broker, portion) {
                Ok((candidate, facts)) => self.keep(broker, candidate, facts),
                Err(problem) => self.finding.warnings.push(format!(
                    "broker {} answered with an offer that {problem}; it is left out",
                    broker.short()
                )),
            }
        }
        let terms = self.terms;
        for elimination in found
            .eliminated
            .iter()
            .filter(|one| usize::from(one.term) < terms)
        {
            self.add_elimination(elimination);
        }
        let nearest = found.nearest.as_ref();
        if let Some(Ok(nearest)) = nearest.map(|it| open(broker, it, self.kind)) {
            self.keep_nearest(nearest);
        }
    }

    fn checked(
        &self,
        broker: BrokerId,
        portion: &FoundOffer,
    ) -> Result<(Candidate, Facts), String> {
        let candidate = open(broker, portion, self.kind)?;
        let facts = candidate.facts();
        // A broker may hold its filter against the price asked, or against that of the kind.
        let asked = || {
            Facts::of(candidate.host(), candidate.offer.body(), candidate.gpus)
                .with_reliability(candidate.reliability)
                .with_verification(&candidate.verification)
        };
        if !self.filter.matches(&facts) && !self.filter.matches(&asked()) {
            return Err("does not match".to_owned());
        }
        Ok((candidate, facts))
    }

    fn keep(&mut self, broker: BrokerId, new: Candidate, facts: Facts) {
        let key = (new.offer.body().id, new.gpus);
        let Some((known, known_facts)) = self.offers.get_mut(&key) else {
            self.offers.insert(key, (new, facts));
            return;
        };
        // Brokers know different bids and different pasts of a host: who sells for less comes first, and the
        // more cautious word on reliability counts. What is asked is the host's word, in its newest form.
        let mut brokers = std::mem::take(&mut known.brokers);
        brokers.retain(|one| *one != broker);
        let is_bid = self.kind == ContractKind::Interruptible;
        let is_less = is_bid && new.price < known.price;
        brokers.insert(if is_less { 0 } else { brokers.len() }, broker);
        let cheaper = if is_less { &new } else { &*known };
        let (price, pushes_out) = (cheaper.price, cheaper.pushes_out);
        let reliability = new.reliability.min(known.reliability);
        let hazard = new.hazard.max(known.hazard);
        let verification = cautious(&new.verification, &known.verification).clone();
        if new.offer.body().sequence > known.offer.body().sequence {
            *known = new;
        }
        known.brokers = brokers;
        known.reliability = reliability;
        known.hazard = hazard;
        known.verification = verification;
        if is_bid {
            (known.price, known.pushes_out) = (price, pushes_out);
        }
        *known_facts = known.facts();
    }

    fn add_elimination(&mut self, elimination: &Elimination) {
        let known = &mut self.finding.eliminated;
        let Some(sum) = known.iter_mut().find(|sum| sum.term == elimination.term) else {
            known.push(*elimination);
            return;
        };
        sum.eliminated = sum.eliminated.saturating_add(elimination.eliminated);
        sum.without_it = sum.without_it.saturating_add(elimination.without_it);
        sum.cheapest = sum.cheapest.into_iter().chain(elimination.cheapest).min();
    }

    fn keep_nearest(&mut self, new: Candidate) {
        let failed = self.filter.failed(&new.facts());
        let fails: Vec<usize> = (0..self.terms).filter(|index| failed.has(*index)).collect();
        let price = |one: &Candidate| one.hourly(self.need);
        let is_nearer = self
            .finding
            .nearest
            .as_ref()
            .is_none_or(|(known, known_fails)| {
                (fails.len(), price(&new)) < (known_fails.len(), price(known))
            });
        if is_nearer {
            self.finding.nearest = Some((new, fails));
        }
    }

    /// All answers as one.
    pub(super) fn finish(self) -> Finding {
        let mut finding = self.finding;
        let different = u32::try_from(self.offers.len()).unwrap_or(u32::MAX);
        let seen_again = self.shown.saturating_sub(different);
        finding.matching = finding.matching.saturating_sub(seen_again).max(different);
        finding.of = finding.of.saturating_sub(seen_again).max(finding.matching);
        let mut offers: Vec<(Candidate, Facts)> = self.offers.into_values().collect();
        offers.sort_by(|left, right| compare(self.sort, self.need, &left.1, &right.1));
        finding.candidates = offers
            .into_iter()
            .take(self.limit)
            .map(|(candidate, _)| candidate)
            .collect();
        finding
    }
}

/// What two brokers say of one hardware: that a proof failed counts, then that one did not.
const fn cautious<'a>(
    left: &'a VerificationLevel,
    right: &'a VerificationLevel,
) -> &'a VerificationLevel {
    match (left, right) {
        (VerificationLevel::Withdrawn { .. }, _) | (_, VerificationLevel::Unverified) => left,
        (_, VerificationLevel::Withdrawn { .. }) | (VerificationLevel::Unverified, _) => right,
        (VerificationLevel::Verified { .. }, VerificationLevel::Verified { .. }) => left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::offers;
    use protocol::bounded::List;
    use protocol::filter::parse_sort;
    use protocol::units::{MicroUsd, Timestamp};

    const ONE: BrokerId = offers::BROKERS[0];
    const TWO: BrokerId = offers::BROKERS[1];

    fn search(expression: &str) -> Search {
        let filter = expression.parse().unwrap();
        Search {
            filter,
            sort: List::default(),
            need: Need::default(),
            kind: ContractKind::OnDemand,
            limit: 20,
            job: None,
        }
    }

    fn found(offers: Vec<FoundOffer>, matching: u32, of: u32) -> Found {
        Found {
            offers: List::new(offers).unwrap(),
            matching,
            of,
            ..Found::default()
        }
    }

    fn prices(finding: &Finding) -> Vec<u64> {
        finding.candidates.iter().map(|one| one.price.0).collect()
    }

    // peers 3.1 #6: nor is one offer of two brokers two.
    #[test]
    fn an_offer_of_two_brokers_is_one_with_both() {
        let query = search("");
        let mut merger = Merger::new(&query);
        let (old, new) = (offers::found(1, 1, 300_000), offers::found(1, 2, 200_000));
        merger.add(ONE, &found(vec![old, offers::found(2, 1, 250_000)], 2, 5));
        merger.add(TWO, &found(vec![new], 1, 4));
        let finding = merger.finish();
        assert_eq!(prices(&finding), [200_000, 250_000]);
        assert_eq!(finding.candidates[0].brokers, [ONE, TWO]);
        assert_eq!(finding.candidates[1].brokers, [ONE]);
        // Five and four, of which one is the same.
        assert_eq!((finding.matching, finding.of), (2, 8));
        assert!(finding.warnings.is_empty());
    }

    #[test]
    fn a_proof_that_failed_at_one_broker_counts_and_then_one_that_did_not() {
        let at = Timestamp(1);
        let verdict = protocol::ids::Digest::of(b"verdict");
        let proved = VerificationLevel::Verified { at, verdict };
        let reason = protocol::verify::Withdrawal::Stale;
        let failed = VerificationLevel::Withdrawn { reason, at };
        let unknown = VerificationLevel::Unverified;
        let query = search("");
        for (one, two, wanted) in [
            (&proved, &unknown, &proved),
            (&unknown, &proved, &proved),
            (&proved, &failed, &failed),
            (&failed, &unknown, &failed),
            (&unknown, &unknown, &unknown),
        ] {
            let mut merger = Merger::new(&query);
            for (broker, level) in [(ONE, one), (TWO, two)] {
                let mut offer = offers::found(1, 1, 300_000);
                offer.verification = level.clone();
                merger.add(broker, &found(vec![offer], 1, 1));
            }
            assert_eq!(&merger.finish().candidates[0].verification, wanted);
        }
    }

    #[test]
    fn one_offer_of_two_brokers_is_one_of_one() {
        let query = search("");
        let mut merger = Merger::new(&query);
        for broker in [ONE, TWO] {
            let answer = Found {
                rented: 2,
                ..found(vec![offers::found(1, 1, 300_000)], 1, 1)
            };
            merger.add(broker, &answer);
        }
        let finding = merger.finish();
        assert_eq!((finding.matching, finding.of, finding.rented), (1, 1, 4));
    }

    #[test]
    fn the_asked_order_and_limit_hold_over_all_brokers() {
        let query = Search {
            sort: parse_sort("price-").unwrap(),
            limit: 2,
            ..search("")
        };
        let mut merger = Merger::new(&query);
        merger.add(
            ONE,
            &found(
                vec![offers::found(1, 1, 100), offers::found(2, 1, 300)],
                7,
                7,
            ),
        );
        merger.add(TWO, &found(vec![offers::found(3, 1, 200)], 1, 1));
        let finding = merger.finish();
        assert_eq!((prices(&finding), finding.matching), (vec![300, 200], 8));
    }

    #[test]
    fn what_a_broker_made_up_is_left_out_with_a_warning() {
        let query = search("price<0.3");
        let mut merger = Merger::new(&query);
        let elsewhere = offers::for_brokers(1, vec![TWO]);
        let dear = offers::found(2, 1, 300_000);
        let forged = offers::forged();
        let good = offers::found(3, 1, 299_999);
        merger.add(ONE, &found(vec![elsewhere, dear, forged, good], 4, 4));
        let finding = merger.finish();
        assert_eq!(prices(&finding), [299_999]);
        let problems = ["is for other brokers", "does not match", "does not verify"];
        for (warning, problem) in finding.warnings.iter().zip(problems) {
            assert!(warning.contains(problem), "{warning}");
        }
        assert_eq!(finding.warnings.len(), 3);
    }

    #[test]
    fn reasons_add_up_and_the_nearest_of_all_is_kept() {
        let query = search("gpus>=8 price<0.1");
        let mut merger = Merger::new(&query);
        let part = |eliminated, without_it, cheapest: Option<i64>| Elimination {
            term: 1,
            eliminated,
            without_it,
            cheapest: cheapest.map(MicroUsd),
        };
        let answer = |elimination, nearest| Found {
            eliminated: List::new(vec![elimination]).unwrap(),
            nearest: Some(nearest),
            ..found(vec![], 0, 3)
        };
        merger.add(
            ONE,
            &answer(part(3, 1, Some(400)), offers::found(1, 1, 400_000)),
        );
        merger.add(TWO, &answer(part(2, 0, None), offers::found(2, 1, 90_000)));
        let finding = merger.finish();
        assert_eq!(finding.eliminated, [part(5, 1, Some(400))]);
        let (nearest, fails) = finding.nearest.unwrap();
        // The second fails the number of GPUs alone.
        assert_eq!((nearest.price.0, fails), (90_000, vec![0]));
    }
}
