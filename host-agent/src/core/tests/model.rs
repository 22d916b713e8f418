//! The rules against a model of an engine, in any order: goals that come twice or too late, an agent that
//! dies anywhere, work that fails in the middle, programs that end by themselves. Never do two containers
//! run on one resource, and in the end the containers are what the brokers want.

mod checks;
mod engine;
mod steps;

use super::{START, World, at, goal};
use crate::core::leases::{Change, Decision, Leases};
use crate::core::reconcile::{Containers, Observed, Outcome};
use crate::core::traffic::Crossed;
use crate::core::work::Work;
use engine::{add, one_way};
use proptest::prelude::*;
use protocol::ids::LeaseId;
use protocol::lease::{Detail, Goal, Problem, ProblemKind, Stage, Vacate, Want};
use protocol::units::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use steps::{BrokerModel, Step, WantChange, WorkEnd, nth, step};

/// Everything at once: brokers, agent, journal, engine.
struct Model {
    world: World,
    second: u64,
    orders: u8,
    brokers: [BrokerModel; 2],
    offer_of: BTreeMap<LeaseId, usize>,
    // The engine.
    engine: Containers,
    vanished: BTreeSet<LeaseId>,
    starts: BTreeSet<(LeaseId, u32)>,
    /// How long each container really ran, in milliseconds, its runs that are over.
    ran: BTreeMap<LeaseId, u64>,
    /// What really crossed each container's network, in its runs that are over.
    crossed: BTreeMap<LeaseId, Crossed>,
    /// Containers that run and were told to go, and when.
    told: BTreeMap<LeaseId, u64>,
    /// Notices that were heard, and when first.
    heard: BTreeMap<(LeaseId, u32), u64>,
    // The agent's memory.
    leases: Leases,
    jobs: BTreeMap<LeaseId, Work>,
    view: Option<Containers>,
    sight: Option<(u64, u64, Containers)>,
    begun: u64,
    blind_until: BTreeMap<LeaseId, u64>,
    // The journal.
    epochs: BTreeMap<protocol::offer::ResourceName, u64>,
    records: BTreeMap<LeaseId, crate::core::lease::LeaseRecord>,
}

impl Model {
    fn new() -> Self {
        let world = World::new();
        let broker = || BrokerModel {
            sequence: 0,
            wanted: BTreeMap::new(),
            said: Vec::new(),
        };
        Self {
            leases: world.empty(),
            world,
            second: 1,
            orders: 0,
            brokers: [broker(), broker()],
            offer_of: BTreeMap::new(),
            engine: Containers::new(),
            vanished: BTreeSet::new(),
            starts: BTreeSet::new(),
            ran: BTreeMap::new(),
            crossed: BTreeMap::new(),
            told: BTreeMap::new(),
            heard: BTreeMap::new(),
            jobs: BTreeMap::new(),
            view: None,
            sight: None,
            begun: 0,
            blind_until: BTreeMap::new(),
            epochs: BTreeMap::new(),
            records: BTreeMap::new(),
        }
    }

