//! A world in which anything happens, and an observer who knows only the phases and the clock, and says
//! what nobody may ever be charged.

use super::observer::{Observer, parts};
use super::world::{Ask, World};
use crate::core::command::{Answer, Command};
use crate::core::ledger::Account;
use crate::core::market::Market;
use crate::core::settings::MarketSettings;
use proptest::prelude::*;
use protocol::ids::LeaseId;
use protocol::lease::{ContainerState, Meters, Phase, Problem, ProblemKind, Stage, StopReason};
use protocol::order::LeaseAction;
use protocol::units::{BasisPoints, Bytes, MicroUsd, Millis, Seconds, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const RENTERS: u8 = 3;
const HOSTS: u8 = 2;
const RESOURCES: [&str; 2] = ["GPU-a", "GPU-b"];

/// One thing that happens. Numbers pick among what there is.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Deposit {
        renter: u8,
        amount: i64,
    },
    Order {
        renter: u8,
        offer: usize,
        budget: i64,
        duration: Option<u64>,
        disk: u64,
    },
    Grant(usize),
    Refuse(usize),
    Report {
        lease: usize,
        state: u8,
        run_ahead: u64,
        uploaded: u64,
    },
    /// An honest host: it accepts if it has to, waits, and reports what ran.
    Live {
        lease: usize,
        seconds: u64,
    },
    Act {
        lease: usize,
        action: LeaseAction,
    },
    Operator(usize),
    /// A command from before, again.
    Again(usize),
    /// A report signed now and sent at the next one of these.
    Delay {
        lease: usize,
        state: u8,
    },
    Wait(u64),
    Jump(u64),
    Back(u64),
    Tick,
    Announce,
    Restart,
}

pub(super) struct Play {
    pub(super) world: World,
    pub(super) leases: Vec<LeaseId>,
    sent: Vec<Command>,
    delayed: Option<Command>,
    deposited: i64,
    observers: BTreeMap<LeaseId, Observer>,
    pub(super) clock: Timestamp,
}

fn settings() -> MarketSettings {
    MarketSettings {
        fee: BasisPoints(333),
        ..MarketSettings::default()
    }
}

impl Play {
    pub(super) fn new() -> Self {
        let mut world = World::new(settings());
        for host in 0..HOSTS {
            for (n, resource) in RESOURCES.into_iter().enumerate() {
                let mut ask = Ask {
                    start_within: Seconds(300),
                    ..Ask::default()
                };
                ask.prices.compute.0 = [399_999, 3_600_000][n];
                ask.prices.storage.0 = [0, 7_777_777][usize::from(host)];
                world.offer_resource(host, resource, ask);
            }
        }
        let clock = world.now;
        Self {
            world,
            leases: Vec::new(),
            sent: Vec::new(),
            delayed: None,
            deposited: 0,
            observers: BTreeMap::new(),
            clock,
        }
    }

    fn pick(&self, n: usize) -> Option<LeaseId> {
        let len = self.leases.len();
        (len > 0).then(|| self.leases[n % len])
    }

    fn report(&mut self, lease: LeaseId, state: u8, run_ahead: u64, uploaded: u64) -> Command {
        let signed = self.observers[&lease].signed;
        let running = Millis(signed.0 + run_ahead);
        let meters = Meters {
            running,
            uploaded: Bytes(uploaded),
            downloaded: Bytes(0),
        };
        self.observers.get_mut(&lease).unwrap().signed = running;
        self.world.report_command(lease, container(state), meters)
    }

    pub(super) fn send(&mut self, command: Command) {
        self.sent.push(command.clone());
        let amount = if let Command::Deposit { amount, .. } = &command {
            amount.0
        } else {
            0
        };
        if self.deliver(command) {
            self.deposited += amount;
        }
    }

    /// Whether the broker took it. What was refused before may be taken when it comes again.
    fn deliver(&mut self, command: Command) -> bool {
        let Ok(answer) = self.world.handle(command.clone()) else {
            return false;
        };
        if let (Command::Order(_), Answer::Lease(view)) = (&command, answer) {
            self.observers.entry(view.id).or_insert_with(|| {
                self.leases.push(view.id);
                Observer::default()
            });
        }
        if let Command::Report(report) = &command {
            let observer = self.observers.get_mut(&report.body().lease).unwrap();
            observer.hear(self.world.now, report.body());
        }
        true
    }

    fn order(&mut self, renter: u8, offer: usize, budget: i64, duration: Option<u64>, disk: u64) {
        self.world.announce();
        let mut order = self.world.order(offer);
        order.budget = MicroUsd(budget);
        order.duration_max = duration.map(Seconds);
        order.disk = Bytes::from_gb(disk);
        order.price_max.0 = 50_000_000;
        let signed = self.world.sign(order, &super::world::renter_key(renter));
        self.send(Command::Order(Box::new(signed)));
    }

    fn live(&mut self, lease: LeaseId, seconds: u64) {
        self.world.announce();
        if self.world.phase(lease) == Phase::Offered {
            let grant = self.world.grant_command(lease);
            self.send(grant);
        }
        let ran = if self.world.phase(lease) == Phase::Running {
            seconds * 1000
        } else {
            0
        };
        self.pass(seconds);
        let report = self.report(lease, RUNNING, ran, 0);
        self.send(report);
    }

    fn again(&mut self, n: usize) {
        if self.sent.is_empty() {
            return;
        }
        let command = self.sent[n % self.sent.len()].clone();
        // A deposit that comes again is acknowledged, and is no money.
        self.deliver(command);
    }

