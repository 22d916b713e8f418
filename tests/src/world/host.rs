//! A host of a world: the real rules of the agent, a journal, and an engine whose containers really run, or do not.

mod goods;
mod mind;
mod saying;

use super::clock;
use super::letters::{Letter, Pen};
use super::nature::Nature;
use goods::{listing, machine};
use host_agent::core::award::Standing;
use host_agent::core::leases::Note;
use host_agent::core::meter::Moment;
use host_agent::core::offer::{Listed, offers};
use host_agent::core::reconcile::{Containers, Observed, Outcome};
use host_agent::core::report::{gone_without_record, grant};
use host_agent::core::traffic::Crossed;
use host_agent::core::work::Work;
use mind::Mind;
use protocol::ids::{BootId, BrokerId, HostId, LeaseId, PublicKey};
use protocol::lease::{Detail, Goal, Problem, ProblemKind, Refusal, Stage};
use protocol::offer::ResourceName;
use protocol::units::{Bytes, Millis};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use std::collections::{BTreeMap, BTreeSet};

/// A host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) id: HostId,
    pen: Pen,
    listed: Vec<Listed>,
    brokers: Vec<usize>,
    /// One for all brokers, or one for each, when it sells twice.
    minds: Vec<Mind>,
    /// Whose mind serves which broker.
    mind_of: BTreeMap<BrokerId, usize>,
    pub(crate) sells_twice: bool,
    /// It signs that containers ran twice as long.
    pub(crate) lies: bool,
    has_quit: bool,
    is_up: bool,
    boot: u64,
    pub(crate) cut_until: u64,
    /// Whether it was ever not to be heard.
    pub(crate) was_unheard: bool,
    // The engine.
    engine: Containers,
    jobs: BTreeMap<LeaseId, Work>,
    /// How long each container ran in its runs that are over, in milliseconds.
    ran: BTreeMap<LeaseId, u64>,
    /// Containers that ended by themselves.
    pub(crate) exited: BTreeSet<LeaseId>,
    /// Two containers that ran on one resource, of a host that sells twice.
    pub(crate) sold_twice: bool,
}

impl Host {
    pub(crate) fn new(
        index: usize,
        brokers: &[BrokerId],
        nature: &Nature,
        random: &mut StdRng,
    ) -> Self {
        let pen = Pen::of("host", index);
        let id: HostId = pen.public().into();
        let count = random.random_range(1..=brokers.len());
        let mut chosen = (0..brokers.len()).sample(random, count);
        chosen.sort_unstable();
        let named: Vec<BrokerId> = chosen.iter().map(|broker| brokers[*broker]).collect();
        let sells_twice = random.random_ratio(nature.double_sellers, 100) && named.len() > 1;
        let minds = if sells_twice { named.len() } else { 1 };
        let mind_of = named.iter().enumerate();
        let mind_of = mind_of.map(|(place, broker)| (*broker, if sells_twice { place } else { 0 }));
        let gpus = *[1_u16, 1, 2, 4, 8].iter().choose(random).unwrap_or(&1);
        let machine = machine(index, gpus);
        let listing = listing(&machine, random);
        Self {
            id,
            listed: offers(
                id,
                &machine,
                &std::collections::BTreeMap::new(),
                &listing,
                &named,
            )
            .expect("a machine of a world is small"),
            brokers: chosen,
            minds: (0..minds).map(|_| Mind::new(id)).collect(),
            mind_of: mind_of.collect(),
            sells_twice,
            lies: random.random_ratio(nature.liars, 100),
            has_quit: false,
            is_up: true,
            boot: 1,
            cut_until: 0,
            was_unheard: !nature.is_reliable(),
            engine: Containers::new(),
            jobs: BTreeMap::new(),
            ran: BTreeMap::new(),
            exited: BTreeSet::new(),
            sold_twice: false,
            pen,
        }
    }

    pub(crate) fn lists_with(&self, broker: usize) -> bool {
        self.brokers.contains(&broker)
    }

    fn moment(&self, now: u64) -> Moment {
        let mut boot = [0; 16];
        boot[..8].copy_from_slice(&self.boot.to_le_bytes());
        Moment {
            wall: clock(now),
            monotonic: Millis(now + 1000),
            boot: BootId::from_bytes(boot),
        }
    }

