//! What the market shows: leases, money, receipts, goals. Nothing here changes anything.
//!
//! Must not check who asks: a party is given, and sees what is its own; the operator sees all.

use crate::core::accounts::receipt_of;
use crate::core::desk::Desk;
use crate::core::goal::{GoalDraft, LeaseGoalDraft};
use crate::core::lease::{Lease, Papers, State};
use protocol::bounded::{List, Text};
use protocol::codec::CodecError;
use protocol::ids::{Digest, HostId, LeaseId, MessageId, PublicKey};
use protocol::lease::{Access, LeaseView};
use protocol::message::{Found, LEASES_MAX, LeaseScope, Rejection, Search};
use protocol::signed::{ANYONE, Draft, Envelope, Signed, Statement, VALIDITY_MAX};
use protocol::units::Timestamp;
use protocol::usage::Receipt;
use std::cmp::Reverse;

/// Most bytes of leases in one answer; what is added to each on the way out has to fit into it too.
const LEASES_BYTES_MAX: usize = 160 * 1024;

impl Desk {
    /// Which offers match.
    #[must_use]
    pub fn search(&mut self, now: Timestamp, search: &Search) -> Found {
        self.book.expire_offers(self.wall(now));
        self.settle_book(now);
        let found = self.book.search(search, self.wall(now), |listing, gpus| {
            self.available(now, search.kind, listing, gpus)
        });
        // A host takes a leased offer out of its list, so the book alone does not know.
        let rented = u32::try_from(self.market.holders()).unwrap_or(u32::MAX);
        Found { rented, ..found }
    }

    /// A lease, whoever asks.
    ///
    /// # Errors
    /// When there is none.
    pub fn view(&self, now: Timestamp, lease: LeaseId) -> Result<LeaseView, Rejection> {
        let rest = || self.market.resting(lease).ok_or(Rejection::UnknownLease);
        match self.market.lease(lease) {
            Some(lease) => Ok(self.view_of(now, lease)),
            None => Ok(self.rest_view(now, rest()?)),
        }
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
        let rest = self.market.resting(lease);
        match rest.filter(|rest| party == rest.renter().into()) {
            Some(rest) => Ok(self.rest_view(now, rest)),
            None => Ok(self.view_of(now, self.own(party, lease)?)),
        }
    }

    /// The leases of `party`, newest first, as many as fit into an answer.
    #[must_use]
    pub fn leases_of(&self, now: Timestamp, party: PublicKey, scope: LeaseScope) -> Vec<LeaseView> {
        let view = |lease| self.view_of(now, lease);
        let rest_view = |rest| self.rest_view(now, rest);
        let rests = self.market.rests_of(party.into());
        match scope {
            LeaseScope::Open => {
                let leases = self.market.live_leases_of(party).map(view);
                fitting(rests.map(rest_view).chain(leases))
            }
            LeaseScope::All => {
                let rests = rests.chain(self.market.past_rests_of(party.into()));
                let leases = self.market.leases_of(party).take(LEASES_MAX).map(view);
                let mut views: Vec<_> = rests.take(LEASES_MAX).map(rest_view).collect();
                views.extend(leases);
                views.sort_by_key(|view| (Reverse(view.ordered_at), view.id));
                fitting(views.into_iter())
            }
        }
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
            to_win: self.lease_to_win(now, lease),
            rests_until: None,
            gpu_count: u16::try_from(contract.share.gpus.len()).unwrap_or(u16::MAX),
            phase: lease.state.phase(),
            since: lease.since,
            progress: self.progress_of(lease),
            revision: self.revision(lease.id),
            image: contract.image.clone(),
            gpus: contract.share.gpus.clone(),
            partition: contract.partition.clone(),
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
            until: contract.limits.until,
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

fn goal_of(lease: &Lease) -> Option<LeaseGoalDraft> {
    // Its host hears of it when those in its way have gone.
    if matches!(lease.state, State::Clearing { .. }) && lease.started_at.is_none() {
        return None;
    }
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
