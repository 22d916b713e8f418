//! What fake hosts and renters sign.

use super::{FakeHost, Party};
use ed25519_dalek::SigningKey;
use protocol::bounded::{List, Text};
use protocol::ids::{BootId, BrokerId, LeaseId, MessageId, OrderId, PublicKey};
use protocol::job::{Job, PinnedImage};
use protocol::lease::{
    ContainerState, Goal, Grant, LeaseGoal, Meters, Refusal, RefusalReason, Report,
};
use protocol::machine::{ContainerNetwork, Machine};
use protocol::message::{Announcement, BrokerReply, BrokerRequest};
use protocol::offer::{Chunks, Offer, ResourceName, Share, WHOLE_MACHINE, offer_id};
use protocol::order::{LeaseAction, LeaseCommand, Order, Target};
use protocol::signed::{ANYONE, Envelope, Signed, Statement};
use protocol::terms::{Deal, Limits, Prices, Sales};
use protocol::units::{
    Bytes, MicroUsd, Millis, PricePerGb, PricePerGbMonth, PricePerHour, Seconds, Timestamp,
};

/// Signs `body` now.
pub(crate) fn sign<T: Statement>(
    body: T,
    key: &SigningKey,
    audience: PublicKey,
    now: Timestamp,
) -> Signed<T> {
    let envelope = Envelope {
        audience,
        message_id: MessageId::from_bytes(rand::random()),
        issued: now,
        validity: Seconds(60),
    };
    Signed::sign(body, key, envelope).unwrap().signed().clone()
}

fn machine() -> Machine {
    Machine {
        cpu_model: Text::new("AMD EPYC 7543 32-Core Processor").unwrap(),
        architecture: Text::new("x86_64").unwrap(),
        cpu_cores: 8,
        has_avx: true,
        ram: Bytes(16 << 30),
        disk_total: Bytes::from_gb(400),
        disk_free: Bytes::from_gb(300),
        disk_enforced: false,
        system: Text::new("Debian GNU/Linux 12").unwrap(),
        kernel: Text::new("6.1.0-31-amd64").unwrap(),
        engine: Text::new("20.10.24").unwrap(),
        runtime: Text::new("runc 1.1.5").unwrap(),
        network: ContainerNetwork::None,
        gpus: List::default(),
        ..Machine::unknown()
    }
}

impl FakeHost {
    /// Its whole machine at $3.60 an hour, which is 1000 µ$ a second, and nothing for disk and traffic.
    pub(crate) fn offer(&self, brokers: &[BrokerId], now: Timestamp) -> Offer {
        let resource: ResourceName = Text::new(WHOLE_MACHINE).unwrap();
        Offer {
            id: offer_id(self.party.host_id(), std::slice::from_ref(&resource)),
            sequence: now.0,
            listed_at: now,
            machine: machine(),
            share: Share {
                resources: List::first([resource]),
                gpus: List::default(),
                cpu_millicores: 8000,
                ram: Bytes(8 << 30),
                shared_memory: Bytes(1 << 30),
            },
            chunks: Chunks::Any,
            gpus_min: 0,
            partition: None,
            measures: List::default(),
            prices: Prices {
                compute: PricePerHour(3_600_000),
                storage: PricePerGbMonth(0),
                upload: PricePerGb(0),
                download: PricePerGb(0),
            },
            sales: Sales::default(),
            limits: Limits {
                start_within: Seconds(600),
                duration_min: Seconds(0),
                duration_max: None,
                until: None,
                notice: Seconds(120),
                stop_grace: Seconds(10),
                disk_max: Bytes::from_gb(200),
            },
            brokers: List::new(brokers.to_vec()).unwrap(),
        }
    }

    /// Announces its machine, or nothing, to one of its brokers.
    pub(crate) async fn announce(&self, to: BrokerId, offers: Vec<Offer>, now: Timestamp) {
        let signed = offers
            .into_iter()
            .map(|offer| sign(offer, &self.party.key, ANYONE, now));
        let announcement = Announcement {
            offers: List::first(signed),
            addresses: List::default(),
            withheld: List::default(),
        };
        let reply = self
            .party
            .ask_of(to.into(), BrokerRequest::Announce(announcement))
            .await;
        assert_eq!(reply, BrokerReply::Noted);
    }

    pub(crate) async fn grant(
        &self,
        to: BrokerId,
        goal: &LeaseGoal,
        epoch: u64,
        now: Timestamp,
    ) -> BrokerReply {
        let grant = Grant {
            lease: goal.lease,
            order: goal.order.digest(),
            award: goal.award.digest(),
            resources: List::first([(Text::new(WHOLE_MACHINE).unwrap(), epoch)]),
        };
        let signed = sign(grant, &self.party.key, to.into(), now);
        self.party
            .ask_of(to.into(), BrokerRequest::Grant(signed))
            .await
    }

    pub(crate) async fn refuse(&self, to: BrokerId, lease: LeaseId, now: Timestamp) -> BrokerReply {
        let refusal = Refusal {
            lease,
            reason: RefusalReason::Taken,
        };
        let signed = sign(refusal, &self.party.key, to.into(), now);
        self.party
            .ask_of(to.into(), BrokerRequest::Refuse(signed))
            .await
    }

    /// Reports a state in run 1, with a meter of `running` milliseconds.
    pub(crate) async fn report(
        &self,
        to: BrokerId,
        lease: LeaseId,
        state: ContainerState,
        running: u64,
        now: Timestamp,
    ) {
        let report = Report {
            lease,
            sequence: now.0,
            boot: BootId::from_bytes([1; 16]),
            run: 1,
            state,
            meters: Meters {
                running: Millis(running),
                ..Meters::default()
            },
        };
        let signed = sign(report, &self.party.key, to.into(), now);
        let reply = self
            .party
            .ask_of(to.into(), BrokerRequest::Report(signed))
            .await;
        assert_eq!(reply, BrokerReply::Noted);
    }
}

/// The goal of one lease, if it is in there.
pub(crate) fn goal_of(goal: &Goal, lease: LeaseId) -> Option<LeaseGoal> {
    goal.leases.iter().find(|of| of.lease == lease).cloned()
}

/// An order for all of `offer`, for at most $5.
pub(crate) fn order(offer: &Offer, name: &str) -> Order {
    Order {
        id: OrderId::from_bytes(rand::random()),
        target: Target::Offer {
            offer: offer.id,
            terms: offer.terms_digest().unwrap(),
        },
        deal: Deal::OnDemand,
        gpus: 0,
        cpu_millicores: None,
        ram: None,
        name: Text::new(name).unwrap(),
        job: Job {
            image: PinnedImage {
                name: Text::new("127.0.0.1:5000/feira-demo").unwrap(),
                sha256: [7; 32],
            },
            entrypoint: None,
            command: None,
            environment: List::default(),
        },
        disk: Bytes::from_gb(10),
        price_max: PricePerHour(4_000_000),
        budget: MicroUsd(5_000_000),
        duration_max: None,
        access: List::default(),
    }
}

impl Party {
    pub(crate) async fn order(&self, order: Order, now: Timestamp) -> BrokerReply {
        let signed = sign(order, &self.key, self.broker, now);
        self.ask(BrokerRequest::Order(signed)).await
    }

    pub(crate) async fn command(
        &self,
        lease: LeaseId,
        action: LeaseAction,
        now: Timestamp,
    ) -> BrokerReply {
        let signed = sign(LeaseCommand { lease, action }, &self.key, self.broker, now);
        self.ask(BrokerRequest::Command(signed)).await
    }
}
