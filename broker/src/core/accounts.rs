//! The money of one party and of one lease, as balances, earnings and receipts. Nothing here changes anything.
//!
//! Must not check who asks.

use crate::core::desk::Desk;
use crate::core::lease::{Lease, State};
use crate::core::ledger::Account;
use crate::core::payment::earned_by_host;
use crate::core::term::earning;
use protocol::ids::{HostId, RenterId};
use protocol::lease::EndCause;
use protocol::terms::fee_of;
use protocol::units::{MicroUsd, Millis, Seconds, Timestamp};
use protocol::usage::{Balance, Earnings, Receipt, Term};

impl Desk {
    /// A renter's money.
    #[must_use]
    pub fn balance(&self, renter: RenterId) -> Balance {
        let mut balance = Balance {
            available: self.market.available(renter),
            ..Balance::default()
        };
        let ledger = self.market.ledger();
        for lease in self.market.leases_of(renter.into()) {
            if lease.contract.renter == renter {
                let spent = lease.term.as_ref().map_or(MicroUsd::ZERO, Term::spent);
                let net = lease
                    .charged
                    .total()
                    .saturating_add(spent)
                    .saturating_sub(lease.refunded);
                let prepaid = ledger.balance(&Account::Prepaid(lease.id));
                balance.held = balance.held.saturating_add(self.market.held(lease.id));
                balance.prepaid = balance.prepaid.saturating_add(prepaid);
                balance.spent = balance.spent.saturating_add(net);
                balance.burn_per_hour = balance.burn_per_hour.saturating_add(burn(lease));
            }
        }
        for rest in self.market.rests_of(renter) {
            balance.held = balance.held.saturating_add(self.market.held(rest.lease));
        }
        balance
    }

    /// A host's money.
    #[must_use]
    pub fn earnings(&self, host: HostId) -> Earnings {
        let ledger = self.market.ledger();
        let mut earnings = Earnings {
            available: ledger.balance(&Account::HostAvailable(host)),
            paid_out: self.market.paid_out(host),
            bond: ledger.balance(&Account::HostBond(host)),
            ..Earnings::default()
        };
        let mut running = Millis(0);
        for lease in self.market.leases_of(host.into()) {
            if lease.contract.host != host {
                continue;
            }
            let pending = ledger.balance(&Account::HostPending(lease.id));
            let fee = lease.shared().saturating_sub(earned_by_host(lease));
            earnings.pending = earnings.pending.saturating_add(pending);
            earnings.fees = earnings.fees.saturating_add(fee);
            earnings.leases = earnings
                .leases
                .saturating_add(u32::from(lease.started_at.is_some()));
            running = running.plus(lease.meter.usage.running);
        }
        earnings.running = running;
        earnings
    }
}

/// What a lease costs an hour now.
fn burn(lease: &Lease) -> MicroUsd {
    match lease.state {
        State::Running | State::Noticed { .. } | State::Paused { .. } => lease.burn(Seconds(3600)),
        State::Clearing { .. }
        | State::Offered { .. }
        | State::Accepted { .. }
        | State::Preparing { .. }
        | State::Suspect { .. }
        | State::Closing { .. }
        | State::Closed { .. } => MicroUsd::ZERO,
    }
}

/// The broker's account of a lease.
pub(crate) fn receipt_of(lease: &Lease, meter: crate::core::meter::Meter) -> Receipt {
    let contract = &lease.contract;
    let amounts = lease.charge_for(&meter.usage);
    let term = earning(lease, &meter);
    let shared = Lease::shared_of(&amounts, term.as_ref(), lease.refunded);
    let fee = fee_of(shared, contract.fee);
    let spent = term.as_ref().map_or(MicroUsd::ZERO, Term::spent);
    Receipt {
        lease: lease.id,
        name: contract.name.clone(),
        renter: contract.renter,
        host: contract.host,
        offer: contract.offer,
        kind: contract.kind,
        image: contract.image.clone(),
        gpus: u16::try_from(contract.share.gpus.len()).unwrap_or(u16::MAX),
        disk: contract.disk,
        prices: contract.prices,
        rates: contract.rates.clone(),
        term,
        ordered_at: contract.ordered_at,
        started_at: lease.started_at,
        ended: ended(lease),
        usage: meter.usage,
        amounts,
        total: amounts.total().saturating_add(spent),
        refunded: lease.refunded,
        budget: contract.budget,
        fee_rate: contract.fee,
        fee,
        host_share: shared.saturating_sub(fee),
        meters: meter.signed,
        report: meter.report,
        order: contract.order_digest,
        grant: lease.grant.as_ref().map(|grant| grant.digest()),
    }
}

fn ended(lease: &Lease) -> Option<(Timestamp, EndCause)> {
    match &lease.state {
        State::Closed { cause } => Some((lease.since, cause.clone())),
        State::Clearing { .. }
        | State::Offered { .. }
        | State::Accepted { .. }
        | State::Preparing { .. }
        | State::Running
        | State::Noticed { .. }
        | State::Suspect { .. }
        | State::Paused { .. }
        | State::Closing { .. } => None,
    }
}
