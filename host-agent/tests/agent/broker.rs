//! A broker that writes down what it hears and says what it is told to say.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ed25519_dalek::SigningKey;
use host_agent::clock;
use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, Digest, HostId, LeaseId, MessageId, OrderId, PublicKey, RenterId};
use protocol::job::{Job, PinnedImage};
use protocol::lease::{
    Award, ContainerState, Goal, Grant, LeaseGoal, Progress, RefusalReason, Report, Want,
};
use protocol::message::{self, BrokerReply, BrokerRequest, HostReply, HostRequest, Rejection};
use protocol::net::{Identity, Multiaddr, Node, NodeConfig, NodeEvent, parse_address};
use protocol::offer::{Offer, Part, ResourceName};
use protocol::order::{Order, Target};
use protocol::signed::{Envelope, Signed, Statement};
use protocol::terms::{ContractKind, Deal};
use protocol::units::{BasisPoints, Bytes, MicroUsd, PricePerHour, Seconds, Timestamp};
use tokio_util::task::AbortOnDropHandle;

/// How long anything may take here.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn key(byte: u8) -> SigningKey {
    SigningKey::from_bytes(&[byte; 32])
}

pub(crate) fn public(key: &SigningKey) -> PublicKey {
    PublicKey::from_bytes(key.verifying_key().to_bytes())
}

