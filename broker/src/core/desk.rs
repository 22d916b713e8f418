//! The market at work: hard state, book, meters ahead of the journal, and the order in which one input is
//! handled: decide, record, apply.
//!
//! Whoever owns a desk gives it the time and a way to record events; nothing here waits, and nothing is
//! known to have happened before it was recorded.

use crate::core::book::{Book, BookRefusal, Listing};
use crate::core::command::{Answer, Command};
pub(super) use crate::core::decision::{Decision, Reply};
use crate::core::event::{Event, Fact};
use crate::core::lease::Lease;
use crate::core::market::Market;
use crate::core::meter::Meter;
use crate::core::order::Deposit;
use crate::core::settings::MarketSettings;
pub use crate::core::soft::Change;
use crate::core::soft::Soft;
use ed25519_dalek::SigningKey;
use protocol::bounded::{List, Text};
use protocol::ids::{HostId, LeaseId};
use protocol::lease::{ContainerState, Progress};
use protocol::message::Rejection;
use protocol::offer::Offer;
use protocol::signed::Verified;
use protocol::units::{Millis, Timestamp};

/// One broker's market at work.
#[derive(Debug)]
pub struct Desk {
    pub(crate) market: Market,
    pub(crate) book: Book,
    pub(crate) settings: MarketSettings,
    pub(crate) key: SigningKey,
    pub(crate) started_at: Timestamp,
    pub(super) goals_made: u64,
    ahead: Millis,
    soft: Soft,
}

/// How a desk is set up.
#[derive(Debug)]
pub struct DeskSetup {
    /// The recovered market.
    pub market: Market,
    /// An empty book.
    pub book: Book,
    /// The operator's numbers.
    pub settings: MarketSettings,
    /// What awards, receipts and statements are signed with.
    pub key: SigningKey,
}

impl Desk {
    /// A desk that opens at `now`.
    #[must_use]
    pub fn open(now: Timestamp, setup: DeskSetup) -> Self {
        let DeskSetup {
            market,
            book,
            settings,
            key,
        } = setup;
        let mut desk = Self {
            market,
            book,
            settings,
            key,
            started_at: now,
            goals_made: 0,
            ahead: Millis(0),
            soft: Soft::default(),
        };
        let live: Vec<LeaseId> = desk.market.live_leases().map(|lease| lease.id).collect();
        for lease in live {
            desk.plan(now, lease, MeterFrom::Journal);
        }
        desk
    }

    /// Decides about `command`, records what comes of it, applies it.
    ///
    /// # Errors
    /// When recording failed; then memory is behind what may be on disk, and the desk must not be used again.
    pub fn handle<E>(
        &mut self,
        now: Timestamp,
        command: Command,
        record: &mut impl FnMut(&Event) -> Result<(), E>,
    ) -> Result<Result<Answer, Rejection>, E> {
        let decision = match self.decide(now, command) {
            Ok(decision) => decision,
            Err(rejection) => return Ok(Err(rejection)),
        };
        for event in decision.events {
            self.happen(now, event, record)?;
        }
        if let Some((lease, meter)) = decision.meter {
            self.run_on(now, lease, meter);
        }
        if let Some((lease, run, container)) = decision.container {
            self.hear(now, lease, run, container);
        }
        Ok(self.answer(now, decision.reply))
    }

    /// Does what time brings: looks at every lease whose moment has come.
    ///
    /// # Errors
    /// As [`Self::handle`].
    pub fn tick<E>(
        &mut self,
        now: Timestamp,
        record: &mut impl FnMut(&Event) -> Result<(), E>,
    ) -> Result<(), E> {
        self.book.expire(self.wall(now));
        while let Some(id) = self.soft.due(now) {
            let fill = self.is_time_to_fill(now, id);
            let lease = self.market.lease(id);
            let events = lease
                .map(|lease| self.check(now, lease, fill))
                .unwrap_or_default();
            for event in events {
                self.happen(now, event, record)?;
            }
            if let Some(live) = self.soft.live_mut(id).filter(|_| fill) {
                live.filled = now;
            }
            self.plan(now, id, MeterFrom::Here);
            self.soft.look_later(id, now);
        }
        Ok(())
    }

