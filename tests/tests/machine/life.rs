//! A host of eight GPUs through a life: its driver comes late, it leases GPUs and slices at once, one GPU falls off the
//! bus, an error of memory costs one slice its lease and another all of a GPU, one GPU hangs, and the machine is booted
//! in the midst of it. Each lease ends for its own GPU alone, with the reason, and all money is accounted for.

use crate::play::{
    PRICE, SOON, check_money, ended, inside, rent_slice, rent_whole, stands, wait_to_stand,
};
use fake_nvml::models::Model;
use fake_nvml::scenario::Misdeed;
use feira_tests::machine::{GpuMarket, Machine};
use feira_tests::market::Market;
use feira_tests::programs::{run_within, wait_for};
use feira_tests::renter::{containers_of_lease, micro_usd};
use host_agent::clock::monotonic;
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// How soon what failed may not be offered any more.
const WITHDRAWN_MS: u64 = 5_000;
/// The GPUs that are cut into slices; the other six are whole.
const LAYOUT: &str = "0=dynamic;1=dynamic";

/// What a scene of this life needs to know of a lease.
struct Tenant {
    name: &'static str,
    /// What its container sees of GPUs.
    had: (String, String),
}

struct Life {
    all: GpuMarket,
    tenants: Vec<Tenant>,
    /// Of leases that are over, µ$.
    costs: Vec<i64>,
}

/// The driver is not there when the agent starts: nothing is offered, and everything is as soon as it is.
fn begins_before_its_driver() -> GpuMarket {
    let (mut machine, stage) = Machine::new(&[Model::H100; 8]);
    let broker = stage.broker("broker", &[]);
    let mut host = stage.unlisted_host("host", &[&broker.address]);
    machine.equip(&mut host);
    let listing = [
        "list",
        "--price",
        PRICE,
        "--storage",
        "0",
        "--partition-layout",
        LAYOUT,
    ];
    let _ = host.command(&listing).ok();
    machine.scenario.driver = None;
    machine.write();
    host.start();
    let renter = stage.renter("renter", &[&broker.address]);
    broker.deposit(&renter, "1000");
    std::thread::sleep(Duration::from_secs(4));
    assert!(renter.goods(&["num_gpus>=1"]).is_empty());
    machine.scenario.driver = Some("570.124.06".to_owned());
    machine.write();
    renter.wait_for_goods_of(&["num_gpus=6"], 1);
    for profile in ["2g.20gb", "3g.40gb", "7g.80gb"] {
        renter.wait_for_goods_of(&["--partition", profile], 1);
    }
    GpuMarket {
        machine,
        market: Market {
            broker,
            host,
            renter,
            deposit: 1_000_000_000,
            stage,
        },
    }
}

impl Life {
    /// Five leases of slices and GPUs at once.
    fn full() -> Self {
        let all = begins_before_its_driver();
        let renter = all.renter();
        // GPU 0 has a 3g and a 2g; GPU 1 a 4g, for which there is no room beside these, and a 3g.
        for (name, profile) in [
            ("s3", "3g.40gb"),
            ("s2", "2g.20gb"),
            ("t4", "4g.40gb"),
            ("t3", "3g.40gb"),
        ] {
            let _ = rent_slice(renter, name, profile);
        }
        wait_to_stand(&all, 0, &[(9, 4), (14, 0)]);
        wait_to_stand(&all, 1, &[(5, 0), (9, 4)]);
        let _ = rent_whole(renter, "w1", "1");
        let _ = rent_whole(renter, "w2", "2");
        let names = ["s3", "s2", "t4", "t3", "w1", "w2"];
        let tenants = names.map(|name| Tenant {
            name,
            had: inside(renter, name),
        });
        let tenants = Vec::from(tenants);
        assert_eq!(
            tenants[5].had.0.split(',').count(),
            2,
            "{:?}",
            tenants[5].had
        );
        // Three whole GPUs are left, and not four.
        renter.wait_for_goods_of(&["num_gpus=3"], 1);
        assert!(renter.goods(&["num_gpus=4"]).is_empty());
        Self {
            all,
            tenants,
            costs: Vec::new(),
        }
    }

