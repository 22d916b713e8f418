//! Double entry: accounts, entries that sum to zero, balances.
//!
//! Debits are positive. The broker's cash is an asset; every other account is what it owes somebody, so
//! its balance is negative here and positive for its holder. Must not know what a lease is.

use protocol::ids::{HostId, LeaseId, RenterId};
use protocol::units::MicroUsd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An account. Later kinds join at the end; the order of the variants is the tag on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Account {
    /// What the operator received and keeps for others.
    Cash,
    /// A renter's money that is free to spend.
    RenterAvailable(RenterId),
    /// A renter's money that is held for a lease.
    RenterLocked(LeaseId),
    /// What a lease's host earned and is not paid yet.
    HostPending(LeaseId),
    /// What the broker earned.
    BrokerFee,
    /// What a renter paid in advance for a lease's term, and nobody earned yet.
    Prepaid(LeaseId),
    /// What a host may be paid.
    HostAvailable(HostId),
    /// What a host deposited against what it may have to give back.
    HostBond(HostId),
    /// What early cancels left to the broker.
    BrokerClawback,
    /// What the broker gave renters of its own, where a host's money was not enough: negative.
    BrokerGoodwill,
}

impl Account {
    /// The account as it stands on disk: a tag and the id.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        let (tag, id): (u8, &[u8]) = match self {
            Self::Cash => (0, &[]),
            Self::RenterAvailable(renter) => (1, renter.as_bytes()),
            Self::RenterLocked(lease) => (2, lease.as_bytes()),
            Self::HostPending(lease) => (3, lease.as_bytes()),
            Self::BrokerFee => (4, &[]),
            Self::Prepaid(lease) => (5, lease.as_bytes()),
            Self::HostAvailable(host) => (6, host.as_bytes()),
            Self::HostBond(host) => (7, host.as_bytes()),
            Self::BrokerClawback => (8, &[]),
            Self::BrokerGoodwill => (9, &[]),
        };
        let mut key = Vec::with_capacity(1 + id.len());
        key.push(tag);
        key.extend_from_slice(id);
        key
    }

    /// What kind of account, for people.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Cash => "cash",
            Self::RenterAvailable(_) => "renter-available",
            Self::RenterLocked(_) => "renter-held",
            Self::HostPending(_) => "host-pending",
            Self::BrokerFee => "broker-fee",
            Self::Prepaid(_) => "renter-prepaid",
            Self::HostAvailable(_) => "host-available",
            Self::HostBond(_) => "host-bond",
            Self::BrokerClawback => "broker-clawback",
            Self::BrokerGoodwill => "broker-goodwill",
        }
    }
}

/// One line of a journal entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Which account.
    pub account: Account,
    /// Debit positive, credit negative, µ$.
    pub amount: i64,
}

/// Moves of money that become the entries of one event: each account once, their sum zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transfer {
    entries: Vec<Entry>,
}

impl Transfer {
    /// Moves `amount` from one account to the other; nothing when it is zero.
    #[must_use]
    pub fn moving(mut self, from: Account, to: Account, amount: MicroUsd) -> Self {
        if amount != MicroUsd::ZERO {
            self.add(from, amount.0);
            self.add(to, amount.negated().0);
        }
        self
    }

    /// Moves to which more may be added.
    #[must_use]
    pub const fn of(entries: Vec<Entry>) -> Self {
        Self { entries }
    }

    /// The entries.
    #[must_use]
    pub fn entries(mut self) -> Vec<Entry> {
        self.entries.retain(|entry| entry.amount != 0);
        self.entries
    }

    fn add(&mut self, account: Account, amount: i64) {
        match self
            .entries
            .iter_mut()
            .find(|entry| entry.account == account)
        {
            // Amounts are bounded by the cash, which was checked when it came in.
            Some(entry) => entry.amount = entry.amount.saturating_add(amount),
            None => self.entries.push(Entry { account, amount }),
        }
    }
}

