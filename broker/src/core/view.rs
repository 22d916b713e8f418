//! What the market shows: leases, money, receipts, goals. Nothing here changes anything.
//!
//! Must not check who asks: a party is given, and sees what is its own; the operator sees all.

use crate::core::desk::Desk;
use crate::core::goal::{GoalDraft, LeaseGoalDraft};
use crate::core::lease::{Lease, Papers, State};
use crate::core::ledger::Account;
use crate::core::term::earning;
use protocol::bounded::{List, Text};
use protocol::codec::CodecError;
use protocol::ids::{Digest, HostId, LeaseId, MessageId, PublicKey, RenterId};
use protocol::lease::{Access, EndCause, LeaseView};
use protocol::message::{Found, LEASES_MAX, LeaseScope, Rejection, Search};
use protocol::signed::{ANYONE, Draft, Envelope, Signed, Statement, VALIDITY_MAX};
use protocol::terms::fee_of;
use protocol::units::{MicroUsd, Millis, Seconds, Timestamp};
use protocol::usage::{Balance, Earnings, Receipt, Term};

/// Most bytes of leases in one answer; what is added to each on the way out has to fit into it too.
const LEASES_BYTES_MAX: usize = 160 * 1024;

impl Desk {
    /// Which offers match.
    #[must_use]
    pub fn search(&self, now: Timestamp, search: &Search) -> Found {
        let found = self
            .book
            .search(search, self.wall(now), |listing, _| self.is_free(listing));
        // A host takes a leased offer out of its list, so the book alone does not know.
        let rented = u32::try_from(self.market.holders()).unwrap_or(u32::MAX);
        Found { rented, ..found }
    }

    /// A lease, whoever asks.
    ///
    /// # Errors
    /// When there is none.
    pub fn view(&self, now: Timestamp, lease: LeaseId) -> Result<LeaseView, Rejection> {
        let lease = self.market.lease(lease).ok_or(Rejection::UnknownLease)?;
        Ok(self.view_of(now, lease))
    }

    /// A lease of `party`'s.
    ///
    /// # Errors
    /// When there is no such lease of the party's.
    pub fn lease_of(
        &self,
        now: Timestamp,
        party: PublicKey,
        lease: LeaseId,
    ) -> Result<LeaseView, Rejection> {
        Ok(self.view_of(now, self.own(party, lease)?))
    }

    /// The leases of `party`, newest first, as many as fit into an answer.
    #[must_use]
    pub fn leases_of(&self, now: Timestamp, party: PublicKey, scope: LeaseScope) -> Vec<LeaseView> {
        let view = |lease| self.view_of(now, lease);
        match scope {
            LeaseScope::Open => fitting(self.market.live_leases_of(party).map(view)),
            LeaseScope::All => fitting(self.market.leases_of(party).map(view)),
        }
    }

    /// A renter's money.
    #[must_use]
    pub fn balance(&self, renter: RenterId) -> Balance {
        let mut balance = Balance {
            available: self.market.available(renter),
            ..Balance::default()
        };
        for lease in self.market.leases_of(renter.into()) {
            if lease.contract.renter == renter {
                let burn = match lease.state {
                    State::Running | State::Noticed { .. } | State::Paused { .. } => {
                        lease.burn(Seconds(3600))
                    }
                    State::Clearing { .. }
                    | State::Offered { .. }
                    | State::Accepted { .. }
                    | State::Preparing { .. }
                    | State::Suspect { .. }
                    | State::Closing { .. }
                    | State::Closed { .. } => MicroUsd::ZERO,
                };
                balance.held = balance.held.saturating_add(self.market.held(lease.id));
                balance.spent = balance.spent.saturating_add(lease.charged.total());
                balance.burn_per_hour = balance.burn_per_hour.saturating_add(burn);
            }
        }
        balance
    }

