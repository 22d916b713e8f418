//! What is refused on the wire: each reason is said, counted, and ends nothing.

use crate::fake::Party;
use crate::fake::papers::{order, sign};
use crate::rental::Market;
use protocol::ids::{LeaseId, MessageId, PublicKey};
use protocol::lease::{ContainerState, Meters, Report};
use protocol::message::{self, BrokerReply, BrokerRequest, Rejection};
use protocol::order::{LeaseAction, LeaseCommand, Order, Target};
use protocol::signed::{ANYONE, Envelope, Signed};
use protocol::units::{Bytes, MicroUsd, Millis, PricePerHour, Seconds, Timestamp};

impl Market {
    fn good_order(&self) -> Order {
        let now = self.stand.clock.now();
        order(&self.host.offer(&[self.stand.id()], now), "honest")
    }

    /// The refusal of an order that is signed as given.
    async fn refused_order(&self, order: Order, envelope: Envelope) -> Rejection {
        let signed = Signed::sign(order, &self.renter.key, envelope).unwrap();
        Party::refusal(
            self.renter
                .ask(BrokerRequest::Order(signed.signed().clone()))
                .await,
        )
    }

    fn envelope(&self) -> Envelope {
        Envelope {
            audience: self.renter.broker,
            message_id: MessageId::from_bytes(rand::random()),
            issued: self.stand.clock.now(),
            validity: Seconds(60),
        }
    }

    async fn still_serves(&self) {
        let reply = self.renter.ask(BrokerRequest::Info).await;
        assert!(matches!(reply, BrokerReply::Info(_)), "{reply:?}");
    }

