//! How GPUs are cut over time: fixed layouts that an owner changes, restarts of the agent, and reboots.

use crate::play::{
    ONE, PRICE, THREE, TWO, check_money, ended, inside, rent_slice, stands, wait_to_stand,
};
use fake_nvml::models::Model;
use feira_tests::machine::GpuMarket;
use feira_tests::renter::Renter;

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

// peers 3.9 #122: a layout is lost with a reboot in the driver, and not in the agent: it stands again by itself.
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