    /// Takes up all that a host offers now.
    ///
    /// # Errors
    /// When an offer is not the host's, or contradicts itself.
    pub fn announce(
        &mut self,
        now: Timestamp,
        host: HostId,
        offers: Vec<Verified<Offer>>,
        addresses: List<Text<256>, 8>,
    ) -> Result<(), BookRefusal> {
        let now = self.wall(now);
        self.book.announce(now, host, offers, addresses).map(|_| ())
    }

    /// When a host announced anything last, if it did and is still there.
    #[must_use]
    pub fn heard_at(&self, host: HostId) -> Option<Timestamp> {
        self.book.heard_at(host)
    }

    /// Says how far the time that is given here is ahead of the clock that everybody else goes by. The books'
    /// time never goes back, so it is when the clock was ahead once and then put right.
    pub const fn run_ahead(&mut self, ahead: Millis) {
        self.ahead = ahead;
    }

    /// What everybody else's clock says at `now`: whether an offer stands, a host is heard and a statement is
    /// fresh goes by this.
    #[must_use]
    pub const fn wall(&self, now: Timestamp) -> Timestamp {
        now.before(self.ahead)
    }

    /// Withdraws all offers of a host that is not connected any more.
    pub fn withdraw(&mut self, host: HostId) {
        self.book.withdraw(host);
    }

    /// Shows how far a start is.
    ///
    /// # Errors
    /// When the lease is not one of `host`'s.
    pub fn progress(
        &mut self,
        now: Timestamp,
        host: HostId,
        progress: Progress,
    ) -> Result<(), Rejection> {
        let id = progress.lease;
        let lease = self
            .market
            .lease(id)
            .filter(|lease| lease.contract.host == host);
        let starts = lease.ok_or(Rejection::UnknownLease)?.state.is_starting();
        if let Some(live) = self.soft.live_mut(id).filter(|_| starts) {
            live.progress = Some(progress);
            self.changed(now, id, false);
        }
        Ok(())
    }

