//! A desk with parties around it: signs what they would sign, and keeps the journal in memory.
//!
//! Must not know what the right answer is.

use crate::core::book::{Book, BookLimits};
use crate::core::command::{Answer, Command};
use crate::core::desk::{Desk, DeskSetup};
use crate::core::event::Event;
use crate::core::market::Market;
use crate::core::settings::MarketSettings;
use ed25519_dalek::SigningKey;
use protocol::bounded::{List, Text};
use protocol::ids::{BootId, DepositId, LeaseId, MessageId, OrderId};
use protocol::lease::{
    ContainerState, Grant, LeaseView, Meters, Phase, Refusal, RefusalReason, Report,
};
use protocol::message::Rejection;
use protocol::offer::ResourceName;
use protocol::order::{LeaseAction, LeaseCommand, LeaseName, Order, Target};
use protocol::signed::{Envelope, Signed, Statement, Verified};
use protocol::terms::Deal;
use protocol::units::{BasisPoints, Bytes, MicroUsd, Millis, PricePerHour, Seconds, Timestamp};
use std::collections::BTreeMap;
use std::convert::Infallible;

pub(crate) use super::parties::*;

/// The broker's desk and all who talk to it.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) desk: Desk,
    pub(crate) now: Timestamp,
    /// How far `now` is ahead of everybody's clock.
    pub(super) ahead: Millis,
    pub(crate) journal: Vec<Event>,
    pub(crate) asks: Vec<(u8, ResourceName, Ask)>,
    /// What hosts say cannot be had of them.
    pub(crate) withheld: Vec<(u8, ResourceName)>,
    /// How long the containers of honest hosts ran, in milliseconds.
    pub(crate) ran: BTreeMap<LeaseId, u64>,
    messages: u64,
    sequence: u64,
}

impl World {
    pub(crate) fn new(settings: MarketSettings) -> Self {
        let desk = open_desk(Market::new(broker_id()), START, settings);
        Self {
            desk,
            now: START,
            ahead: Millis(0),
            journal: Vec::new(),
            asks: Vec::new(),
            withheld: Vec::new(),
            ran: BTreeMap::new(),
            messages: 0,
            sequence: 0,
        }
    }

    /// Settings of the examples: a fee of 10 %.
    pub(crate) fn with_a_fee_of_ten_percent() -> Self {
        Self::new(MarketSettings {
            fee: BasisPoints(1000),
            ..MarketSettings::default()
        })
    }

    /// A desk that opens anew on what the journal adds up to, with an empty book.
    pub(crate) fn restart(&mut self, settings: MarketSettings) {
        self.desk = open_desk(self.replayed(), self.now, settings);
        self.announce();
    }

    /// The journal is ahead of everybody's clock by `ahead` from here on.
    pub(crate) fn run_ahead(&mut self, ahead: Millis) {
        self.now = self.now.after(ahead);
        self.ahead = ahead;
        self.desk.run_ahead(ahead);
    }

    pub(crate) fn replayed(&self) -> Market {
        let mut market = Market::new(broker_id());
        for event in &self.journal {
            market.apply(event.clone());
        }
        market
    }

    pub(crate) fn wait(&mut self, seconds: u64) {
        self.now = self.now.after(Seconds(seconds).millis());
    }

    pub(crate) fn tick(&mut self) {
        let Self {
            desk, journal, now, ..
        } = self;
        let result: Result<(), Infallible> = desk.tick(*now, &mut |event| {
            journal.push(event.clone());
            Ok(())
        });
        result.unwrap();
    }

    pub(crate) fn handle(&mut self, command: Command) -> Result<Answer, Rejection> {
        let Self {
            desk, journal, now, ..
        } = self;
        let result: Result<_, Infallible> = desk.handle(*now, command, &mut |event| {
            journal.push(event.clone());
            Ok(())
        });
        result.unwrap()
    }

