//! What previews say and refuse, with sums worked out by hand.

mod slices;

use super::*;
use crate::failure::Code;
use crate::fixtures::offers;
use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, Digest, OfferId, OrderId};
use protocol::job::{Job, PinnedImage};
use protocol::message::BrokerInfo;
use protocol::offer::Offer;
use protocol::terms::Deal;
use protocol::units::{Bytes, Timestamp};
use serde_json::json;
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
        gpus: 1,
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

/// One RTX 4090 at $0.40, $0.10 a GB-month; 100 GB of disk and a day at most.
fn offer() -> Offer {
    let mut offer = offers::pool(1, 2, 400_000);
    offer.limits.disk_max = Bytes::from_gb(100);
    offer.limits.duration_max = Some(Seconds(86_400));
    offer
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

/// Something in front of the reader: two GPUs may be had, one is asked for.
struct Scene {
    order: Order,
    offer: Offer,
    image: Resolved,
    price: u64,
    available: i64,
}

impl Scene {
    fn of(deal: Deal) -> Self {
        Self {
            order: Order { deal, ..order() },
            offer: offer(),
            image: image(),
            price: 400_000,
            available: 406_943,
        }
    }

    fn see<T>(&self, look: impl FnOnce(&Preview<'_>) -> T) -> T {
        let known = offers::portion_of(1, self.offer.clone(), self.order.gpus, self.price);
        let broker = broker();
        look(&Preview {
            order: &self.order,
            known: Some(&known),
            broker: &broker,
            image: &self.image,
            balance: Some(Balance {
                available: MicroUsd(self.available),
                ..Balance::default()
            }),
            matching: 3,
            now: NOW,
        })
    }

    fn line(&self, label: &str) -> String {
        let shown = self.see(|preview| preview.object());
        let found = shown.lines.into_iter().find(|(l, _)| l == label);
        found.map(|(_, value)| value).unwrap()
    }

    /// The code of what the check says.
    fn refused(&self) -> Option<Code> {
        self.see(|preview| preview.check(None).err().map(|failure| failure.code()))
    }
}

const NOW: Timestamp = Timestamp(1_796_047_364_000);

#[test]
fn the_sums_are_those_of_the_terms() {
    let scene = Scene::of(Deal::OnDemand);
    scene.see(|preview| {
        // 400 000 for an hour, 50 GB × 100 000 × 3600 / 2 592 000 = 6 944.4 rounded down.
        assert_eq!(preview.hourly(), MicroUsd(406_944));
        assert_eq!(preview.hold(), MicroUsd(406_944));
        assert_eq!(preview.check(None), Ok(()));
        // One micro-dollar is missing.
        let poor = preview.check_money().unwrap_err().code();
        assert_eq!(poor, Code::NotEnoughMoney);
        let json = preview.object().json;
        assert_eq!(json["price_usd_per_hour"], "0.406944");
        assert_eq!(json["kind"], "on_demand");
        assert_eq!(json["bid_usd_per_gpu_hour"], json!(null));
        assert_eq!(json["command"], json!(["sleep", "600"]));
        assert_eq!(json["entrypoint"], json!(null));
    });
    assert_eq!(
        scene.line("Price"),
        "$0.40 + disk $0.006944 = $0.406944/h, $9.766656/day; of it 3.00 % to the broker"
    );
    // 50 GB × 100 000 × 86 400 / 2 592 000 = 166 666.
    assert!(scene.line("Stopped").starts_with("$0.166666/day"));
    // 5 / 0.406944 h = 44 232 s = 12 h 17 m.
    assert_eq!(
        scene.line("Ends"),
        "at $5.00 (12h 17m), after 2h 00m of running, or: feira end brave-otter"
    );
    assert_eq!(
        scene.line("Image"),
        "docker.io/library/debian:12 = sha256:abababababab…, 48.5 MB to pull at most"
    );
    let lines = scene.see(|preview| preview.object().lines);
    let privacy = lines.iter().position(|(label, _)| label == "Privacy");
    let also = &lines[privacy.unwrap() + 1];
    assert_eq!(also.0, "");
    assert_eq!(
        also.1,
        "the broker too reads the command and the variables (--env)"
    );
}

#[test]
fn two_gpus_cost_twice_and_have_the_whole_machine() {
    let mut scene = Scene::of(Deal::OnDemand);
    scene.order.gpus = 2;
    assert!(
        scene
            .line("Price")
            .starts_with("2 × $0.40 + disk $0.006944 = $0.806944/h")
    );
    assert_eq!(scene.line("GPU"), "2x RTX 4090 24 GB");
    assert!(scene.line("Machine").starts_with("16 vCPU, 60.0 GiB RAM"));
    scene.order.gpus = 1;
    assert!(scene.line("Machine").starts_with("8 vCPU, 30.0 GiB RAM"));
}

fn interruptible(bid: u64) -> Scene {
    let mut scene = Scene::of(Deal::Interruptible {
        bid: PricePerHour(bid),
        until: Timestamp(NOW.0 + 8 * 3_600_000),
        fallback: None,
    });
    scene.price = 205_000;
    scene
}

#[test]
fn an_interruptible_lease_says_its_bid_what_wins_and_the_notice() {
    let scene = interruptible(220_000);
    assert_eq!(
        scene.line("Now"),
        "what has to be bid for a GPU is $0.205/h, of at least $0.10/h: the bid wins"
    );
    assert!(
        scene
            .line("Price")
            .starts_with("$0.22 + disk $0.006944 = $0.226944/h")
    );
    assert!(
        scene
            .line("If outbid")
            .starts_with("SIGTERM, 2m 00s, then stopped")
    );
    assert!(scene.line("Waits").ends_with("(8h 00m)"));
    assert!(
        scene
            .line("Money")
            .starts_with("$0.226944 of your $0.406943 is held")
    );
    let sentence = scene.see(|preview| preview.sentence());
    assert!(sentence.contains("interruptible, $0.22/h for a GPU while it runs"));
    let low = interruptible(150_000);
    assert!(low.line("Now").ends_with("the bid waits"));
    // Paying what on demand costs buys no more than what can be lost.
    let dear = interruptible(400_000);
    assert!(dear.line("Now").contains("on demand it costs $0.40/h"));
    scene.see(|preview| {
        let json = preview.json();
        assert_eq!(json["kind"], "interruptible");
        assert_eq!(json["bid_usd_per_gpu_hour"], "0.220000");
        assert_eq!(json["to_win_usd_per_gpu_hour"], "0.205000");
        assert_eq!(json["floor_usd_per_gpu_hour"], "0.100000");
        assert_eq!(json["notice_seconds"], 120);
    });
}

#[test]
fn a_bid_under_the_floor_is_refused_with_the_floor() {
    let scene = interruptible(99_999);
    assert_eq!(scene.refused(), Some(Code::BidTooLow));
    let failure = scene.see(|preview| preview.check(None).unwrap_err());
    assert!(
        failure
            .what()
            .contains("from $0.10/h for a GPU on; $0.099999/h was bid")
    );
    assert_eq!(failure.help_lines(), ["bid at least 0.100000"]);
    assert_eq!(interruptible(100_000).refused(), None);
    // Of whichever comes, the lowest floor counts.
    let mut any = interruptible(110_000);
    any.order.target = Target::Any("gpu=rtx4090".parse().unwrap());
    let check = |floor| any.see(|preview| preview.check(Some(PricePerHour(floor))));
    assert_eq!(check(110_000), Ok(()));
    assert_eq!(check(110_001).unwrap_err().code(), Code::BidTooLow);
}

fn reserved_for(days: u16) -> Scene {
    let mut scene = Scene::of(Deal::Reserved {
        days,
        prepay_max: MicroUsd(0),
    });
    scene.offer = offers::pool(1, 1, 1_000_000);
    scene.order.duration_max = None;
    scene.order.price_max = PricePerHour(1_006_944);
    scene.order.budget = MicroUsd(600_000_000);
    scene
}

/// Market rules, Q and X: 30 days at $1 are $576, of which 576, 212.40 and nothing come back.
#[test]
fn a_term_says_its_price_its_discount_and_what_a_cancel_gives_back() {
    let scene = reserved_for(30);
    assert_eq!(
        scene.line("Prepaid"),
        "$576.00 = $720.00 on demand less 20.00 %; that is $0.80/h for running"
    );
    assert_eq!(
        scene.line("Cancelled"),
        "gives back $576.00 now, $212.40 at half of the term, $0.00 at its end"
    );
    scene.see(|preview| {
        assert_eq!(preview.hold(), MicroUsd(576_006_944));
        let json = preview.json();
        assert_eq!(json["prepaid_usd"], "576.000000");
        assert_eq!(json["discount_basis_points"], 2000);
        assert_eq!(json["refund_half_usd"], "212.400000");
        assert_eq!(json["price_usd_per_hour"], "0.806944");
    });
    assert_eq!(scene.refused(), None);
    let mut poor = reserved_for(30);
    poor.order.budget = MicroUsd(575_999_999);
    assert_eq!(poor.refused(), Some(Code::BudgetTooSmall));
}

#[test]
fn a_time_past_what_the_host_promises_is_refused() {
    let mut scene = reserved_for(30);
    scene.offer.limits.until = Some(Timestamp(NOW.0 + 30 * 86_400_000));
    assert_eq!(scene.refused(), None);
    scene.offer.limits.until = Some(Timestamp(NOW.0 + 30 * 86_400_000 - 1));
    assert_eq!(scene.refused(), Some(Code::BeyondOffer));
    let mut short = Scene::of(Deal::OnDemand);
    short.offer.limits.duration_min = Seconds(7201);
    assert_eq!(short.refused(), Some(Code::BeyondOffer));
    short.offer.limits.duration_min = Seconds(7200);
    assert_eq!(short.refused(), None);
}

#[test]
fn what_the_broker_would_refuse_is_refused_before_signing() {
    let refused = |change: fn(&mut Scene)| {
        let mut scene = Scene::of(Deal::OnDemand);
        change(&mut scene);
        scene.refused()
    };
    assert_eq!(refused(|_| ()), None);
    assert_eq!(
        refused(|scene| scene.order.price_max = PricePerHour(406_943)),
        Some(Code::PriceAboveLimit)
    );
    let big = refused(|scene| {
        scene.order.disk = Bytes::from_gb(101);
        scene.order.price_max = PricePerHour(1_000_000);
    });
    assert_eq!(big, Some(Code::BeyondOffer));
    assert_eq!(
        refused(|scene| scene.order.duration_max = Some(Seconds(86_401))),
        Some(Code::BeyondOffer)
    );
    assert_eq!(
        refused(|scene| scene.order.cpu_millicores = Some(16_001)),
        Some(Code::BeyondOffer)
    );
    assert_eq!(
        refused(|scene| scene.order.ram = Some(Bytes((60 << 30) + 1))),
        Some(Code::BeyondOffer)
    );
    assert_eq!(
        refused(|scene| scene.image.size = Some(Bytes(50_000_000_001))),
        Some(Code::ImageTooBig)
    );
}

#[test]
fn a_bid_for_whatever_comes_says_so_when_nothing_is_there() {
    let mut order = order();
    order.target = Target::Any("gpu=h100 num_gpus=1".parse().unwrap());
    order.deal = Deal::Bid {
        limit: PricePerHour(2_000_000),
        until: Timestamp(NOW.0 + 86_400_000),
    };
    let (broker, image) = (broker(), image());
    let preview = Preview {
        order: &order,
        known: None,
        broker: &broker,
        image: &image,
        balance: None,
        matching: 0,
        now: NOW,
    };
    assert_eq!(preview.check(None), Ok(()));
    let lines = preview.object().lines;
    let value = |label: &str| lines.iter().find(|(l, _)| l == label).unwrap().1.clone();
    assert!(value("Offer").starts_with("any that comes to meet gpu_name=H100 num_gpus=1: none"));
    assert_eq!(value("Now"), "nothing that it could run on; the bid waits");
    assert_eq!(value("GPU"), "1 GPU");
    assert_eq!(preview.hold(), MicroUsd(2_000_000));
    assert_eq!(preview.object().json["offer"], json!(null));
}
