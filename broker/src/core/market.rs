//! The hard state: what the journal adds up to. It changes by applying events and in no other way, and an
//! event is never refused here.
//!
//! Must not decide anything, and must not hold what a restart may forget.

use crate::core::event::{Event, Fact, Move, Reading, Terms};
use crate::core::lease::{Lease, State};
use crate::core::ledger::{Account, Ledger};
use crate::core::payment::{Note, Payment, PaymentKind, Payout};
use crate::core::reliability::Reliability;
use crate::core::rest::Resting;
use crate::core::seen::ReplayWindow;
use protocol::ids::{BrokerId, DepositId, HostId, LeaseId, PaymentId, PublicKey, RenterId};
use protocol::lease::{EndCause, PauseCause};
use protocol::offer::ResourceName;
use protocol::order::LeaseName;
use protocol::units::{MicroUsd, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// All that a broker must never forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Market {
    pub(crate) broker: BrokerId,
    pub(crate) events: u64,
    pub(crate) last_number: u64,
    pub(crate) last_at: Timestamp,
    pub(crate) ledger: Ledger,
    pub(crate) deposits: BTreeMap<DepositId, (RenterId, MicroUsd)>,
    pub(crate) leases: BTreeMap<LeaseId, Box<Lease>>,
    pub(crate) seen: ReplayWindow,
    pub(crate) reliability: Reliability,
    /// Moves of hosts' money.
    pub(crate) payments: BTreeMap<PaymentId, Payment>,
    /// Hosts that may take no leases, and why.
    pub(crate) suspended: BTreeMap<HostId, Note>,
    /// Orders that wait, and those that ended waiting.
    pub(crate) rests: BTreeMap<LeaseId, Box<Resting>>,
    index: Index,
}

/// What can be computed from the leases, kept so that it need not be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Index {
    /// Names of renters' open leases.
    names: BTreeMap<RenterId, BTreeMap<LeaseName, LeaseId>>,
    /// Who has what now.
    resources: BTreeMap<(HostId, ResourceName), LeaseId>,
    /// Who has what next: leases that wait for those who have it now to go.
    claims: BTreeMap<(HostId, ResourceName), LeaseId>,
    /// What was paid out.
    paid_out: BTreeMap<HostId, MicroUsd>,
    /// Payouts that are to be paid.
    payouts: BTreeMap<HostId, PaymentId>,
    /// Orders of a renter that wait, by the broker's number.
    rests: BTreeMap<RenterId, BTreeMap<u64, LeaseId>>,
    /// Orders of a renter that waited and became no lease, by the broker's number.
    past_rests: BTreeMap<RenterId, BTreeMap<u64, LeaseId>>,
    /// Leases that have anything now.
    holders: BTreeSet<LeaseId>,
    /// All leases of a party by the broker's number.
    all: BTreeMap<PublicKey, BTreeMap<u64, LeaseId>>,
    /// Leases of a party that are not over, by the broker's number.
    live: BTreeMap<PublicKey, BTreeMap<u64, LeaseId>>,
    /// Leases that are not over.
    live_leases: BTreeSet<LeaseId>,
    /// Renters who ever had money here.
    renters: BTreeSet<RenterId>,
}

impl Market {
    /// The market of a broker on its first day.
    #[must_use]
    pub fn new(broker: BrokerId) -> Self {
        Self {
            broker,
            events: 0,
            last_number: 0,
            last_at: Timestamp::default(),
            ledger: Ledger::default(),
            deposits: BTreeMap::new(),
            leases: BTreeMap::new(),
            seen: ReplayWindow::default(),
            reliability: Reliability::default(),
            payments: BTreeMap::new(),
            suspended: BTreeMap::new(),
            rests: BTreeMap::new(),
            index: Index::default(),
        }
    }