/// Waits until `found` finds something.
pub(crate) async fn wait<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = clock::monotonic();
    loop {
        if let Some(value) = found() {
            return value;
        }
        let waited = clock::monotonic().0 - begun.0;
        assert!(
            u128::from(waited) < PATIENCE.as_millis(),
            "waited too long for {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What a broker heard, in order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Heard {
    pub(crate) grants: Vec<Grant>,
    pub(crate) refusals: Vec<(LeaseId, RefusalReason)>,
    pub(crate) reports: Vec<Report>,
    pub(crate) offers: Vec<Vec<Offer>>,
    pub(crate) withheld: Vec<Vec<ResourceName>>,
    pub(crate) progress: Vec<Progress>,
}

/// A broker without rules.
pub(crate) struct FakeBroker {
    pub(crate) id: BrokerId,
    key: SigningKey,
    pub(crate) node: Node,
    pub(crate) address: Multiaddr,
    heard: Arc<Mutex<Heard>>,
    mute: Arc<AtomicBool>,
    no: Arc<Mutex<Option<Rejection>>>,
    sequence: AtomicU64,
    started_at: Timestamp,
    _task: AbortOnDropHandle<()>,
}

impl FakeBroker {
    pub(crate) async fn start(byte: u8) -> Self {
        let identity = Identity::from_signing_key(key(byte));
        let listen = parse_address("/ip4/127.0.0.1/tcp/0").unwrap();
        let (node, mut events) = Node::start(&identity, NodeConfig::broker(vec![listen]))
            .await
            .unwrap();
        let address = node.listen_addresses().await[0].clone();
        let heard = Arc::new(Mutex::new(Heard::default()));
        let mute = Arc::new(AtomicBool::new(false));
        let no = Arc::new(Mutex::new(None));
        let (ears, silent) = (Arc::clone(&heard), Arc::clone(&mute));
        let said = Arc::clone(&no);
        let task = tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                if let NodeEvent::Request {
                    bytes, responder, ..
                } = event
                {
                    let reply = hear(&mut ears.lock().unwrap(), &bytes);
                    let no: Option<Rejection> = said.lock().unwrap().clone();
                    let reply = no.map_or(reply, BrokerReply::Refused);
                    if !silent.load(Ordering::SeqCst) {
                        let _gone = responder.reply(message::encode(&reply).unwrap());
                    }
                }
            }
        });
        Self {
            id: BrokerId::from(public(&key(byte))),
            key: key(byte),
            node,
            address,
            heard,
            mute,
            no,
            sequence: AtomicU64::new(0),
            started_at: clock::wall(),
            _task: AbortOnDropHandle::new(task),
        }
    }

    pub(crate) fn heard(&self) -> Heard {
        self.heard.lock().unwrap().clone()
    }

    /// From now on it hears and does not answer, or answers again.
    pub(crate) fn mute(&self, mute: bool) {
        self.mute.store(mute, Ordering::SeqCst);
    }

    /// From now on it refuses everything for this reason, or nothing any more.
    pub(crate) fn refuse(&self, reason: Option<Rejection>) {
        *self.no.lock().unwrap() = reason;
    }

    pub(crate) fn last_report(&self, lease: LeaseId) -> Option<Report> {
        let heard = self.heard.lock().unwrap();
        heard
            .reports
            .iter()
            .rev()
            .find(|report| report.lease == lease)
            .cloned()
    }

    pub(crate) async fn offer(&self) -> Offer {
        self.offers(1).await.remove(0)
    }

    /// Waits until exactly so many offers are announced.
    pub(crate) async fn offers(&self, count: usize) -> Vec<Offer> {
        wait("offers", || {
            self.heard
                .lock()
                .unwrap()
                .offers
                .last()
                .filter(|last| last.len() == count)
                .cloned()
        })
        .await
    }

    /// Waits for a report of `lease` in a state that `fits`.
    pub(crate) async fn report(
        &self,
        what: &str,
        lease: LeaseId,
        fits: impl Fn(&ContainerState) -> bool,
    ) -> Report {
        wait(what, || {
            self.last_report(lease).filter(|report| fits(&report.state))
        })
        .await
    }

    pub(crate) async fn running(&self, lease: LeaseId) -> Report {
        self.report("running", lease, |state| *state == ContainerState::Running)
            .await
    }

    pub(crate) async fn gone(&self, lease: LeaseId) -> Report {
        self.report("gone", lease, |state| *state == ContainerState::Gone)
            .await
    }

    /// An order of `offer` by a renter, matched by this broker with its first GPU, or with the machine.
    pub(crate) fn matched(&self, host: HostId, offer: &Offer, number: u8) -> LeaseGoal {
        self.matched_with(host, offer, 0, number)
    }

    /// The same, with another of its GPUs.
    pub(crate) fn matched_with(
        &self,
        host: HostId,
        offer: &Offer,
        place: usize,
        number: u8,
    ) -> LeaseGoal {
        let gpus = u16::from(!offer.share.gpus.is_empty());
        let (cpu_millicores, ram, shared_memory, _) = offer.proportion(gpus);
        let renter_key = key(100);
        let renter = RenterId::from(public(&renter_key));
        let terms = offer.terms_digest().unwrap();
        let order = order(offer, terms, number);
        let lease = LeaseId::of_order(self.id, renter, order.id);
        let order = sign(&renter_key, self.id.into(), order);
        let award = Award {
            lease,
            order: order.digest(),
            offer: (offer.id, terms),
            kind: ContractKind::OnDemand,
            part: Part {
                resources: List::first([offer.share.resources[place].clone()]),
                cpu_millicores,
                ram,
                shared_memory,
            },
            renter,
            host,
            prices: offer.prices.of_gpus(gpus),
            fee: BasisPoints(300),
            number: u64::from(number),
            matched_at: clock::wall(),
        };
        let award = sign(&self.key, host.into(), award);
        LeaseGoal {
            lease,
            order,
            award,
            want: Want::Run(1),
        }
    }

    /// Says the next goal.
    pub(crate) async fn say(&self, host: HostId, leases: Vec<LeaseGoal>) {
        let sequence = self.sequence.fetch_add(1, Ordering::SeqCst);
        assert_eq!(self.say_as(host, leases, sequence).await, HostReply::Noted);
    }

    /// Says a goal with this number, once the host is connected.
    pub(crate) async fn say_as(
        &self,
        host: HostId,
        leases: Vec<LeaseGoal>,
        sequence: u64,
    ) -> HostReply {
        let goal = Goal {
            sequence,
            started_at: self.started_at,
            leases: List::new(leases).unwrap(),
        };
        let bytes = message::encode(&HostRequest::Goal(goal)).unwrap();
        for _ in 0..1000 {
            let asked = self
                .node
                .request(host.into(), bytes.clone(), Duration::from_secs(5))
                .await;
            if let Ok(answer) = asked {
                return message::decode(&answer).unwrap();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the host did not answer");
    }
}

fn hear(heard: &mut Heard, bytes: &[u8]) -> BrokerReply {
    match message::decode(bytes).unwrap() {
        BrokerRequest::Announce(announcement) => {
            let offers = announcement
                .offers
                .iter()
                .map(|offer| offer.verify().unwrap().into_body());
            heard.offers.push(offers.collect());
            heard.withheld.push(announcement.withheld.to_vec());
        }
        BrokerRequest::Grant(grant) => heard.grants.push(grant.verify().unwrap().into_body()),
        BrokerRequest::Refuse(refusal) => {
            let refusal = refusal.verify().unwrap().into_body();
            heard.refusals.push((refusal.lease, refusal.reason));
        }
        BrokerRequest::Report(report) => heard.reports.push(report.verify().unwrap().into_body()),
        BrokerRequest::Progress(progress) => heard.progress.push(progress),
        BrokerRequest::Info
        | BrokerRequest::Search(_)
        | BrokerRequest::Order(_)
        | BrokerRequest::Command(_)
        | BrokerRequest::Leases(_)
        | BrokerRequest::Lease(_)
        | BrokerRequest::Watch { .. }
        | BrokerRequest::Balance
        | BrokerRequest::Statement(_)
        | BrokerRequest::Receipt(_)
        | BrokerRequest::Earnings
        | BrokerRequest::HostEvidence { .. }
        | BrokerRequest::Verdicts(_)
        | BrokerRequest::Transcript { .. } => return BrokerReply::Refused(Rejection::Busy),
    }
    BrokerReply::Noted
}

fn order(offer: &Offer, terms: Digest, number: u8) -> Order {
    Order {
        id: OrderId::from_bytes([number; 16]),
        target: Target::Offer {
            offer: offer.id,
            terms,
        },
        deal: Deal::OnDemand,
        gpus: u16::from(!offer.share.gpus.is_empty()),
        cpu_millicores: None,
        ram: None,
        name: Text::cut("test-lease"),
        job: Job {
            image: PinnedImage {
                name: Text::cut("127.0.0.1:5000/demo"),
                sha256: [7; 32],
            },
            entrypoint: None,
            command: None,
            environment: List::default(),
        },
        disk: Bytes::from_gb(10),
        price_max: PricePerHour(1_000_000),
        budget: MicroUsd(5_000_000),
        duration_max: None,
        access: List::default(),
    }
}

pub(crate) fn sign<T: Statement>(key: &SigningKey, audience: PublicKey, body: T) -> Signed<T> {
    let envelope = Envelope {
        audience,
        message_id: MessageId::from_bytes(*clock::message_id().as_bytes()),
        issued: clock::wall(),
        validity: Seconds(120),
    };
    Signed::sign(body, key, envelope).unwrap().signed().clone()
}

pub(crate) fn wanting(goal: &LeaseGoal, want: Want) -> Vec<LeaseGoal> {
    vec![LeaseGoal {
        want,
        ..goal.clone()
    }]
}
