//! How a step of a lease moves money: the charge is captured, the hold is fitted to what comes next.
//!
//! Must not decide whether a lease takes a step.

use crate::core::charge;
use crate::core::desk::Desk;
use crate::core::event::{Event, Fact, Move, Reading, Terms};
use crate::core::lease::{Lease, State};
use crate::core::ledger::{Account, Entry, Transfer};
use crate::core::meter::Meter;
use crate::core::order::bad_value;
use crate::core::term::{earning, term_moves};
use protocol::bounded::Text;
use protocol::ids::LeaseId;
use protocol::message::Rejection;
use protocol::terms::{ContractKind, Prices, Rates, fee_of};
use protocol::units::{MicroUsd, Millis, PricePerHour, Timestamp};
use protocol::usage::{Amounts, Term};

/// What becomes of the hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// It stays, less what is captured.
    Keep,
    /// It becomes this much, or as near to it as the available money allows.
    Becomes(MicroUsd),
}

struct Settlement {
    meter: Meter,
    charged: Amounts,
    term: Option<Term>,
    entries: Vec<Entry>,
}

/// What a lease is from now on, when its terms change.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewTerms {
    /// Its kind.
    pub(super) kind: ContractKind,
    /// Its bid for each GPU and hour, if it is interruptible.
    pub(super) bid: Option<PricePerHour>,
    /// What it rather pays on demand than be pushed out.
    pub(super) fallback: Option<PricePerHour>,
    /// What an hour of all its GPUs costs from now on; paid in advance when there is a term.
    pub(super) compute: PricePerHour,
    /// The term that is bought, or goes on.
    pub(super) term: Option<Term>,
}

impl Desk {
    /// The event that takes `lease` to its next state, settled with `meter`.
    pub(super) fn moved(&self, now: Timestamp, lease: &Lease, to: State, meter: Meter) -> Event {
        self.moving(now, lease, to, meter, None)
    }

    /// The same with other rates, where a stretch of the lease's running time is waived, or paid again. What
    /// was charged above that is given back.
    pub(super) fn moved_waiving(
        &self,
        now: Timestamp,
        lease: &Lease,
        to: State,
        meter: Meter,
        rates: Rates,
    ) -> Event {
        self.moving(now, lease, to, meter, Some(rates))
    }

    fn moving(
        &self,
        now: Timestamp,
        lease: &Lease,
        to: State,
        meter: Meter,
        rates: Option<Rates>,
    ) -> Event {
        let at = rates.as_ref().unwrap_or(&lease.contract.rates);
        let meter = self.paid_for(lease, at, meter);
        let hold = self.hold_in(lease, &to, &meter);
        let term = self.term_after(now, lease, &to, &meter);
        let Settlement {
            meter,
            charged,
            term,
            entries,
        } = self.settle(lease, at, meter, term, hold);
        let fact = Fact::Moved(Box::new(Move {
            lease: lease.id,
            to,
            meter,
            charged,
            rates,
            term,
        }));
        Event {
            at: now,
            fact,
            entries,
        }
    }

    /// The event that journals a meter.
    pub(super) fn metered(&self, now: Timestamp, lease: &Lease, meter: Meter) -> Event {
        let rates = &lease.contract.rates;
        let meter = self.paid_for(lease, rates, meter);
        let term = earning(lease, &meter);
        let Settlement {
            meter,
            charged,
            term,
            entries,
        } = self.settle(lease, rates, meter, term, Hold::Keep);
        let fact = Fact::Metered(Box::new(Reading {
            lease: lease.id,
            meter,
            charged,
            term,
        }));
        Event {
            at: now,
            fact,
            entries,
        }
    }