    /// What changed since this was asked last.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.soft.take_changes()
    }

    /// The hard state.
    #[must_use]
    pub const fn market(&self) -> &Market {
        &self.market
    }

    /// Whether nobody has any resource of `listing`.
    pub(super) fn is_free(&self, listing: &Listing) -> bool {
        let host = listing.host();
        let resources = &listing.offer().share.resources;
        resources
            .iter()
            .all(|resource| self.market.holder(host, resource).is_none())
    }

    /// A lease's meter, as far as it is known.
    pub(super) fn meter(&self, lease: &Lease) -> Meter {
        self.soft
            .live(lease.id)
            .map_or(lease.meter, |live| live.meter)
    }

    /// A lease's meter with the time up to `now` counted as its state says.
    pub(super) fn meter_at(&self, now: Timestamp, lease: &Lease) -> Meter {
        let counting = lease.state.counting();
        self.meter(lease)
            .counted_to(now, counting, self.settings.suspect_after)
    }

    pub(super) fn progress_of(&self, lease: &Lease) -> Option<Progress> {
        let live = self
            .soft
            .live(lease.id)
            .filter(|_| lease.state.is_starting());
        live.and_then(|live| live.progress.clone())
    }

    /// What the host said of the container in the lease's present run, since this broker started.
    pub(super) fn container_of(&self, lease: &Lease) -> Option<&ContainerState> {
        let (run, container) = self.soft.live(lease.id)?.container.as_ref()?;
        (*run == lease.run).then_some(container)
    }

    /// Rises with every change, also over a restart as long as the clock does.
    pub(super) fn revision(&self, lease: LeaseId) -> u64 {
        self.soft.revision(lease).unwrap_or(self.started_at.0)
    }

    fn decide(&self, now: Timestamp, command: Command) -> Result<Decision, Rejection> {
        match command {
            Command::Deposit {
                id,
                renter,
                amount,
                memo,
            } => self.decide_deposit(
                now,
                Deposit {
                    id,
                    renter,
                    amount,
                    memo,
                },
            ),
            Command::Order(order) => self.decide_order(now, *order),
            Command::Lease(command) => self.decide_lease_command(now, command),
            Command::Grant(grant) => self.decide_grant(now, grant),
            Command::Refuse(refusal) => self.decide_refusal(now, &refusal),
            Command::Report(report) => self.decide_report(now, &report),
            Command::Operator { lease } => self.decide_operator(now, lease),
        }
    }

    /// Records an event, then applies it.
    fn happen<E>(
        &mut self,
        now: Timestamp,
        event: Event,
        record: &mut impl FnMut(&Event) -> Result<(), E>,
    ) -> Result<(), E> {
        debug_assert_eq!(crate::core::ledger::sum(&event.entries), 0, "{event:?}");
        record(&event)?;
        let lease = event.lease();
        let (from, goal) = consequences(&event.fact);
        self.market.apply(event);
        if let Some(lease) = lease {
            self.plan(now, lease, from);
            self.changed(now, lease, goal);
        }
        Ok(())
    }

    fn answer(&self, now: Timestamp, reply: Reply) -> Result<Answer, Rejection> {
        match reply {
            Reply::Lease(lease) => self.view(now, lease).map(Box::new).map(Answer::Lease),
            Reply::Deposited(renter) => Ok(Answer::Deposited(self.balance(renter))),
            Reply::DepositedBefore(renter) => Ok(Answer::DepositedBefore(self.balance(renter))),
            Reply::Noted => Ok(Answer::Noted),
        }
    }

    fn changed(&mut self, now: Timestamp, id: LeaseId, goal: bool) {
        let revision = self.revision(id).saturating_add(1).max(now.0);
        let Some(lease) = self.market.lease(id) else {
            return;
        };
        let (renter, host) = (lease.contract.renter, lease.contract.host);
        self.soft.changed(Change {
            lease: id,
            revision,
            renter,
            host,
            goal,
        });
    }

    fn run_on(&mut self, now: Timestamp, id: LeaseId, meter: Meter) {
        if let Some(live) = self.soft.live_mut(id) {
            live.meter = meter;
        }
        self.plan(now, id, MeterFrom::Here);
    }

    /// Keeps what a host says of a container. Whether a host took up a resume is known by it, so the lease's
    /// next look may be a later one.
    fn hear(&mut self, now: Timestamp, id: LeaseId, run: u32, container: ContainerState) {
        let Some(live) = self.soft.live_mut(id) else {
            return;
        };
        let said = Some((run, container));
        if live.container != said {
            live.container = said;
            self.plan(now, id, MeterFrom::Here);
            self.changed(now, id, false);
        }
    }

    fn is_time_to_fill(&self, now: Timestamp, id: LeaseId) -> bool {
        let filled = self.soft.live(id).map(|live| live.filled);
        filled.is_some_and(|filled| now.since(filled) >= self.settings.top_up_every.millis())
    }

    /// Puts right what is kept beside a lease: its meter, and when it is looked at next.
    fn plan(&mut self, now: Timestamp, id: LeaseId, from: MeterFrom) {
        let lease = self
            .market
            .lease(id)
            .filter(|lease| !lease.state.is_closed());
        let Some(lease) = lease else {
            self.soft.forget(id);
            return;
        };
        let (journalled, starts) = (lease.meter, lease.state.is_starting());
        let live = self.soft.live_or_new(id, now, journalled);
        // The progress of one start says nothing about the next.
        live.progress = live.progress.take().filter(|_| starts);
        if from == MeterFrom::Journal {
            live.meter = journalled;
        }
        let filled = live.filled;
        if let Some(lease) = self.market.lease(id) {
            let look = self.next_look(now, lease, filled);
            self.soft.look_at(id, look);
        }
    }
}

/// Which of two meters is the newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MeterFrom {
    /// The event brought it.
    Journal,
    /// The event says nothing about it.
    Here,
}

/// Where the newer meter is after an event, and whether the host has something else to do.
const fn consequences(fact: &Fact) -> (MeterFrom, bool) {
    match fact {
        Fact::Matched(_) | Fact::Moved(_) | Fact::Changed(_) => (MeterFrom::Journal, true),
        Fact::Cleared { .. } => (MeterFrom::Here, true),
        Fact::Metered(_) => (MeterFrom::Journal, false),
        Fact::Deposited { .. }
        | Fact::Granted { .. }
        | Fact::Rested(_)
        | Fact::Lapsed { .. }
        | Fact::RestRebid { .. }
        | Fact::Held { .. }
        | Fact::Warned { .. }
        | Fact::Commanded(_) => (MeterFrom::Here, false),
    }
}
