//! A refused order is in the log with its reason, and a search knows of what is rented.

use crate::fake::Party;
use crate::fake::papers::order;
use crate::rental::Market;
use protocol::bounded::List;
use protocol::filter::Filter;
use protocol::message::{BrokerReply, BrokerRequest, Found, Search};
use protocol::terms::{ContractKind, Need};
use protocol::units::Bytes;
use serde_json::Value;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_order_is_logged_with_its_reason() {
    let log = Log::default();
    let writer = log.clone();
    // Other tests of this process may write here too; their orders have other ids.
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(move || writer.clone())
        .init();
    let market = Market::new("").await;
    let first = market.order("brave-otter").await;
    let now = market.stand.clock.now();
    let offer = market.host.offer(&[market.stand.id()], now);
    let other = order(&offer, "calm-heron");
    let (id, of) = (other.id.to_string(), offer.id.to_string());
    Party::refusal(market.renter.order(other, now).await);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let refused: Vec<_> = lines.iter().filter(|line| line["order"] == id).collect();
    assert_eq!(refused.len(), 1, "{text}");
    assert_eq!(refused[0]["reason"], "offer_taken");
    assert_eq!(refused[0]["offer"], of);
    assert_eq!(refused[0]["renter"], market.renter.renter_id().short());
    assert_eq!(refused[0]["level"], "INFO");
    assert_eq!(
        refused[0]["message"],
        "order refused: the offer was rented by someone else"
    );
    // The market's thread writes to the same log.
    let ordered = lines
        .iter()
        .filter(|line| line["lease"] == first.id.to_string() && line["message"] == "lease ordered");
    assert_eq!(ordered.count(), 1, "{text}");
}

async fn search(market: &Market) -> Found {
    let search = Search {
        filter: Filter::default(),
        sort: List::default(),
        need: Need::disk(Bytes(0)),
        kind: ContractKind::OnDemand,
        limit: 20,
        job: None,
    };
    let BrokerReply::Found(found) = market.renter.ask(BrokerRequest::Search(search)).await else {
        panic!("nothing found")
    };
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_says_how_many_offers_are_rented() {
    let mut market = Market::new("").await;
    let found = search(&market).await;
    assert_eq!((found.of, found.rented), (1, 0));
    let lease = market.running("brave-otter").await;
    let found = search(&market).await;
    assert_eq!((found.of, found.rented), (0, 1));
    // The host takes what is leased out of its list: it is there all the same.
    let (broker, now) = (market.stand.id(), market.stand.clock.now());
    market.host.announce(broker, Vec::new(), now).await;
    let found = search(&market).await;
    assert_eq!((found.of, found.rented), (0, 1));
    market
        .report(lease, protocol::lease::ContainerState::Gone, 0)
        .await;
    assert_eq!(search(&market).await.rented, 0);
}
