//! The market at work: hard state, book, meters ahead of the journal, and the order in which one input is
//! handled: decide, record, apply.
//!
//! Whoever owns a desk gives it the time and a way to record events; nothing here waits, and nothing is
//! known to have happened before it was recorded.

mod beside;

use self::beside::{MeterFrom, consequences};
use crate::core::acquaintance::Greeted;
use crate::core::book::{Announced, Book, BookRefusal};
use crate::core::command::{Answer, Command, VerifiedAnnouncement};
pub(super) use crate::core::decision::{Decision, Reply};
use crate::core::event::Event;
use crate::core::lease::{Lease, State};
use crate::core::market::Market;
use crate::core::meter::Meter;
use crate::core::order::Deposit;
use crate::core::proofs::{Proving, host_proved};
use crate::core::reliability::HostWatch;
use crate::core::ripening::Ripening;
use crate::core::settings::MarketSettings;
use crate::core::settling::host_of;
pub use crate::core::soft::Change;
use crate::core::soft::Soft;
use crate::core::waiting::{Venue, Waiting};
use ed25519_dalek::SigningKey;
use protocol::ids::{HostId, LeaseId};
use protocol::lease::{ContainerState, Progress};
use protocol::message::Rejection;
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
    pub(super) hosts_watched: HostWatch,
    pub(super) waiting: Waiting,
    pub(super) greeted: Greeted,
    ahead: Millis,
    soft: Soft,
    pub(super) ripening: Ripening,
    pub(super) proving: Option<Proving>,
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
        let hosts_watched = HostWatch::open(market.reliability(), market.last_at(), now);
        let mut desk = Self {
            hosts_watched,
            market,
            book,
            settings,
            key,
            started_at: now,
            goals_made: 0,
            waiting: Waiting::default(),
            greeted: Greeted::default(),
            ahead: Millis(0),
            soft: Soft::default(),
            ripening: Ripening::default(),
            proving: None,
        };
        let marked: Vec<LeaseId> = desk
            .market
            .leases()
            .filter(|lease| !lease.marks.is_empty())
            .map(|lease| lease.id)
            .collect();
        for lease in marked {
            desk.plan_ripening(now, lease);
        }
        desk.take_up_waiting();
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
        self.settle_down(now, record)?;
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
        self.settle_book(now);
        self.watch_hosts(now, record)?;
        self.ripen_all(now, record)?;
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
            self.note_bids(now, id);
            self.settle_down(now, record)?;
        }
        self.end_waiting(now, record)?;
        self.settle_down(now, record)
    }

    /// Takes up all that a host offers now, and serves the orders that waited for it.
    ///
    /// # Errors
    /// As [`Self::handle`]; inside, when an offer is not the host's, or contradicts itself.
    pub fn announce<E>(
        &mut self,
        now: Timestamp,
        host: HostId,
        announced: VerifiedAnnouncement,
        record: &mut impl FnMut(&Event) -> Result<(), E>,
    ) -> Result<Result<(), BookRefusal>, E> {
        let VerifiedAnnouncement {
            offers,
            addresses,
            withheld,
        } = announced;
        self.hosts_watched.heard(now, host, &addresses);
        let wall = self.wall(now);
        match self.book.announce(wall, host, offers, addresses) {
            Ok(Announced::Replaced) => self.book.withhold(host, withheld),
            Ok(Announced::Stale) => {}
            Err(refusal) => return Ok(Err(refusal)),
        }
        self.book.rate(host, &self.hosts_watched.score(host));
        self.note_proofs(now, host);
        self.waiting.note(Venue::Host(host));
        self.settle_down(now, record)?;
        Ok(Ok(()))
    }

    /// When time brings something next, as far as it is known: [`Self::tick`] has to be called then, and may
    /// be called before. Nothing when the desk waits for others alone.
    #[must_use]
    pub fn next_moment(&self) -> Option<Timestamp> {
        let moments = [
            self.soft.first_look(),
            self.ripening.first_look(),
            self.waiting.first_end(),
        ];
        moments.into_iter().flatten().min()
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

    /// The moment of the books at which everybody else's clock says `wall`.
    pub(super) const fn book_time(&self, wall: Timestamp) -> Timestamp {
        wall.after(self.ahead)
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

    /// A lease's meter, as far as it is known.
    pub(super) fn meter(&self, lease: &Lease) -> Meter {
        self.soft
            .live(lease.id)
            .map_or(lease.meter, |live| live.meter)
    }

    /// A lease's meter with the time up to `now` counted as its state says.
    pub(super) fn meter_at(&self, now: Timestamp, lease: &Lease) -> Meter {
        let counting = lease.state.counting();
        // Nobody pays for running on after the end of a notice.
        let until = match lease.state {
            State::Noticed { by, .. } => now.min(by),
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Accepted { .. }
            | State::Preparing { .. }
            | State::Running
            | State::Suspect { .. }
            | State::Paused { .. }
            | State::Closing { .. }
            | State::Closed { .. } => now,
        };
        self.meter(lease)
            .counted_to(until, counting, self.settings.suspect_after)
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

    /// Rises with every change, also over a restart as long as the clock does. Of what has been over for long it
    /// is that of its end, which nobody who saw less has to wait for.
    pub(super) fn revision(&self, id: LeaseId) -> u64 {
        self.soft.revision(id).unwrap_or_else(|| {
            let closed = self.market.lease(id).filter(|it| it.state.is_closed());
            let ended = self.market.resting(id).and_then(|rest| rest.ended.as_ref());
            let end = closed.map(|it| it.since).or(ended.map(|(at, _)| *at));
            // More than one change in a millisecond counts on.
            let end = end.map_or(0, |at| at.0.saturating_add(1000));
            end.max(self.started_at.0)
        })
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
            Command::Money(order) => self.decide_money(now, order),
            Command::Proof(order) => self.decide_proof(now, order),
            Command::Operator { lease } => self.decide_operator(now, lease),
        }
    }

    /// Records an event, then applies it.
    pub(super) fn happen<E>(
        &mut self,
        now: Timestamp,
        event: Event,
        record: &mut impl FnMut(&Event) -> Result<(), E>,
    ) -> Result<(), E> {
        debug_assert_eq!(crate::core::ledger::sum(&event.entries), 0, "{event:?}");
        record(&event)?;
        let lease = event.lease();
        let (from, goal) = consequences(&event.fact);
        let host = host_of(&event.fact);
        self.note_event(&event.fact);
        let proved = host_proved(&event.fact, lease.and_then(|id| self.market.lease(id)));
        self.market.apply(event);
        self.waiting.update_from(&self.market, lease);
        self.unsettle(host, lease);
        self.show_proofs_after(now, proved);
        if let Some(lease) = lease {
            self.plan_ripening(now, lease);
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
            Reply::Payment(id) => Ok(self.payment_answer(id, false)),
            Reply::PaymentBefore(id) => Ok(self.payment_answer(id, true)),
            Reply::OpenPayouts => Ok(self.open_payouts()),
            Reply::Noted => Ok(Answer::Noted),
            Reply::Refused(rejection) => Err(*rejection),
        }
    }
}