/// The sum of some entries, in a width that cannot overflow.
#[must_use]
pub fn sum(entries: &[Entry]) -> i128 {
    entries.iter().map(|entry| i128::from(entry.amount)).sum()
}

/// What every account holds: the fold of all entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    balances: BTreeMap<Account, i64>,
}

impl Ledger {
    /// What the holder of an account has in it.
    #[must_use]
    pub fn balance(&self, account: &Account) -> MicroUsd {
        let debit = MicroUsd(self.balances.get(account).copied().unwrap_or(0));
        match account {
            Account::Cash => debit,
            Account::RenterAvailable(_)
            | Account::RenterLocked(_)
            | Account::HostPending(_)
            | Account::BrokerFee
            | Account::Prepaid(_)
            | Account::HostAvailable(_)
            | Account::HostBond(_)
            | Account::BrokerClawback
            | Account::BrokerGoodwill => debit.negated(),
        }
    }

    /// Adds the entries of one event.
    pub fn apply(&mut self, entries: &[Entry]) {
        for entry in entries {
            let balance = self.balances.entry(entry.account).or_insert(0);
            *balance = balance.saturating_add(entry.amount);
            if *balance == 0 {
                self.balances.remove(&entry.account);
            }
        }
    }

    /// Every account that is not empty, with its balance as debits less credits.
    pub fn iter(&self) -> impl Iterator<Item = (&Account, i64)> {
        self.balances
            .iter()
            .map(|(account, balance)| (account, *balance))
    }

    /// How many accounts are not empty.
    #[must_use]
    pub fn len(&self) -> usize {
        self.balances.len()
    }

    /// Whether all are.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.balances.is_empty()
    }

    /// Takes up a balance from a snapshot.
    pub(crate) fn restore(&mut self, account: Account, balance: i64) {
        self.balances.insert(account, balance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RENTER: Account = Account::RenterAvailable(RenterId::from_bytes([1; 32]));
    const LOCKED: Account = Account::RenterLocked(LeaseId::from_bytes([2; 16]));
    const HOST: Account = Account::HostPending(LeaseId::from_bytes([2; 16]));

    #[test]
    fn the_first_sums_of_the_market_rules() {
        // market.md section 4: deposit 10 $, hold 406 944, capture M1's 733 872 at a fee of 10 %.
        let mut ledger = Ledger::default();
        let deposit = Transfer::default().moving(Account::Cash, RENTER, MicroUsd(10_000_000));
        ledger.apply(&deposit.entries());
        let hold = Transfer::default()
            .moving(RENTER, LOCKED, MicroUsd(733_872))
            .entries();
        assert_eq!(
            hold,
            [
                Entry {
                    account: RENTER,
                    amount: 733_872
                },
                Entry {
                    account: LOCKED,
                    amount: -733_872
                }
            ]
        );
        ledger.apply(&hold);
        let capture = Transfer::default()
            .moving(LOCKED, HOST, MicroUsd(660_485))
            .moving(LOCKED, Account::BrokerFee, MicroUsd(73_387))
            .entries();
        assert_eq!(capture.len(), 3);
        assert_eq!(sum(&capture), 0);
        ledger.apply(&capture);
        assert_eq!(ledger.balance(&LOCKED), MicroUsd::ZERO);
        assert_eq!(ledger.balance(&HOST), MicroUsd(660_485));
        assert_eq!(ledger.balance(&Account::BrokerFee), MicroUsd(73_387));
        assert_eq!(ledger.balance(&RENTER), MicroUsd(10_000_000 - 733_872));
        assert_eq!(ledger.balance(&Account::Cash), MicroUsd(10_000_000));
    }

    #[test]
    fn a_move_of_nothing_leaves_no_entry() {
        assert_eq!(
            Transfer::default()
                .moving(RENTER, LOCKED, MicroUsd::ZERO)
                .entries(),
            []
        );
        let there_and_back = Transfer::default()
            .moving(RENTER, LOCKED, MicroUsd(5))
            .moving(LOCKED, RENTER, MicroUsd(5));
        assert_eq!(there_and_back.entries(), []);
    }
}