    pub(crate) fn deposit(&mut self, renter: u8, amount: i64) {
        let command = self.deposit_command(renter, amount);
        self.handle(command).unwrap();
    }

    pub(crate) fn deposit_command(&mut self, renter: u8, amount: i64) -> Command {
        self.messages += 1;
        let mut id = [7; 16];
        id[..8].copy_from_slice(&self.messages.to_le_bytes());
        Command::Deposit {
            id: DepositId::from_bytes(id),
            renter: renter_id(renter),
            amount: MicroUsd(amount),
            memo: Text::default(),
        }
    }

    /// A host offers its whole machine, and is heard from here on.
    pub(crate) fn offer(&mut self, host: u8, ask: Ask) {
        self.offer_resource(host, "machine", ask);
    }

    pub(crate) fn offer_resource(&mut self, host: u8, resource: &str, ask: Ask) {
        self.asks.push((host, Text::new(resource).unwrap(), ask));
        self.announce();
    }

    /// Signs with an id that was never used.
    pub(crate) fn sign<T: Statement>(&mut self, body: T, key: &SigningKey) -> Verified<T> {
        self.messages += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.messages.to_le_bytes());
        let envelope = Envelope {
            audience: broker_id().into(),
            message_id: MessageId::from_bytes(id),
            issued: self.now.before(self.ahead),
            validity: Seconds(60),
        };
        Signed::sign(body, key, envelope).unwrap()
    }

    /// An order for the offer of that index on demand: one GPU if it has any, 50 GB, a large budget and no
    /// other limit.
    pub(crate) fn order(&mut self, offered: usize) -> Order {
        self.messages += 1;
        let (host, resource, ask) = self.asks[offered].clone();
        let body = offer(host, &resource, &ask, self.now);
        let mut id = [9; 16];
        id[..8].copy_from_slice(&self.messages.to_le_bytes());
        Order {
            id: OrderId::from_bytes(id),
            target: Target::Offer {
                offer: body.id,
                terms: body.terms_digest().unwrap(),
            },
            deal: Deal::OnDemand,
            gpus: ask.gpus.min(1),
            cpu_millicores: None,
            ram: None,
            name: LeaseName::new(format!("lease-{}", self.messages)).unwrap(),
            job: job(),
            disk: Bytes::from_gb(50),
            price_max: PricePerHour(5_000_000),
            budget: MicroUsd(100_000_000),
            duration_max: None,
            access: List::default(),
        }
    }

    /// The same, without a disk, in another deal and of so many GPUs.
    pub(crate) fn deal(&mut self, offered: usize, deal: Deal, gpus: u16) -> Order {
        Order {
            deal,
            gpus,
            disk: Bytes(0),
            ..self.order(offered)
        }
    }

    /// A bid that waits for a day for the price to come down to `limit`.
    pub(crate) fn bid(&self, limit: u64) -> Deal {
        Deal::Bid {
            limit: PricePerHour(limit),
            until: self.now.after(Seconds(86_400).millis()),
        }
    }

    /// An interruptible lease, waited for a day.
    pub(crate) fn interruptible(&self, bid: u64) -> Deal {
        Deal::Interruptible {
            bid: PricePerHour(bid),
            until: self.now.after(Seconds(86_400).millis()),
            fallback: None,
        }
    }

    /// The host asks another price for a GPU from now on.
    pub(crate) fn reprice(&mut self, offered: usize, compute: u64) {
        self.asks[offered].2.prices.compute = PricePerHour(compute);
        self.announce();
    }

    pub(crate) fn place(&mut self, renter: u8, order: Order) -> Result<LeaseId, Rejection> {
        let id = LeaseId::of_order(broker_id(), renter_id(renter), order.id);
        let order = self.sign(order, &renter_key(renter));
        self.handle(Command::Order(Box::new(order))).map(|_| id)
    }

    pub(crate) fn grant(&mut self, lease: LeaseId) -> Result<Answer, Rejection> {
        let command = self.grant_command(lease);
        self.handle(command)
    }

    pub(crate) fn grant_command(&mut self, lease: LeaseId) -> Command {
        let host = self.host_of(lease);
        let goal = self.desk.goal(host_id(host));
        let goal = goal.leases.iter().find(|goal| goal.lease == lease);
        let (order, award) = match goal {
            Some(goal) => (goal.order.digest(), goal.award.digest()),
            None => (
                protocol::ids::Digest::of(b""),
                protocol::ids::Digest::of(b""),
            ),
        };
        let contract = &self.desk.market().lease(lease).unwrap().contract;
        let resources = contract
            .share
            .resources
            .iter()
            .map(|name| (name.clone(), 1));
        let grant = Grant {
            lease,
            order,
            award,
            resources: List::first(resources),
        };
        Command::Grant(self.sign(grant, &host_key(host)))
    }

    pub(crate) fn refuse(&mut self, lease: LeaseId) -> Result<Answer, Rejection> {
        let refusal = Refusal {
            lease,
            reason: RefusalReason::Taken,
        };
        let refusal = self.sign(refusal, &host_key(self.host_of(lease)));
        self.handle(Command::Refuse(refusal))
    }

    /// A report of the lease's present run, with the container's meter at `running` milliseconds.
    pub(crate) fn report(
        &mut self,
        lease: LeaseId,
        state: ContainerState,
        running: u64,
    ) -> Result<Answer, Rejection> {
        let meters = Meters {
            running: Millis(running),
            ..Meters::default()
        };
        let command = self.report_command(lease, state, meters);
        self.handle(command)
    }

    pub(crate) fn report_command(
        &mut self,
        lease: LeaseId,
        state: ContainerState,
        meters: Meters,
    ) -> Command {
        self.sequence += 1;
        let run = self.desk.market().lease(lease).unwrap().run;
        let report = Report {
            lease,
            sequence: self.sequence,
            boot: BootId::from_bytes([3; 16]),
            run,
            state,
            meters,
        };
        Command::Report(self.sign(report, &host_key(self.host_of(lease))))
    }

    pub(crate) fn act(&mut self, lease: LeaseId, action: LeaseAction) -> Result<Answer, Rejection> {
        let command = self.act_command(lease, action);
        self.handle(command)
    }

    pub(crate) fn act_command(&mut self, lease: LeaseId, action: LeaseAction) -> Command {
        let market = self.desk.market();
        let renter = match market.lease(lease) {
            Some(lease) => lease.contract.renter,
            None => market.resting(lease).unwrap().renter(),
        };
        let renter = (0..100).find(|n| renter_id(*n) == renter).unwrap();
        Command::Lease(self.sign(LeaseCommand { lease, action }, &renter_key(renter)))
    }

    /// A lease that runs from now on.
    pub(crate) fn running(&mut self, renter: u8, order: Order) -> LeaseId {
        let lease = self.place(renter, order).unwrap();
        self.grant(lease).unwrap();
        self.report(lease, ContainerState::Running, 0).unwrap();
        lease
    }

    pub(crate) fn view(&self, lease: LeaseId) -> LeaseView {
        self.desk.view(self.now, lease).unwrap()
    }

    pub(crate) fn phase(&self, lease: LeaseId) -> Phase {
        self.view(lease).phase
    }

    pub(crate) fn host_of(&self, lease: LeaseId) -> u8 {
        let host = self.desk.market().lease(lease).unwrap().contract.host;
        (0..50).find(|n| host_id(*n) == host).unwrap()
    }
}

pub(crate) fn open_desk(market: Market, now: Timestamp, settings: MarketSettings) -> Desk {
    let book = Book::new(broker_id(), BookLimits::default());
    Desk::open(
        now,
        DeskSetup {
            market,
            book,
            settings,
            key: broker_key(),
        },
    )
}
