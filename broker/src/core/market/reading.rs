//! What can be read of the market.
//!
//! Must not change anything.

use super::Market;
use super::holdings::Holdings;
use crate::core::lease::Lease;
use crate::core::ledger::{Account, Ledger};
use crate::core::payment::{Note, Payment, PaymentKind};
use crate::core::reliability::Reliability;
use crate::core::rest::Resting;
use protocol::ids::{BrokerId, DepositId, HostId, LeaseId, PaymentId, PublicKey, RenterId};
use protocol::order::LeaseName;
use protocol::units::{MicroUsd, Timestamp};
use std::collections::BTreeSet;

impl Market {
    /// A move of a host's money.
    #[must_use]
    pub fn payment(&self, id: PaymentId) -> Option<&Payment> {
        self.payments.get(&id)
    }

    /// All moves of hosts' money, by id.
    pub fn payments(&self) -> impl Iterator<Item = (PaymentId, &Payment)> {
        self.payments.iter().map(|(id, payment)| (*id, payment))
    }

    /// The hosts that may take no leases.
    pub fn suspended_hosts(&self) -> impl Iterator<Item = HostId> {
        self.suspended.keys().copied()
    }

    /// Whether any money of this host's is or was on the books, beside what its leases earned.
    #[must_use]
    pub fn has_account(&self, host: HostId) -> bool {
        let balances = [Account::HostAvailable(host), Account::HostBond(host)];
        let is_about = |payment: &Payment| match payment.what {
            PaymentKind::Bond(other)
            | PaymentKind::BondReturned(other)
            | PaymentKind::Payout(other, _) => other == host,
            PaymentKind::Refund(_) | PaymentKind::DepositReversed(_) => false,
        };
        let mut balances = balances.iter().map(|account| self.ledger.balance(account));
        balances.any(|balance| balance != MicroUsd::ZERO) || self.payments.values().any(is_about)
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

    /// What leases have of a host now; nothing where they have nothing.
    #[must_use]
    pub(crate) fn holdings(&self, host: HostId) -> Option<&Holdings> {
        self.index.resources.get(&host)
    }

    /// What leases have of a host next, as soon as those who have it now have gone.
    #[must_use]
    pub(crate) fn claims(&self, host: HostId) -> Option<&Holdings> {
        self.index.claims.get(&host)
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
