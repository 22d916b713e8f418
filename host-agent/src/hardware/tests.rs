//! All that the best-known market searches by, from a machine as it is measured to an offer's facts.

use super::seat::{Seat, Seats};
use super::sim::SimHardware;
use super::*;
use crate::core::bench::{Outcome, with_measures};
use crate::core::offer::offers;
use crate::core::slices::Divisibles;
use crate::core::tests::listing;
use protocol::filter::{Facts, Filter, Unfound, find_field};
use protocol::ids::HostId;
use protocol::machine::Quantity;
use protocol::terms::Need;
use protocol::units::Timestamp;

/// Two H100 on a board of two nodes, all of it measured.
fn measured() -> SimHardware {
    let mut here = SimHardware::without_gpu();
    let gpu = |number: u8| Gpu {
        model: Text::cut("NVIDIA H100 80GB HBM3"),
        uuid: Text::cut(&format!("GPU-{number}")),
        vram: Bytes(85_520_809_984),
        driver: Text::cut("570.124.06"),
        cuda: (12, 8),
        compute_capability: (9, 0),
        multiprocessors: 132,
        pci_address: Text::cut(&format!("0000:0{number}:00.0")),
        pcie_generation: 5,
        pcie_width: 16,
        power_limit_mw: 700_000,
        link_group: 1,
        links: 18,
        ..Gpu::unknown(protocol::machine::Vendor::Nvidia)
    };
    let seat = |node| Seat {
        numa_node: Some(node),
        temperature_max_c: Some(87),
    };
    let found = &mut here.measured;
    found.nvidia = Nvidia::Ready {
        driver: "570.124.06".to_owned(),
        gpus: vec![gpu(1), gpu(2)],
        troubled: Vec::new(),
        unreadable: 0,
    };
    found.seats = Seats::from([(Text::cut("GPU-1"), seat(0)), (Text::cut("GPU-2"), seat(1))]);
    found.system.name = "Ubuntu 24.04.1 LTS".to_owned();
    found.processor.mhz = 3725;
    found.numa_nodes = 2;
    found.mainboard = "Supermicro H12SSL-i".to_owned();
    found.toolkit = "1.17.8".to_owned();
    here
}

/// What benchmarks gave, of the machine and of either GPU.
fn outcomes() -> Vec<Outcome> {
    let one = |quantity, value, on: &str| Outcome {
        quantity,
        value,
        method: Text::cut("m"),
        version: 1,
        at: Timestamp(1),
        on: on.to_owned(),
        software: false,
    };
    let of_gpus = [
        (Quantity::Fp32, 60_000),
        (Quantity::Fp64, 30_000),
        (Quantity::Fp16Matrix, 700_000),
        (Quantity::GpuMemory, 3_000_000),
        (Quantity::HostToDevice, 52_000),
        (Quantity::PcieGeneration, 4),
        (Quantity::PcieLanes, 16),
    ];
    let mut all = vec![
        one(Quantity::DiskRead, 3_400, ""),
        one(Quantity::Upload, 900_000, "b"),
        one(Quantity::Download, 940_000, "b"),
    ];
    for gpu in ["GPU-1", "GPU-2"] {
        all.extend(of_gpus.map(|(quantity, value)| one(quantity, value, gpu)));
    }
    all
}

