//! A search over a thousand offers: what it costs the client, and how long the broker takes.
//!
//! The broker is the real program; the hosts that announce the offers are nodes in this process. Must
//! not look inside either program.

use std::time::{Duration, UNIX_EPOCH};

use feira_tests::renter::Renter;
use feira_tests::stage::{Broker, Stage};
use protocol::bounded::List;
use protocol::filter::Filter;
use protocol::ids::{BrokerId, PublicKey};
use protocol::message::{Announcement, BrokerReply, BrokerRequest, Search, decode, encode};
use protocol::net::{
    Identity, Multiaddr, Node, NodeConfig, NodeEvents, parse_address, peer_of_address,
};
use protocol::terms::{ContractKind, Need};
use protocol::units::{Bytes, Timestamp};
use tokio::runtime::Runtime;

use crate::market::{self, Seller};
use crate::report::Row;
use crate::rounds::by_turns;
use crate::{Outcome, clock, cpu};

/// Offers in the broker's book.
const OFFERS: usize = 1000;
/// How long anything may take on a machine with other work.
const DEADLINE: Duration = Duration::from_secs(20);
/// Requests in one measurement: all of them together stay below what a peer may send in a burst.
const REQUESTS: u32 = 4;
/// Client runs in one measurement.
const TIMES: u32 = 3;

/// CPU time of `feira search`, from the start of the process to the printed table.
pub(crate) fn measure_client() -> Outcome<Vec<Row>> {
    let scene = Scene::new()?;
    let command = scene.renter.prepared();
    let feira = command
        .get_program()
        .to_str()
        .ok_or("a path that is not UTF-8")?;
    let variables: Vec<(&str, &str)> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)))
        .collect();
    let medians = by_turns(
        || cpu::milliseconds(&[feira, "search"], &variables, TIMES),
        || cpu::milliseconds(&["docker", "ps"], &[], TIMES),
    )?;
    let row = Row::new("search_client", "ms CPU", medians)
        .beside("docker ps")
        .goal("at most 50 ms", |row| row.ours() <= 50.0);
    Ok(vec![row])
}

/// Time from a search sent to its answer, over the wire.
pub(crate) fn measure_broker() -> Outcome<Vec<Row>> {
    let scene = Scene::new()?;
    let asker = scene.node(&market::key(b'r', 1), NodeConfig::renter())?;
    let search = BrokerRequest::Search(Search {
        filter: Filter::default(),
        sort: List::new(Vec::new())?,
        need: Need::disk(Bytes(10_000_000_000)),
        kind: ContractKind::OnDemand,
        limit: 20,
        job: None,
    });
    let reply = scene.ask(&asker.0, &search)?;
    let BrokerReply::Found(found) = &reply else {
        return Err(format!("the broker answered {reply:?}").into());
    };
    if usize::try_from(found.of)? != OFFERS {
        return Err(format!("the broker has {} offers", found.of).into());
    }
    let medians = by_turns(
        || scene.time(&asker.0, &search),
        || scene.time(&asker.0, &BrokerRequest::Info),
    )?;
    let row = Row::new("search_broker", "ms", medians)
        .beside("a request that searches nothing")
        .goal("under 5 ms", |row| row.ours() < 5.0);
    Ok(vec![row])
}

/// A broker that shows [`OFFERS`] offers, and a renter of it.
struct Scene {
    runtime: Runtime,
    hosts: Vec<(Node, NodeEvents)>,
    renter: Renter,
    address: Multiaddr,
    peer: PublicKey,
    /// Stopped when dropped, after the nodes.
    _broker: Broker,
    _stage: Stage,
}

impl Scene {
    fn new() -> Outcome<Self> {
        let stage = Stage::new();
        let broker = stage.broker("broker", &[]);
        let renter = stage.renter("renter", &[&broker.address]);
        let address = parse_address(&broker.address)?;
        let peer = peer_of_address(&address)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let mut scene = Self {
            runtime,
            hosts: Vec::new(),
            renter,
            address,
            peer,
            _broker: broker,
            _stage: stage,
        };
        for seller in market::sellers(OFFERS, BrokerId::from(peer), timestamp()?)? {
            scene.announce(seller)?;
        }
        Ok(scene)
    }

    fn announce(&mut self, seller: Seller) -> Outcome<()> {
        let host = self.node(&seller.key, NodeConfig::host(Vec::new()))?;
        let offers = seller
            .offers
            .iter()
            .map(|offer| offer.signed().clone())
            .collect();
        let announcement = Announcement {
            offers: List::new(offers)?,
            addresses: List::new(Vec::new())?,
            withheld: List::new(Vec::new())?,
        };
        let reply = self.ask(&host.0, &BrokerRequest::Announce(announcement))?;
        if reply != BrokerReply::Noted {
            return Err(format!("the broker answered {reply:?}").into());
        }
        self.hosts.push(host);
        Ok(())
    }

    /// A node with this key, connected to the broker.
    fn node(
        &self,
        key: &ed25519_dalek::SigningKey,
        config: NodeConfig,
    ) -> Outcome<(Node, NodeEvents)> {
        self.runtime.block_on(async {
            let identity = Identity::from_signing_key(key.clone());
            let (node, events) = Node::start(&identity, config).await?;
            node.connect(self.peer, vec![self.address.clone()], DEADLINE)
                .await?;
            Ok((node, events))
        })
    }

    fn ask(&self, node: &Node, request: &BrokerRequest) -> Outcome<BrokerReply> {
        let bytes = encode(request)?;
        let reply = self
            .runtime
            .block_on(node.request(self.peer, bytes, DEADLINE))?;
        Ok(decode(&reply)?)
    }

    /// Milliseconds that a request takes, as the mean of [`REQUESTS`] in a row.
    fn time(&self, node: &Node, request: &BrokerRequest) -> Outcome<f64> {
        let began = clock::now();
        for _ in 0..REQUESTS {
            self.ask(node, request)?;
        }
        Ok(began.elapsed().as_secs_f64() * 1000.0 / f64::from(REQUESTS))
    }
}

/// Now, as statements are dated.
pub(crate) fn timestamp() -> Outcome<Timestamp> {
    let since = clock::time_of_day().duration_since(UNIX_EPOCH)?;
    Ok(Timestamp(u64::try_from(since.as_millis())?))
}