    /// Does what happened.
    pub fn apply(&mut self, event: Event) {
        let before = event.lease().and_then(|id| self.leases.get(&id));
        self.reliability.note(&event, before.map(|lease| &**lease));
        let Event { at, fact, entries } = event;
        self.events = self.events.saturating_add(1);
        self.last_at = self.last_at.max(at);
        self.seen.forget(at);
        self.ledger.apply(&entries);
        match fact {
            Fact::Deposited {
                id, renter, amount, ..
            } => {
                self.add_deposit(id, renter, amount);
            }
            Fact::Matched(matched) => {
                self.seen.remember(&matched.order, at);
                self.last_number = self.last_number.max(matched.award.body().number);
                self.take_rest(matched.award.body().lease);
                self.insert(Box::new(Lease::of_match(*matched, at)));
            }
            Fact::Granted { lease, grant } => self.change(lease, |lease| {
                if let State::Offered { start_by, .. } = lease.state {
                    lease.state = State::Accepted { start_by };
                    lease.since = at;
                }
                lease.grant = Some(*grant);
            }),
            Fact::Moved(moved) => self.change(moved.lease, |lease| {
                step(lease, *moved, at);
                lease.mark_earnings(at);
            }),
            Fact::Metered(reading) => self.change(reading.lease, |lease| {
                let Reading {
                    meter,
                    charged,
                    term,
                    ..
                } = *reading;
                lease.meter = meter;
                lease.charged = charged;
                lease.term = term;
                lease.mark_earnings(at);
            }),
            Fact::Held { .. } | Fact::Heard(_) | Fact::Away(_) => {}
            Fact::Warned { lease, low } => self.change(lease, |lease| lease.low_balance = low),
            Fact::Commanded(command) => self.seen.remember(&command, at),
            Fact::Rested(rest) => {
                self.seen.remember(&rest.order, at);
                self.last_number = self.last_number.max(rest.number);
                self.take_lease(rest.lease);
                self.insert_rest(Resting::new(*rest, at));
            }
            Fact::Lapsed { lease, cause } => self.change_rest(lease, |rest| {
                rest.ended = Some((at, cause));
            }),
            Fact::RestRebid { lease, bid } => self.change_rest(lease, |rest| rest.bid = bid),
            Fact::Cleared {
                lease,
                accept_by,
                start_by,
            } => self.change(lease, |lease| {
                lease.state = State::Offered {
                    accept_by,
                    start_by,
                };
                lease.since = at;
            }),
            Fact::Changed(terms) => self.change(terms.lease, |lease| {
                change_terms(lease, *terms);
                lease.mark_earnings(at);
            }),
            Fact::Paid { id, payment } => self.pay(id, *payment),
            Fact::Matured { lease, mark } => self.change(lease, |lease| {
                lease.matured = lease.matured.max(mark.earned);
                lease.marks.retain(|later| later.at > mark.at);
            }),
            Fact::Suspended { host, why } => {
                self.suspend(host, why);
            }
        }
    }

    /// Takes up a deposit, from an event or a snapshot.
    pub(crate) fn add_deposit(&mut self, id: DepositId, renter: RenterId, amount: MicroUsd) {
        self.deposits.insert(id, (renter, amount));
        self.index.renters.insert(renter);
    }

    /// Takes up a payment, or what it is now.
    pub(crate) fn pay(&mut self, id: PaymentId, payment: Payment) {
        match payment.what {
            // A snapshot's lease has it in it; a payment of one is put down there before its leases.
            PaymentKind::Refund(lease) => self.change(lease, |lease| {
                lease.refunded = lease.refunded.saturating_add(payment.amount);
            }),
            PaymentKind::Payout(host, stands) => {
                self.index.payout(host, (id, payment.amount), stands);
            }
            PaymentKind::Bond(_) | PaymentKind::BondReturned(_) => {}
        }
        self.payments.insert(id, payment);
    }

    /// Lets a host take no leases from here on, or lets it again.
    pub(crate) fn suspend(&mut self, host: HostId, why: Option<Note>) {
        match why {
            Some(why) => self.suspended.insert(host, why),
            None => self.suspended.remove(&host),
        };
    }

    /// A move of a host's money.
    #[must_use]
    pub fn payment(&self, id: PaymentId) -> Option<&Payment> {
        self.payments.get(&id)
    }

    /// All moves of hosts' money, by id.
    pub fn payments(&self) -> impl Iterator<Item = (PaymentId, &Payment)> {
        self.payments.iter().map(|(id, payment)| (*id, payment))
    }

    /// The payout that is to be paid to a host.
    #[must_use]
    pub fn open_payout(&self, host: HostId) -> Option<(PaymentId, &Payment)> {
        let id = *self.index.payouts.get(&host)?;
        Some((id, self.payment(id)?))
    }

