//! Why nothing matched: for each term how many offers it cost, what taking it away would bring, and the
//! offer that comes nearest.

use super::evaluate::Failed;
use super::facts::{Facts, Rank};
use super::{Elimination, TERMS_MAX};
use crate::bounded::List;
use crate::ids::OfferId;
use crate::terms::Need;

/// Collects what each offer fails, one pass over any number of offers.
#[derive(Debug, Clone)]
pub struct Explanation {
    need: Need,
    eliminations: Vec<Elimination>,
    nearest: Option<(u32, Rank)>,
}

impl Explanation {
    /// For a filter of `terms` terms, with `need` to price with.
    #[must_use]
    pub fn new(terms: usize, need: Need) -> Self {
        let eliminations = (0..terms.min(TERMS_MAX))
            .filter_map(|index| u8::try_from(index).ok())
            .map(|term| Elimination {
                term,
                eliminated: 0,
                without_it: 0,
                cheapest: None,
            })
            .collect();
        Self {
            need,
            eliminations,
            nearest: None,
        }
    }

    /// Counts an offer that fails these terms.
    pub fn add(&mut self, facts: &Facts, failed: Failed) {
        let price = facts.price(self.need);
        for elimination in &mut self.eliminations {
            let index = usize::from(elimination.term);
            if failed.has(index) {
                elimination.eliminated = elimination.eliminated.saturating_add(1);
            }
            if failed.is_only(index) {
                elimination.without_it = elimination.without_it.saturating_add(1);
                let cheapest = elimination.cheapest.map_or(price, |known| known.min(price));
                elimination.cheapest = Some(cheapest);
            }
        }
        let distance = (failed.count(), facts.rank(self.need));
        if self.nearest.is_none_or(|nearest| distance < nearest) {
            self.nearest = Some(distance);
        }
    }

    /// What each term did.
    #[must_use]
    pub fn eliminations(&self) -> List<Elimination, TERMS_MAX> {
        List::first(self.eliminations.iter().copied())
    }

    /// The offer and the number of its GPUs that fail the fewest terms; of several, the first by rank.
    #[must_use]
    pub fn nearest(&self) -> Option<(OfferId, u16)> {
        self.nearest.map(|(_, (.., id, gpus))| (id, gpus))
    }
}
