//! The world of a scenario: one clock, one queue of what happens next, the desk, and those around it.
//!
//! What happens at one moment happens in this order: containers start and stop on their hosts, then what time
//! brings on the desk, then the heartbeats of the hosts by their place in the file, then the steps of the file.
//! Every goal is served before the next thing happens.

use super::actors::{HostActor, Renter, Signer, key_of, public};
use super::lines::{Line, Names};
pub(super) use super::recorder::Recorder;
use super::recorder::write_line;
use super::scenario::{Scenario, Settings};
use super::summary;
use crate::core::book::{Book, BookLimits};
use crate::core::command::{Answer, Command};
use crate::core::desk::{Desk, DeskSetup};
use crate::core::market::Market;
use crate::core::settings::MarketSettings;
use protocol::codec::CodecError;
use protocol::ids::{BrokerId, LeaseId};
use protocol::message::Rejection;
use protocol::terms::GRACE_MIN;
use protocol::units::{BasisPoints, Seconds, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// When every scenario begins.
pub(super) const START: Timestamp = Timestamp(1_800_000_000_000);
/// How often hosts say that they are there, and how their leases stand.
const HEARTBEAT: Seconds = Seconds(30);

/// Why a simulation ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// An invariant of the market does not hold.
    #[error("after {at_s} s an invariant broke: {what}")]
    Invariant {
        /// When.
        at_s: u64,
        /// Which, and how.
        what: String,
    },
    /// A statement of the scenario is larger than statements may be.
    #[error("a statement cannot be written: {0}")]
    Statement(#[from] CodecError),
    /// The lines could not be written.
    #[error("the lines cannot be written: {0}")]
    Output(#[from] std::io::Error),
}

/// A scenario while it happens.
pub struct City<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) desk: Desk,
    pub(super) now: Timestamp,
    pub(super) broker: BrokerId,
    pub(super) signer: Signer,
    pub(super) hosts: Vec<HostActor>,
    pub(super) renters: BTreeMap<String, Renter>,
    pub(super) orders: BTreeMap<String, (LeaseId, String)>,
    pub(super) names: Names,
    pub(super) entries: u64,
    /// The same events once more: at the end it has to be the desk's market.
    pub(super) shadow: Market,
    pub(super) queue: BTreeSet<(Timestamp, Next)>,
    pub(super) notice: Seconds,
    pub(super) out: &'a mut dyn Write,
}

/// What happens next, in the order in which it does at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Next {
    /// A container of a host's is ready, or has to stop.
    Container(usize),
    /// A host is heard, by its place in the file.
    Heartbeat(usize),
    /// The step of that place in the file.
    Step(usize),
}

impl std::fmt::Debug for City<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("City")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl<'a> City<'a> {
    /// The scenario before its first moment; its lines will go to `out`.
    pub fn new(scenario: &'a Scenario, out: &'a mut dyn Write) -> Self {
        let key = key_of("broker", "");
        let broker: BrokerId = public(&key).into();
        let desk = Desk::open(
            START,
            DeskSetup {
                market: Market::new(broker),
                book: Book::new(broker, BookLimits::default()),
                settings: settings(&scenario.settings),
                key,
            },
        );
        let hosts: Vec<HostActor> = scenario.hosts.iter().cloned().map(HostActor::new).collect();
        let mut queue = BTreeSet::new();
        for (index, host) in hosts.iter().enumerate() {
            let at = START.after(Seconds(host.spec.listed_at_s).millis());
            queue.insert((at, Next::Heartbeat(index)));
        }
        for (index, step) in scenario.steps.iter().enumerate() {
            let at = START.after(Seconds(step.at_s).millis());
            queue.insert((at, Next::Step(index)));
        }
        let mut names = Names::default();
        for host in &hosts {
            names.hosts.insert(host.id, host.spec.id.clone());
        }
        Self {
            scenario,
            desk,
            now: START,
            broker,
            signer: Signer::new(broker),
            hosts,
            renters: BTreeMap::new(),
            orders: BTreeMap::new(),
            names,
            entries: 0,
            shadow: Market::new(broker),
            queue,
            notice: Seconds(scenario.settings.grace_s.unwrap_or(120)).max(GRACE_MIN),
            out,
        }
    }

