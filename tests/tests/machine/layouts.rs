//! How GPUs are cut over time: fixed layouts that an owner changes, restarts of the agent, reboots, and the plan.

use crate::play::{
    ONE, PRICE, SOON, THREE, TWO, check_money, ended, inside, rent_slice, stands, wait_to_stand,
};
use fake_nvml::models::Model;
use feira_tests::machine::GpuMarket;
use feira_tests::programs::{run_within, wait_for};
use feira_tests::renter::{Renter, containers_of_lease};
use serde_json::json;
use std::process::Command;

fn dynamic() -> GpuMarket {
    let listing = ["--price", PRICE, "--partition-layout", "dynamic"];
    let all = GpuMarket::new(&[Model::H100], &listing, 0);
    all.renter()
        .wait_for_goods_of(&["--partition", "3g.40gb"], 1);
    all
}

/// A 3g and a 1g that run.
fn two_run(renter: &Renter) {
    let _ = rent_slice(renter, "three", "3g.40gb");
    let _ = rent_slice(renter, "one", "1g.10gb");
}

/// A fixed layout stands before anybody leases any of it. Another one takes its place as far as nothing is leased.
#[test]
fn a_fixed_layout_stands_and_is_changed_around_what_is_leased() {
    let layout = "3g.40gb,2g.20gb,1g.10gb,1g.10gb";
    let listing = ["--price", PRICE, "--partition-layout", layout];
    let all = GpuMarket::new(&[Model::H100], &listing, 0);
    let renter = all.renter();
    // The largest first, each as high as it fits.
    wait_to_stand(&all, 0, &[(THREE, 4), (TWO, 2), (ONE, 1), (ONE, 0)]);
    for profile in ["3g.40gb", "2g.20gb", "1g.10gb"] {
        renter.wait_for_goods_of(&["--partition", profile], 1);
    }
    renter.wait_for_goods_of(&["--partition", "4g.40gb"], 0);
    let plan = all.market.host.command(&["mig", "plan"]);
    assert_ne!(plan.code, 0, "{plan}");
    let _ = plan.says("dynamic layout");

    let _ = rent_slice(renter, "three", "3g.40gb");
    let seven = ["1g.10gb"; 7].join(",");
    let _ = all
        .market
        .host
        .command(&["list", "--partition-layout", &seven])
        .ok();
    wait_to_stand(
        &all,
        0,
        &[(THREE, 4), (ONE, 0), (ONE, 1), (ONE, 2), (ONE, 3)],
    );
    let three = renter.lease("three");
    assert_eq!(three["state"], "running", "{three}");
    let cost = ended(&all, renter, "three");
    let ones: Vec<(u32, u32)> = (0..7).map(|start| (ONE, start)).collect();
    wait_to_stand(&all, 0, &ones);
    check_money(&all, renter, &[cost]);
}

/// The agent that starts again finds its slices, makes none anew and ends none; the containers never noticed.
#[test]
fn slices_are_adopted_when_the_agent_starts_again() {
    let mut all = dynamic();
    two_run(all.renter());
    let seen = |all: &GpuMarket| {
        ["three", "one"].map(|name| {
            let started = all.renter().lease(name)["started_at"].clone();
            (started, inside(all.renter(), name))
        })
    };
    let before = seen(&all);
    all.restart_host();
    all.renter()
        .wait_for_goods_of(&["--partition", "2g.20gb"], 1);
    let after = seen(&all);
    assert_eq!(before, after);
    assert_eq!(stands(&all, 0), [(THREE, 4), (ONE, 0)]);
    assert!(!all.market.host.log().contains("the driver refuses"));
    let costs = ["three", "one"].map(|name| ended(&all, all.renter(), name));
    wait_to_stand(&all, 0, &[]);
    check_money(&all, all.renter(), &costs);
}

/// Containers end with the machine, as at a power cut.
fn end_containers(renter: &Renter, names: &[&str]) {
    for name in names {
        let id = renter.lease(name)["id"].as_str().expect("an id").to_owned();
        for container in containers_of_lease(&id) {
            let mut kill = Command::new("docker");
            kill.args(["kill", &container]);
            let _ = run_within(&mut kill, SOON).ok();
        }
    }
}

// peers 3.9 #122: a layout is lost with a reboot in the driver, and not in the agent.
#[test]
fn slices_are_made_again_after_a_reboot() {
    let mut all = dynamic();
    two_run(all.renter());
    let before = inside(all.renter(), "three");
    all.market.host.kill();
    end_containers(all.renter(), &["three", "one"]);
    all.machine.boot(&mut all.market.host);
    assert_eq!(stands(&all, 0), []);
    all.market.host.start();
    let renter = all.renter();
    for name in ["three", "one"] {
        let _ = renter.wait_for_phase(name, "stopped", SOON);
        // What it had is cleaned first.
        wait_for("it to be resumed", SOON, || {
            (renter.feira(&["resume", name]).code == 0).then_some(())
        });
        let _ = renter.wait_for_phase(name, "running", SOON);
    }
    // The same places and devices as before.
    assert_eq!(stands(&all, 0), [(THREE, 4), (ONE, 0)]);
    assert_eq!(inside(renter, "three"), before);
    let costs = ["three", "one"].map(|name| ended(&all, renter, name));
    check_money(&all, renter, &costs);
}

/// The same for a fixed layout, of which nothing is leased: it stands again by itself.
#[test]
fn a_fixed_layout_stands_again_after_a_reboot() {
    let listing = ["--price", PRICE, "--partition-layout", "3g.40gb,3g.40gb"];
    let mut all = GpuMarket::new(&[Model::H100], &listing, 0);
    wait_to_stand(&all, 0, &[(THREE, 0), (THREE, 4)]);
    all.market.host.kill();
    all.machine.boot(&mut all.market.host);
    all.market.host.start();
    wait_to_stand(&all, 0, &[(THREE, 0), (THREE, 4)]);
}

/// `feira-host mig plan` says how the GPUs are cut and how they should be, and changes nothing.
#[test]
fn the_plan_shows_what_stands_and_what_is_leased() {
    let all = dynamic();
    let _ = rent_slice(all.renter(), "three", "3g.40gb");
    wait_to_stand(&all, 0, &[(THREE, 4)]);
    let plan = all
        .market
        .host
        .command(&["mig", "plan", "--json"])
        .ok()
        .json();
    assert_eq!(plan["schema"], "feira.host-mig-plan/1");
    let gpu = &plan["gpus"][0];
    assert_eq!(gpu["gpu"], all.machine.uuid(0), "{plan}");
    assert!(gpu["today"].to_string().contains("3g.40gb"), "{plan}");
    assert!(gpu["proposed"].to_string().contains("3g.40gb"), "{plan}");
    // A GPU that stands as it is for a lease of an hour ago is not worth cutting anew.
    assert_eq!(plan["is_worth"], json!(false), "{plan}");
    let said = all.market.host.command(&["mig", "plan"]).ok();
    let _ = said.says("today").says("left as it is");
    assert_eq!(stands(&all, 0), [(THREE, 4)]);
    let cost = ended(&all, all.renter(), "three");
    wait_for("its slice to go", SOON, || {
        stands(&all, 0).is_empty().then_some(())
    });
    check_money(&all, all.renter(), &[cost]);
}