    /// The event that gives `lease` other terms from `meter` on: its bid or its kind changed, or a term was
    /// bought for it.
    ///
    /// # Errors
    /// When its rate changed as often as it can, or the money for its hold or its term is not there.
    pub(super) fn changed_terms(
        &self,
        now: Timestamp,
        lease: &Lease,
        new: NewTerms,
        meter: Meter,
    ) -> Result<Event, Rejection> {
        let rate = if new.term.is_some() {
            PricePerHour(0)
        } else {
            new.compute
        };
        let changed = lease.contract.rates.changed(rate_from(lease, &meter), rate);
        let rates = changed.map_err(|error| Rejection::TooMany(Text::cut(&error.to_string())))?;
        let bought = match (&lease.term, &new.term) {
            (None, Some(term)) => term.prepaid,
            (None | Some(_), None) | (Some(_), Some(_)) => MicroUsd::ZERO,
        };
        let prices = Prices {
            compute: new.compute,
            ..lease.contract.prices
        };
        let period = charge::running_cost(&prices, rate, lease.contract.disk, self.settings.hold);
        let charged = lease.charge_for(&meter.usage).total();
        let spent = charged.saturating_add(bought);
        let left = lease.contract.budget.saturating_sub(spent);
        let hold = if matches!(lease.state, State::Paused { .. }) {
            Hold::Keep
        } else {
            let unsigned = Self::unsigned(lease, &meter);
            Hold::Becomes(period.saturating_add(unsigned).min(left))
        };
        let held = self.market.held(lease.id);
        let available = self.market.available(lease.contract.renter);
        let wanted = match hold {
            Hold::Becomes(target) => target.saturating_sub(held).max(MicroUsd::ZERO),
            Hold::Keep => MicroUsd::ZERO,
        };
        let due = charged.saturating_sub(lease.charged.total());
        let needed = wanted.saturating_add(bought).saturating_add(due);
        if left < MicroUsd::ZERO {
            return Err(bad_value(
                "budget",
                "the term alone costs more than is left",
            ));
        }
        if needed > available {
            return Err(Rejection::NotEnoughMoney { available, needed });
        }
        let meter = self.paid_for(lease, &rates, meter);
        let term = earning(lease, &meter).or(new.term);
        let mut settlement = self.settle(lease, &rates, meter, term, hold);
        let (free, ..) = accounts(lease);
        settlement.entries = Transfer::of(settlement.entries)
            .moving(free, Account::Prepaid(lease.id), bought)
            .entries();
        let fact = Fact::Changed(Box::new(Terms {
            lease: lease.id,
            kind: new.kind,
            bid: new.bid,
            fallback: new.fallback,
            prices,
            rates,
            term: settlement.term,
            meter: settlement.meter,
            charged: settlement.charged,
        }));
        Ok(Event {
            at: now,
            fact,
            entries: settlement.entries,
        })
    }

    /// The event that fills up the hold to `target`, if money is there to do it.
    pub(super) fn topped_up(
        &self,
        now: Timestamp,
        lease: &Lease,
        target: MicroUsd,
    ) -> Option<Event> {
        let missing = target.saturating_sub(self.market.held(lease.id));
        let amount = missing.min(self.market.available(lease.contract.renter));
        (amount > MicroUsd::ZERO).then(|| {
            let (available, locked, ..) = accounts(lease);
            let entries = Transfer::default()
                .moving(available, locked, amount)
                .entries();
            Event {
                at: now,
                fact: Fact::Held { lease: lease.id },
                entries,
            }
        })
    }

    /// What should be held for a lease that runs, or is about to: one period, or what the budget leaves.
    pub(super) fn hold_to_run(&self, lease: &Lease, meter: &Meter) -> MicroUsd {
        self.hold_of(lease, meter, lease.burn_running(self.settings.hold))
    }

    /// What should be held for a lease whose disk is kept.
    pub(super) fn hold_to_store(&self, lease: &Lease, meter: &Meter) -> MicroUsd {
        self.hold_of(lease, meter, lease.burn_stored(self.settings.hold))
    }

    /// What the host may still sign for beyond what was charged.
    pub(super) fn unsigned(lease: &Lease, meter: &Meter) -> MicroUsd {
        let at_most = lease.charge_for(&meter.at_most()).total();
        at_most.saturating_sub(lease.charge_for(&meter.usage).total())
    }

    fn hold_of(&self, lease: &Lease, meter: &Meter, period: MicroUsd) -> MicroUsd {
        let charged = lease.charge_for(&meter.usage).total();
        let left = lease.contract.budget.saturating_sub(charged);
        period
            .saturating_add(Self::unsigned(lease, meter))
            .min(left)
    }