    /// These leases stopped for their GPU's fault, with the error's number and why; all others go on as they were.
    #[track_caller]
    fn only_stopped(&mut self, names: &[&str], xid: &str) {
        let renter = self.all.renter();
        for name in names {
            let lease = renter.wait_for_phase(name, "stopped", SOON);
            let reason = lease["reason"].as_str().unwrap_or_default();
            assert!(
                reason.contains("GPU failed") && reason.contains(xid),
                "{lease}"
            );
            wait_for("its container to be killed", SOON, || {
                is_killed(&lease).then_some(())
            });
        }
        let (gone, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.tenants)
            .into_iter()
            .partition(|it| names.contains(&it.name));
        assert_eq!(gone.len(), names.len());
        self.tenants = left;
        for tenant in &self.tenants {
            assert_eq!(
                renter.lease(tenant.name)["state"],
                "running",
                "{}",
                tenant.name
            );
            assert_eq!(inside(renter, tenant.name), tenant.had);
        }
        // What ran is paid, and what is held goes back: no second is billed after the fault.
        for name in names {
            let stopped = micro_usd(&renter.lease(name)["charged_usd"]);
            let cost = ended(&self.all, renter, name);
            assert_eq!(cost, stopped, "{name}");
            self.costs.push(cost);
        }
    }
}

fn is_killed(lease: &Value) -> bool {
    let id = lease["id"].as_str().expect("an id");
    let mut list = Command::new("docker");
    list.args(["ps", "-q", "--filter", &format!("label=feira.lease={id}")]);
    run_within(&mut list, SOON).ok().out.is_empty()
}

/// Waits until a search finds nothing, and asserts how long that took.
#[track_caller]
fn withdrawn(all: &GpuMarket, since: u64, conditions: &[&str], within: u64) {
    wait_for("an offer to be withdrawn", SOON, || {
        all.renter().goods(conditions).is_empty().then_some(())
    });
    let took = monotonic().0 - since;
    assert!(
        took <= within,
        "{conditions:?} were offered for {took} ms after the fault"
    );
}

/// An error of memory that the driver contained: the lease of that slice, and not that of its neighbour.
fn a_slice_has_an_error(life: &mut Life) {
    // The driver numbers instances: the first 3g of a GPU is 1.
    life.all
        .change(|scenario| scenario.xid(0, 94, Some((1, 0))));
    life.only_stopped(&["s3"], "Xid 94");
}

/// One that it did not contain: all of the GPU, and nothing of the others. It is reset, and leased again.
fn a_gpu_has_an_error(life: &mut Life) {
    life.all.change(|scenario| {
        scenario.gpus[1].recovery = Some(1);
        scenario.xid(1, 95, None);
    });
    life.only_stopped(&["t4", "t3"], "Xid 95");
    wait_for("a reset of that GPU", SOON, || {
        life.all
            .machine
            .resets()
            .contains("00000000:15:00.0")
            .then_some(())
    });
    let told = life.all.machine.resets();
    // As often as the driver says that it is needed; of that GPU alone.
    let is_of_it = |line: &str| line.contains("00000000:15:00.0");
    assert!(told.lines().all(is_of_it), "{told}");
    life.all
        .change(|scenario| scenario.gpus[1].recovery = Some(0));
    wait_to_stand(&life.all, 1, &[]);
    life.all
        .renter()
        .wait_for_goods_of(&["--partition", "7g.80gb"], 1);
}

