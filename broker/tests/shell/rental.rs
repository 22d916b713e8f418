//! One rental from the order to the receipt, with a fake host and a fake renter on the wire.

use crate::fake::papers::{goal_of, order};
use crate::fake::{FakeHost, Party, Stand};
use broker::clock::Stopwatch;
use futures::future::join_all;
use protocol::filter::Filter;
use protocol::ids::{LeaseId, PublicKey};
use protocol::lease::{ContainerState, EndCause, LeaseView, Phase, Stage, StopReason, Want};
use protocol::message::{BrokerReply, BrokerRequest, LeaseScope, Rejection, Search};
use protocol::order::LeaseAction;
use protocol::terms::{ContractKind, Need};
use protocol::units::{BasisPoints, Bytes, MicroUsd, Millis, Seconds};
use std::time::Duration;

/// A broker, a host that offers, a renter with $10.
pub(crate) struct Market {
    pub(crate) stand: Stand,
    pub(crate) host: FakeHost,
    pub(crate) renter: Party,
}

impl Market {
    pub(crate) async fn new(settings: &str) -> Self {
        let stand = Stand::new(settings).await;
        let host = FakeHost::new(&stand).await;
        let now = stand.clock.now();
        host.announce(stand.id(), vec![host.offer(&[stand.id()], now)], now)
            .await;
        let renter = Party::renter(&stand).await;
        stand.deposit(renter.renter_id(), "10").await;
        Self {
            stand,
            host,
            renter,
        }
    }

    /// Orders the host's machine.
    pub(crate) async fn order(&self, name: &str) -> LeaseView {
        let now = self.stand.clock.now();
        let offer = self.host.offer(&[self.stand.id()], now);
        Party::view(self.renter.order(order(&offer, name), now).await)
    }

    /// The host reports a state in run 1.
    pub(crate) async fn report(&self, lease: LeaseId, state: ContainerState, running_ms: u64) {
        let (broker, now) = (self.stand.id(), self.stand.clock.now());
        self.host
            .report(broker, lease, state, running_ms, now)
            .await;
    }

    /// A lease that runs.
    pub(crate) async fn running(&mut self, name: &str) -> LeaseId {
        let lease = self.order(name).await.id;
        let goal = self.host.goal(|goal| goal_of(goal, lease).is_some()).await;
        let wanted = goal_of(&goal, lease).unwrap();
        let granted = self
            .host
            .grant(self.stand.id(), &wanted, 1, self.stand.clock.now())
            .await;
        assert_eq!(granted, BrokerReply::Noted);
        self.report(lease, ContainerState::Preparing(Stage::Pulling), 0)
            .await;
        self.report(lease, ContainerState::Running, 0).await;
        lease
    }