    /// What was paid out to a host in all.
    #[must_use]
    pub fn paid_out(&self, host: HostId) -> MicroUsd {
        self.index
            .paid_out
            .get(&host)
            .copied()
            .unwrap_or(MicroUsd::ZERO)
    }

    /// Why a host may take no leases, if it may not.
    #[must_use]
    pub fn suspended(&self, host: HostId) -> Option<&Note> {
        self.suspended.get(&host)
    }

    /// Takes up a lease, from a match or a snapshot.
    pub(crate) fn insert(&mut self, lease: Box<Lease>) {
        self.index.add(&lease);
        self.leases.insert(lease.id, lease);
    }

    /// Takes up an order that waits, or waited, from an event or a snapshot.
    pub(crate) fn insert_rest(&mut self, rest: Resting) {
        self.index.rest(&rest);
        self.rests.insert(rest.lease, Box::new(rest));
    }

    fn change_rest(&mut self, id: LeaseId, change: impl FnOnce(&mut Resting)) {
        if let Some(rest) = self.rests.get_mut(&id) {
            self.index.unrest(rest);
            change(rest);
            self.index.rest(rest);
        }
    }

    /// A lease that no host ever knew of waits again.
    fn take_lease(&mut self, id: LeaseId) {
        if let Some(mut lease) = self.leases.remove(&id) {
            lease.state = State::Closed {
                cause: EndCause::Renter,
            };
            self.index.renew(&lease);
            self.index.forget(&lease);
        }
    }

    /// An order that waited became a lease.
    fn take_rest(&mut self, id: LeaseId) {
        if let Some(rest) = self.rests.remove(&id) {
            self.index.unrest(&rest);
        }
    }

    /// An order that waits, or waited and became no lease.
    #[must_use]
    pub fn resting(&self, id: LeaseId) -> Option<&Resting> {
        self.rests.get(&id).map(|rest| &**rest)
    }

    /// All orders that wait or waited, by id.
    pub fn rests(&self) -> impl Iterator<Item = &Resting> {
        self.rests.values().map(|rest| &**rest)
    }

    /// The orders of a renter that wait, newest first.
    pub fn rests_of(&self, renter: RenterId) -> impl Iterator<Item = &Resting> {
        let ids = self
            .index
            .rests
            .get(&renter)
            .into_iter()
            .flat_map(|ids| ids.values().rev());
        ids.filter_map(|id| self.resting(*id))
    }

    /// The orders of a renter that waited and became no lease, newest first.
    pub fn past_rests_of(&self, renter: RenterId) -> impl Iterator<Item = &Resting> {
        let ids = self
            .index
            .past_rests
            .get(&renter)
            .into_iter()
            .flat_map(|ids| ids.values().rev());
        ids.filter_map(|id| self.resting(*id))
    }

    fn change(&mut self, id: LeaseId, change: impl FnOnce(&mut Lease)) {
        // An event is about a lease that an earlier one made.
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        let before = standing(&lease.state);
        change(lease);
        if before != standing(&lease.state) {
            self.index.renew(lease);
        }
    }

    /// The broker whose market this is.
    #[must_use]
    pub const fn broker(&self) -> BrokerId {
        self.broker
    }

    /// How many events it adds up: the number of the last one.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// The renters who ever had money here.
    #[must_use]
    pub const fn renters(&self) -> &BTreeSet<RenterId> {
        &self.index.renters
    }

    /// When the last event happened.
    #[must_use]
    pub const fn last_at(&self) -> Timestamp {
        self.last_at
    }

    /// What is known of hosts.
    #[must_use]
    pub const fn reliability(&self) -> &Reliability {
        &self.reliability
    }

    /// The accounts.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What was credited, and to whom, under that id.
    #[must_use]
    pub fn deposit(&self, id: &DepositId) -> Option<(RenterId, MicroUsd)> {
        self.deposits.get(id).copied()
    }

    /// A lease.
    #[must_use]
    pub fn lease(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(&id).map(|lease| &**lease)
    }

