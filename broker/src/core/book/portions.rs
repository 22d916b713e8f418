//! All portions of all offers in the index, and what the index asks about them.
//!
//! A portion is hidden until the desk says that it can be had: see [`super::Book::settle`]. Must not know why a
//! portion can be had.

use super::columns::{self, EXTRAS};
use super::index::{Explained, Index, Matches, Order, Query, Row, Rows, Slot};
use super::names::Names;
use super::{Listing, columns::is_known};
use protocol::filter::{Facts, Field, Filter, Prepared, SortKey, compare};
use protocol::ids::OfferId;
use protocol::terms::{ContractKind, Need, storage_due, traffic_due};
use protocol::units::{PricePerGb, PricePerGbMonth, Seconds};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Of so many it is not worth to keep the first in order while others are looked at.
const MANY: usize = 512;

/// The portions of all offers.
#[derive(Debug)]
pub(super) struct Portions {
    index: Index,
    names: Names,
    /// Whose each row is, by the number of its slot.
    owners: Vec<Owner>,
    /// How many rows are slices: without one, no search has to tell them apart.
    slices: usize,
}

/// What a row is a portion of.
#[derive(Debug, Clone, Copy)]
struct Owner {
    offer: OfferId,
    gpus: u16,
    pushes_out: bool,
}

/// A question about the portions that stand in the book.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) filter: &'a Filter,
    pub(super) need: Need,
    pub(super) sort: &'a [SortKey],
    pub(super) wanted: usize,
}

impl Portions {
    pub(super) fn new() -> Self {
        Self {
            index: Index::new(columns::layout()),
            names: Names::default(),
            owners: Vec::new(),
            slices: 0,
        }
    }

    /// Takes a portion in, hidden.
    pub(super) fn insert(&mut self, offer: OfferId, facts: &Facts) -> Slot {
        let values = columns::values(facts, false, &mut self.names);
        self.names.keep(facts);
        self.slices += usize::from(facts.is_slice());
        let row = Row {
            values: &values,
            tie: columns::tie(facts),
        };
        let slot = self.index.insert(&row, false);
        let owner = Owner {
            offer,
            gpus: facts.gpus(),
            pushes_out: false,
        };
        match self.owners.get_mut(slot.number()) {
            Some(place) => *place = owner,
            None => self.owners.push(owner),
        }
        slot
    }

    /// Forgets a portion that has these facts.
    pub(super) fn remove(&mut self, slot: Slot, facts: &Facts) {
        self.index.remove(slot);
        self.names.release(facts);
        self.slices -= usize::from(facts.is_slice());
    }

    /// A portion has other facts than before.
    pub(super) fn update(&mut self, slot: Slot, before: &Facts, facts: &Facts) {
        if before == facts {
            return;
        }
        let Some(owner) = self.owners.get(slot.number()) else {
            return;
        };
        let was = columns::values(before, owner.pushes_out, &mut self.names);
        let values = columns::values(facts, owner.pushes_out, &mut self.names);
        self.names.keep(facts);
        self.names.release(before);
        self.slices += usize::from(facts.is_slice());
        self.slices -= usize::from(before.is_slice());
        let row = Row {
            values: &values,
            tie: columns::tie(facts),
        };
        self.index.update(slot, &was, &row);
    }

    /// Hides a portion.
    pub(super) fn hide(&mut self, slot: Slot) {
        self.index.show(slot, false);
    }

    /// Shows a portion that can be had, and whether somebody has to go for it.
    pub(super) fn show(&mut self, slot: Slot, facts: &Facts, pushes_out: bool) {
        if let Some(owner) = self.owners.get_mut(slot.number())
            && owner.pushes_out != pushes_out
        {
            let was = columns::values(facts, owner.pushes_out, &mut self.names);
            owner.pushes_out = pushes_out;
            let values = columns::values(facts, pushes_out, &mut self.names);
            let row = Row {
                values: &values,
                tie: columns::tie(facts),
            };
            self.index.update(slot, &was, &row);
        }
        self.index.show(slot, true);
    }

    /// Bytes that the index takes.
    #[cfg(test)]
    pub(super) fn index_bytes(&self) -> usize {
        self.index.bytes()
    }

    /// The offer and the number of GPUs of a row.
    pub(super) fn owner(&self, slot: Slot) -> Option<(OfferId, u16)> {
        let owner = self.owners.get(slot.number());
        owner.map(|owner| (owner.offer, owner.gpus))
    }

    /// How many of the portions that `asked` looks at are shown and can be had by a lease of that kind: of
    /// interruptible ones, those for which nobody has to go.
    pub(super) fn shown(&self, asked: &Filter, kind: ContractKind, listings: &Listings) -> usize {
        let filter = Filter::default();
        let mut query = columns::query(&filter, Need::default(), &self.names);
        query.scope = scope(kind, false);
        query.scope.extend(self.looked_at(asked));
        if query.scope.is_empty() {
            return self.index.shown();
        }
        query.wanted = 0;
        query.order = Order::Total;
        let question = Question {
            filter: &filter,
            need: Need::default(),
            sort: &[],
            wanted: 0,
        };
        self.ask(&query, question, listings).count
    }

