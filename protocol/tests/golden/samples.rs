//! One small value of every message and statement: fixed, made of bytes that are easy to find in a dump.
//!
//! Every variant of every enum that crosses the wire is here; the matches in `names` do not compile when one
//! is added and not named.

pub(crate) use super::money::{AMOUNTS, BALANCE, EARNINGS, TERM, account_statement, receipt};
use crate::sample::{
    BROKER, cpu_offer, gpu_offer, host, host_key, list, pair_offer, rtx_4090, text,
};
use protocol::cost::{Fraction, JobProfile, Precision, Rate, Work};
use protocol::filter::{Elimination, parse_sort};
use protocol::ids::{BootId, Digest, LeaseId, MessageId, OfferId, OrderId, PublicKey, RenterId};
use protocol::job::{Job, PinnedImage, Variable};
use protocol::lease::{
    Access, Award, ContainerState, Goal, Grant, LeaseGoal, LeaseView, Meters, Phase, Progress,
    Refusal, RefusalReason, Report, Stage, Want,
};
use protocol::message::{Announcement, BrokerInfo, Found, FoundOffer, Search};
use protocol::offer::Part;
use protocol::order::{LeaseAction, LeaseCommand, Order, Target};
use protocol::signed::{Envelope, Signed, Statement};
use protocol::terms::{ContractKind, Deal, Need, Rates};
use protocol::tunnel::{Exec, Logs, Purpose, Terminal, TunnelRequest, WindowSize};
use protocol::units::{BasisPoints, Bytes, MicroUsd, Millis, PricePerHour, Seconds, Timestamp};
use protocol::verify::VerificationLevel;
use std::num::{NonZeroU16, NonZeroU64};

pub(crate) const LEASE: LeaseId = LeaseId::from_bytes([0x1e; 16]);
pub(crate) const AUDIENCE: PublicKey = PublicKey::from_bytes([0xaa; 32]);
pub(crate) const MESSAGE: MessageId = MessageId::from_bytes([0x3d; 16]);
/// 2026-11-30T14:02:44Z.
pub(crate) const ISSUED: Timestamp = Timestamp(1_796_047_364_000);

const ORDER: OrderId = OrderId::from_bytes([0x0d; 16]);
pub(crate) const OFFER: OfferId = OfferId::from_bytes([0x0f; 16]);
pub(crate) const RENTER: RenterId = RenterId::from_bytes([0x7e; 32]);

pub(crate) fn digest(byte: u8) -> Digest {
    Digest::from_bytes([byte; 32])
}

pub(crate) fn signed<T: Statement>(body: T) -> Signed<T> {
    let envelope = Envelope {
        audience: AUDIENCE,
        message_id: MESSAGE,
        issued: ISSUED,
        validity: Seconds(90),
    };
    Signed::sign(body, &host_key(), envelope)
        .unwrap()
        .signed()
        .clone()
}

pub(crate) fn image() -> PinnedImage {
    PinnedImage {
        name: text("docker.io/library/debian"),
        sha256: [0x1a; 32],
    }
}

pub(crate) fn order() -> Order {
    Order {
        id: ORDER,
        target: Target::Offer {
            offer: OFFER,
            terms: digest(0x7d),
        },
        deal: Deal::OnDemand,
        gpus: 1,
        cpu_millicores: Some(8000),
        ram: None,
        name: text("brave-otter"),
        job: Job {
            image: image(),
            entrypoint: None,
            command: Some(list(vec![text("sleep"), text("60")])),
            environment: list(vec![Variable {
                name: text("A"),
                value: text("b"),
            }]),
        },
        disk: Bytes::from_gb(60),
        price_max: PricePerHour(400_000),
        budget: MicroUsd(5_000_000),
        duration_max: Some(Seconds(7200)),
        access: list(vec![AUDIENCE]),
    }
}

pub(crate) const fn lease_command() -> LeaseCommand {
    LeaseCommand {
        lease: LEASE,
        action: LeaseAction::End,
    }
}

fn part() -> Part {
    Part {
        resources: list(vec![text("GPU-1")]),
        cpu_millicores: 8000,
        ram: Bytes(128_000_000_000),
        shared_memory: Bytes(64_000_000_000),
    }
}

pub(crate) fn award() -> Award {
    Award {
        lease: LEASE,
        order: digest(0x01),
        offer: (OFFER, digest(0x7d)),
        kind: ContractKind::OnDemand,
        part: part(),
        renter: RENTER,
        host: host(),
        prices: gpu_offer().prices,
        fee: BasisPoints(300),
        number: 42,
        matched_at: ISSUED,
    }
}

pub(crate) fn grant() -> Grant {
    Grant {
        lease: LEASE,
        order: digest(0x01),
        award: digest(0x02),
        resources: list(vec![(text("GPU-1"), 9)]),
    }
}

pub(crate) const fn refusal() -> Refusal {
    Refusal {
        lease: LEASE,
        reason: RefusalReason::Taken,
    }
}

pub(crate) const METERS: Meters = Meters {
    running: Millis(60_000),
    uploaded: Bytes(1),
    downloaded: Bytes(2),
};

pub(crate) const fn report() -> Report {
    Report {
        lease: LEASE,
        sequence: 3,
        boot: BootId::from_bytes([0xb7; 16]),
        run: 1,
        state: ContainerState::Running,
        meters: METERS,
    }
}

