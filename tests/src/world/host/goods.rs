//! A host's machine, and what it sells of it.

use super::super::clock;
use host_agent::core::offer::Listing;
use host_agent::core::slices::policy::SlicePolicy;
use protocol::bounded::{List, Text};
use protocol::machine::{ContainerNetwork, Gpu, Machine, Vendor};
use protocol::offer::Chunks;
use protocol::terms::{Limits, Prices, Sales};
use protocol::units::{BasisPoints, Bytes, PricePerGb, PricePerGbMonth, PricePerHour, Seconds};
use rand::RngExt;
use rand::rngs::StdRng;

pub(super) fn machine(index: usize, gpus: u16) -> Machine {
    let gpu = |place: u16| Gpu {
        model: Text::cut("NVIDIA GeForce RTX 4090"),
        uuid: Text::cut(&format!("GPU-{index}-{place:02}")),
        vram: Bytes(24 << 30),
        driver: Text::cut("570.124.06"),
        cuda: (12, 8),
        compute_capability: (8, 9),
        pcie_generation: 4,
        pcie_width: 16,
        power_limit_mw: 450_000,
        ..Gpu::unknown(Vendor::Nvidia)
    };
    Machine {
        cpu_model: Text::cut("EPYC"),
        architecture: Text::cut("x86_64"),
        cpu_cores: 64,
        has_avx: true,
        ram: Bytes::from_gb(256),
        disk_total: Bytes::from_gb(4000),
        disk_free: Bytes::from_gb(4000),
        disk_enforced: true,
        system: Text::cut("Debian GNU/Linux 12"),
        kernel: Text::cut("6.1.0"),
        engine: Text::cut("20.10.24"),
        runtime: Text::cut("runc 1.1.5"),
        network: ContainerNetwork::Bridge,
        gpus: List::first((0..gpus).map(gpu)),
        ..Machine::unknown()
    }
}

pub(super) fn listing(machine: &Machine, random: &mut StdRng) -> Listing {
    let ask = random.random_range(200_000..600_000);
    Listing {
        resources: List::first(machine.gpus.iter().map(|gpu| gpu.uuid.clone())),
        chunks: if random.random_bool(0.5) {
            Chunks::Any
        } else {
            Chunks::PowersOfTwo
        },
        gpus_min: 1,
        prices: Prices {
            compute: PricePerHour(ask),
            storage: PricePerGbMonth(100_000),
            upload: PricePerGb(10_000),
            download: PricePerGb(5_000),
        },
        sales: Sales {
            floor: Some(PricePerHour(ask / 4)),
            discount_max: Some(BasisPoints(4000)),
        },
        limits: Limits {
            start_within: Seconds(900),
            duration_min: Seconds(0),
            duration_max: None,
            until: None,
            stop_grace: Seconds(10),
            notice: Seconds(120),
            disk_max: Bytes::from_gb(2000),
        },
        network: ContainerNetwork::Bridge,
        cpu_millicores: 64_000,
        ram: Bytes::from_gb(240),
        listed_at: clock(0),
        slices: SlicePolicy::default(),
    }
}