    async fn check_refused(&self, counts: &[(&str, i64)]) {
        for (reason, count) in counts {
            assert_eq!(self.stand.refused(reason).await, *count, "{reason}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_message_are_refused() {
    let market = Market::new("").await;
    let good = message::encode(&BrokerRequest::Info).unwrap();
    let order = sign(
        market.good_order(),
        &market.renter.key,
        market.renter.broker,
        market.stand.clock.now(),
    );
    let order = message::encode(&BrokerRequest::Order(order)).unwrap();
    let mut bad = vec![
        Vec::new(),
        vec![0xff; 40],
        vec![0; 1000],
        good[..good.len() - 1].to_vec(),
    ];
    bad.push([good.as_slice(), &[0]].concat());
    bad.push([&[9, 0], &good[2..]].concat());
    bad.push(order[..order.len() / 2].to_vec());
    // As large as a frame may be.
    bad.push(vec![7; protocol::net::MAX_FRAME]);
    let count = i64::try_from(bad.len()).unwrap();
    for bytes in bad {
        let refused = Party::refusal(market.renter.ask_bytes(bytes).await);
        assert!(matches!(refused, Rejection::Malformed(_)), "{refused:?}");
    }
    assert_eq!(market.stand.refused("malformed").await, count);
    market.still_serves().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_that_do_not_hold_are_refused() {
    let market = Market::new("").await;
    let now = market.stand.clock.now();
    let signed = sign(
        market.good_order(),
        &market.renter.key,
        market.renter.broker,
        now,
    );
    // The last byte of the message is the last of the signature.
    let mut forged = message::encode(&BrokerRequest::Order(signed.clone())).unwrap();
    *forged.last_mut().unwrap() ^= 1;
    let refused = Party::refusal(market.renter.ask_bytes(forged).await);
    assert!(matches!(refused, Rejection::BadSignature(_)), "{refused:?}");
    // A byte of the order: what was signed is not what is there.
    let mut changed = message::encode(&BrokerRequest::Order(signed.clone())).unwrap();
    changed[200] ^= 1;
    let refused = Party::refusal(market.renter.ask_bytes(changed).await);
    assert!(matches!(refused, Rejection::BadSignature(_)), "{refused:?}");
    assert_eq!(market.stand.refused("bad_signature").await, 2);

    // Somebody else hands in what the renter signed.
    let thief = Party::renter(&market.stand).await;
    let refused = Party::refusal(thief.ask(BrokerRequest::Order(signed)).await);
    assert_eq!(refused, Rejection::NotTheSigner);
    assert_eq!(market.stand.refused("not_the_signer").await, 1);
    market.still_serves().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_for_others_and_for_other_times_are_refused() {
    let market = Market::new("").await;
    for audience in [ANYONE, PublicKey::from_bytes([9; 32])] {
        let envelope = Envelope {
            audience,
            ..market.envelope()
        };
        assert_eq!(
            market.refused_order(market.good_order(), envelope).await,
            Rejection::WrongAudience
        );
    }
    assert_eq!(market.stand.refused("wrong_audience").await, 2);
    let now = market.stand.clock.now();
    let hour = Millis(3_600_000);
    let envelopes = [
        // A clock that is an hour off, either way; and one that never expires.
        Envelope {
            issued: now.before(hour),
            ..market.envelope()
        },
        Envelope {
            issued: now.after(hour),
            ..market.envelope()
        },
        Envelope {
            validity: Seconds(301),
            ..market.envelope()
        },
    ];
    for envelope in envelopes {
        let refused = market.refused_order(market.good_order(), envelope).await;
        let Rejection::NotNow { now: said, .. } = refused else {
            panic!("{refused:?}")
        };
        // The broker says what its own clock says.
        assert!(said >= now && said < now.after(Millis(60_000)));
    }
    assert_eq!(market.stand.refused("not_now").await, 3);
    market.still_serves().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_id_is_good_for_one_statement() {
    let market = Market::new("").await;
    let envelope = market.envelope();
    let first = Signed::sign(market.good_order(), &market.renter.key, envelope).unwrap();
    let ask = BrokerRequest::Order(first.signed().clone());
    let lease = Party::view(market.renter.ask(ask.clone()).await).id;
    // Byte for byte the same: the same answer.
    assert_eq!(Party::view(market.renter.ask(ask).await).id, lease);
    let command = LeaseCommand {
        lease,
        action: LeaseAction::End,
    };
    let second = Signed::sign(command, &market.renter.key, envelope).unwrap();
    let refused = Party::refusal(
        market
            .renter
            .ask(BrokerRequest::Command(second.signed().clone()))
            .await,
    );
    assert_eq!(refused, Rejection::Replayed);
    assert_eq!(market.stand.refused("replayed").await, 1);
    market.still_serves().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_that_the_market_refuses_are_counted_by_reason() {
    let market = Market::new("").await;
    let now = market.stand.clock.now();
    let order = |change: fn(&mut Order)| {
        let mut order = market.good_order();
        change(&mut order);
        order
    };
    let dear = order(|order| order.price_max = PricePerHour(1_000_000));
    let refused = Party::refusal(market.renter.order(dear, now).await);
    let price = MicroUsd(3_600_000);
    assert_eq!(
        refused,
        Rejection::PriceAboveLimit {
            price,
            allowed: MicroUsd(1_000_000)
        }
    );
    let large = order(|order| order.disk = Bytes::from_gb(500));
    let refused = Party::refusal(market.renter.order(large, now).await);
    let (asked, allowed) = (Bytes::from_gb(500), Bytes::from_gb(200));
    assert_eq!(refused, Rejection::DiskTooLarge { asked, allowed });
    let gone = order(|order| {
        if let Target::Offer { offer, .. } = &mut order.target {
            *offer = protocol::ids::OfferId::from_bytes([3; 16]);
        }
    });
    assert_eq!(
        Party::refusal(market.renter.order(gone, now).await),
        Rejection::OfferGone
    );
    let changed = order(|order| {
        if let Target::Offer { terms, .. } = &mut order.target {
            *terms = protocol::ids::Digest::from_bytes([3; 32]);
        }
    });
    assert_eq!(
        Party::refusal(market.renter.order(changed, now).await),
        Rejection::OfferChanged
    );
    let poor = Party::renter(&market.stand).await;
    let refused = Party::refusal(poor.order(market.good_order(), now).await);
    assert_eq!(
        refused,
        Rejection::NotEnoughMoney {
            available: MicroUsd::ZERO,
            needed: price
        }
    );
    let _ = market.order("mine").await;
    let taken = Party::refusal(market.renter.order(market.good_order(), now).await);
    assert_eq!(taken, Rejection::OfferTaken);
    let counts = [
        ("price_above_limit", 1),
        ("disk_too_large", 1),
        ("offer_gone", 1),
        ("offer_changed", 1),
        ("not_enough_money", 1),
        ("offer_taken", 1),
    ];
    market.check_refused(&counts).await;
    let line = "broker_matches_total{result=\"matched\"}";
    assert_eq!(market.stand.metric(line).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_have_nothing_to_say_about_a_lease() {
    let market = Market::new("").await;
    let now = market.stand.clock.now();
    let lease = market.order("mine").await.id;
    let stranger = Party::renter(&market.stand).await;
    let replies = [
        stranger.ask(BrokerRequest::Lease(lease)).await,
        stranger.ask(BrokerRequest::Receipt(lease)).await,
        stranger
            .ask(BrokerRequest::Watch {
                lease,
                seen: 0,
                wait: Seconds(5),
            })
            .await,
        stranger.command(lease, LeaseAction::End, now).await,
    ];
    for reply in replies {
        assert_eq!(Party::refusal(reply), Rejection::UnknownLease);
    }
    let refused = report_of_a_stranger(&stranger, lease, now).await;
    assert_eq!(refused, Rejection::UnknownLease);
    market.check_refused(&[("unknown_lease", 5)]).await;
    assert_eq!(
        market.renter.lease(lease).await.phase,
        protocol::lease::Phase::Offered
    );
}

async fn report_of_a_stranger(stranger: &Party, lease: LeaseId, now: Timestamp) -> Rejection {
    let report = Report {
        lease,
        sequence: 1,
        boot: protocol::ids::BootId::from_bytes([1; 16]),
        run: 1,
        state: ContainerState::Running,
        meters: Meters::default(),
    };
    let signed = sign(report, &stranger.key, stranger.broker, now);
    Party::refusal(stranger.ask(BrokerRequest::Report(signed)).await)
}