    fn hold_in(&self, lease: &Lease, to: &State, meter: &Meter) -> Hold {
        match to {
            State::Preparing { .. } | State::Clearing { .. }
                if matches!(lease.state, State::Paused { .. }) =>
            {
                Hold::Becomes(self.hold_to_run(lease, meter))
            }
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Accepted { .. }
            | State::Preparing { .. }
            | State::Running
            | State::Noticed { .. }
            | State::Suspect { .. } => Hold::Keep,
            State::Paused { .. } => Hold::Becomes(self.hold_to_store(lease, meter)),
            // The last stretch is charged when the host signs it.
            State::Closing { .. } => Hold::Becomes(Self::unsigned(lease, meter)),
            State::Closed { .. } => Hold::Becomes(MicroUsd::ZERO),
        }
    }

    /// The meter without a stretch that available and held together do not cover: nobody earns of it, neither by
    /// the hour nor of a term. Leases are stopped long before (`stop_below`), so this takes a broker that did
    /// not look for minutes.
    fn paid_for(&self, lease: &Lease, rates: &Rates, mut meter: Meter) -> Meter {
        let held = self.market.held(lease.id);
        let available = self.market.available(lease.contract.renter);
        let charged = lease.charge_at(rates, &meter.usage).total();
        if charged.saturating_sub(lease.charged.total()) > held.saturating_add(available) {
            meter.usage = lease.meter.usage;
            meter.allowed = lease.meter.usage.running;
        }
        meter
    }

    /// Charges what `meter` came to since the last posting, and what was earned, given back or kept of a
    /// term. Less than before is due where a stretch was waived: it goes back the way it came, but for what the
    /// operator gave back of it before.
    ///
    /// Money that is not there cannot be charged: `meter` is what [`Self::paid_for`] left of it.
    fn settle(
        &self,
        lease: &Lease,
        rates: &Rates,
        meter: Meter,
        term: Option<Term>,
        hold: Hold,
    ) -> Settlement {
        let contract = &lease.contract;
        let held = self.market.held(lease.id);
        let available = self.market.available(contract.renter);
        let charged = lease.charge_at(rates, &meter.usage);
        let gross = Lease::gross_of(&charged, term.as_ref());
        let twice = lease.refunded.saturating_sub(gross).max(MicroUsd::ZERO);
        let due = charged
            .total()
            .saturating_sub(lease.charged.total())
            .saturating_add(twice);
        let shared = Lease::shared_of(&charged, term.as_ref(), lease.refunded);
        let fee = fee_of(shared, contract.fee).saturating_sub(fee_of(lease.shared(), contract.fee));
        let left = held.saturating_sub(due);
        let target = match hold {
            Hold::Keep => left.max(MicroUsd::ZERO),
            Hold::Becomes(target) => target,
        };
        let more = target
            .saturating_sub(left)
            .min(available)
            .max(MicroUsd::ZERO);
        let less = left.saturating_sub(target).max(MicroUsd::ZERO);
        let (free, locked, host, broker) = accounts(lease);
        let transfer = Transfer::default()
            .moving(free, locked, more)
            .moving(locked, host, due)
            .moving(locked, free, less);
        let transfer = term_moves(transfer, lease, term.as_ref()).moving(host, broker, fee);
        let earned = shared.saturating_sub(lease.shared()).saturating_sub(fee);
        let entries = self.covered(transfer, lease, earned).entries();
        Settlement {
            meter,
            charged,
            term,
            entries,
        }
    }

    /// A host that gives back what was waived, and has it pending no more because of a refund, gives it of what
    /// else it has.
    fn covered(&self, transfer: Transfer, lease: &Lease, earned: MicroUsd) -> Transfer {
        let pending = Account::HostPending(lease.id);
        let left = self
            .market
            .ledger()
            .balance(&pending)
            .saturating_add(earned);
        let missing = MicroUsd::ZERO.saturating_sub(left).max(MicroUsd::ZERO);
        let host = lease.contract.host;
        self.taken_from_host(transfer, host, pending, missing).0
    }
}

/// From which running time on another rate holds. What the host has still to sign of a run is at the one before.
fn rate_from(lease: &Lease, meter: &Meter) -> Millis {
    if matches!(lease.state, State::Paused { .. }) {
        meter.usage.running
    } else {
        meter.at_most().running
    }
}

/// The four accounts of a lease: the renter's available and held money, the host's, the broker's.
pub(super) fn accounts(lease: &Lease) -> (Account, Account, Account, Account) {
    let id: LeaseId = lease.id;
    (
        Account::RenterAvailable(lease.contract.renter),
        Account::RenterLocked(id),
        Account::HostPending(id),
        Account::BrokerFee,
    )
}
