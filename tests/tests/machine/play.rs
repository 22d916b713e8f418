//! What all these tests do: rent a slice, look at the driver's slices, look into a container, end it and pay.

use feira_tests::machine::GpuMarket;
use feira_tests::programs::{Said, registry, wait_for};
use feira_tests::renter::{Renter, containers_of_lease, micro_usd};
use serde_json::Value;
use std::time::Duration;

/// How long anything may take that nobody has to wait for, on a machine with other work.
pub(crate) const SOON: Duration = Duration::from_secs(60);
/// $2.25 an hour for a whole H100, the price that the worked examples of slices have.
pub(crate) const PRICE: &str = "2.25";

/// A 3g and a 1g of an H100, as `nvidia-smi mig -lgip` numbers them.
pub(crate) const THREE: u32 = 9;
pub(crate) const TWO: u32 = 14;
pub(crate) const ONE: u32 = 19;
pub(crate) const SEVEN: u32 = 0;

/// Rents a slice, and waits until it runs.
#[track_caller]
pub(crate) fn rent_slice(renter: &Renter, name: &str, profile: &str) -> Value {
    try_slice(renter, name, profile).ok().json()
}

/// Tries to.
#[track_caller]
pub(crate) fn try_slice(renter: &Renter, name: &str, profile: &str) -> Said {
    renter.rent(name, &["--partition", profile, "--disk", "0.2"])
}

/// Rents whole GPUs, and waits until it runs.
#[track_caller]
pub(crate) fn rent_whole(renter: &Renter, name: &str, gpus: &str) -> Value {
    try_whole(renter, name, gpus).ok().json()
}

/// Tries to.
#[track_caller]
pub(crate) fn try_whole(renter: &Renter, name: &str, gpus: &str) -> Said {
    renter.rent(
        name,
        &["--gpus", gpus, "--max-price", "30", "--disk", "0.2"],
    )
}

/// What the arguments of a rental are when it is only begun.
pub(crate) fn words_of_slice(name: &str, profile: &str) -> Vec<String> {
    let image = format!("{}/feira-demo:1", registry());
    let words = [
        "rent",
        "--name",
        name,
        "--yes",
        "--json",
        "--image",
        &image,
        "--partition",
        profile,
        "--max-price",
        "5",
        "--budget",
        "5",
        "--disk",
        "0.2",
    ];
    words.map(str::to_owned).to_vec()
}

/// The slices that the driver has of a GPU, each by its profile's number and its first memory slice, sorted.
#[track_caller]
pub(crate) fn stands(all: &GpuMarket, gpu: usize) -> Vec<(u32, u32)> {
    all.machine.slices(gpu)
}

/// Waits until the driver has these.
#[track_caller]
pub(crate) fn wait_to_stand(all: &GpuMarket, gpu: usize, wanted: &[(u32, u32)]) {
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable();
    let what = format!("{wanted:?} of GPU {gpu}");
    wait_for(&what, SOON, || (stands(all, gpu) == wanted).then_some(()));
}

/// What a container has of GPUs: the devices that it is told of, and the nodes that it sees.
#[track_caller]
pub(crate) fn inside(renter: &Renter, name: &str) -> (String, String) {
    let look = "echo $NVIDIA_VISIBLE_DEVICES; cd /dev; echo nvidia*";
    let said = renter
        .feira(&["exec", name, "--", "sh", "-c", look])
        .ok()
        .out;
    let (devices, nodes) = said.trim_end().split_once('\n').expect("two lines");
    (devices.to_owned(), nodes.to_owned())
}

/// Ends a lease, waits until it is gone, proves its receipt, and gives what it cost in µ$.
#[track_caller]
pub(crate) fn ended(all: &GpuMarket, renter: &Renter, name: &str) -> i64 {
    let lease = renter.lease(name);
    let id = lease["id"].as_str().expect("an id").to_owned();
    let _ = renter.feira(&["end", name, "--yes"]).ok();
    let ended = renter.wait_for_phase(name, "ended", SOON);
    wait_for("the container to be gone", SOON, || {
        containers_of_lease(&id).is_empty().then_some(())
    });
    let file = all.market.stage.folder().join(format!("{name}.json"));
    let file = file.to_str().expect("a path");
    let receipt = renter
        .feira(&["receipt", name, "--save", file, "--json"])
        .ok()
        .json();
    let _ = renter.feira(&["receipt", "--verify", file]).ok();
    let total = micro_usd(&receipt["total_usd"]);
    assert_eq!(micro_usd(&ended["charged_usd"]), total, "{receipt}");
    total
}

/// Proves that a renter has what it paid in less what its leases cost, and that the books balance.
#[track_caller]
pub(crate) fn check_money(all: &GpuMarket, renter: &Renter, costs: &[i64]) {
    let spent: i64 = costs.iter().sum();
    assert_eq!(renter.balance(), (all.market.deposit - spent, 0));
    all.broker().check_ledger();
}

/// Another renter of the same broker with as much money.
#[track_caller]
pub(crate) fn rival(all: &GpuMarket) -> Renter {
    let rival = all.market.stage.renter("rival", &[&all.broker().address]);
    all.broker().deposit(&rival, "1000");
    rival
}