    /// First the journal, then memory.
    fn record(&mut self, decision: &Decision) {
        for change in &decision.changes {
            match change {
                Change::Lease(record) => {
                    for held in record.state.held() {
                        let last = self.epochs.insert(held.resource.clone(), held.epoch);
                        let known = self.records.get(&record.lease);
                        let is_old = known.is_some_and(|known| known.state.held().contains(held));
                        assert!(
                            is_old || last.is_none_or(|last| held.epoch > last),
                            "epoch used twice"
                        );
                    }
                    self.records.insert(record.lease, (**record).clone());
                }
                Change::Forgotten(lease) => drop(self.records.remove(lease)),
            }
        }
        self.leases.apply(decision);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Order { broker, offer } => self.order(broker, offer),
            Step::Want { lease, change } => self.want(lease, change),
            Step::Deliver { broker } => self.deliver(broker),
            Step::DeliverOld { broker, goal } => {
                if let Some(index) = nth(0..self.brokers[broker].said.len(), goal) {
                    let old = self.brokers[broker].said[index].clone();
                    self.hear(broker, &old);
                }
            }
            Step::BeginWork => self.begin_work(),
            Step::EndWork { lease, how } => {
                if let Some(lease) = nth(self.jobs.keys().copied(), lease) {
                    self.end_work(lease, how);
                }
            }
            Step::BeginSight => {
                if self.sight.is_none() {
                    self.begun += 1;
                    self.sight = Some((self.begun, self.second, self.engine.clone()));
                }
            }
            Step::EndSight => self.end_sight(),
            Step::Exit { lease } => {
                if let Some(lease) = nth(self.engine.keys().copied(), lease) {
                    self.exit(lease, 3);
                }
            }
            Step::Cross { lease, bytes } => {
                if let Some(lease) = nth(self.engine.keys().copied(), lease)
                    && let Some(Observed::Running { crossed, .. }) = self.engine.get_mut(&lease)
                {
                    add(crossed, one_way(bytes));
                }
            }
            Step::Vanish { lease } => {
                if let Some(lease) = nth(self.engine.keys().copied(), lease) {
                    self.exit(lease, 137);
                    self.engine.remove(&lease);
                    self.vanished.insert(lease);
                    // If nobody had seen it run, nobody knows that it did.
                    self.starts.retain(|(started, _)| *started != lease);
                }
            }
            Step::Kill { effects } => self.kill(effects),
            Step::Wait { seconds } => self.second += seconds,
        }
    }

    fn order(&mut self, broker: usize, offer: usize) {
        // An order is young when it is first heard.
        if self.orders < 6 && self.second < 100 {
            self.orders += 1;
            let wanted = self
                .world
                .lease_goal(broker, self.orders, offer, Want::Run(1));
            self.offer_of.insert(wanted.lease, offer);
            self.brokers[broker].wanted.insert(wanted.lease, wanted);
        }
    }

    fn want(&mut self, number: usize, change: WantChange) {
        let all = self
            .brokers
            .iter()
            .flat_map(|broker| broker.wanted.keys().copied());
        let Some(lease) = nth(all, number) else {
            return;
        };
        for broker in &mut self.brokers {
            let Some(wanted) = broker.wanted.get_mut(&lease) else {
                continue;
            };
            let runs = self
                .records
                .get(&lease)
                .map_or(0, |record| record.state.run());
            match (change, wanted.want) {
                (WantChange::Drop, _) => drop(broker.wanted.remove(&lease)),
                (WantChange::End, _) => wanted.want = Want::End,
                (WantChange::Stop, Want::Run(_)) => wanted.want = Want::Stop,
                (WantChange::Resume, Want::Stop | Want::Run(_)) => {
                    wanted.want = Want::Run(runs + 1)
                }
                // A broker gives notice to what it believes to run, and takes it back.
                (WantChange::Vacate, Want::Run(run)) => {
                    wanted.want = Want::Vacate(Vacate {
                        run,
                        by: Timestamp(START),
                        outbid: true,
                    });
                }
                (WantChange::Vacate, Want::Vacate(vacate)) => wanted.want = Want::Run(vacate.run),
                (WantChange::Stop, Want::Vacate(_)) => wanted.want = Want::Stop,
                (WantChange::Stop | WantChange::Resume | WantChange::Vacate, Want::End)
                | (WantChange::Resume, Want::Vacate(_))
                | (WantChange::Stop | WantChange::Vacate, Want::Stop) => {}
            }
        }
    }

    fn deliver(&mut self, broker: usize) {
        let model = &mut self.brokers[broker];
        model.sequence += 1;
        let goal = goal(model.sequence, model.wanted.values().cloned().collect());
        model.said.push(goal.clone());
        self.hear(broker, &goal);
    }

    fn hear(&mut self, broker: usize, goal: &Goal) {
        let (id, now) = (self.world.broker(broker), at(self.second));
        let decided = self
            .leases
            .decide_goal(id, goal, &self.world.standing(), now);
        if let Ok(decision) = decided {
            self.record(&decision);
            for record in self.leases.records().values() {
                if record.notice.is_some() {
                    let key = (record.lease, record.state.run());
                    self.heard.entry(key).or_insert(self.second);
                }
            }
        }
    }

    fn begin_work(&mut self) {
        let Some(view) = &self.view else { return };
        let wanted = self.leases.work(view, at(self.second));
        let cancelled: Vec<LeaseId> = self
            .jobs
            .iter()
            .filter(|(lease, work)| wanted.get(lease) != Some(work))
            .map(|(lease, _)| *lease)
            .collect();
        for lease in cancelled {
            self.jobs.remove(&lease);
            self.blind_until.insert(lease, self.begun + 1);
        }
        let seen = self.begun - u64::from(self.sight.is_some());
        for (lease, work) in wanted {
            let blind = self
                .blind_until
                .get(&lease)
                .is_some_and(|until| *until > seen);
            if !blind {
                self.jobs.entry(lease).or_insert(work);
            }
        }
    }

    fn end_work(&mut self, lease: LeaseId, how: WorkEnd) {
        let Some(work) = self.jobs.remove(&lease) else {
            return;
        };
        self.blind_until.insert(lease, self.begun + 1);
        let outcome = match (work, how) {
            (Work::Prepare, WorkEnd::Problem) => {
                self.exit(lease, 137);
                Outcome::Problem(Problem {
                    stage: Stage::Starting,
                    kind: ProblemKind::CommandUnknown,
                    detail: Detail::cut("no"),
                })
            }
            (_, WorkEnd::Broken { halfway }) => {
                if halfway {
                    self.effect(lease, work);
                }
                Outcome::Broken("model".to_owned())
            }
            (_, WorkEnd::Well | WorkEnd::Problem) => self.effect(lease, work),
        };
        let decision = self.leases.decide_outcome(lease, &outcome, at(self.second));
        self.record(&decision);
    }

    fn end_sight(&mut self) {
        let Some((number, second, containers)) = self.sight.take() else {
            return;
        };
        let blind = self
            .blind_until
            .iter()
            .filter(|(_, until)| **until > number);
        let busy: BTreeSet<LeaseId> = self
            .jobs
            .keys()
            .chain(blind.map(|(lease, _)| lease))
            .copied()
            .collect();
        let decision = self.leases.decide_sight(&containers, &busy, at(second));
        self.view = Some(containers);
        self.record(&decision);
    }

    /// The agent is killed: what it had asked the engine for happens or does not; it starts again from the
    /// journal.
    fn kill(&mut self, effects: bool) {
        let jobs = std::mem::take(&mut self.jobs);
        if effects {
            for (lease, work) in jobs {
                self.effect(lease, work);
            }
        }
        self.view = None;
        self.sight = None;
        self.begun = 0;
        self.blind_until.clear();
        let records = self.records.values().cloned();
        self.leases = Leases::recovered(self.world.host, self.epochs.clone(), records);
    }

    /// Nothing fails any more: goals are heard, work ends well, until nothing changes.
    fn settle(&mut self) {
        for turn in 0..40 {
            // In the middle of it, every notice runs out.
            self.second += if turn == 10 { 120 } else { 1 };
            self.deliver(0);
            self.deliver(1);
            self.end_sight();
            self.step(&Step::BeginSight);
            self.end_sight();
            self.begin_work();
            let jobs: Vec<LeaseId> = self.jobs.keys().copied().collect();
            for lease in jobs {
                self.end_work(lease, WorkEnd::Well);
                self.check();
            }
        }
    }
}

proptest! {
    #[test]
    fn a_notice_is_never_cut_short(steps in prop::collection::vec(step(), 1..60)) {
        let mut model = Model::new();
        let begin = [
            Step::Order { broker: 0, offer: 0 },
            Step::Deliver { broker: 0 },
            Step::BeginSight,
            Step::EndSight,
            Step::BeginWork,
            Step::EndWork { lease: 0, how: WorkEnd::Well },
            Step::Want { lease: 0, change: WantChange::Vacate },
            Step::Deliver { broker: 0 },
        ];
        for step in begin.iter().chain(&steps) {
            model.step(step);
            model.check();
        }
        model.settle();
        model.check_settled();
    }

    #[test]
    fn any_order_of_events_ends_in_what_is_wanted(steps in prop::collection::vec(step(), 1..120)) {
        let mut model = Model::new();
        for step in &steps {
            model.step(step);
            model.check();
        }
        model.settle();
        model.check_settled();
    }
}
