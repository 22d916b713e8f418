//! One machine without GPUs that is sold in every way, two renters who want it, and receipts worked out again.

use feira_tests::market::Market;
use feira_tests::programs::{Said, registry, wait_for};
use feira_tests::renter::{Renter, micro_usd};
use feira_tests::stage::Stage;
use serde_json::Value;
use std::time::Duration;

/// How long anything may take that nobody has to wait for, on a machine with other work.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// What each renter has at first, µ$.
pub(crate) const DEPOSIT: i64 = 1_000_000_000;
/// $0.40 an hour, bids from $0.10, the shortest notice there is, prepaid at a fifth less, and a disk that costs
/// something.
const LISTING: [&str; 12] = [
    "--price",
    "0.40",
    "--floor",
    "0.10",
    "--notice",
    "30s",
    "--max-discount",
    "20",
    "--storage",
    "0.29",
    "--disk-max",
    "20",
];

/// The market, and a second renter with as much money as its first.
pub(crate) struct Play {
    pub(crate) market: Market,
    pub(crate) rival: Renter,
}

impl Play {
    /// With these lines in `broker.toml`.
    #[track_caller]
    pub(crate) fn new(settings: &[(&str, &str)]) -> Self {
        Self::listed(settings, &LISTING)
    }

    /// With a machine that is listed otherwise.
    #[track_caller]
    pub(crate) fn listed(settings: &[(&str, &str)], listing: &[&str]) -> Self {
        let market = Market::listed(Stage::new(), settings, listing, 1000);
        let rival = market.stage.renter("rival", &[&market.broker.address]);
        market.broker.deposit(&rival, "1000");
        Self { market, rival }
    }

    pub(crate) fn renter(&self) -> &Renter {
        &self.market.renter
    }

    /// The host lists its machine otherwise, and a search shows the new price.
    #[track_caller]
    pub(crate) fn list_at(&self, price: &str) {
        let _ = self.market.host.command(&["list", "--price", price]).ok();
    }

    /// What the books say, for a comparison with later.
    #[track_caller]
    pub(crate) fn books(&self) -> Value {
        let said = self.market.broker.command(&["ledger", "check", "--json"]);
        said.ok().json()["ledger"].clone()
    }

    /// Both renters have what they paid in, less what these receipts say; the books and their replay agree.
    #[track_caller]
    pub(crate) fn check_money(&self, renter: i64, rival: i64) {
        assert_eq!(self.renter().balance(), (DEPOSIT - renter, 0));
        assert_eq!(self.rival.balance(), (DEPOSIT - rival, 0));
        self.market.broker.check_ledger();
        let replayed = self.market.broker.command(&["replay", "--json"]).ok();
        assert_eq!(
            replayed.json()["ledger"]["by_kind_usd"],
            self.books()["by_kind_usd"]
        );
    }
}

/// What is typed for an order: `words`, the machine without GPUs, and the rest where `words` say nothing of it.
#[track_caller]
pub(crate) fn order(renter: &Renter, words: &str, program: &[&str]) -> Said {
    let image = format!("{}/feira-demo:1", registry());
    let mut all: Vec<&str> = words.split_whitespace().collect();
    for (flag, value) in [
        ("--image", image.as_str()),
        ("--budget", "5"),
        ("--disk", "2"),
    ] {
        if !all.contains(&flag) {
            all.extend([flag, value]);
        }
    }
    all.insert(1, "num_gpus=0");
    all.extend(["--yes", "--json"]);
    if !program.is_empty() {
        all.push("--");
        all.extend_from_slice(program);
    }
    renter.feira(&all)
}

/// Waits until a lease's program wrote `words`.
#[track_caller]
pub(crate) fn wait_for_log(renter: &Renter, lease: &str, words: &str) {
    wait_for(&format!("{lease} to write {words}"), SOON, || {
        let said = renter.feira(&["logs", lease]);
        said.out.contains(words).then_some(())
    });
}

/// Ends a lease, waits until it is over, and gives what its receipt says it cost, and the receipt's file.
#[track_caller]
pub(crate) fn ended(play: &Play, renter: &Renter, lease: &str) -> (i64, String) {
    let _ = renter.feira(&["end", lease, "--yes"]).ok();
    let view = renter.wait_for_phase(lease, "ended", SOON);
    let file = play.market.stage.folder().join(format!("{lease}.json"));
    let file = file.to_str().unwrap().to_owned();
    let receipt = renter.feira(&["receipt", lease, "--save", &file, "--json"]);
    let receipt = receipt.ok().json();
    assert_eq!(receipt["final"], true, "{receipt}");
    // peers 3.2 #36: why it ended is on the bill.
    assert_eq!(receipt["ended_because"], "you ended it");
    let total = micro_usd(&receipt["total_usd"]);
    assert_eq!(
        micro_usd(&view["charged_usd"]),
        micro_usd(&receipt["compute_usd"]) + micro_usd(&receipt["storage_usd"])
    );
    if receipt["term"].is_null() {
        assert_eq!(total, by_hand(&receipt), "{receipt}");
        // 3 % unless an operator says otherwise, and always rounded down.
        assert_eq!(
            micro_usd(&receipt["fee_usd"]),
            total * 300 / 10_000,
            "{receipt}"
        );
    }
    (total, file)
}

/// Compute at each rate for as long as it held, rounded down once; disk while it was there, rounded down.
fn by_hand(receipt: &Value) -> i64 {
    let number = |of: &Value| of.as_i64().unwrap_or_else(|| panic!("{of} in {receipt}"));
    let mut rates = receipt["rates"].as_array().unwrap().iter().peekable();
    let mut sum = 0;
    while let Some(rate) = rates.next() {
        let end = rates
            .peek()
            .map_or(&receipt["running_ms"], |next| &next["from_running_ms"]);
        let held = (number(end) - number(&rate["from_running_ms"])).max(0);
        sum += i128::from(micro_usd(&rate["compute_usd_per_hour"])) * i128::from(held);
    }
    let compute = i64::try_from(sum / 3_600_000).unwrap();
    let stored =
        i128::from(number(&receipt["stored_ms"])) * i128::from(number(&receipt["disk_bytes"]));
    let price = i128::from(micro_usd(&receipt["storage_usd_per_gb_month"]));
    let disk = i64::try_from(stored * price / (2_592_000_000 * 1_000_000_000)).unwrap();
    let part = |name: &str| micro_usd(&receipt[name]);
    assert_eq!(
        (part("compute_usd"), part("storage_usd")),
        (compute, disk),
        "{receipt}"
    );
    compute + disk
}
