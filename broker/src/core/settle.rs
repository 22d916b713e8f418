//! How a step of a lease moves money: the charge is captured, the hold is fitted to what comes next.
//!
//! Must not decide whether a lease takes a step.

use crate::core::desk::Desk;
use crate::core::event::{Event, Fact, Move, Reading};
use crate::core::lease::{Lease, State};
use crate::core::ledger::{Account, Entry, Transfer};
use crate::core::meter::Meter;
use protocol::ids::LeaseId;
use protocol::terms::fee_of;
use protocol::units::{MicroUsd, Timestamp};
use protocol::usage::Amounts;

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
    entries: Vec<Entry>,
}

impl Desk {
    /// The event that takes `lease` to its next state, settled with `meter`.
    pub(super) fn moved(&self, now: Timestamp, lease: &Lease, to: State, meter: Meter) -> Event {
        let hold = self.hold_in(lease, &to, &meter);
        let Settlement {
            meter,
            charged,
            entries,
        } = self.settle(lease, meter, hold);
        let fact = Fact::Moved(Box::new(Move {
            lease: lease.id,
            to,
            meter,
            charged,
            rates: None,
            term: lease.term,
        }));
        Event {
            at: now,
            fact,
            entries,
        }
    }

    /// The event that journals a meter.
    pub(super) fn metered(&self, now: Timestamp, lease: &Lease, meter: Meter) -> Event {
        let Settlement {
            meter,
            charged,
            entries,
        } = self.settle(lease, meter, Hold::Keep);
        let fact = Fact::Metered(Box::new(Reading {
            lease: lease.id,
            meter,
            charged,
            term: lease.term,
        }));
        Event {
            at: now,
            fact,
            entries,
        }
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
            State::Preparing { .. } if matches!(lease.state, State::Paused { .. }) => {
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

    /// Charges what `meter` came to since the last posting.
    ///
    /// Money that is not there cannot be charged: a stretch that available and held together do not cover
    /// is dropped from the meter. Leases are stopped long before (`stop_below`), so this takes a broker
    /// that did not look for minutes.
    fn settle(&self, lease: &Lease, mut meter: Meter, hold: Hold) -> Settlement {
        let held = self.market.held(lease.id);
        let available = self.market.available(lease.contract.renter);
        let mut charged = lease.charge_for(&meter.usage);
        let mut gross = charged.total().saturating_sub(lease.charged.total());
        if gross > held.saturating_add(available) {
            meter.usage = lease.meter.usage;
            meter.allowed = lease.meter.usage.running;
            charged = lease.charged;
            gross = MicroUsd::ZERO;
        }
        let fee = fee_of(charged.total(), lease.contract.fee)
            .saturating_sub(fee_of(lease.charged.total(), lease.contract.fee));
        let left = held.saturating_sub(gross);
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
        let entries = Transfer::default()
            .moving(free, locked, more)
            .moving(locked, host, gross.saturating_sub(fee))
            .moving(locked, broker, fee)
            .moving(locked, free, less)
            .entries();
        Settlement {
            meter,
            charged,
            entries,
        }
    }
}

/// The four accounts of a lease: the renter's available and held money, the host's, the broker's.
fn accounts(lease: &Lease) -> (Account, Account, Account, Account) {
    let id: LeaseId = lease.id;
    (
        Account::RenterAvailable(lease.contract.renter),
        Account::RenterLocked(id),
        Account::HostPending(id),
        Account::BrokerFee,
    )
}
