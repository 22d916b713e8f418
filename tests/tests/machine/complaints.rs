//! What users of other markets complain about of GPUs and their slices, and which test shows that it is not so here.
//!
//! | number | complaint | shown by |
//! | --- | --- | --- |
//! | 3.5 #81 | one lost GPU blocks all | `health::tests::threats::row_48…`, `agent/health` |
//! | 3.5 #82 | unhealthy for ever | `health::tests::cleaning::other_vendors_and_lost_gpus` |
//! | 3.5 #83 | health shared between GPUs | `health::tests::threats::health_is_kept_by_gpu` |
//! | 3.5 #84 | an unhealthy GPU is advertised | `threats`; `host-agent/tests/agent/faults.rs` |
//! | 3.5 #86, #87 | a model that is not known, memory by a wrong table | `protocol/src/catalogue/tests.rs`; here |
//! | 3.5 #88 | one attribute read as another | `protocol/tests/filter/hardware.rs` |
//! | 3.5 #89 | Xid 79 without event, withdrawal or credit | `host-agent/tests/agent`, `health::tests::threats` |
//! | 3.5 #91 | another vendor's GPU hides NVIDIA's | `protocol/tests/filter/hardware.rs`; `hardware/amd`; here |
//! | 3.5 #93 | functions that an older driver has not | here; `host-agent/tests/nvml/reading.rs` |
//! | 3.5 #94 | the library under one of its names alone | `host-agent/tests/nvml/reading.rs` |
//! | 3.9 #122 | a layout is lost with a reboot | `layouts` |
//! | 3.9 #123, #126 | who holds a GPU that is to be reset is not said | `health::reset::tests`; here |
//! | 3.9 #124 | a command that succeeds and makes nothing | here |
//! | 3.9 #127, #128 | a program sees one slice only | `client-cli/…/conditions/tests.rs`; `slices` |
//! | 3.9 #129 | two forms of a slice's UUID | here |
//! | 3.9 #131 | no use and memory by slice | here |
//! | 3.9 #132 | tables of profiles that are wrong | `protocol/src/catalogue/tests.rs` |
//! | 3.9 #133 | slices not listed | `protocol/tests/filter/hardware.rs`; `slices`; here |

use crate::play::{PRICE, SOON, check_money, ended, inside, rent_slice, rent_whole, try_slice};
use fake_nvml::loading::{MISSING_IN_R450, without};
use fake_nvml::models::Model;
use fake_nvml::scenario::{FakeProcess, FakeProcessKind, Misdeed};
use feira_tests::machine::{GpuMarket, Machine};
use feira_tests::programs::wait_for;
use host_agent::hardware::amd;
use host_agent::hardware::nvidia::Nvidia;
use host_agent::hardware::sim::SimHardware;
use protocol::machine::{Gpu, Vendor};
use std::io::{Read, Write};
use std::net::TcpStream;

// peers 3.5 #93: a driver that lacks newer functions is asked by the older ones, and its GPU is leased all the same.
#[test]
fn a_gpu_with_an_old_driver_is_leased() {
    let (mut machine, stage) = Machine::new(&[Model::A100]);
    machine.scenario.driver = Some("450.80.02".to_owned());
    machine.scenario.cuda = 11_000;
    machine.write();
    machine.library = without(stage.folder(), &MISSING_IN_R450).expect("an older library");
    let broker = stage.broker("broker", &[]);
    let renter = stage.renter("renter", &[&broker.address]);
    broker.deposit(&renter, "100");
    let _host = machine.host(&stage, &[&broker.address], &["--price", "1.20"]);
    renter.wait_for_goods(1);
    let lease = rent_whole(&renter, "old", "1");
    assert_eq!(lease["state"], "running", "{lease}");
    let _ = renter.feira(&["end", "old", "--yes"]).ok();
    let _ = renter.wait_for_phase("old", "ended", SOON);
    broker.check_ledger();
}

// peers 3.5 #86, #87: what no list knows is what its driver says, with the memory that the driver says.
#[test]
fn a_model_that_nobody_knows_is_sold_as_what_its_driver_says() {
    let (mut machine, stage) = Machine::new(&[Model::Rtx4090]);
    machine.scenario.gpus[0].name = "NVIDIA X9000 Prototype".to_owned();
    machine.scenario.gpus[0].memory = 31 << 30;
    machine.scenario.gpus[0].pci_device = 0xFFFF_10DE;
    machine.write();
    let broker = stage.broker("broker", &[]);
    let renter = stage.renter("renter", &[&broker.address]);
    let _host = machine.host(&stage, &[&broker.address], &["--price", "0.50"]);
    renter.wait_for_goods(1);
    let found = renter.goods(&[]).remove(0);
    assert_eq!(found["gpu_name"], "NVIDIA X9000 Prototype", "{found}");
    assert_eq!(found["gpus"][0]["vram_bytes"], 31_u64 << 30, "{found}");
}

