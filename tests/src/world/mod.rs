//! A seeded world: brokers, hosts and renters that run the programs' own pure cores, under a virtual clock, with
//! a network that loses, repeats and delays, disks that forget what was not synced, clocks that jump, and
//! parties that cheat.
//!
//! ```text
//! seed ─▶ Nature: which faults there are, and how often; which parties cheat
//!   queue of (time, what happens) ─▶ Broker (Desk, journal) ⇄ letters ⇄ Host (Leases, engine)
//!                                         ▲                       │
//!                                         └─ letters ─ Renter     ▼
//!                                    Checks after every event    Truth: what really ran
//! ```
//!
//! The same seed gives the same events. Nothing here decides what the market should do: `checks` says what must
//! never be seen, whatever happens.

mod broker;
mod checks;
mod host;
mod letters;
mod nature;
mod operator;
mod renter;
mod search;
mod talk;
mod trouble;

use broker::{Broker, Input};
use checks::Checks;
use host::Host;
use letters::{Goals, Letter};
use nature::Nature;
use operator::Operator;
use protocol::ids::{Digest, LeaseId};
use protocol::units::{Millis, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use renter::Renter;
use std::collections::BTreeMap;
use std::rc::Rc;

/// When every world begins, by a right clock.
pub const START: u64 = 1_800_000_000_000;
/// After the last fault everything has to be settled within this time.
const CALM: Millis = Millis(4 * 3_600_000);

/// How large a world is, and how long it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Brokers.
    pub brokers: usize,
    /// Hosts; each lists with some of the brokers.
    pub hosts: usize,
    /// Renters; each has money with some of the brokers.
    pub renters: usize,
    /// Simulated hours with faults; four more without follow.
    pub hours: u64,
    /// Longest that a renter does nothing, in minutes; more than one.
    pub idle_minutes: u64,
}

/// What a world came to when nothing broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Simulated time.
    pub simulated: Millis,
    /// Events on the brokers' journals.
    pub events: u64,
    /// Leases that ran.
    pub leases: u64,
    /// What went wrong on purpose, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// BLAKE3 over all events of all journals, in the order in which they happened.
    pub log: Digest,
}

/// What must never be seen was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Of which world.
    pub seed: u64,
    /// When, in milliseconds from its beginning.
    pub at: u64,
    /// What.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, at, what } = self;
        write!(f, "seed={seed} at {} s: {what}", at / 1000)
    }
}

/// One thing that happens.
#[derive(Debug, Clone)]
enum Happening {
    /// A letter arrives at a broker.
    ToBroker(usize, Rc<Letter>),
    /// A goal arrives at a host.
    ToHost(usize, usize, Rc<Goals>),
    /// A host looks around: its engine, its reports, its offers.
    HostLooks(usize),
    /// A host's engine is done with what it does for a lease.
    EngineDone(usize, LeaseId),
    /// A renter thinks of something.
    RenterActs(usize),
    /// A broker's operator thinks of something.
    OperatorActs(usize),
    /// A broker says its goals again.
    GoalsAgain(usize),
    /// A broker dies; what was not synced is lost.
    BrokerDies(usize),
    /// It is back.
    BrokerBack(usize),
    /// A host's agent dies; its engine goes on.
    HostDies(usize),
    /// It is back; after a reboot its containers are not.
    HostBack(usize, bool),
    /// A host is cut off until then.
    Cut(usize, u64),
    /// A broker's clock jumps by so many milliseconds.
    ClockJumps(usize, i64),
    /// A container ends by itself.
    ContainerEnds(usize),
    /// A host ends all its leases and leaves.
    HostQuits(usize),
}

/// A world.
pub struct World {
    seed: u64,
    now: u64,
    tie: u64,
    random: StdRng,
    nature: Nature,
    queue: BTreeMap<(u64, u64), Happening>,
    brokers: Vec<Broker>,
    operators: Vec<Operator>,
    hosts: Vec<Host>,
    renters: Vec<Renter>,
    checks: Checks,
    /// Longest that a renter does nothing, in milliseconds.
    idle_max: u64,
    faults: BTreeMap<&'static str, u64>,
    log: Vec<u8>,
    log_digest: Digest,
}