    /// How long a lease's container really ran until now.
    pub(crate) fn really_ran(&self, lease: LeaseId, now: u64) -> u64 {
        let before = self.ran.get(&lease).copied().unwrap_or(0);
        match self.engine.get(&lease) {
            Some(Observed::Running { started_at, .. }) => before + clock(now).since(*started_at).0,
            _ => before,
        }
    }

    /// What a goal makes it do, and what it answers.
    pub(crate) fn follow(&mut self, broker: BrokerId, goal: &Goal, now: u64) -> Vec<Letter> {
        let moment = self.moment(now);
        let Some(mind) = self.mind_of.get(&broker).copied().filter(|_| self.is_up) else {
            return Vec::new();
        };
        let listed = if self.has_quit { &[][..] } else { &self.listed };
        let disk_left = BTreeMap::new();
        let health = host_agent::core::health::unheard();
        let standing = Standing {
            offers: listed,
            engine: Ok(()),
            disk_free: Bytes::from_gb(100_000),
            disk_left: &disk_left,
            health: &health,
            draining: false,
        };
        let decided = self.minds[mind]
            .leases
            .decide_goal(broker, goal, &standing, moment);
        let Ok(decision) = decided else {
            return Vec::new();
        };
        self.minds[mind].record(&decision);
        let to: PublicKey = broker.into();
        let mut letters = Vec::new();
        for note in &decision.notes {
            match note {
                Note::Refused(_, lease, reason) => {
                    let refusal = Refusal {
                        lease: *lease,
                        reason: reason.clone(),
                    };
                    letters.push(Letter::Refuse(self.pen.said(refusal, to, clock(now))));
                }
                Note::Unknown(_, lease) => {
                    let report = gone_without_record(*lease, moment);
                    letters.push(Letter::Report(self.pen.said(report, to, clock(now))));
                }
                Note::Goal(..) | Note::Waiting(_) => {}
            }
        }
        for wanted in &goal.leases {
            let record = self.minds[mind].leases.record(wanted.lease);
            if let Some(grant) = record.and_then(grant) {
                letters.push(Letter::Grant(self.pen.said(grant, to, clock(now))));
            }
        }
        letters
    }

    /// Begins the work that is wanted and not being done; says of which leases.
    pub(crate) fn begin_work(&mut self, now: u64) -> Vec<LeaseId> {
        if !self.is_up {
            return Vec::new();
        }
        let moment = self.moment(now);
        let mut begun = Vec::new();
        for index in 0..self.minds.len() {
            let own = self.containers_of(index);
            for (lease, work) in self.minds[index].leases.work(&own, moment) {
                if let std::collections::btree_map::Entry::Vacant(job) = self.jobs.entry(lease) {
                    job.insert(work);
                    begun.push(lease);
                }
            }
        }
        begun
    }

    /// The containers that an agent looks after: all, unless the others are another agent's.
    fn containers_of(&self, mind: usize) -> Containers {
        let is_own = |lease: &LeaseId| {
            self.minds.len() == 1 || self.minds[mind].leases.record(*lease).is_some()
        };
        let own = self.engine.iter().filter(|(lease, _)| is_own(lease));
        own.map(|(lease, seen)| (*lease, *seen)).collect()
    }

    /// The engine is done with what it did for a lease.
    pub(crate) fn finish_work(
        &mut self,
        lease: LeaseId,
        now: u64,
        random: &mut StdRng,
    ) -> Result<(), String> {
        let Some(work) = self.jobs.remove(&lease).filter(|_| self.is_up) else {
            return Ok(());
        };
        let outcome = match work {
            Work::Prepare if random.random_bool(0.01) => Outcome::Problem(Problem {
                stage: Stage::Creating,
                kind: ProblemKind::EngineFailed,
                detail: Detail::default(),
            }),
            Work::Prepare if random.random_bool(0.02) => Outcome::Broken(String::new()),
            Work::Prepare => self.start(lease, now)?,
            Work::Notify => Outcome::Told,
            Work::Recall => Outcome::Recalled,
            Work::Stop { .. } => {
                let seen = match self.engine.get(&lease) {
                    Some(Observed::Running {
                        started_at,
                        crossed,
                    }) => Some((*started_at, *crossed)),
                    _ => None,
                };
                self.exit(lease, 143, now);
                Outcome::Stopped(seen)
            }
            Work::Remove { .. } => {
                self.exit(lease, 137, now);
                Outcome::Removed(match self.engine.remove(&lease) {
                    Some(Observed::Exited {
                        started_at,
                        finished_at,
                        ..
                    }) => Some((started_at, finished_at)),
                    _ => None,
                })
            }
        };
        let moment = self.moment(now);
        for mind in &mut self.minds {
            let decision = mind.leases.decide_outcome(lease, &outcome, moment);
            mind.record(&decision);
        }
        self.sight(now);
        Ok(())
    }

