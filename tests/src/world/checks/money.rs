//! What must never be seen of money: L1–L3, L9, S3, and what a host earned that is free too early or never.
//!
//! Everything here is added up from the entries of the events alone.

use super::super::broker::{Broker, settings};
use broker::core::event::{Event, Fact};
use broker::core::lease::{Lease, State};
use broker::core::ledger::{self, Account};
use broker::core::payment::PaymentKind;
use protocol::ids::LeaseId;
use protocol::terms::fee_of;
use protocol::units::{MicroUsd, Seconds, Timestamp};
use std::collections::BTreeMap;

/// A running lease whose money is gone is stopped within this time of a broker that is up.
const FUNDS_GRACE_MS: u64 = 600_000;
/// How often that is looked at.
const FUNDS_EVERY_MS: u64 = 30_000;

/// What the checks remember of money.
#[derive(Debug, Default)]
pub(crate) struct Money {
    /// L3: every balance, added up again.
    folded: BTreeMap<(usize, Account), i128>,
    leases: BTreeMap<(usize, LeaseId), OfLease>,
    /// Since when, by the world's time, a lease runs without money.
    unfunded: BTreeMap<(usize, LeaseId), u64>,
    /// When each broker's leases were looked at.
    looked_at: BTreeMap<usize, u64>,
}

/// The money of one lease.
#[derive(Debug, Default)]
struct OfLease {
    /// What its host had earned before refunds, by the time of the books; what was waived is in none of them.
    earned: Vec<(Timestamp, i64)>,
    /// What became free of it.
    freed: i64,
    /// How often something was given back of it: each can round the fee once.
    refunds: i64,
}

impl Money {
    /// Looks at what an event did that is on `broker`'s disk now.
    pub(super) fn event(&mut self, broker: &Broker, event: &Event) -> Result<(), String> {
        let sum = ledger::sum(&event.entries);
        if sum != 0 {
            return Err(format!("L1: an event's entries sum to {sum}: {event:?}"));
        }
        self.balances(broker, event)?;
        let lease = event.lease().and_then(|id| broker.disk.lease(id));
        lease.map_or(Ok(()), |lease| self.ripening(broker, event, lease))
    }

    /// L2 and L3: an account holds the sum of its entries, and is not below its limit.
    fn balances(&mut self, broker: &Broker, event: &Event) -> Result<(), String> {
        for entry in &event.entries {
            let (account, kind) = (entry.account, entry.account.kind());
            let folded = self.folded.entry((broker.index, account)).or_default();
            *folded += i128::from(entry.amount);
            let balance = broker.disk.ledger().balance(&account);
            let debit = if account == Account::Cash {
                i128::from(balance.0)
            } else {
                -i128::from(balance.0)
            };
            if *folded != debit {
                return Err(format!(
                    "L3: {kind} is at {balance}, its entries sum to {folded}"
                ));
            }
            let may_owe = matches!(account, Account::BrokerGoodwill);
            if balance < MicroUsd::ZERO && !may_owe {
                return Err(format!("L2: {kind} is at {balance} after {}", event.kind()));
            }
        }
        Ok(())
    }

    /// L3 of all accounts, those too that nothing touched for long.
    pub(super) fn all_balances(&self, broker: &Broker) -> Result<(), String> {
        let own = (broker.index, Account::Cash)..;
        let own = self.folded.range(own);
        let own = own.take_while(|((index, _), _)| *index == broker.index);
        let own: BTreeMap<Account, i128> = own
            .filter(|(_, folded)| **folded != 0)
            .map(|((_, account), folded)| (*account, *folded))
            .collect();
        let stored = broker.disk.ledger().iter();
        let stored: BTreeMap<Account, i128> = stored
            .map(|(account, balance)| (*account, i128::from(balance)))
            .collect();
        if own == stored {
            Ok(())
        } else {
            Err("L3: the balances are not the sums of the entries".to_owned())
        }
    }