/// It falls off the bus. peers 3.5 #81, #84, #89: the others go on, it is told, withdrawn, and its lease credited.
fn a_gpu_falls_off_the_bus(life: &mut Life) {
    let lease = life.all.renter().lease("w1");
    let uuid = lease["gpus"][0]["uuid"].as_str().expect("a GPU").to_owned();
    life.all.change(|scenario| {
        let at = scenario
            .gpus
            .iter()
            .position(|gpu| gpu.uuid == uuid)
            .expect("that GPU");
        scenario.xid(at, 79, None);
        scenario.gpus[at].present = false;
    });
    life.only_stopped(&["w1"], "Xid 79");
    // It is not free again though nobody has it: there are still three.
    std::thread::sleep(Duration::from_secs(5));
    life.all.renter().wait_for_goods_of(&["num_gpus=3"], 1);
    assert!(life.all.renter().goods(&["num_gpus=4"]).is_empty());
}

/// A GPU that nobody has makes its driver hang: it is withdrawn, and whoever works on the others does not notice. With
/// another GPU gone already, the machine takes no more leases.
fn a_gpu_hangs(life: &mut Life) {
    let milliseconds = 3_600_000;
    let free = free_gpu(life);
    let since = monotonic().0;
    life.all
        .change(|scenario| scenario.fault("*", free, Misdeed::Hangs { milliseconds }));
    // It is asked every 2 s and has 2 s to answer.
    withdrawn(&life.all, since, &["num_gpus=3"], WITHDRAWN_MS + 2_000);
    let charged = |life: &Life| micro_usd(&life.all.renter().lease("w2")["charged_usd"]);
    let before = charged(life);
    wait_for("the others to be metered", SOON, || {
        (charged(life) > before).then_some(())
    });
    life.only_stopped(&[], "");
}

/// A whole GPU that nobody has.
fn free_gpu(life: &Life) -> usize {
    let lease = life.all.renter().lease("w2");
    let taken = lease["gpus"].to_string();
    let gpus = &life.all.machine.scenario.gpus;
    let free = (2..8).find(|at| gpus[*at].present && !taken.contains(&gpus[*at].uuid));
    free.expect("a free GPU")
}

/// Power is gone and comes back, the driver late. What was leased is stopped, resumes where it was, and the GPU that
/// was off the bus is there again.
fn the_machine_is_booted(life: &mut Life) {
    life.all.market.host.kill();
    for tenant in &life.tenants {
        let lease = life.all.renter().lease(tenant.name);
        for container in containers_of_lease(lease["id"].as_str().expect("an id")) {
            let mut kill = Command::new("docker");
            kill.args(["kill", &container]);
            let _ = run_within(&mut kill, SOON).ok();
        }
    }
    let scenario = &mut life.all.machine.scenario;
    scenario.faults.clear();
    scenario.starts_too_early = 2;
    for gpu in &mut scenario.gpus {
        gpu.present = true;
    }
    life.all.machine.boot(&mut life.all.market.host);
    life.all.market.host.start();
    let renter = life.all.renter();
    for tenant in &life.tenants {
        let _ = renter.wait_for_phase(tenant.name, "stopped", SOON);
        wait_for("it to be resumed", SOON, || {
            (renter.feira(&["resume", tenant.name]).code == 0).then_some(())
        });
        let _ = renter.wait_for_phase(tenant.name, "running", SOON);
        assert_eq!(inside(renter, tenant.name), tenant.had);
    }
    assert_eq!(stands(&life.all, 0), [(14, 0)]);
    // w2 has two of six.
    renter.wait_for_goods_of(&["num_gpus=4"], 1);
}

#[test]
fn eight_gpus_through_a_life() {
    let mut life = Life::full();
    a_slice_has_an_error(&mut life);
    a_gpu_has_an_error(&mut life);
    a_gpu_falls_off_the_bus(&mut life);
    a_gpu_hangs(&mut life);
    the_machine_is_booted(&mut life);
    let mut costs = std::mem::take(&mut life.costs);
    for tenant in &life.tenants {
        costs.push(ended(&life.all, life.all.renter(), tenant.name));
    }
    assert_eq!(costs.len(), 6);
    life.all.renter().wait_for_goods_of(&["num_gpus=6"], 1);
    check_money(&life.all, life.all.renter(), &costs);
    let replayed = life.all.broker().command(&["replay", "--json"]).ok();
    assert!(replayed.json()["ledger"].is_object());
}