/// Lets the world of `seed` happen.
///
/// # Errors
/// The first thing that must never be seen and was.
pub fn run(seed: u64, size: Size) -> Result<Outcome, Violation> {
    let mut world = World::new(seed, size);
    let end = size.hours * 3_600_000;
    world.until(end)?;
    world.calm_down();
    world.until(end + CALM.0)?;
    world.conclude()
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("seed", &self.seed)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl World {
    fn new(seed: u64, size: Size) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let nature = Nature::draw(&mut random).with_hosts(size.hosts);
        let brokers: Vec<Broker> = (0..size.brokers).map(Broker::new).collect();
        let ids: Vec<_> = brokers.iter().map(|broker| broker.id).collect();
        let hosts = (0..size.hosts)
            .map(|index| Host::new(index, &ids, &nature, &mut random))
            .collect();
        let renters = (0..size.renters)
            .map(|index| Renter::new(index, size.brokers, &nature, &mut random))
            .collect();
        let mut world = Self {
            seed,
            now: 0,
            tie: 0,
            random,
            nature,
            queue: BTreeMap::new(),
            operators: (0..size.brokers).map(Operator::new).collect(),
            brokers,
            hosts,
            renters,
            checks: Checks::default(),
            idle_max: size.idle_minutes.max(2) * 60_000,
            faults: BTreeMap::new(),
            log: Vec::new(),
            log_digest: Digest::of(b""),
        };
        world.plan(size);
        world
    }

    /// What happens by itself from the beginning on.
    fn plan(&mut self, size: Size) {
        for host in 0..size.hosts {
            let at = self.random.random_range(0..30_000);
            self.at(at, Happening::HostLooks(host));
        }
        for renter in 0..size.renters {
            let at = self.random.random_range(1_000..600_000);
            self.at(at, Happening::RenterActs(renter));
        }
        for broker in 0..size.brokers {
            self.at(600_000, Happening::GoalsAgain(broker));
            let at = self.random.random_range(600_000..3_600_000);
            self.at(at, Happening::OperatorActs(broker));
        }
        let end = size.hours * 3_600_000;
        for (at, fault) in self.nature.clone().faults(size, end, &mut self.random) {
            self.at(at, fault);
        }
    }

    fn at(&mut self, at: u64, what: Happening) {
        self.tie += 1;
        // Of two things at one moment, which is first is drawn.
        let tie = (u64::from(self.random.random::<u16>()) << 48) | self.tie;
        self.queue.insert((at.max(self.now), tie), what);
    }

    fn fault(&mut self, kind: &'static str) {
        *self.faults.entry(kind).or_default() += 1;
    }

    fn until(&mut self, end: u64) -> Result<(), Violation> {
        loop {
            let next = self.queue.first_key_value().map(|((at, _), _)| *at);
            let by = next.unwrap_or(end).min(end);
            if let Some((moment, broker)) = self.next_moment().filter(|(at, _)| *at <= by) {
                self.now = self.now.max(moment);
                self.input(broker, Input::Tick)?;
                continue;
            }
            if next.is_none_or(|at| at > end) {
                self.now = end;
                return Ok(());
            }
            if let Some(((at, _), what)) = self.queue.pop_first() {
                self.now = at;
                self.happen(what)?;
            }
        }
    }

    /// The first moment that a broker's desk waits for, in the world's time.
    fn next_moment(&self) -> Option<(u64, usize)> {
        let moments = self
            .brokers
            .iter()
            .enumerate()
            .filter_map(|(index, broker)| {
                let moment = broker.next_moment()?;
                // A desk that wants to look at once is looked at in a second.
                Some((moment.max(broker.ticked + 1000).max(self.now), index))
            });
        moments.min()
    }

    fn happen(&mut self, what: Happening) -> Result<(), Violation> {
        match what {
            Happening::ToBroker(broker, letter) => self.deliver(broker, &letter),
            Happening::ToHost(host, broker, goals) => {
                self.goal_arrives(host, broker, &goals);
                Ok(())
            }
            Happening::HostLooks(host) => self.host_looks(host),
            Happening::EngineDone(host, lease) => self.engine_done(host, lease),
            Happening::RenterActs(renter) => self.renter_acts(renter),
            Happening::OperatorActs(broker) => {
                self.operator_acts(broker);
                Ok(())
            }
            Happening::GoalsAgain(broker) => {
                self.say_goals(broker, None);
                self.at(self.now + 600_000, Happening::GoalsAgain(broker));
                Ok(())
            }
            Happening::BrokerDies(_)
            | Happening::BrokerBack(_)
            | Happening::HostDies(_)
            | Happening::HostBack(..)
            | Happening::Cut(..)
            | Happening::ClockJumps(..)
            | Happening::ContainerEnds(_)
            | Happening::HostQuits(_) => self.go_wrong(what),
        }
    }

    fn conclude(mut self) -> Result<Outcome, Violation> {
        for broker in &self.brokers {
            let end = self.checks.end(broker);
            end.map_err(|what| Violation {
                seed: self.seed,
                at: self.now,
                what,
            })?;
        }
        let events = self.brokers.iter().map(Broker::events).sum();
        let leases = self.brokers.iter().map(Broker::leases_that_ran).sum();
        Ok(Outcome {
            simulated: Millis(self.now),
            events,
            leases,
            faults: std::mem::take(&mut self.faults),
            log: self.log_digest,
        })
    }

    fn broken(&self, what: String) -> Violation {
        Violation {
            seed: self.seed,
            at: self.now,
            what,
        }
    }
}

/// A right clock at a moment of the world.
pub(crate) const fn clock(now: u64) -> Timestamp {
    Timestamp(START + now)
}