/// Each of Vast's 53 names, with what the offer of both GPUs has in it; nothing where no host can know it.
const VAST: [(&str, Option<&str>); 53] = [
    ("bw_nvlink", Some("bw_nvlink=900")),
    ("cluster_id", None),
    ("compute_cap", Some("compute_cap=900")),
    ("cpu_arch", Some("cpu_arch=amd64")),
    ("cpu_cores", Some("cpu_cores=8")),
    ("cpu_cores_effective", Some("cpu_cores_effective=8")),
    ("cpu_ghz", Some("cpu_ghz=3.725")),
    ("cpu_ram", Some("cpu_ram>=17.1")),
    ("cuda_vers", Some("cuda_vers=12.8")),
    ("datacenter", None),
    ("direct_port_count", None),
    ("disk_bw", Some("disk_bw=3400")),
    ("disk_space", Some("disk_space=100")),
    ("dlperf", None),
    ("dlperf_usd", None),
    ("dph", Some("dph=0.70")),
    ("driver_version", Some("driver_version=570.124.06")),
    ("duration", Some("duration>=30")),
    ("external", None),
    ("flops_usd", Some("flops_usd=171")),
    ("geolocation", None),
    ("gpu_arch", Some("gpu_arch=nvidia")),
    ("gpu_display_active", Some("gpu_display_active=false")),
    ("gpu_frac", Some("gpu_frac=1")),
    ("gpu_max_power", Some("gpu_max_power=700")),
    ("gpu_max_temp", Some("gpu_max_temp=87")),
    ("gpu_mem_bw", Some("gpu_mem_bw=3000")),
    ("gpu_name", Some("gpu_name=H100_SXM")),
    ("gpu_ram", Some("gpu_ram=80")),
    ("gpu_total_ram", Some("gpu_total_ram=160")),
    ("has_avx", Some("has_avx=true")),
    ("host_id", Some("host_id!=h-2222")),
    ("id", Some("id!=o-2222")),
    ("inet_down", Some("inet_down=940")),
    ("inet_down_cost", Some("inet_down_cost=0")),
    ("inet_up", Some("inet_up=900")),
    ("inet_up_cost", Some("inet_up_cost=0")),
    ("machine_id", Some("machine_id!=h-2222")),
    ("min_bid", Some("min_bid=0.1")),
    ("mobo_name", Some("mobo_name=H12SSL")),
    ("num_gpus", Some("num_gpus=2")),
    // Under load: card and slot could do the fifth.
    ("pci_gen", Some("pci_gen=4")),
    ("pcie_bw", Some("pcie_bw=52")),
    ("reliability", Some("reliability>0")),
    ("rentable", Some("rentable=true")),
    ("rented", Some("rented=false")),
    ("static_ip", None),
    ("storage_cost", Some("storage_cost=0.1")),
    ("total_flops", Some("total_flops=120")),
    ("ubuntu_version", Some("ubuntu_version=24.04.1")),
    ("verification", Some("verification=unverified")),
    ("verified", Some("verified=false")),
    ("vms_enabled", None),
];

#[test]
fn every_field_of_vasts_that_a_host_can_know_is_filled_in_its_unit() {
    let here = measured();
    let engine = EngineFacts {
        cpu_cores: 8,
        version: "28.2.2".to_owned(),
        runtime: "runc 1.2.8".to_owned(),
        ..EngineFacts::default()
    };
    let network = ContainerNetwork::Bridge;
    let machine = machine(&here.measured, here.disk.clone(), &engine, network);
    let host = HostId::from_bytes([9; 32]);
    let mut all = outcomes();
    all.extend(seat::said(&here.measured.seats));
    let listed = offers(host, &machine, &Divisibles::new(), &listing(&machine), &[]).unwrap();
    let listed = with_measures(listed, &all);
    assert_eq!(protocol::catalogue::plausible(&listed[0].offer), Ok(()));
    let facts = Facts::of(host, &listed[0].offer, 2);
    for (name, expression) in VAST {
        match (expression, find_field(name)) {
            (None, Err(Unfound::NotKnown(_))) => {}
            (Some(expression), Ok(_)) => {
                let filter: Filter = expression.parse().unwrap();
                let found = filter.prepare(Need::default()).matches(&facts);
                assert!(
                    found,
                    "{expression}: {:?}",
                    facts.fact(find_field(name).unwrap(), Need::default())
                );
            }
            (_, found) => panic!("{name}: {found:?}"),
        }
    }
    // Ours beside them.
    for expression in [
        "fp64=60",
        "fp16=1400",
        "numa=2",
        "disk_name=Simulated",
        "gpu_lanes=16",
    ] {
        let filter: Filter = expression.parse().unwrap();
        assert!(
            filter.prepare(Need::default()).matches(&facts),
            "{expression}"
        );
    }
}

#[test]
fn a_warmer_gpu_is_the_same_and_one_that_is_missing_is_not() {
    let amd = |temperature_c| AmdGpu {
        gpu: crate::core::tests::gpu("GPU-a"),
        render_minor: Some(128),
        numa_node: None,
        temperature_max_c: None,
        hive: None,
        partition: None,
        reading: amd::AmdReading {
            temperature_c,
            ..amd::AmdReading::default()
        },
    };
    let with = |amd: Vec<AmdGpu>| Measured {
        amd,
        ..SimHardware::without_gpu().measured
    };
    let cold = with(vec![amd(Some(40))]);
    assert!(cold.is_as(&with(vec![amd(Some(80))])));
    assert!(!cold.is_as(&with(Vec::new())));
    let mut other = cold.clone();
    other.toolkit = "1.18.0".to_owned();
    assert!(!cold.is_as(&other));
}

/// Nothing that a machine can tell is left as nobody knows it.
#[tokio::test]
async fn this_machine_tells_what_it_has() {
    let (here, _news) = this::ThisMachine::start(None);
    let found = here.measure().await.unwrap();
    assert!(found.processor.mhz > 0 || std::env::consts::ARCH != "x86_64");
    assert!(found.numa_nodes >= 1);
    assert_eq!(found.seats.len(), found.gpus().count());
    assert!(here.disk(Path::new("/")).unwrap().total.0 > 0);
}