    /// Those of them that match, and the first in the asked order.
    pub(super) fn search(
        &self,
        question: Question<'_>,
        kind: ContractKind,
        listings: &Listings,
    ) -> Matches {
        let mut query = self.query(question);
        query.scope = scope(kind, false);
        query.scope.extend(self.looked_at(question.filter));
        self.ask(&query, question, listings)
    }

    /// What keeps each of them from matching.
    pub(super) fn explain(
        &self,
        question: Question<'_>,
        kind: ContractKind,
        listings: &Listings,
    ) -> Explained {
        let mut query = self.query(question);
        query.scope = scope(kind, false);
        query.scope.extend(self.looked_at(question.filter));
        let asked = Asked::new(self, question, listings);
        self.index.explain(&query, &asked)
    }

    /// The interruptible portions that are shown and for which somebody would have to go.
    pub(super) fn contested(&self, listings: &Listings) -> Vec<Slot> {
        let question = Question {
            filter: &Filter::default(),
            need: Need::default(),
            sort: &[],
            wanted: usize::MAX,
        };
        let mut query = self.query(question);
        query.scope = scope(ContractKind::Interruptible, true);
        self.ask(&query, question, listings).first
    }

    /// All portions of `gpus` GPUs that match, hidden or not, in no order.
    pub(super) fn matching(
        &self,
        filter: &Filter,
        need: Need,
        gpus: u16,
        listings: &Listings,
    ) -> Vec<Slot> {
        let question = Question {
            filter,
            need,
            sort: &[],
            wanted: usize::MAX,
        };
        let mut query = self.query(question);
        query.sees_all = true;
        query.scope = vec![columns::is(columns::column(Field::NumGpus), gpus.into())];
        query.scope.extend(self.looked_at(filter));
        self.ask(&query, question, listings).first
    }

    /// What is looked at beside the terms: whole GPUs alone, unless the filter says which slices.
    fn looked_at(&self, filter: &Filter) -> Option<super::index::Test> {
        let tells_apart = self.slices > 0 && !filter.names_partition();
        tells_apart.then(|| columns::is(columns::is_slice(), 0))
    }

    fn query(&self, question: Question<'_>) -> Query {
        // Where all are wanted, they are put in order at the end.
        let order = if question.wanted > MANY {
            Order::Outside
        } else {
            columns::order(question.sort)
        };
        Query {
            order,
            wanted: question.wanted,
            ..columns::query(question.filter, question.need, &self.names)
        }
    }

    fn ask(&self, query: &Query, question: Question<'_>, listings: &Listings) -> Matches {
        let asked = Asked::new(self, question, listings);
        self.index.search(query, &asked)
    }
}

/// The offers of the book.
pub(super) type Listings = BTreeMap<OfferId, Listing>;

/// What a lease of a kind needs of a portion beside that it is shown.
fn scope(kind: ContractKind, pushes_out: bool) -> Vec<super::index::Test> {
    match kind {
        ContractKind::OnDemand | ContractKind::Bid => Vec::new(),
        ContractKind::Reserved => vec![is_known(Field::DiscountMax)],
        ContractKind::Interruptible => vec![
            is_known(Field::MinBid),
            columns::is(columns::pushes_out(), pushes_out.into()),
        ],
    }
}

/// What the index asks while it answers a question.
struct Asked<'a> {
    portions: &'a Portions,
    listings: &'a Listings,
    question: Question<'a>,
    prepared: Prepared,
}

impl<'a> Asked<'a> {
    fn new(portions: &'a Portions, question: Question<'a>, listings: &'a Listings) -> Self {
        Self {
            portions,
            listings,
            question,
            prepared: question.filter.prepare(question.need),
        }
    }

    fn facts(&self, slot: Slot) -> Option<&'a Facts> {
        let (offer, gpus) = self.portions.owner(slot)?;
        self.listings.get(&offer)?.facts(gpus)
    }
}

impl Rows for Asked<'_> {
    fn extra(&self, which: usize, price: i64) -> i64 {
        let price = u64::try_from(price).unwrap_or(0);
        let need = self.question.need;
        let hour = Seconds(3600).millis();
        let cost = match EXTRAS.get(which) {
            Some(Field::StorageCost) => storage_due(PricePerGbMonth(price), need.disk, hour),
            Some(Field::UploadCost) => traffic_due(PricePerGb(price), need.upload),
            Some(_) | None => traffic_due(PricePerGb(price), need.download),
        };
        cost.0
    }

    fn holds(&self, test: usize, slot: Slot) -> bool {
        let failed = self.facts(slot).map(|facts| self.prepared.failed(facts));
        failed.is_some_and(|failed| !failed.has(test))
    }

    fn compare(&self, left: Slot, right: Slot) -> Ordering {
        match (self.facts(left), self.facts(right)) {
            (Some(left), Some(right)) => {
                compare(self.question.sort, self.question.need, left, right)
            }
            (left, right) => left.is_none().cmp(&right.is_none()),
        }
    }
}
