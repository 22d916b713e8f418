//! Leases and offers made up for tests.

pub(crate) mod offers;

use crate::view::Held;
use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, HostId, LeaseId, OfferId, OrderId, RenterId};
use protocol::job::PinnedImage;
use protocol::lease::{Access, LeaseView, Phase};
use protocol::terms::{ContractKind, Prices, Rates};
use protocol::units::{
    BasisPoints, Bytes, MicroUsd, Millis, PricePerGb, PricePerGbMonth, PricePerHour, Timestamp,
};
use protocol::usage::Amounts;

/// A lease whose ids are all of this byte: $0.40 an hour and 50 GB at $0.10 a month.
pub(crate) fn lease(byte: u8, name: &str, phase: Phase) -> Held {
    let view = LeaseView {
        id: LeaseId::from_bytes([byte; 16]),
        order: OrderId::from_bytes([byte; 16]),
        name: Text::new(name).unwrap(),
        renter: RenterId::from_bytes([1; 32]),
        place: Some((HostId::from_bytes([2; 32]), OfferId::from_bytes([3; 16]))),
        kind: ContractKind::OnDemand,
        bid: None,
        to_win: None,
        rests_until: None,
        gpu_count: 0,
        phase,
        since: Timestamp(1_796_047_364_103),
        progress: None,
        revision: 1,
        image: PinnedImage {
            name: Text::new("docker.io/library/debian").unwrap(),
            sha256: [4; 32],
        },
        gpus: List::default(),
        partition: None,
        cpu_millicores: 2000,
        ram: Bytes(4 << 30),
        disk: Bytes::from_gb(50),
        prices: prices(),
        rates: Rates::flat(prices().compute),
        term: None,
        fee: BasisPoints(300),
        ordered_at: Timestamp(1_796_047_360_000),
        started_at: None,
        running: Millis(0),
        charged: Amounts::default(),
        held: MicroUsd(0),
        budget: MicroUsd(5_000_000),
        duration_max: None,
        until: None,
        disk_until: None,
        low_balance: false,
        grant: None,
        access: Access::default(),
        container: None,
    };
    Held {
        broker: BrokerId::from_bytes([5; 32]),
        view,
    }
}

/// $0.40 an hour, $0.10 a GB and month, $0.01 a GB up, nothing down.
pub(crate) fn prices() -> Prices {
    Prices {
        compute: PricePerHour(400_000),
        storage: PricePerGbMonth(100_000),
        upload: PricePerGb(10_000),
        download: PricePerGb(0),
    }
}