// peers 3.9 #124: the driver says that it made a slice, and there is none: the lease fails with the reason, unbilled.
#[test]
fn a_slice_that_was_made_and_is_not_there_fails_its_lease() {
    let listing = ["--price", PRICE, "--partition-layout", "dynamic"];
    let mut all = GpuMarket::new(&[Model::H100], &listing, 0);
    all.renter()
        .wait_for_goods_of(&["--partition", "3g.40gb"], 1);
    let call = "nvmlGpuInstanceCreateComputeInstance";
    all.change(|scenario| scenario.fault(call, 0, Misdeed::Fails { code: 999 }));
    let refused = try_slice(all.renter(), "none", "3g.40gb");
    assert_ne!(refused.code, 0, "{refused}");
    check_money(&all, all.renter(), &[]);
    // And what was half made is not left standing in the way.
    all.change(|scenario| scenario.faults.clear());
    wait_for("the half-made slice to go", SOON, || {
        all.machine.slices(0).is_empty().then_some(())
    });
    let _ = rent_slice(all.renter(), "three", "3g.40gb");
    let cost = ended(&all, all.renter(), "three");
    check_money(&all, all.renter(), &[cost]);
}

// peers 3.9 #123: who holds the GPU is said, and it is not thrown off.
#[test]
fn a_gpu_that_somebody_uses_is_not_divided() {
    let (mut machine, stage) = Machine::new(&[Model::H100]);
    machine.scenario.gpus[0].processes.push(FakeProcess {
        pid: 4242,
        kind: FakeProcessKind::Compute,
        memory: 1 << 30,
        gpu_instance: None,
    });
    machine.write();
    let broker = stage.broker("broker", &[]);
    let renter = stage.renter("renter", &[&broker.address]);
    broker.deposit(&renter, "100");
    let listing = ["--price", PRICE, "--partition-layout", "dynamic"];
    let _host = machine.host(&stage, &[&broker.address], &listing);
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert!(!machine.is_divided(0));
    machine.scenario.gpus[0].processes.clear();
    machine.write();
    wait_for("it to be divided", SOON, || {
        machine.is_divided(0).then_some(())
    });
    renter.wait_for_goods_of(&["--partition", "1g.10gb"], 1);
}

// peers 3.9 #133: GPUs and slices of one machine are both shown, each where it is asked for.
#[test]
fn a_machine_shows_its_gpus_and_its_slices() {
    let listing = ["--price", PRICE, "--partition-layout", "0=dynamic"];
    let all = GpuMarket::new(&[Model::H100, Model::H100], &listing, 1);
    let renter = all.renter();
    renter.wait_for_goods_of(&["--partition", "3g.40gb"], 1);
    assert_eq!(renter.goods(&[]).len(), 1);
    let _ = rent_slice(renter, "three", "3g.40gb");
    let _ = rent_whole(renter, "whole", "1");
    let status = all.market.host.command(&["status"]).ok();
    let _ = status.says("3g.40gb").says("H100");
    let costs = ["three", "whole"].map(|name| ended(&all, renter, name));
    check_money(&all, renter, &costs);
}

// peers 3.9 #129: drivers before R470 have another form of a slice's UUID, and their slices are leased as others are.
#[test]
fn slices_of_older_drivers_have_another_form_of_uuid() {
    let (mut machine, stage) = Machine::new(&[Model::A100]);
    machine.scenario.driver = Some("465.19.01".to_owned());
    machine.scenario.cuda = 11_030;
    machine.write();
    let broker = stage.broker("broker", &[]);
    let renter = stage.renter("renter", &[&broker.address]);
    broker.deposit(&renter, "100");
    let listing = ["--price", "1.20", "--partition-layout", "dynamic"];
    let _host = machine.host(&stage, &[&broker.address], &listing);
    renter.wait_for_goods_of(&["--partition", "3g.20gb"], 1);
    for name in ["first", "second"] {
        let _ = rent_slice(&renter, name, "3g.20gb");
    }
    let (device, nodes) = inside(&renter, "second");
    let gpu = machine.uuid(0);
    // The second 3g is number 2.
    assert_eq!(device, format!("MIG-{gpu}/2/0"));
    assert_eq!(nodes, "nvidia-uvm nvidia0 nvidiactl");
    for name in ["first", "second"] {
        let _ = renter.feira(&["end", name, "--yes"]).ok();
        let _ = renter.wait_for_phase(name, "ended", SOON);
    }
    // They are cleaned, and end, under the same name.
    wait_for("the slices to go", SOON, || {
        machine.slices(0).is_empty().then_some(())
    });
    broker.check_ledger();
}

