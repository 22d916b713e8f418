//! One order, sent many times over and at once, by a renter who does not trust the network: one lease, one
//! container, one hold.

#![cfg(test)]

use feira_tests::market::Market;
use feira_tests::programs::{registry, wait_for};
use feira_tests::renter::containers_of_lease;
use feira_tests::stage::Stage;
use protocol::bounded::{List, Text};
use protocol::filter::Filter;
use protocol::ids::{MessageId, OrderId, PublicKey};
use protocol::job::Job;
use protocol::message::{self, BrokerReply, BrokerRequest, Rejection, Search};
use protocol::net::{Identity, Node, NodeConfig, parse_address, peer_of_address};
use protocol::offer::Offer;
use protocol::order::{Order, Target};
use protocol::signed::{Envelope, Signed, Verified};
use protocol::terms::{ContractKind, Deal, Need};
use protocol::units::{Bytes, MicroUsd, PricePerHour, Seconds, Timestamp};
use std::collections::BTreeSet;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(20);

struct Caller {
    node: Node,
    broker: PublicKey,
    identity: Identity,
}

impl Caller {
    async fn of(address: &str, key: &std::path::Path) -> Self {
        let identity = Identity::load(key).unwrap();
        let (node, _events) = Node::start(&identity, NodeConfig::renter()).await.unwrap();
        let address = parse_address(address).unwrap();
        let broker = peer_of_address(&address).unwrap();
        node.connect(broker, vec![address], DEADLINE).await.unwrap();
        Self {
            node,
            broker,
            identity,
        }
    }

    async fn ask(&self, request: &BrokerRequest) -> BrokerReply {
        let bytes = message::encode(request).unwrap();
        let reply = self
            .node
            .request(self.broker, bytes, DEADLINE)
            .await
            .unwrap();
        message::decode(&reply).unwrap()
    }

    async fn offer(&self) -> Verified<Offer> {
        let search = Search {
            filter: Filter::default(),
            sort: List::default(),
            need: Need::disk(Bytes::from_gb(1)),
            kind: ContractKind::OnDemand,
            limit: 1,
            job: None,
        };
        let reply = self.ask(&BrokerRequest::Search(search)).await;
        let BrokerReply::Found(found) = reply else {
            panic!("{reply:?}");
        };
        found.offers[0].offer.verify().unwrap()
    }

    fn signed(&self, order: &Order, number: u8) -> BrokerRequest {
        let now = std::process::Command::new("date")
            .arg("+%s%3N")
            .output()
            .unwrap()
            .stdout;
        let now: u64 = String::from_utf8(now).unwrap().trim().parse().unwrap();
        let envelope = Envelope {
            audience: self.broker,
            message_id: MessageId::from_bytes([number; 16]),
            issued: Timestamp(now),
            validity: Seconds(60),
        };
        let signed = Signed::sign(order.clone(), self.identity.signing_key(), envelope).unwrap();
        BrokerRequest::Order(signed.signed().clone())
    }
}

fn order_of(offer: &Verified<Offer>, image: &str) -> Order {
    Order {
        id: OrderId::from_bytes([7; 16]),
        target: Target::Offer {
            offer: offer.body().id,
            terms: offer.body().terms_digest().unwrap(),
        },
        deal: Deal::OnDemand,
        gpus: 0,
        cpu_millicores: None,
        ram: None,
        name: Text::new("again").unwrap(),
        job: Job {
            image: image.parse().unwrap(),
            entrypoint: None,
            command: None,
            environment: List::default(),
        },
        disk: Bytes::from_gb(1),
        price_max: PricePerHour(1_000_000),
        budget: MicroUsd(1_000_000),
        duration_max: None,
        access: List::default(),
    }
}

#[test]
fn the_same_order_a_hundred_times_at_once_is_one_container_and_one_hold() {
    let market = Market::listed(Stage::new(), &[], &["--price", "0.36"], 10);
    let (stage, broker, renter) = (&market.stage, &market.broker, &market.renter);
    let image = format!("{}/feira-demo:1", registry());
    let digest = renter.by_digest(&image);

    let key = stage.folder().join("renter/data/feira/keys/default");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let leases = runtime.block_on(async {
        let caller = Caller::of(&broker.address, &key).await;
        let order = order_of(&caller.offer().await, &digest);
        // Half of them are the very same bytes, half are signed anew.
        let first = caller.signed(&order, 0);
        let anew = (1..=50).map(|number| caller.signed(&order, number));
        let requests: Vec<_> = std::iter::repeat_n(first, 50).chain(anew).collect();
        let mut leases = BTreeSet::new();
        for few in requests.chunks(50) {
            for reply in futures::future::join_all(few.iter().map(|one| caller.ask(one))).await {
                let BrokerReply::Lease(lease) = reply else {
                    panic!("{reply:?}");
                };
                leases.insert(lease.id);
            }
        }
        let other = Order {
            budget: MicroUsd(2_000_000),
            ..order
        };
        let reply = caller.ask(&caller.signed(&other, 200)).await;
        assert_eq!(reply, BrokerReply::Refused(Rejection::IdReused));
        leases
    });
    assert_eq!(leases.len(), 1, "{leases:?}");
    let lease = renter.wait_for_phase("again", "running", DEADLINE);
    let id = lease["id"].as_str().unwrap();
    assert_eq!(containers_of_lease(id).len(), 1);
    // An hour at $0.36 and of 1 GB at $0.10 a month: 360 000 + floor(100 000 / 720), held once.
    assert_eq!(renter.balance(), (9_639_862, 360_138));
    let _ = renter.feira(&["end", "again", "--yes"]).ok();
    wait_for("the container to be gone", DEADLINE, || {
        containers_of_lease(id).is_empty().then_some(())
    });
    broker.check_ledger();
}