    /// S1: a container starts on resources that no other container runs on.
    fn start(&mut self, lease: LeaseId, now: u64) -> Result<Outcome, String> {
        if let Some(Observed::Running { started_at, .. }) = self.engine.get(&lease) {
            return Ok(Outcome::Started(*started_at));
        }
        let resources_of = |lease: &LeaseId| -> Vec<ResourceName> {
            let record = self.minds.iter().find_map(|mind| mind.records.get(lease));
            record.map_or_else(Vec::new, |record| {
                record.share.resources.iter().cloned().collect()
            })
        };
        let wanted = resources_of(&lease);
        for (other, seen) in &self.engine {
            let is_running = matches!(seen, Observed::Running { .. });
            if is_running && resources_of(other).iter().any(|name| wanted.contains(name)) {
                if !self.sells_twice {
                    return Err(format!(
                        "S1: {lease} and {other} run on one resource of an honest host"
                    ));
                }
                self.sold_twice = true;
            }
        }
        let started_at = clock(now);
        let crossed = Crossed::default();
        self.engine.insert(
            lease,
            Observed::Running {
                started_at,
                crossed,
            },
        );
        Ok(Outcome::Started(started_at))
    }

    fn exit(&mut self, lease: LeaseId, code: i32, now: u64) {
        if let Some(Observed::Running { started_at, .. }) = self.engine.get(&lease).copied() {
            let finished_at = clock(now);
            *self.ran.entry(lease).or_default() += finished_at.since(started_at).0;
            let exited = Observed::Exited {
                code,
                out_of_memory: false,
                disk_full: false,
                started_at,
                finished_at,
            };
            self.engine.insert(lease, exited);
        }
    }

    /// Looks at its containers, whose traffic goes on.
    pub(crate) fn look(&mut self, now: u64, random: &mut StdRng) {
        for seen in self.engine.values_mut() {
            if let Observed::Running { crossed, .. } = seen {
                crossed.uploaded.0 += random.random_range(0..50_000_000);
                crossed.downloaded.0 += random.random_range(0..50_000_000);
            }
        }
        if self.is_up {
            self.sight(now);
        }
    }

    fn sight(&mut self, now: u64) {
        let busy: BTreeSet<LeaseId> = self.jobs.keys().copied().collect();
        let moment = self.moment(now);
        for index in 0..self.minds.len() {
            let own = self.containers_of(index);
            let decision = self.minds[index].leases.decide_sight(&own, &busy, moment);
            self.minds[index].record(&decision);
        }
    }

    /// Its agent dies; its containers run on.
    pub(crate) fn die(&mut self, _now: u64) {
        self.is_up = false;
        self.was_unheard = true;
        self.jobs.clear();
    }

    /// Its agent is back, with what is on its disk; after a reboot all containers have ended.
    pub(crate) fn come_back(&mut self, now: u64, is_reboot: bool) {
        if is_reboot {
            self.boot += 1;
            for lease in self.engine.keys().copied().collect::<Vec<_>>() {
                self.exit(lease, 255, now);
                self.exited.insert(lease);
            }
        }
        for mind in &mut self.minds {
            mind.recover(self.id);
        }
        self.is_up = true;
    }

    /// A container ends by itself.
    pub(crate) fn end_some_container(&mut self, now: u64, random: &mut StdRng) -> bool {
        let running = self.engine.iter();
        let running = running.filter(|(_, seen)| matches!(seen, Observed::Running { .. }));
        let Some(lease) = running.map(|(lease, _)| *lease).choose(random) else {
            return false;
        };
        self.exit(lease, 1, now);
        self.exited.insert(lease);
        true
    }

    /// It ends everything and goes.
    pub(crate) fn quit(&mut self, now: u64) {
        for lease in self.engine.keys().copied().collect::<Vec<_>>() {
            self.exit(lease, 137, now);
        }
        self.engine.clear();
        self.jobs.clear();
        self.has_quit = true;
    }
}