pub(crate) fn exec() -> Exec {
    Exec {
        command: list(vec![text("nvidia-smi"), text("-L")]),
        terminal: Some(Terminal {
            kind: text("xterm"),
            size: WindowSize {
                rows: 24,
                columns: 80,
            },
        }),
        environment: list(vec![]),
    }
}

pub(crate) const LOGS: Logs = Logs {
    follow: true,
    since: Some(ISSUED),
    tail: Some(100),
    timestamps: false,
};

pub(crate) fn tunnel_request() -> TunnelRequest {
    TunnelRequest {
        lease: LEASE,
        purpose: Purpose::Exec(exec()),
    }
}

pub(crate) fn search() -> Search {
    Search {
        filter: "gpu=rtx4090 price<0.4 cuda>=12.4 has_avx=true gpus in [1,2]"
            .parse()
            .unwrap(),
        sort: parse_sort("price,num_gpus-").unwrap(),
        need: Need {
            disk: Bytes::from_gb(60),
            upload: Bytes(1),
            download: Bytes(2),
        },
        kind: ContractKind::Interruptible,
        limit: 20,
        job: Some(job_profile()),
    }
}

pub(crate) fn job_profile() -> JobProfile {
    JobProfile {
        work: Work {
            gigaflops: NonZeroU64::new(2_400_000_000),
            precision: Precision::Quarter,
            memory_megabytes: NonZeroU64::new(16_000),
            units: NonZeroU64::new(1_000_000),
            rates: list(vec![Rate {
                gpu: text("RTX 4090"),
                milliunits_per_second: NonZeroU64::MIN,
            }]),
        },
        gpus_max: NonZeroU16::new(2),
        scaling: Fraction::new(9000).ok(),
        compute_efficiency: Fraction::new(4500).ok(),
        memory_efficiency: None,
        image: Bytes(1),
        data: Bytes(2),
        load: Bytes(3),
        checkpoint: Some(Bytes(4)),
        upload: Bytes(5),
        disk: Bytes::from_gb(60),
    }
}

pub(crate) fn announcement() -> Announcement {
    Announcement {
        offers: list(vec![signed(gpu_offer())]),
        addresses: list(vec![text("/ip4/203.0.113.7/tcp/7700")]),
        withheld: list(vec![text("GPU-1b2c/1g.10gb@6+1")]),
    }
}

pub(crate) const fn progress() -> Progress {
    Progress {
        lease: LEASE,
        stage: Stage::Pulling,
        done: Bytes(3),
        total: Bytes(7),
    }
}

pub(crate) fn broker_info() -> BrokerInfo {
    BrokerInfo {
        broker: BROKER,
        name: text("eu1"),
        fee: BasisPoints(300),
        now: ISSUED,
        offers: 2,
        version: text("0.1.0"),
    }
}

pub(crate) fn found() -> Found {
    Found {
        offers: list(vec![FoundOffer {
            offer: signed(pair_offer()),
            gpus: 2,
            price: PricePerHour(151_500),
            pushes_out: true,
            reliability: 600_000,
            hazard: 27_777_778,
            verification: VerificationLevel::Unverified,
        }]),
        matching: 1,
        of: 2,
        eliminated: list(vec![Elimination {
            term: 1,
            eliminated: 2,
            without_it: 1,
            cheapest: Some(MicroUsd(318_000)),
        }]),
        nearest: Some(FoundOffer {
            offer: signed(cpu_offer()),
            gpus: 0,
            price: PricePerHour(20_000),
            pushes_out: false,
            reliability: 985_170,
            hazard: 627_309,
            verification: VerificationLevel::Unverified,
        }),
        rented: 7,
    }
}

pub(crate) fn lease_view() -> LeaseView {
    LeaseView {
        id: LEASE,
        order: ORDER,
        name: text("brave-otter"),
        renter: RENTER,
        place: Some((host(), OFFER)),
        kind: ContractKind::Interruptible,
        bid: Some(PricePerHour(150_000)),
        to_win: Some(PricePerHour(151_500)),
        rests_until: Some(ISSUED),
        gpu_count: 1,
        phase: Phase::Running,
        since: ISSUED,
        progress: Some(progress()),
        revision: 5,
        image: image(),
        gpus: list(vec![rtx_4090()]),
        partition: None,
        cpu_millicores: 32_000,
        ram: Bytes(128_000_000_000),
        disk: Bytes::from_gb(60),
        prices: gpu_offer().prices,
        rates: Rates::flat(PricePerHour(150_000)),
        term: Some(TERM),
        fee: BasisPoints(300),
        ordered_at: ISSUED,
        started_at: None,
        running: Millis(60_000),
        charged: AMOUNTS,
        held: MicroUsd(326_333),
        budget: MicroUsd(5_000_000),
        duration_max: None,
        until: Some(Timestamp(1_800_000_000_000)),
        disk_until: None,
        low_balance: false,
        grant: Some(signed(grant())),
        access: Access {
            addresses: list(vec![text("/ip4/203.0.113.7/tcp/7700")]),
        },
        container: Some(ContainerState::Running),
    }
}

pub(crate) fn goal() -> Goal {
    Goal {
        sequence: 6,
        started_at: ISSUED,
        leases: list(vec![LeaseGoal {
            lease: LEASE,
            order: signed(order()),
            award: signed(award()),
            want: Want::Run(1),
        }]),
    }
}
