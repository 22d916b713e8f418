//! The hard state: what the journal adds up to. It changes by applying events and in no other way, and an
//! event is never refused here.
//!
//! Must not decide anything, and must not hold what a restart may forget.

pub(crate) mod holdings;
mod index;
mod reading;
mod step;

use self::index::Index;
use self::step::{accept, change_terms, read, step};
use crate::core::event::{Event, Fact};
use crate::core::lease::{Lease, State};
use crate::core::ledger::Ledger;
use crate::core::payment::{Note, Payment, PaymentKind};
use crate::core::proofs::standing::Proofs;
use crate::core::reliability::Reliability;
use crate::core::rest::Resting;
use crate::core::seen::ReplayWindow;
use protocol::ids::{BrokerId, DepositId, HostId, LeaseId, PaymentId, RenterId};
use protocol::lease::EndCause;
use protocol::units::{MicroUsd, Timestamp};
use std::collections::BTreeMap;

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
    /// What is known of hosts' hardware by proof.
    pub(crate) proofs: Proofs,
    /// Orders that wait, and those that ended waiting.
    pub(crate) rests: BTreeMap<LeaseId, Box<Resting>>,
    index: Index,
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
            proofs: Proofs::default(),
            rests: BTreeMap::new(),
            index: Index::default(),
        }
    }

    /// Does what happened.
    pub fn apply(&mut self, event: Event) {
        let before = event.lease().and_then(|id| self.leases.get(&id));
        self.reliability.note(&event, before.map(|lease| &**lease));
        self.proofs.note(&event, before.map(|lease| &**lease));
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
            Fact::Granted { lease, grant } => self.change(lease, |lease| accept(lease, *grant, at)),
            Fact::Moved(moved) => self.change(moved.lease, |lease| {
                step(lease, *moved, at);
                lease.bound_refunds();
                lease.mark_earnings(at);
            }),
            Fact::Metered(reading) => self.change(reading.lease, |lease| read(lease, *reading, at)),
            Fact::Held { .. }
            | Fact::Heard(_)
            | Fact::Away(_)
            | Fact::Funded { .. }
            | Fact::Reclaimed { .. }
            | Fact::Proved(_) => {}
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
            PaymentKind::Bond(_)
            | PaymentKind::BondReturned(_)
            | PaymentKind::DepositReversed(_) => {}
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
