//! What must never be seen, whatever happens: the invariants L1–L10 and S1–S4, looked at after every event. L4, the
//! chain of the journal, is `broker`'s.

mod money;

use super::broker::{Broker, settings};
use super::host::Host;
use broker::core::event::{Event, Fact, Move};
use broker::core::lease::{Lease, State};
use broker::core::ledger::Account;
use broker::core::payment::{PaymentKind, Payout};
use money::Money;
use protocol::ids::{DepositId, HostId, LeaseId, PaymentId};
use protocol::lease::{EndCause, PauseCause};
use protocol::offer::ResourceName;
use protocol::terms::{ContractKind, fee_of};
use protocol::units::{MicroUsd, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// A container is seen a moment after it started, and clocks are read to the millisecond.
const METER_SLACK_MS: u64 = 2_000;

/// What the checks remember.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    made: BTreeSet<(usize, LeaseId)>,
    deposits: BTreeSet<(usize, DepositId)>,
    /// Payments, and where each payout stands.
    payments: BTreeMap<(usize, PaymentId), PaymentKind>,
    /// Who has which resource at which broker.
    held: BTreeMap<(usize, HostId, ResourceName), LeaseId>,
    /// When the present run of a lease began to run.
    running_since: BTreeMap<(usize, LeaseId), (u32, Timestamp)>,
    /// When a lease was matched, by the world's time.
    matched_at: BTreeMap<(usize, LeaseId), u64>,
    /// What the broker kept of each lease.
    fees: BTreeMap<(usize, LeaseId), i64>,
    money: Money,
}

impl Checks {
    /// Puts `event` on the broker's disk, and looks at what it did.
    pub(crate) fn event(
        &mut self,
        broker: &Broker,
        event: &Event,
        hosts: &[Host],
        now: u64,
    ) -> Result<(), String> {
        self.money.event(broker, event)?;
        self.once(broker.index, event)?;
        if let Fact::Matched(matched) = &event.fact {
            let key = (broker.index, matched.award.body().lease);
            self.matched_at.insert(key, now);
        }
        let Some(id) = event.lease() else {
            return Ok(());
        };
        for entry in &event.entries {
            if entry.account == Account::BrokerFee {
                let kept = self.fees.entry((broker.index, id)).or_default();
                *kept = kept.saturating_sub(entry.amount);
            }
        }
        let Some(lease) = broker.disk.lease(id) else {
            return Ok(());
        };
        let host = hosts.iter().find(|host| host.id == lease.contract.host);
        if let Some(host) = host {
            let matched_at = self.matched_at.get(&(broker.index, id)).copied();
            metered(lease, host, matched_at.unwrap_or(now), now)?;
        }
        self.resources(broker.index, lease)?;
        if let Fact::Moved(moved) = &event.fact {
            self.moved(broker.index, lease, moved, host, event.at)?;
        }
        if lease.state.is_closed() {
            self.closed(broker, lease)?;
        }
        Ok(())
    }

    /// Looks at the money of what runs at a broker.
    pub(crate) fn funds(&mut self, broker: &Broker, now: u64) -> Result<(), String> {
        self.money.funds(broker, now)
    }

    /// A broker is up again.
    pub(crate) fn is_back(&mut self, broker: usize) {
        self.money.is_back(broker);
    }

    /// L5 and S2: one effect for each id.
    fn once(&mut self, broker: usize, event: &Event) -> Result<(), String> {
        let mut is_first = true;
        if let Fact::Deposited { id, .. } = &event.fact {
            is_first = self.deposits.insert((broker, *id));
        }
        if let Fact::Paid { id, payment } = &event.fact {
            let before = self.payments.insert((broker, *id), payment.what);
            // A payout is put down, and is paid or dropped once.
            is_first = match payment.what {
                PaymentKind::Payout(host, Payout::Paid(_) | Payout::Dropped(_)) => {
                    before == Some(PaymentKind::Payout(host, Payout::Open))
                }
                PaymentKind::Payout(_, Payout::Open)
                | PaymentKind::Bond(_)
                | PaymentKind::BondReturned(_)
                | PaymentKind::Refund(_)
                | PaymentKind::DepositReversed(_) => before.is_none(),
            };
        }
        if let Fact::Rested(rest) = &event.fact {
            // A lease that waited for others to go may have to wait again, before it ever began.
            is_first = self.made.insert((broker, rest.lease))
                || self.fees.remove(&(broker, rest.lease)) == Some(0);
        }
        if let Fact::Matched(matched) = &event.fact {
            // An order that rested was made then, and becomes a lease once.
            let key = (broker, matched.award.body().lease);
            is_first = self.made.insert(key) || !self.fees.contains_key(&key);
            self.fees.insert(key, 0);
        }
        if is_first {
            Ok(())
        } else {
            Err(format!("L5: one id had two effects: {}", event.kind()))
        }
    }

    /// S1 at the broker: a resource is one lease's.
    fn resources(&mut self, broker: usize, lease: &Lease) -> Result<(), String> {
        for resource in &lease.contract.share.resources {
            let key = (broker, lease.contract.host, resource.clone());
            if lease.state.holds_resources() {
                let holder = self.held.entry(key).or_insert(lease.id);
                if *holder != lease.id {
                    return Err(format!(
                        "S1: {} has what {holder} has at the same broker",
                        lease.id
                    ));
                }
            } else if self.held.get(&key) == Some(&lease.id) {
                self.held.remove(&key);
            }
        }
        Ok(())
    }

