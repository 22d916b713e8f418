//! A broker of a world: the real desk, a journal that is synced after every input, and a clock that may be wrong.

mod chain;

use super::clock;
use super::letters::{Letter, Pen};
use super::nature::Dies;
use broker::core::Market;
use broker::core::book::{Book, BookLimits};
use broker::core::command::{Command, VerifiedAnnouncement};
use broker::core::desk::{Desk, DeskSetup};
use broker::core::event::Event;
use broker::core::goal::Awards;
use broker::core::settings::MarketSettings;
use chain::Chain;
use protocol::bounded::Text;
use protocol::ids::{BrokerId, DepositId, Digest, HostId, LeaseId, RenterId};
use protocol::lease::Goal;
use protocol::message::{Found, Search};
use protocol::offer::Offer;
use protocol::signed::{CLOCK_SKEW_MAX, Header, Verified};
use protocol::units::{BasisPoints, Millis, Seconds, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

/// What a desk is given.
#[derive(Debug)]
pub(crate) enum Input<'a> {
    Letter(&'a Letter),
    Tick,
}

/// What a host announced last.
#[derive(Debug, Default)]
pub(crate) struct Offered {
    sequence: u64,
    /// With the moments when they expire, by a right clock.
    pub(crate) offers: Vec<(Offer, Timestamp)>,
}

/// A broker.
pub(crate) struct Broker {
    pub(crate) id: BrokerId,
    pub(crate) index: usize,
    pen: Pen,
    desk: Option<Desk>,
    /// What is on disk, and what it adds up to.
    journal: Vec<Event>,
    chain: Chain,
    /// What each host offers here, by what it announced last.
    pub(crate) offered: BTreeMap<HostId, Offered>,
    /// Whether its clock was ever wrong.
    pub(crate) has_jumped: bool,
    pub(crate) disk: Market,
    awards: BTreeMap<HostId, Awards>,
    /// How far its clock is ahead of the right one, in milliseconds.
    offset: i64,
    /// The time of its books when `from_now` was the world's.
    from: Timestamp,
    from_now: u64,
    pub(crate) ticked: u64,
    /// Orders and deposits that were answered: they are on disk, for ever.
    answered: BTreeSet<LeaseId>,
    credited: BTreeSet<(DepositId, RenterId)>,
}

pub(crate) fn settings() -> MarketSettings {
    MarketSettings {
        fee: BasisPoints(1000),
        accept_within: Seconds(90),
        suspect_after: Seconds(400),
        lost_after: Seconds(1800),
        stop_below: Seconds(900),
        low_balance: Seconds(1200),
        dispute: Seconds(3600),
        dispute_trusted: Seconds(1800),
        disk_keep: Seconds(6 * 3600),
        disk_keep_unpaid: Seconds(3 * 3600),
        ..MarketSettings::default()
    }
}

impl Broker {
    pub(crate) fn new(index: usize) -> Self {
        let pen = Pen::of("broker", index);
        let id: BrokerId = pen.public().into();
        let mut broker = Self {
            id,
            index,
            desk: None,
            journal: Vec::new(),
            chain: Chain::default(),
            offered: BTreeMap::new(),
            has_jumped: false,
            disk: Market::new(id),
            awards: BTreeMap::new(),
            offset: 0,
            from: clock(0),
            from_now: 0,
            ticked: 0,
            answered: BTreeSet::new(),
            credited: BTreeSet::new(),
            pen,
        };
        broker.open(0, Market::new(id));
        broker
    }

    fn open(&mut self, now: u64, market: Market) {
        let books = self.books(now);
        let setup = DeskSetup {
            market,
            book: Book::new(self.id, BookLimits::default()),
            settings: settings(),
            key: self.pen.key.clone(),
        };
        self.desk = Some(Desk::open(books, setup));
        self.awards.clear();
    }

    pub(crate) const fn is_up(&self) -> bool {
        self.desk.is_some()
    }

    /// What its clock says.
    fn wall(&self, now: u64) -> Timestamp {
        Timestamp(clock(now).0.saturating_add_signed(self.offset))
    }

    /// The time of its books: its clock, but never a step back.
    fn books(&mut self, now: u64) -> Timestamp {
        let ran_on = self.from.after(Millis(now - self.from_now));
        let wall = self.wall(now);
        if wall >= ran_on {
            (self.from, self.from_now) = (wall, now);
            return wall;
        }
        ran_on
    }

    pub(crate) const fn set_clock_right(&mut self) {
        self.offset = 0;
    }

    pub(crate) const fn jump(&mut self, by: i64) {
        self.offset += by;
        self.has_jumped = true;
    }

    /// When its desk waits for something, in the world's time.
    pub(crate) fn next_moment(&self) -> Option<u64> {
        let moment = self.desk.as_ref()?.next_moment()?;
        let wait = moment.since(self.from).0;
        Some(self.from_now.saturating_add(wait))
    }

    /// Whether its door would let this letter in: fresh by its clock.
    pub(crate) fn takes(&self, letter: &Letter, now: u64) -> bool {
        let wall = self.wall(now);
        let is_fresh = |header: &Header| {
            header.issued.since(wall) <= CLOCK_SKEW_MAX.millis() && header.expires > wall
        };
        match letter {
            Letter::Deposit(..) | Letter::Money(_) | Letter::OperatorEnds(_) => true,
            Letter::Order(order) => is_fresh(order.header()),
            Letter::Command(command) => is_fresh(command.header()),
            Letter::Grant(grant) => is_fresh(grant.header()),
            Letter::Refuse(refusal) => is_fresh(refusal.header()),
            Letter::Report(report) => is_fresh(report.header()),
            Letter::Announce(_, offers) => offers.iter().all(|offer| is_fresh(offer.header())),
        }
    }

    /// Lets the desk do it, then syncs, then answers; or dies in between. Returns what is on disk of it.
    pub(crate) fn give(
        &mut self,
        now: u64,
        input: Input<'_>,
        dies: Option<Dies>,
    ) -> Result<Vec<Event>, String> {
        let books = self.books(now);
        let ahead = books.since(self.wall(now));
        self.ticked = now;
        let Some(desk) = self.desk.as_mut() else {
            return Ok(Vec::new());
        };
        desk.run_ahead(ahead);
        let mut written = Vec::new();
        let answered = give(desk, books, &input, &mut written);
        if dies == Some(Dies::BeforeSync) {
            self.die();
            return Ok(Vec::new());
        }
        for event in &written {
            self.chain.append(event)?;
            self.journal.push(event.clone());
        }
        if dies == Some(Dies::AfterSync) {
            self.die();
        } else if answered {
            self.remember(&input);
            self.chain.tell()?;
        }
        Ok(written)
    }

    /// The hash of its journal.
    pub(crate) fn head(&self) -> Digest {
        self.chain.head()
    }

    /// What it answers a search with, if it is up.
    pub(crate) fn search(&mut self, now: u64, search: &Search) -> Option<Found> {
        let books = self.books(now);
        let ahead = books.since(self.wall(now));
        let desk = self.desk.as_mut()?;
        desk.run_ahead(ahead);
        Some(desk.search(books, search))
    }

    fn remember(&mut self, input: &Input<'_>) {
        match input {
            Input::Letter(Letter::Order(order)) => {
                let renter = RenterId::from(order.signer());
                let lease = LeaseId::of_order(self.id, renter, order.body().id);
                self.answered.insert(lease);
            }
            Input::Letter(Letter::Deposit(id, renter, _)) => {
                self.credited.insert((*id, *renter));
            }
            Input::Letter(Letter::Announce(host, offers)) => {
                let known = self.offered.entry(*host).or_default();
                let newest = offers.iter().map(|offer| offer.body().sequence).max();
                // One that was overtaken by a later one says nothing any more.
                if newest.is_none_or(|newest| newest >= known.sequence) {
                    known.sequence = newest.unwrap_or(known.sequence);
                    let stands =
                        |offer: &Verified<Offer>| (offer.body().clone(), offer.header().expires);
                    known.offers = offers.iter().map(stands).collect();
                }
            }
            Input::Letter(_) | Input::Tick => {}
        }
    }

    pub(crate) fn die(&mut self) {
        self.desk = None;
        // Offers are nowhere but in memory.
        self.offered.clear();
    }

    /// Starts again on what is on disk: all events, or a snapshot of them.
    pub(crate) fn come_back(&mut self, now: u64, from_snapshot: bool) -> Result<(), String> {
        if self.desk.is_some() {
            return Ok(());
        }
        let mut market = self.disk.clone();
        if from_snapshot {
            let bytes = market.encode().map_err(|error| error.to_string())?;
            market = Market::decode(&bytes).map_err(|error| error.to_string())?;
            if market != self.disk {
                return Err("L8: a snapshot is not the state that it was made of".to_owned());
            }
        }
        self.open(now, market);
        Ok(())
    }

    /// The hosts that have something else to do.
    pub(crate) fn hosts_with_news(&mut self) -> BTreeSet<HostId> {
        let changes = self.desk.as_mut().map(Desk::take_changes);
        let changes = changes.into_iter().flatten();
        changes
            .filter(|change| change.goal)
            .filter_map(|change| change.host)
            .collect()
    }

    /// What a host should be doing, with every award signed.
    pub(crate) fn goal(&mut self, host: HostId) -> Option<Goal> {
        let draft = self.desk.as_mut()?.goal(host);
        let awards = self.awards.entry(host).or_default();
        Some(draft.sign(&self.pen.key, awards))
    }

    pub(crate) const fn desk(&self) -> Option<&Desk> {
        self.desk.as_ref()
    }

    pub(crate) fn events(&self) -> u64 {
        self.disk.events()
    }

    pub(crate) fn leases_that_ran(&self) -> u64 {
        let ran = self
            .disk
            .leases()
            .filter(|lease| lease.started_at.is_some());
        ran.count() as u64
    }

    /// What must be true of its disk at the end.
    pub(crate) fn check_disk(&self) -> Result<(), String> {
        let mut replayed = Market::new(self.id);
        for event in &self.journal {
            replayed.apply(event.clone());
        }
        if replayed != self.disk {
            return Err("L8: the journal does not add up to the state".to_owned());
        }
        self.chain.check(&self.journal)?;
        if self
            .desk
            .as_ref()
            .is_some_and(|desk| desk.market() != &self.disk)
        {
            return Err("L8: memory is not what is on disk".to_owned());
        }
        let lost = |lease: &&LeaseId| {
            self.disk.lease(**lease).is_none() && self.disk.resting(**lease).is_none()
        };
        if let Some(lease) = self.answered.iter().find(lost) {
            return Err(format!("L8: the answered order of {lease} is not on disk"));
        }
        for (id, renter) in &self.credited {
            if self
                .disk
                .deposit(id)
                .is_none_or(|(known, _)| known != *renter)
            {
                return Err(format!("L8: the answered deposit {id} is not on disk"));
            }
        }
        Ok(())
    }
}

/// Gives a desk its input; whether it was answered with anything but a refusal.
fn give(desk: &mut Desk, now: Timestamp, input: &Input<'_>, written: &mut Vec<Event>) -> bool {
    let mut record = |event: &Event| -> Result<(), Infallible> {
        written.push(event.clone());
        Ok(())
    };
    let letter = match input {
        Input::Tick => {
            let Ok(()) = desk.tick(now, &mut record);
            return false;
        }
        Input::Letter(letter) => *letter,
    };
    let command = match letter {
        Letter::Announce(host, offers) => {
            let announced = VerifiedAnnouncement {
                offers: offers.to_vec(),
                ..VerifiedAnnouncement::default()
            };
            let Ok(announced) = desk.announce(now, *host, announced, &mut record);
            return announced.is_ok();
        }
        Letter::Deposit(id, renter, amount) => Command::Deposit {
            id: *id,
            renter: *renter,
            amount: *amount,
            memo: Text::default(),
        },
        Letter::Order(order) => Command::Order(order.clone()),
        Letter::Command(command) => Command::Lease(command.clone()),
        Letter::Grant(grant) => Command::Grant(grant.clone()),
        Letter::Refuse(refusal) => Command::Refuse(refusal.clone()),
        Letter::Report(report) => Command::Report(report.clone()),
        Letter::Money(order) => Command::Money(order.clone()),
        Letter::OperatorEnds(lease) => Command::Operator { lease: *lease },
    };
    let Ok(answer) = desk.handle(now, command, &mut record);
    answer.is_ok()
}