    /// Lets everything happen, and writes the summary.
    ///
    /// # Errors
    /// When an invariant breaks, or the lines cannot be written.
    pub fn run(mut self) -> Result<(), Broken> {
        let end = START.after(Seconds(self.scenario.until_s).millis());
        self.bonds()?;
        while let Some((at, next)) = self.next_by(end)? {
            self.now = at;
            match next {
                Next::Step(index) => self.step(index)?,
                Next::Heartbeat(index) => {
                    self.heartbeat(index)?;
                    let again = at.after(HEARTBEAT.millis());
                    self.queue.insert((again, Next::Heartbeat(index)));
                }
                Next::Container(index) => self.serve(index)?,
            }
            self.serve_changes()?;
        }
        self.now = end;
        self.tick()?;
        self.serve_changes()?;
        // What runs is charged up to the end.
        for index in 0..self.hosts.len() {
            self.heartbeat(index)?;
        }
        self.serve_changes()?;
        self.check_replay()?;
        let summary = summary::of(&self);
        writeln!(self.out, "{summary}")?;
        Ok(())
    }

    /// What is next in the queue, once the desk did all that time brings until then.
    fn next_by(&mut self, end: Timestamp) -> Result<Option<(Timestamp, Next)>, Broken> {
        loop {
            let first = self.queue.first().copied().filter(|(at, _)| *at <= end);
            let by = first.map_or(end, |(at, _)| at);
            let is_container = matches!(first, Some((_, Next::Container(_))));
            match self.desk.next_moment() {
                Some(moment) if moment < by || (moment == by && !is_container) => {
                    self.now = self.now.max(moment);
                    self.tick()?;
                    self.serve_changes()?;
                }
                Some(_) | None => {
                    self.queue.pop_first().filter(|_| first.is_some());
                    return Ok(first);
                }
            }
        }
    }

    fn bonds(&mut self) -> Result<(), Broken> {
        for index in 0..self.hosts.len() {
            if let Some(command) = self.bond_of(index) {
                // A bond that is more than nothing is taken.
                let _ = self.command(command)?;
            }
        }
        Ok(())
    }

    /// Gives the desk a command, and writes down what came of it.
    pub(super) fn command(
        &mut self,
        command: Command,
    ) -> Result<Result<Answer, Rejection>, Broken> {
        let now = self.now;
        let mut record = Recorder::of(&mut self.shadow, &self.names, &mut self.entries, self.out);
        self.desk
            .handle(now, command, &mut |event| record.event(event))
    }

    fn tick(&mut self) -> Result<(), Broken> {
        let now = self.now;
        let mut record = Recorder::of(&mut self.shadow, &self.names, &mut self.entries, self.out);
        self.desk.tick(now, &mut |event| record.event(event))
    }

    /// Writes a line that no event is behind.
    pub(super) fn line(&mut self, line: Line) -> Result<(), Broken> {
        let line = Line {
            at_s: self.now.since(START).0 / 1000,
            ..line
        };
        write_line(self.out, &line)
    }

    /// Ends a host's silence, or begins it.
    pub(super) fn silence(&mut self, index: usize, until: Timestamp) {
        if let Some(host) = self.hosts.get_mut(index) {
            host.offline_until = Some(until);
        }
        self.queue.insert((until, Next::Heartbeat(index)));
    }

    fn check_replay(&self) -> Result<(), Broken> {
        if &self.shadow == self.desk.market() {
            return Ok(());
        }
        Err(self.broken("the events do not add up to the market's state".to_owned()))
    }

    pub(super) fn broken(&self, what: String) -> Broken {
        Broken::Invariant {
            at_s: self.now.since(START).0 / 1000,
            what,
        }
    }
}

fn settings(given: &Settings) -> MarketSettings {
    let usual = MarketSettings::default();
    let dispute = given
        .dispute_h
        .map(|hours| Seconds(hours.saturating_mul(3600)));
    MarketSettings {
        fee: given.fee_bps.map_or(usual.fee, BasisPoints),
        min_run: given.min_run_s.map_or(usual.min_run, Seconds),
        // Every report is charged, so that the last one at the end is.
        meter_every: Seconds(1),
        dispute: dispute.unwrap_or(usual.dispute),
        dispute_trusted: dispute.unwrap_or(usual.dispute_trusted),
        ..usual
    }
}