    pub(super) fn take(&mut self, step: Step) {
        match step {
            Step::Deposit { renter, amount } => {
                let deposit = self.world.deposit_command(renter, amount);
                self.send(deposit);
            }
            Step::Order {
                renter,
                offer,
                budget,
                duration,
                disk,
            } => {
                self.order(renter, offer, budget, duration, disk);
            }
            Step::Grant(n) => {
                if let Some(lease) = self.pick(n) {
                    let grant = self.world.grant_command(lease);
                    self.send(grant);
                }
            }
            Step::Refuse(n) => {
                if let Some(lease) = self.pick(n) {
                    let _ = self.world.refuse(lease);
                }
            }
            Step::Report {
                lease,
                state,
                run_ahead,
                uploaded,
            } => {
                if let Some(lease) = self.pick(lease) {
                    let report = self.report(lease, state, run_ahead, uploaded);
                    self.send(report);
                }
            }
            Step::Live { lease, seconds } => {
                if let Some(lease) = self.pick(lease) {
                    self.live(lease, seconds);
                }
            }
            Step::Act { lease, action } => {
                if let Some(lease) = self.pick(lease) {
                    let command = self.world.act_command(lease, action);
                    self.send(command);
                }
            }
            Step::Operator(n) => {
                if let Some(lease) = self.pick(n) {
                    self.send(Command::Operator { lease });
                }
            }
            Step::Again(n) => self.again(n),
            Step::Delay { lease, state } => {
                if let Some(lease) = self.pick(lease) {
                    let report = self.report(lease, state, 0, 0);
                    if let Some(late) = self.delayed.replace(report) {
                        self.send(late);
                    }
                }
            }
            Step::Wait(seconds) | Step::Jump(seconds) => self.pass(seconds),
            // The thread's time never goes back: it stands still.
            Step::Back(seconds) => self.clock = self.clock.before(Seconds(seconds).millis()),
            Step::Tick => self.world.tick(),
            Step::Announce => self.world.announce(),
            Step::Restart => self.world.restart(settings()),
        }
    }

    /// Time passes, and the observer adds it up by the phase that each lease is in.
    pub(super) fn pass(&mut self, seconds: u64) {
        self.clock = self.clock.after(Seconds(seconds).millis());
        let then = self.world.now;
        self.world.now = then.max(self.clock);
        let passed = self.world.now.since(then);
        for (lease, observer) in &mut self.observers {
            let lease = self.world.desk.market().lease(*lease).unwrap();
            observer.pass(passed, &lease.state.phase());
        }
    }

    pub(super) fn check(&mut self) -> Result<(), TestCaseError> {
        self.check_ledger()?;
        for lease in self.leases.clone() {
            self.check_lease(lease)?;
        }
        self.check_resources()
    }

    fn check_ledger(&self) -> Result<(), TestCaseError> {
        let ledger = self.world.desk.market().ledger();
        let total: i128 = ledger.iter().map(|(_, balance)| i128::from(balance)).sum();
        prop_assert_eq!(total, 0, "money was made or lost");
        let fees = self
            .world
            .desk
            .market()
            .leases()
            .map(|lease| parts(lease).0.0)
            .sum();
        prop_assert_eq!(ledger.balance(&Account::BrokerFee), MicroUsd(fees));
        prop_assert_eq!(ledger.balance(&Account::Cash), MicroUsd(self.deposited));
        for (account, _) in ledger.iter() {
            prop_assert!(
                ledger.balance(account).0 >= 0,
                "{:?} is below zero",
                account
            );
        }
        Ok(())
    }

    /// No resource is in two leases whose containers may run.
    fn check_resources(&self) -> Result<(), TestCaseError> {
        let mut held = BTreeSet::new();
        for lease in self.world.desk.market().leases() {
            if self.observers[&lease.id].may_run {
                for resource in &lease.contract.share.resources {
                    let fresh = held.insert((lease.contract.host, resource.clone()));
                    prop_assert!(fresh, "{} is in two leases", resource);
                }
            }
        }
        Ok(())
    }

    fn check_lease(&mut self, id: LeaseId) -> Result<(), TestCaseError> {
        let market = self.world.desk.market();
        let lease = market.lease(id).unwrap();
        self.observers
            .get_mut(&id)
            .unwrap()
            .check(self.world.now, lease)?;
        let pending = market.ledger().balance(&Account::HostPending(id));
        prop_assert_eq!(pending.saturating_add(lease.matured), parts(lease).1);
        if lease.state.is_closed() {
            prop_assert_eq!(
                market.held(id),
                MicroUsd::ZERO,
                "an ended lease holds money"
            );
        }
        let host = lease.contract.host.into();
        let receipt = self.world.desk.receipt(self.world.now, host, id).unwrap();
        prop_assert_eq!(receipt.verify().unwrap().body().check(), Ok(()));
        Ok(())
    }

    /// Every way to the same journal gives the same bytes.
    pub(super) fn check_replay(&self) -> Result<(), TestCaseError> {
        let memory = self.world.desk.market();
        let replayed = self.world.replayed();
        prop_assert!(*memory == replayed, "the journal adds up to another state");
        let bytes = memory.encode().unwrap();
        prop_assert!(bytes == replayed.encode().unwrap());
        prop_assert!(
            Market::decode(&bytes).unwrap() == replayed,
            "a snapshot is another state"
        );
        Ok(())
    }
}

const RUNNING: u8 = 6;

fn container(n: u8) -> ContainerState {
    match n {
        0 => ContainerState::Preparing(Stage::Pulling),
        1 => ContainerState::Stopped(StopReason::Exited(1)),
        2 => ContainerState::Stopped(StopReason::Asked),
        3 => ContainerState::Gone,
        4 => ContainerState::Failed(Problem {
            stage: Stage::Starting,
            kind: ProblemKind::EngineFailed,
            detail: protocol::lease::Detail::default(),
        }),
        5 => ContainerState::Stopped(StopReason::ResourceTaken),
        _ => ContainerState::Running,
    }
}