// peers 3.5 #91: every vendor's GPUs are looked for, and the graphics of a processor hide nobody's.
#[test]
fn gpus_of_all_vendors_are_found_beside_each_other() {
    let tree = |card: &[(&str, &str)]| {
        let root = tempfile::TempDir::new().expect("a folder");
        let device = root.path().join("bus/pci/devices/0000:63:00.0");
        for (name, text) in card {
            let path = device.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        amd::read(root.path(), "")
    };
    let card = [
        ("vendor", "0x1002\n"),
        ("device", "0x74a1\n"),
        ("class", "0x120000\n"),
        ("unique_id", "e1b2\n"),
        ("mem_info_vram_total", "206141652992\n"),
        ("drm/renderD128/dev", "226:128\n"),
    ];
    let of_amd = tree(&card);
    assert_eq!(of_amd.len(), 1);
    // What a processor has of its own: half a gigabyte of the machine's memory, and no number of its own.
    let inside = [
        ("vendor", "0x1002\n"),
        ("device", "0x164e\n"),
        ("class", "0x030000\n"),
        ("mem_info_vram_total", "536870912\n"),
        ("drm/renderD128/dev", "226:128\n"),
    ];
    assert_eq!(tree(&inside), []);
    let mut measured = SimHardware::without_gpu().measured;
    let of_nvidia = Gpu {
        vendor: Vendor::Nvidia,
        uuid: protocol::bounded::Text::cut("GPU-1"),
        ..of_amd[0].gpu.clone()
    };
    measured.nvidia = Nvidia::Ready {
        driver: "570.124.06".to_owned(),
        gpus: vec![of_nvidia],
        troubled: Vec::new(),
        unreadable: 0,
    };
    measured.amd = of_amd;
    let vendors: Vec<Vendor> = measured.gpus().map(|gpu| gpu.vendor).collect();
    assert_eq!(vendors, [Vendor::Nvidia, Vendor::Amd]);
}

/// A page that the agent shows at a loopback address.
#[track_caller]
fn page(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the agent's page");
    let ask = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).expect("the agent's page");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("the agent's page");
    page
}

// peers 3.9 #131: what is in the memory of each slice is in its own line; what no driver says of a slice is in none.
#[test]
fn slices_have_their_own_lines_among_the_metrics() {
    let listing = ["--price", PRICE, "--partition-layout", "dynamic"];
    let mut all = GpuMarket::new(&[Model::H100], &listing, 0);
    all.renter()
        .wait_for_goods_of(&["--partition", "3g.40gb"], 1);
    let _ = rent_slice(all.renter(), "three", "3g.40gb");
    all.change(|scenario| {
        scenario.gpus[0].processes.push(FakeProcess {
            pid: 4242,
            kind: FakeProcessKind::Compute,
            memory: 1 << 30,
            gpu_instance: Some(1),
        });
    });
    let status = all.market.host.command(&["status", "--json"]).ok().json();
    let address = status["metrics"].as_str().expect("an address");
    let address = address
        .trim_start_matches("http://")
        .trim_end_matches("/metrics");
    let slice = "GPU_I_PROFILE=\"3g.40gb\"";
    let line = |page: &str| {
        let mut lines = page.lines().filter(|line| line.contains(slice));
        lines
            .find(|line| line.starts_with("DCGM_FI_DEV_FB_USED"))
            .map(str::to_owned)
    };
    wait_for("its memory", SOON, || {
        let line = line(&page(address))?;
        line.ends_with(" 1024.0").then_some(())
    });
    let all_lines = page(address);
    assert!(all_lines.contains("DCGM_FI_DEV_GPU_UTIL{"), "{all_lines}");
    let mut of_slice = all_lines.lines().filter(|line| line.contains(slice));
    assert!(
        of_slice.all(|line| line.starts_with("DCGM_FI_DEV_FB_")),
        "{all_lines}"
    );
    all.change(|scenario| scenario.gpus[0].processes.clear());
    let cost = ended(&all, all.renter(), "three");
    check_money(&all, all.renter(), &[cost]);
}