    /// All leases, by id.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values().map(|lease| &**lease)
    }

    /// The leases that are not over, by id.
    pub fn live_leases(&self) -> impl Iterator<Item = &Lease> {
        self.index
            .live_leases
            .iter()
            .filter_map(|id| self.lease(*id))
    }

    /// All leases of a party, as renter or host, newest first.
    pub fn leases_of(&self, party: PublicKey) -> impl Iterator<Item = &Lease> {
        let ids = self
            .index
            .all
            .get(&party)
            .into_iter()
            .flat_map(|ids| ids.values().rev());
        ids.filter_map(|id| self.lease(*id))
    }

    /// The leases of a party that are not over, newest first.
    pub fn live_leases_of(&self, party: PublicKey) -> impl Iterator<Item = &Lease> {
        let ids = self
            .index
            .live
            .get(&party)
            .into_iter()
            .flat_map(|ids| ids.values().rev());
        ids.filter_map(|id| self.lease(*id))
    }

    /// The lease that has a resource now.
    #[must_use]
    pub fn holder(&self, host: HostId, resource: &ResourceName) -> Option<LeaseId> {
        self.index.resources.get(&(host, resource.clone())).copied()
    }

    /// The lease that has a resource next, as soon as its holder has gone.
    #[must_use]
    pub fn claimant(&self, host: HostId, resource: &ResourceName) -> Option<LeaseId> {
        self.index.claims.get(&(host, resource.clone())).copied()
    }

    /// How many leases have a resource now: so many offers are not there for anybody else.
    #[must_use]
    pub fn holders(&self) -> usize {
        self.index.holders.len()
    }

    /// The open lease of that name.
    #[must_use]
    pub fn named(&self, renter: RenterId, name: &LeaseName) -> Option<LeaseId> {
        self.index.names.get(&renter)?.get(name).copied()
    }

    /// What is free to spend.
    #[must_use]
    pub fn available(&self, renter: RenterId) -> MicroUsd {
        self.ledger.balance(&Account::RenterAvailable(renter))
    }

    /// What is held for a lease.
    #[must_use]
    pub fn held(&self, lease: LeaseId) -> MicroUsd {
        self.ledger.balance(&Account::RenterLocked(lease))
    }
}

/// What of a state the index depends on.
const fn standing(state: &State) -> (bool, bool, bool, bool) {
    (
        state.holds_resources(),
        state.is_open(),
        state.is_closed(),
        matches!(state, State::Clearing { .. }),
    )
}

/// The lease with other terms.
fn change_terms(lease: &mut Lease, terms: Terms) {
    let Terms {
        kind,
        bid,
        fallback,
        prices,
        rates,
        term,
        meter,
        charged,
        ..
    } = terms;
    let contract = &mut lease.contract;
    (contract.kind, contract.bid, contract.fallback) = (kind, bid, fallback);
    (contract.prices, contract.rates) = (prices, rates);
    if let (None, Some(bought)) = (&lease.term, &term) {
        contract.budget = contract.budget.saturating_sub(bought.prepaid);
    }
    lease.term = term;
    (lease.meter, lease.charged) = (meter, charged);
}

/// The lease in its next state.
fn step(lease: &mut Lease, moved: Move, at: Timestamp) {
    let Move {
        to,
        meter,
        charged,
        rates,
        term,
        ..
    } = moved;
    if matches!(
        (&lease.state, &to),
        // A lease that clears on its way to be prepared has run before: a first one is offered.
        (
            State::Paused { .. } | State::Clearing { .. },
            State::Preparing { .. }
        )
    ) {
        lease.run = lease.run.saturating_add(1);
    }
    if lease.started_at.is_none() && has_run(&to) {
        lease.started_at = Some(at);
    }
    if matches!(to, State::Running) && lease.state.is_starting() {
        lease.run_from = meter.usage.running;
    }
    if let Some(rates) = rates {
        lease.contract.rates = rates;
    }
    lease.term = term;
    lease.meter = meter;
    lease.charged = charged;
    lease.state = to;
    lease.since = at;
    if lease.state.is_closed() {
        lease.file_papers();
    }
}

/// Whether only a container that started gets into this state.
const fn has_run(state: &State) -> bool {
    match state {
        State::Running | State::Noticed { .. } => true,
        State::Paused { cause, .. } => {
            matches!(
                cause,
                PauseCause::Exited(_) | PauseCause::OutOfMemory | PauseCause::DiskFull
            )
        }
        State::Clearing { .. }
        | State::Offered { .. }
        | State::Accepted { .. }
        | State::Preparing { .. }
        | State::Suspect { .. }
        | State::Closing { .. }
        | State::Closed { .. } => false,
    }
}

