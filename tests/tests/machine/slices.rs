//! Slices as goods of their own: found, priced by the rule, cut when they are leased, in the container, ended, paid.

use crate::play::{
    ONE, PRICE, SOON, THREE, check_money, ended, inside, rent_slice, stands, try_slice,
    wait_to_stand,
};
use fake_nvml::models::Model;
use feira_tests::machine::GpuMarket;
use feira_tests::programs::wait_for;
use feira_tests::renter::micro_usd;
use serde_json::json;

/// One H100 that is cut into what is asked for.
fn dynamic(more: &[&str]) -> GpuMarket {
    let listing = ["--price", PRICE, "--partition-layout", "dynamic"];
    GpuMarket::new(&[Model::H100], &[&listing[..], more].concat(), 0)
}

/// `feira search` on an H100 at $2.25 with 15 % on top: the worked example of the rule for prices of slices.
#[test]
fn every_profile_has_its_price_by_the_rule() {
    let all = dynamic(&[]);
    let renter = all.renter();
    for (profile, price) in [
        ("1g.10gb", "0.323438"),
        ("1g.20gb", "0.646875"),
        ("2g.20gb", "0.646875"),
        ("3g.40gb", "1.293750"),
        ("4g.40gb", "1.293750"),
        ("7g.80gb", "2.250000"),
    ] {
        renter.wait_for_goods_of(&["--partition", profile], 1);
        let found = renter.goods(&["--partition", profile]).remove(0);
        assert_eq!(found["contract_usd_per_hour"], price, "{profile}");
        assert_eq!(found["partition"]["profile"], profile);
        assert_eq!(found["isolation"], "hardware");
    }
    let three = renter.goods(&["--partition", "3g.40gb"]).remove(0);
    assert_eq!(three["partition"]["multiprocessors"], 60);
    assert_eq!(three["partition"]["multiprocessors_of_gpu"], 132);
    assert_eq!(three["partition"]["memory_slices"], 4);
    // Slices are found by whoever asks for them, and by nobody else.
    assert!(renter.goods(&[]).is_empty());
    // Several for one program are refused with the reason.
    let two = renter.feira(&["search", "--partition", "3g.40gb", "--gpus", "2"]);
    let _ = two.code(2).says("--partition");
}

#[test]
fn a_slice_is_cut_for_its_lease_and_goes_with_it() {
    let all = dynamic(&["--storage", "0.72"]);
    all.renter()
        .wait_for_goods_of(&["--partition", "3g.40gb"], 1);
    assert_eq!(stands(&all, 0), []);
    let renter = all.renter();
    let three = rent_slice(renter, "three", "3g.40gb");
    assert_eq!(three["partition"]["profile"], "3g.40gb");
    assert_eq!(three["compute_usd_per_hour"], "1.293750");
    // The place that costs the least of what others could still have.
    assert_eq!(stands(&all, 0), [(THREE, 4)]);
    let _ = rent_slice(renter, "one", "1g.10gb");
    wait_to_stand(&all, 0, &[(ONE, 0), (THREE, 4)]);

    // Each container has its slice and sees one GPU; the numbers are the driver's: a 3g is 1, a 1g is 7.
    let nodes = "nvidia-uvm nvidia0 nvidiactl".to_owned();
    let three_is = "MIG-00000001-0000-5000-8000-000000000000".to_owned();
    let one_is = "MIG-00000007-0000-5000-8000-000000000000".to_owned();
    assert_eq!(inside(renter, "three"), (three_is, nodes.clone()));
    assert_eq!(inside(renter, "one"), (one_is, nodes));

    // What there is no room for is refused, and costs nothing: 3 + 1 of 8 memory slices are taken, 7g wants all.
    let refused = try_slice(renter, "seven", "7g.80gb");
    assert_ne!(refused.code, 0, "{refused}");

    // The first goes, its neighbour stays as it is.
    let started = renter.lease("one")["started_at"].clone();
    let cost = ended(&all, renter, "three");
    wait_to_stand(&all, 0, &[(ONE, 0)]);
    let one = renter.lease("one");
    assert_eq!(
        (&one["state"], &one["started_at"]),
        (&json!("running"), &started)
    );
    renter.wait_for_goods_of(&["--partition", "3g.40gb"], 1);
    let costs = [cost, ended(&all, renter, "one")];
    check_money(&all, renter, &costs);
    wait_to_stand(&all, 0, &[]);
}

/// What a slice costs is its price times the time that it ran, rounded down; a third of a dollar an hour and no more.
#[test]
fn a_receipt_of_a_slice_is_its_price_times_its_time() {
    let all = dynamic(&["--storage", "0"]);
    let renter = all.renter();
    renter.wait_for_goods_of(&["--partition", "1g.10gb"], 1);
    let _ = rent_slice(renter, "one", "1g.10gb");
    std::thread::sleep(std::time::Duration::from_secs(3));
    let cost = ended(&all, renter, "one");
    let receipt = renter.feira(&["receipt", "one", "--json"]).ok().json();
    let lines = receipt.to_string();
    // The price is in the receipt that the broker signed.
    assert!(lines.contains("0.323438"), "{receipt}");
    let running = receipt["running_ms"].as_i64();
    if let Some(milliseconds) = running {
        assert_eq!(cost, 323_438 * milliseconds / 3_600_000, "{receipt}");
    }
    let earned = all.market.host.command(&["earnings", "--json"]).ok().json();
    let share = protocol::units::MicroUsd(cost - micro_usd(&receipt["fee_usd"])).decimal();
    assert!(earned.to_string().contains(&share), "{earned}");
    check_money(&all, renter, &[cost]);
}

/// A price that the owner set goes before the rule.
#[test]
fn an_owner_sets_the_price_of_a_slice() {
    let all = dynamic(&["--slice-price", "3g.40gb=0.90"]);
    let renter = all.renter();
    renter.wait_for_goods_of(&["--partition", "3g.40gb"], 1);
    let price =
        |profile: &str| renter.goods(&["--partition", profile])[0]["contract_usd_per_hour"].clone();
    assert_eq!(price("3g.40gb"), "0.900000");
    assert_eq!(price("4g.40gb"), "1.293750");
    let _ = all
        .market
        .host
        .command(&["list", "--slice-premium", "none"])
        .ok();
    // 16 of 132 multiprocessors and 1 of 8 memory slices: an eighth.
    wait_for("the new price", SOON, || {
        (price("1g.10gb") == "0.281250").then_some(())
    });
}