    /// What a host earned is free when its window is over, not before, and then all of it.
    fn ripening(&mut self, broker: &Broker, event: &Event, lease: &Lease) -> Result<(), String> {
        let known = self.leases.entry((broker.index, lease.id)).or_default();
        let pending = broker
            .disk
            .ledger()
            .balance(&Account::HostPending(lease.id));
        let id = lease.id;
        match &event.fact {
            Fact::Matured { .. } => {
                let moved = event.entries.iter();
                let moved = moved.filter(|entry| matches!(entry.account, Account::HostPending(_)));
                known.freed += moved.map(|entry| entry.amount).sum::<i64>();
                let window = settings().dispute_trusted.millis();
                let earned = known.earned_by(event.at.before(window));
                if known.freed > earned + known.refunds {
                    return Err(format!(
                        "window: {} of {id} are free, {earned} were earned before the window",
                        known.freed
                    ));
                }
            }
            Fact::Paid { payment, .. } => {
                known.refunds += i64::from(matches!(payment.what, PaymentKind::Refund(_)));
            }
            Fact::Moved(_) | Fact::Metered(_) | Fact::Changed(_) => {
                known.earns(event.at, earned(lease));
                // What was free of a stretch that was waived went back, and can be earned again.
                let taken = event.entries.iter();
                let taken = taken.filter(|it| matches!(it.account, Account::HostAvailable(_)));
                known.freed -= taken.map(|entry| entry.amount).sum::<i64>();
                // With nothing marked, nothing waits for a window to be over: it would be pending for ever.
                if lease.marks.is_empty() && pending.0 > known.refunds {
                    return Err(format!(
                        "window: {pending} of {id} are pending, and none of it will be free"
                    ));
                }
            }
            Fact::Deposited { .. }
            | Fact::Matched(_)
            | Fact::Granted { .. }
            | Fact::Held { .. }
            | Fact::Warned { .. }
            | Fact::Commanded(_)
            | Fact::Rested(_)
            | Fact::Lapsed { .. }
            | Fact::Cleared { .. }
            | Fact::RestRebid { .. }
            | Fact::Suspended { .. }
            | Fact::Heard(_)
            | Fact::Away(_)
            | Fact::Funded { .. }
            | Fact::Reclaimed { .. }
            | Fact::Proved(_) => {}
        }
        Ok(())
    }

    /// S3: a lease does not run on when its money is gone.
    pub(super) fn funds(&mut self, broker: &Broker, now: u64) -> Result<(), String> {
        let is_due = |at: &u64| now - at >= FUNDS_EVERY_MS;
        if !broker.is_up() || !self.looked_at.get(&broker.index).is_none_or(is_due) {
            return Ok(());
        }
        self.looked_at.insert(broker.index, now);
        for lease in broker.disk.live_leases() {
            let key = (broker.index, lease.id);
            let runs = matches!(lease.state, State::Running | State::Noticed { .. });
            if !runs || is_funded(broker, lease) {
                self.unfunded.remove(&key);
                continue;
            }
            let since = *self.unfunded.entry(key).or_insert(now);
            if now - since > FUNDS_GRACE_MS {
                return Err(format!(
                    "S3: {} runs {} s after its money was gone",
                    lease.id,
                    (now - since) / 1000
                ));
            }
        }
        Ok(())
    }

    /// A broker that was away stops what it should have stopped from here on.
    pub(super) fn is_back(&mut self, broker: usize) {
        self.unfunded.retain(|(index, _), _| *index != broker);
    }
}

impl OfLease {
    fn earns(&mut self, at: Timestamp, earned: i64) {
        // What was waived was not earned before either.
        for (_, before) in self.earned.iter_mut().rev() {
            if *before <= earned {
                break;
            }
            *before = earned;
        }
        self.earned.push((at, earned));
    }

    fn earned_by(&self, at: Timestamp) -> i64 {
        let count = self.earned.partition_point(|(when, _)| *when <= at);
        let last = count.checked_sub(1).and_then(|last| self.earned.get(last));
        last.map_or(0, |(_, earned)| *earned)
    }
}

/// What a lease's host earned of it before refunds, without the fee.
fn earned(lease: &Lease) -> i64 {
    let term = lease.term.map_or(0, |term| term.for_host().0);
    let gross = MicroUsd(lease.charged.total().0 + term);
    gross.0 - fee_of(gross, lease.contract.fee).0
}

/// Whether there is money for another second of a lease, if one costs anything.
fn is_funded(broker: &Broker, lease: &Lease) -> bool {
    let held = broker.disk.held(lease.id);
    let available = broker.disk.available(lease.contract.renter);
    let left = lease.contract.budget.saturating_sub(lease.charged.total());
    let money = held.saturating_add(available).min(left);
    money >= lease.burn_running(Seconds(1)) || lease.burn_running(Seconds(3600)) == MicroUsd::ZERO
}