impl Index {
    /// Puts up what an order that waits has.
    fn rest(&mut self, rest: &Resting) {
        self.renters.insert(rest.renter());
        if rest.ended.is_none() {
            let name = rest.order.body().name.clone();
            let of_renter = self.names.entry(rest.renter()).or_default();
            of_renter.insert(name, rest.lease);
            let of_renter = self.rests.entry(rest.renter()).or_default();
            of_renter.insert(rest.number, rest.lease);
        } else {
            let of_renter = self.past_rests.entry(rest.renter()).or_default();
            of_renter.insert(rest.number, rest.lease);
        }
    }

    /// Puts down where a payout stands: an event says so once, and a snapshot once.
    fn payout(&mut self, host: HostId, (id, amount): (PaymentId, MicroUsd), stands: Payout) {
        if stands == Payout::Open {
            self.payouts.insert(host, id);
            return;
        }
        if self.payouts.get(&host) == Some(&id) {
            self.payouts.remove(&host);
        }
        if matches!(stands, Payout::Paid(_)) {
            let paid = self.paid_out.entry(host).or_default();
            *paid = paid.saturating_add(amount);
        }
    }

    /// Takes it down again.
    fn unrest(&mut self, rest: &Resting) {
        self.name(rest.renter(), &rest.order.body().name, rest.lease, false);
        if let Some(of_renter) = self.rests.get_mut(&rest.renter()) {
            of_renter.remove(&rest.number);
            if of_renter.is_empty() {
                self.rests.remove(&rest.renter());
            }
        }
    }

    /// Gives a name to a lease, or takes it away.
    fn name(&mut self, renter: RenterId, name: &LeaseName, lease: LeaseId, belongs: bool) {
        let of_renter = self.names.entry(renter).or_default();
        set(of_renter, name.clone(), lease, belongs);
        if of_renter.is_empty() {
            self.names.remove(&renter);
        }
    }

    fn add(&mut self, lease: &Lease) {
        let number = lease.contract.number;
        for party in parties(lease) {
            self.all.entry(party).or_default().insert(number, lease.id);
        }
        self.renew(lease);
    }

    /// Takes down a lease that is over and is to be forgotten.
    fn forget(&mut self, lease: &Lease) {
        for party in parties(lease) {
            if let Some(of_party) = self.all.get_mut(&party) {
                of_party.remove(&lease.contract.number);
                if of_party.is_empty() {
                    self.all.remove(&party);
                }
            }
        }
    }

    /// Puts right what depends on the lease's state.
    fn renew(&mut self, lease: &Lease) {
        let contract = &lease.contract;
        self.name(
            contract.renter,
            &contract.name,
            lease.id,
            lease.state.is_open(),
        );
        for resource in &contract.share.resources {
            let key = (contract.host, resource.clone());
            let claims = matches!(lease.state, State::Clearing { .. });
            set(&mut self.claims, key.clone(), lease.id, claims);
            set(
                &mut self.resources,
                key,
                lease.id,
                lease.state.holds_resources(),
            );
        }
        if lease.state.holds_resources() {
            self.holders.insert(lease.id);
        } else {
            self.holders.remove(&lease.id);
        }
        let live = !lease.state.is_closed();
        for party in parties(lease) {
            let of_party = self.live.entry(party).or_default();
            set(of_party, contract.number, lease.id, live);
            if of_party.is_empty() {
                self.live.remove(&party);
            }
        }
        if live {
            self.live_leases.insert(lease.id);
        } else {
            self.live_leases.remove(&lease.id);
        }
    }
}

/// Makes `key` belong to `lease`, or no longer; what belongs to another lease is left alone.
fn set<K: Ord>(map: &mut BTreeMap<K, LeaseId>, key: K, lease: LeaseId, belongs: bool) {
    if belongs {
        map.insert(key, lease);
    } else if map.get(&key) == Some(&lease) {
        map.remove(&key);
    }
}

fn parties(lease: &Lease) -> [PublicKey; 2] {
    [lease.contract.renter.into(), lease.contract.host.into()]
}
