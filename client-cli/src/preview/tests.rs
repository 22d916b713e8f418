//! What previews say and refuse, with sums worked out by hand.

use super::*;
use crate::fixtures::prices;
use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, Digest, OfferId, OrderId};
use protocol::job::{Job, PinnedImage};
use protocol::machine::Machine;
use protocol::message::BrokerInfo;
use protocol::offer::{Chunks, Share};
use protocol::order::Target;
use protocol::terms::{Deal, Limits, Sales};
use protocol::units::{BasisPoints, Bytes, Timestamp};
use std::time::Duration;

fn text<const N: usize>(text: &str) -> Text<N> {
    Text::new(text).unwrap()
}

fn image() -> Resolved {
    Resolved {
        image: PinnedImage {
            name: text("docker.io/library/debian"),
            sha256: [0xab; 32],
        },
        tag: Some("12".into()),
        size: Some(Bytes(48_500_000)),
        unchecked: None,
    }
}

fn order() -> Order {
    Order {
        id: OrderId::from_bytes([1; 16]),
        target: Target::Offer {
            offer: OfferId::from_bytes([2; 16]),
            terms: Digest::of(b"terms"),
        },
        deal: Deal::OnDemand,
        gpus: 0,
        cpu_millicores: None,
        ram: None,
        name: text("brave-otter"),
        job: Job {
            image: image().image,
            entrypoint: None,
            command: Some(List::new(vec![text("sleep"), text("600")]).unwrap()),
            environment: List::default(),
        },
        disk: Bytes::from_gb(50),
        price_max: PricePerHour(410_000),
        budget: MicroUsd(5_000_000),
        duration_max: Some(Seconds(7200)),
        access: List::default(),
    }
}

fn offer() -> Offer {
    Offer {
        id: OfferId::from_bytes([2; 16]),
        sequence: 1,
        listed_at: Timestamp(0),
        machine: Machine {
            cpu_model: text("AMD EPYC 7B13"),
            architecture: text("x86_64"),
            cpu_cores: 8,
            has_avx: true,
            ram: Bytes(32 << 30),
            disk_total: Bytes::from_gb(500),
            disk_free: Bytes::from_gb(400),
            disk_enforced: false,
            system: text("Debian GNU/Linux 12"),
            kernel: text("6.1.0"),
            engine: text("20.10.24"),
            runtime: text("runc 1.1.5"),
            network: ContainerNetwork::None,
            gpus: List::default(),
        },
        share: Share {
            resources: List::new(vec![text("machine")]).unwrap(),
            gpus: List::default(),
            cpu_millicores: 8000,
            ram: Bytes(30 << 30),
            shared_memory: Bytes(1 << 30),
        },
        chunks: Chunks::Any,
        gpus_min: 0,
        prices: prices(),
        sales: Sales::default(),
        limits: Limits {
            start_within: Seconds(300),
            duration_min: Seconds(0),
            until: None,
            notice: Seconds(120),
            duration_max: Some(Seconds(86_400)),
            stop_grace: Seconds(10),
            disk_max: Bytes::from_gb(100),
        },
        brokers: List::default(),
    }
}

fn broker() -> Broker {
    let info = BrokerInfo {
        broker: BrokerId::from_bytes([5; 32]),
        name: text("eu1"),
        fee: BasisPoints(300),
        now: Timestamp(0),
        offers: 1,
        version: text("0.1.0"),
    };
    Broker {
        id: info.broker,
        addresses: Vec::new(),
        info,
        latency: Duration::ZERO,
        heard_at: Timestamp(0),
    }
}

/// The code of what `change` makes the check say.
fn refused(change: impl Fn(&mut Order, &mut Offer, &mut Resolved)) -> Option<Code> {
    let (mut order, mut offer, mut image, broker) = (order(), offer(), image(), broker());
    change(&mut order, &mut offer, &mut image);
    let host = HostId::from_bytes([2; 32]);
    let preview = Preview {
        order: &order,
        offer: &offer,
        gpus: 0,
        host,
        broker: &broker,
        image: &image,
        balance: Some(Balance {
            available: MicroUsd(406_943),
            ..Balance::default()
        }),
        matching: 3,
    };
    preview.check().err().map(|failure| failure.code())
}

#[test]
fn the_sums_are_those_of_the_terms() {
    let (order, offer, image, broker) = (order(), offer(), image(), broker());
    let preview = Preview {
        order: &order,
        offer: &offer,
        gpus: 0,
        host: HostId::from_bytes([2; 32]),
        broker: &broker,
        image: &image,
        balance: Some(Balance {
            available: MicroUsd(406_943),
            ..Balance::default()
        }),
        matching: 3,
    };
    // 400 000 for an hour, 50 GB × 100 000 × 3600 / 2 592 000 = 6 944.4 rounded down.
    assert_eq!(preview.hourly(), MicroUsd(406_944));
    assert_eq!(preview.hold(), MicroUsd(406_944));
    assert_eq!(preview.check(), Ok(()));
    // One micro-dollar is missing.
    assert_eq!(
        preview.check_money().unwrap_err().code(),
        Code::NotEnoughMoney
    );
    let shown = preview.object();
    let value = |label: &str| {
        shown
            .lines
            .iter()
            .find(|(l, _)| l == label)
            .map(|(_, value)| value.clone())
            .unwrap()
    };
    assert_eq!(
        value("Price"),
        "$0.40 + disk $0.006944 = $0.406944/h, $9.766656/day; of it 3.00 % to the broker"
    );
    // 50 GB × 100 000 × 86 400 / 2 592 000 = 166 666.
    assert!(value("Stopped").starts_with("$0.166666/day"));
    // 5 / 0.406944 h = 44 232 s = 12 h 17 m.
    assert_eq!(
        value("Ends"),
        "at $5.00 (12h 17m), after 2h 00m of running, or: feira end brave-otter"
    );
    assert_eq!(
        value("Image"),
        "docker.io/library/debian:12 = sha256:abababababab…, 48.5 MB to pull at most"
    );
    let privacy = shown.lines.iter().position(|(label, _)| label == "Privacy");
    let also = &shown.lines[privacy.unwrap() + 1];
    assert_eq!(also.0, "");
    assert_eq!(
        also.1,
        "the broker too reads the command and the variables (--env)"
    );
    assert_eq!(shown.json["price_usd_per_hour"], "0.406944");
    assert_eq!(shown.json["command"], json!(["sleep", "600"]));
    assert_eq!(shown.json["entrypoint"], json!(null));
}

#[test]
fn what_the_broker_would_refuse_is_refused_before_signing() {
    assert_eq!(refused(|_, _, _| ()), None);
    let price = |order: &mut Order| order.price_max = PricePerHour(406_943);
    assert_eq!(
        refused(|order, _, _| price(order)),
        Some(Code::PriceAboveLimit)
    );
    let disk = |order: &mut Order| order.disk = Bytes::from_gb(101);
    let dear = |order: &mut Order| order.price_max = PricePerHour(1_000_000);
    assert_eq!(
        refused(|order, _, _| (disk(order), dear(order)).0),
        Some(Code::BeyondOffer)
    );
    let long = |order: &mut Order| order.duration_max = Some(Seconds(86_401));
    assert_eq!(refused(|order, _, _| long(order)), Some(Code::BeyondOffer));
    let big = |image: &mut Resolved| image.size = Some(Bytes(50_000_000_001));
    assert_eq!(refused(|_, _, image| big(image)), Some(Code::ImageTooBig));
}