    /// A host's money.
    #[must_use]
    pub fn earnings(&self, host: HostId) -> Earnings {
        let mut earnings = Earnings::default();
        let mut running = Millis(0);
        for lease in self.market.leases_of(host.into()) {
            if lease.contract.host != host {
                continue;
            }
            let pending = self
                .market
                .ledger()
                .balance(&Account::HostPending(lease.id));
            let fee = fee_of(lease.charged.total(), lease.contract.fee);
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

    /// The broker's account of one lease of `party`'s, signed; interim while it is not over.
    ///
    /// # Errors
    /// When there is no such lease of the party's.
    pub fn receipt(
        &self,
        now: Timestamp,
        party: PublicKey,
        lease: LeaseId,
    ) -> Result<Signed<Receipt>, Rejection> {
        let lease = self.own(party, lease)?;
        self.sign(now, receipt_of(lease, self.meter(lease)))
            .map_err(|error| Rejection::Malformed(Text::cut(&error.to_string())))
    }

    /// What a host should be doing.
    #[must_use]
    pub fn goal(&mut self, host: HostId) -> GoalDraft {
        self.goals_made = self.goals_made.saturating_add(1);
        let leases = self.market.live_leases_of(host.into());
        let leases = leases
            .filter(|lease| lease.contract.host == host)
            .filter_map(goal_of);
        GoalDraft {
            sequence: self.goals_made,
            started_at: self.started_at,
            leases: leases.collect(),
        }
    }

    /// Signs a statement that anyone may be shown, at the time that their clocks show.
    ///
    /// # Errors
    /// When it is larger than a statement may be.
    pub fn sign<T: Statement>(&self, now: Timestamp, body: T) -> Result<Signed<T>, CodecError> {
        let issued = self.wall(now);
        let content = protocol::codec::encode(&(issued, &body))?;
        let envelope = Envelope {
            audience: ANYONE,
            message_id: MessageId::from_bytes(Digest::of(&content).half()),
            issued,
            validity: VALIDITY_MAX,
        };
        Ok(Signed::sign(body, &self.key, envelope)?.signed().clone())
    }

    fn own(&self, party: PublicKey, lease: LeaseId) -> Result<&Lease, Rejection> {
        let is_own = |lease: &&Lease| {
            party == lease.contract.renter.into() || party == lease.contract.host.into()
        };
        self.market
            .lease(lease)
            .filter(is_own)
            .ok_or(Rejection::UnknownLease)
    }

    pub(super) fn view_of(&self, now: Timestamp, lease: &Lease) -> LeaseView {
        let contract = &lease.contract;
        let usage = self.meter_at(now, lease).usage;
        let disk_until = match lease.state {
            State::Paused { disk_until, .. } => Some(disk_until),
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Accepted { .. }
            | State::Preparing { .. }
            | State::Running
            | State::Noticed { .. }
            | State::Suspect { .. }
            | State::Closing { .. }
            | State::Closed { .. } => None,
        };
        LeaseView {
            id: lease.id,
            order: contract.order,
            name: contract.name.clone(),
            renter: contract.renter,
            place: Some((contract.host, contract.offer)),
            kind: contract.kind,
            bid: contract.bid,
            to_win: None,
            rests_until: None,
            gpu_count: u16::try_from(contract.share.gpus.len()).unwrap_or(u16::MAX),
            phase: lease.state.phase(),
            since: lease.since,
            progress: self.progress_of(lease),
            revision: self.revision(lease.id),
            image: contract.image.clone(),
            gpus: contract.share.gpus.clone(),
            cpu_millicores: contract.share.cpu_millicores,
            ram: contract.share.ram,
            disk: contract.disk,
            prices: contract.prices,
            rates: contract.rates.clone(),
            term: lease.term,
            fee: contract.fee,
            ordered_at: contract.ordered_at,
            started_at: lease.started_at,
            running: usage.running,
            charged: lease.charge_for(&usage),
            held: self.market.held(lease.id),
            budget: contract.budget,
            duration_max: contract.duration_max,
            disk_until,
            low_balance: lease.low_balance,
            grant: lease.grant.as_ref().map(|grant| grant.signed().clone()),
            access: Access {
                addresses: List::first(self.book.addresses(contract.host).iter().cloned()),
            },
            container: self.container_of(lease).cloned(),
        }
    }
}

/// The first of some views that together fit into a message.
fn fitting(views: impl Iterator<Item = LeaseView>) -> Vec<LeaseView> {
    let mut size = 0;
    let fits = |view: &LeaseView| {
        size += protocol::codec::encode(view).map_or(LEASES_BYTES_MAX, |bytes| bytes.len());
        size <= LEASES_BYTES_MAX
    };
    views.take(LEASES_MAX).take_while(fits).collect()
}

fn receipt_of(lease: &Lease, meter: crate::core::meter::Meter) -> Receipt {
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

fn goal_of(lease: &Lease) -> Option<LeaseGoalDraft> {
    match &lease.papers {
        Papers::Whole { order, award } => Some(LeaseGoalDraft {
            lease: lease.id,
            order: order.signed().clone(),
            award: Draft::clone(award),
            want: lease.want(),
        }),
        Papers::Filed { .. } => None,
    }
}