    fn moved(
        &mut self,
        broker: usize,
        lease: &Lease,
        moved: &Move,
        host: Option<&Host>,
        at: Timestamp,
    ) -> Result<(), String> {
        let key = (broker, lease.id);
        if matches!(moved.to, State::Running) {
            let known = self.running_since.get(&key);
            if known.is_none_or(|(run, _)| *run != lease.run) {
                self.running_since.insert(key, (lease.run, at));
            }
        }
        if let State::Noticed { cause, .. } = &moved.to {
            if lease.contract.kind != ContractKind::Interruptible {
                let id = lease.id;
                return Err(format!("R6: a lease that is firm was given notice: {id}"));
            }
            let since = self.running_since.get(&key).map(|(_, since)| *since);
            let ran = since.map(|since| at.since(since));
            let min_run = settings().min_run.millis();
            if *cause == PauseCause::Outbid && ran.is_none_or(|ran| ran < min_run) {
                return Err(format!("R6: {} was outbid after {ran:?}", lease.id));
            }
        }
        let is_lost = matches!(
            moved.to,
            State::Suspect { .. }
                | State::Closed {
                    cause: EndCause::HostLost
                }
        );
        if is_lost && host.is_some_and(|host| !host.was_unheard) {
            let id = lease.id;
            return Err(format!("S4: {id} was lost on a host that was always heard"));
        }
        let is_exited = matches!(
            moved.to,
            State::Paused {
                cause: PauseCause::Exited(_),
                ..
            }
        );
        let did_exit = |host: &Host| host.sells_twice || host.exited.contains(&lease.id);
        if is_exited && host.is_some_and(|host| !did_exit(host)) {
            return Err(format!("S4: {} ended, and its container did not", lease.id));
        }
        Ok(())
    }

    /// L6, L9: nothing is held for a lease that is over, and the fee is that of what remains.
    fn closed(&self, broker: &Broker, lease: &Lease) -> Result<(), String> {
        let ledger = broker.disk.ledger();
        for account in [Account::RenterLocked(lease.id), Account::Prepaid(lease.id)] {
            let left = ledger.balance(&account);
            if left != MicroUsd::ZERO {
                let kind = account.kind();
                return Err(format!(
                    "L6: {left} of {kind} are left of {}, which is over",
                    lease.id
                ));
            }
        }
        let kept = self.fees.get(&(broker.index, lease.id)).copied();
        let due = fee_of(lease.shared(), lease.contract.fee).0;
        if kept != Some(due) {
            return Err(format!(
                "L9: the fee of {} is {kept:?}, not {due}",
                lease.id
            ));
        }
        Ok(())
    }

    /// Liveness, and what must be true of a broker at the end.
    pub(crate) fn end(&self, broker: &Broker) -> Result<(), String> {
        broker.check_disk()?;
        if !broker.is_up() {
            return Err("the broker did not come back".to_owned());
        }
        let market = &broker.disk;
        if let Some(lease) = market.leases().find(|lease| !lease.state.is_closed()) {
            let word = lease.state.word();
            return Err(format!(
                "liveness: {} is still {word} long after it was ended",
                lease.id
            ));
        }
        if let Some(rest) = market.rests().find(|rest| rest.ended.is_none()) {
            return Err(format!("liveness: the order of {} still rests", rest.lease));
        }
        let total: i128 = market
            .ledger()
            .iter()
            .map(|(_, balance)| i128::from(balance))
            .sum();
        if total != 0 {
            return Err(format!("L1: all balances sum to {total}"));
        }
        self.money.all_balances(broker)?;
        let mut held = market.ledger().iter();
        let is_pending = |account: &Account| matches!(account, Account::HostPending(_));
        if let Some((account, balance)) = market.ledger().iter().find(|(it, _)| is_pending(it)) {
            return Err(format!(
                "window: {balance} are pending at the end: {account:?}"
            ));
        }
        let is_held =
            |account: &Account| matches!(account, Account::RenterLocked(_) | Account::Prepaid(_));
        if let Some((account, balance)) = held.find(|(account, _)| is_held(account)) {
            return Err(format!("L6: {balance} are held at the end: {account:?}"));
        }
        Ok(())
    }
}

/// L7 and L10: what is billed is at most what really ran, and for what a lying host signed, at most the time that
/// really passed since the match, `matched_at` by the world's time.
fn metered(lease: &Lease, host: &Host, matched_at: u64, now: u64) -> Result<(), String> {
    let billed = lease.meter.usage.running.0;
    let most = if host.lies {
        now - matched_at
    } else {
        host.really_ran(lease.id, now)
    };
    if billed > most + METER_SLACK_MS {
        return Err(format!(
            "L7: {billed} ms of {} are billed, of {most} ms",
            lease.id
        ));
    }
    let due = lease.charge_for(&lease.meter.usage);
    if due != lease.charged {
        return Err(format!(
            "L7: {} was charged {:?}, due are {due:?}",
            lease.id, lease.charged
        ));
    }
    if lease.charged.total() > lease.contract.budget {
        return Err(format!("L7: {} was charged more than its budget", lease.id));
    }
    Ok(())
}