    pub(crate) async fn available(&self) -> MicroUsd {
        let BrokerReply::Balance(balance) = self.renter.ask(BrokerRequest::Balance).await else {
            panic!("no balance")
        };
        balance.available
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rental_from_search_to_receipt() {
    let mut market = Market::new("fee_bps = 300").await;
    let lease = ordered(&mut market).await;
    started(&mut market, lease).await;
    // A minute at 1000 µ$ a second, as the host signed it.
    market.stand.clock.advance(Millis(60_000));
    market.report(lease, ContainerState::Running, 60_000).await;
    let view = market.renter.lease(lease).await;
    assert_eq!(
        (view.running, view.charged.total()),
        (Millis(60_000), MicroUsd(60_000))
    );
    ended(&mut market, lease).await;
    market.stand.check_ledger().await;
    market.stand.stop().await;
}

/// Search and order: $3.60 of the $10 are held, and the host is told at once.
async fn ordered(market: &mut Market) -> LeaseId {
    let BrokerReply::Info(info) = market.renter.ask(BrokerRequest::Info).await else {
        panic!("no info")
    };
    assert_eq!(
        (info.broker, info.offers, info.fee),
        (market.stand.id(), 1, BasisPoints(300))
    );
    let search = Search {
        filter: Filter::default(),
        sort: Default::default(),
        need: Need::disk(Bytes::from_gb(10)),
        kind: ContractKind::OnDemand,
        limit: 5,
        job: None,
    };
    let BrokerReply::Found(found) = market.renter.ask(BrokerRequest::Search(search)).await else {
        panic!("nothing found")
    };
    let offer = found.offers[0].offer.verify().unwrap();
    assert_eq!(
        (offer.signer(), found.matching),
        (market.host.party.public(), 1)
    );

    let since = Stopwatch::start();
    let view = market.order("brave-otter").await;
    assert_eq!(
        (&view.phase, view.held),
        (&Phase::Offered, MicroUsd(3_600_000))
    );
    assert_eq!(market.available().await, MicroUsd(6_400_000));
    let goal = market
        .host
        .goal(|goal| goal_of(goal, view.id).is_some())
        .await;
    // Far below the period at which goals are said again.
    assert!(
        since.elapsed() < Duration::from_secs(3),
        "{:?}",
        since.elapsed()
    );
    let goal = goal_of(&goal, view.id).unwrap();
    assert_eq!(goal.want, Want::Run(1));
    let award = goal
        .award
        .verify_fresh(market.host.party.public(), market.stand.clock.now())
        .unwrap();
    assert_eq!(award.signer(), PublicKey::from(market.stand.id()));
    assert_eq!(award.body().order, goal.order.digest());
    let circuit = format!(
        "/p2p-circuit/p2p/{}",
        protocol::net::peer_id_of(&market.host.party.public())
    );
    assert!(
        view.access
            .addresses
            .iter()
            .any(|address| address.ends_with(&circuit)),
        "{:?}",
        view.access
    );
    view.id
}

/// Grant and start, seen by a long poll.
async fn started(market: &mut Market, lease: LeaseId) {
    let goal = market
        .host
        .goal(|goal| goal_of(goal, lease).is_some())
        .await;
    let goal = goal_of(&goal, lease).unwrap();
    let seen = market.renter.lease(lease).await.revision;
    let watch = market.renter.ask(BrokerRequest::Watch {
        lease,
        seen,
        wait: Seconds(20),
    });
    let since = Stopwatch::start();
    let grant = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        market
            .host
            .grant(market.stand.id(), &goal, 1, market.stand.clock.now())
            .await
    };
    let (watched, granted) = tokio::join!(watch, grant);
    assert_eq!(granted, BrokerReply::Noted);
    let view = Party::view(watched);
    assert!(view.revision > seen);
    assert_eq!(view.phase, Phase::Accepted);
    assert!(view.grant.is_some_and(|grant| grant.verify().is_ok()));
    let waited = since.elapsed();
    assert!(
        waited >= Duration::from_millis(300) && waited < Duration::from_secs(5),
        "{waited:?}"
    );
    market
        .report(lease, ContainerState::Preparing(Stage::Pulling), 0)
        .await;
    assert_eq!(market.renter.lease(lease).await.phase, Phase::Preparing);
    market.report(lease, ContainerState::Running, 0).await;
    let view = market
        .renter
        .watch_until(lease, |view| view.phase == Phase::Running)
        .await;
    assert!(view.started_at.is_some());
}

/// End, the host's last word, and the receipt: $0.06, of which 3 % are the broker's.
async fn ended(market: &mut Market, lease: LeaseId) {
    let ended = market
        .renter
        .command(lease, LeaseAction::End, market.stand.clock.now())
        .await;
    assert_eq!(Party::view(ended).phase, Phase::Closing(EndCause::Renter));
    let is_to_end = |goal: &_| goal_of(goal, lease).is_some_and(|goal| goal.want == Want::End);
    market.host.goal(is_to_end).await;
    market.report(lease, ContainerState::Gone, 60_000).await;
    let view = market
        .renter
        .watch_until(lease, |view| {
            !view.phase.is_open() && view.held == MicroUsd::ZERO
        })
        .await;
    assert_eq!(view.phase, Phase::Closed(EndCause::Renter));
    let BrokerReply::Receipt(receipt) = market.renter.ask(BrokerRequest::Receipt(lease)).await
    else {
        panic!("no receipt")
    };
    let receipt = receipt.verify().unwrap();
    assert_eq!(receipt.signer(), PublicKey::from(market.stand.id()));
    let receipt = receipt.body();
    receipt.check().unwrap();
    assert_eq!(receipt.usage.running, Millis(60_000));
    let parts = (receipt.total, receipt.fee, receipt.host_share);
    assert_eq!(parts, (MicroUsd(60_000), MicroUsd(1_800), MicroUsd(58_200)));
    assert_eq!(market.available().await, MicroUsd(9_940_000));
    let BrokerReply::Earnings(earned) = market.host.party.ask(BrokerRequest::Earnings).await else {
        panic!("no earnings")
    };
    assert_eq!(
        (earned.pending, earned.fees),
        (MicroUsd(58_200), MicroUsd(1_800))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_order_a_hundred_times_is_one_lease() {
    let mut market = Market::new("").await;
    let now = market.stand.clock.now();
    let offer = market.host.offer(&[market.stand.id()], now);
    let order = order(&offer, "one");
    let signed =
        crate::fake::papers::sign(order.clone(), &market.renter.key, market.renter.broker, now);
    let mut leases = Vec::new();
    for _ in 0..2 {
        // As many as one node may have in flight.
        let asks = (0..50).map(|_| market.renter.ask(BrokerRequest::Order(signed.clone())));
        leases.extend(
            join_all(asks)
                .await
                .into_iter()
                .map(|reply| Party::view(reply).id),
        );
    }
    // The same order, signed again, is the same order.
    leases.push(Party::view(market.renter.order(order.clone(), now).await).id);
    assert_eq!(leases.len(), 101);
    assert!(leases.iter().all(|lease| *lease == leases[0]));
    let other = protocol::order::Order {
        budget: MicroUsd(1_000_000),
        ..order
    };
    assert_eq!(
        Party::refusal(market.renter.order(other, now).await),
        Rejection::IdReused
    );
    let goal = market.host.goal(|goal| !goal.leases.is_empty()).await;
    assert_eq!(goal.leases.len(), 1);
    assert_eq!(market.available().await, MicroUsd(6_400_000));
    let BrokerReply::Leases(all) = market
        .renter
        .ask(BrokerRequest::Leases(LeaseScope::All))
        .await
    else {
        panic!("no leases")
    };
    assert_eq!(all.len(), 1);
    market.stand.check_ledger().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_in_the_middle_loses_nothing() {
    let mut market = Market::new("").await;
    let lease = market.running("steady").await;
    market.stand.clock.advance(Millis(60_000));
    market.report(lease, ContainerState::Running, 60_000).await;
    let before = market.renter.lease(lease).await;

    market.stand.stop().await;
    market.stand.start().await;
    market.host.party.connect(&market.stand).await;
    market.renter.connect(&market.stand).await;
    let after = market.renter.lease(lease).await;
    assert_eq!(
        (after.phase, after.charged, after.held),
        (before.phase, before.charged, before.held)
    );
    // The host says that it is there and is told what it should be doing.
    while market.host.goals.try_recv().is_ok() {}
    market
        .host
        .announce(market.stand.id(), Vec::new(), market.stand.clock.now())
        .await;
    let goal = market
        .host
        .goal(|goal| goal_of(goal, lease).is_some())
        .await;
    assert_eq!(goal_of(&goal, lease).unwrap().want, Want::Run(1));
    // 20 s on: the gap is short enough to be billed.
    market.stand.clock.advance(Millis(20_000));
    market.report(lease, ContainerState::Running, 80_000).await;
    assert_eq!(
        market.renter.lease(lease).await.charged.total(),
        MicroUsd(80_000)
    );
    market.stand.check_ledger().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_lease_keeps_its_money_straight() {
    let mut market = Market::new("").await;
    let lease = market.running("sleepy").await;
    market.stand.clock.advance(Millis(30_000));
    market.report(lease, ContainerState::Running, 30_000).await;
    let stopped = market
        .renter
        .command(lease, LeaseAction::Stop, market.stand.clock.now())
        .await;
    assert_eq!(Party::view(stopped).phase.word(), "stopped");
    market
        .host
        .goal(|goal| goal_of(goal, lease).is_some_and(|goal| goal.want == Want::Stop))
        .await;
    market
        .report(lease, ContainerState::Stopped(StopReason::Asked), 30_000)
        .await;
    // Disk costs nothing here, and what is not running is not billed.
    market.stand.clock.advance(Millis(3_600_000));
    let (broker, now) = (market.stand.id(), market.stand.clock.now());
    market
        .host
        .announce(broker, vec![market.host.offer(&[broker], now)], now)
        .await;
    let resumed = market
        .renter
        .command(lease, LeaseAction::Resume, market.stand.clock.now())
        .await;
    let view = Party::view(resumed);
    assert_eq!(
        (view.phase, view.charged.total()),
        (Phase::Preparing, MicroUsd(30_000))
    );
    market
        .host
        .goal(|goal| goal_of(goal, lease).is_some_and(|goal| goal.want == Want::Run(2)))
        .await;
    market.stand.check_ledger().await;
}
