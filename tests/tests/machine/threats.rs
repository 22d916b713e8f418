//! Rows of the threat model that are about hardware, each with the tests that hold it. The paths are the crates' own.
//!
//! | row | attack | held by |
//! | --- | --- | --- |
//! | 1 | a patched library claims an H100 | `audit/proof/cards.rs`; the catalogue's limits: `protocol/catalogue`, here |
//! | 2 | claims 80 GB and has 48 | `audit/proof/cheats.rs` (10 000 seeds) |
//! | 3 | keeps tiles in the host's memory | `audit/proof/cards.rs` |
//! | 4 | one card behind two identities | `audit/proof/cards.rs` |
//! | 5 | one GPU to two renters by two brokers | `world`, `host-agent/tests/agent/slices.rs`, `core/capacity.rs` (epochs rise), `exclusion` |
//! | 6 | the whole GPU and its slices together | `broker/core/tests/slices/allocator.rs`, `host-agent/core/capacity.rs`, `exclusion` |
//! | 7 | shuts down in the midst of a lease | `world`, `endings`, `cuts`, `broker/core/tests/vectors.rs` (the lower of clock and meter) |
//! | 8 | a fast clock | `world`, `clocks`, `host-agent/core/meter.rs`, `broker/core/tests/time.rs` |
//! | 9 | inflates bytes | `broker/core/tests/vectors.rs` (no more than the line carries), `host-agent/core/traffic.rs` |
//! | 10 | throttles after it was verified | `health::clocks`, `health::tests::threats::row_10…`; here |
//! | 14 | replays old reports that all is well | `broker/core/tests/refusals.rs` (older reports, used ids), `book/tests.rs`, `world` |
//! | 44 | memory of the one before | `health::between`, `health::tests::threats::row_44…`, here; on a GPU: see the README |
//! | 45 | changes clocks, power, ECC | `health::tests::threats::row_45…` (drift), here (nothing to change them with) |
//! | 46 | errors for refunds | `health::tests::threats::row_46…`, here |
//! | 47 | faults against neighbours | `health::tests::threats::row_47…`, `health::tests::life` |
//! | 48 | a library that hangs | `health::tests::threats::row_48…`, `nvml/trouble.rs`, here; bench row `gpu_hang` |

use crate::play::{PRICE, SOON, check_money, ended, rent_slice, rent_whole};
use fake_nvml::models::Model;
use fake_nvml::scenario::Misdeed;
use feira_tests::machine::{GpuMarket, Machine};
use feira_tests::programs::wait_for;
use feira_tests::renter::micro_usd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// What a renter leaves in the memory of a GPU.
const SECRET: &[u8] = b"weights of a model that is nobody else's";

fn one() -> GpuMarket {
    GpuMarket::new(&[Model::H100], &["--price", PRICE, "--storage", "0"], 1)
}

/// Writes into the memory of a device, as the renter's program would.
fn leave_in(machine: &Machine, device: &str) {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(machine.vram.join(device))
        .expect("memory");
    file.set_len(fake_cuda::SIZE).expect("memory");
    for at in [0, 17 << 20, (60 << 20) + 5] {
        file.write_all_at(SECRET, at).expect("memory");
    }
}

/// Whether any of it is there.
fn is_left_in(machine: &Machine, device: &str) -> bool {
    let memory = std::fs::read(machine.vram.join(device)).expect("memory");
    memory.windows(SECRET.len()).any(|part| part == SECRET)
}

/// Row 1: a library that claims more than the model has is not believed; the refusal names both figures.
#[test]
fn row_1_more_than_the_model_has_is_refused() {
    let (mut machine, stage) = Machine::new(&[Model::H100]);
    machine.scenario.gpus[0].memory = 160 << 30;
    machine.write();
    let broker = stage.broker("broker", &[]);
    let renter = stage.renter("renter", &[&broker.address]);
    let host = machine.host(&stage, &[&broker.address], &["--price", PRICE]);
    wait_for("the refusal", SOON, || {
        host.log().contains("H100").then_some(())
    });
    std::thread::sleep(Duration::from_secs(3));
    assert!(renter.goods(&[]).is_empty(), "{}", host.log());
}

/// Row 10: a GPU that is slowed down after it was sold is seen by its clocks.
#[test]
fn row_10_a_gpu_that_is_throttled_is_noticed() {
    let mut all = one();
    all.change(|scenario| {
        scenario.gpus[0].clock_reasons = 0x4;
        scenario.gpus[0].clocks_mhz = (792, 2619);
    });
    let within = Duration::from_secs(120);
    wait_for("what its clocks say", within, || {
        all.market.host.log().contains("40 %").then_some(())
    });
}

/// Row 44: what a lease left in the memory of its GPU is gone before the next has it, and while memory is still in use
/// nobody has it. The scrub is in no bill.
#[test]
fn row_44_nothing_of_a_lease_is_left_for_the_next() {
    let mut all = one();
    let uuid = all.machine.uuid(0).to_owned();
    let _ = rent_whole(all.renter(), "first", "1");
    leave_in(&all.machine, &uuid);
    all.change(|scenario| scenario.gpus[0].memory_used = 5 << 30);
    let first = ended(&all, all.renter(), "first");
    // Its memory is in use though its container is gone: it stays withdrawn, and nothing is written over.
    std::thread::sleep(Duration::from_secs(15));
    assert!(all.renter().goods(&[]).is_empty());
    assert!(is_left_in(&all.machine, &uuid));
    assert!(
        all.market.host.log().contains("are in use"),
        "{}",
        all.market.host.log()
    );
    // It is looked at again by itself.
    all.change(|scenario| scenario.gpus[0].memory_used = 0);
    wait_for("the GPU to be clean", Duration::from_secs(180), || {
        (!all.renter().goods(&[]).is_empty()).then_some(())
    });
    assert!(!is_left_in(&all.machine, &uuid));
    let _ = rent_whole(all.renter(), "second", "1");
    let second = ended(&all, all.renter(), "second");
    check_money(&all, all.renter(), &[first, second]);
}

/// Row 44 for a slice, whose neighbour's memory nobody touches.
#[test]
fn row_44_a_slice_is_cleaned_and_its_neighbour_is_not() {
    let listing = [
        "--price",
        PRICE,
        "--storage",
        "0",
        "--partition-layout",
        "dynamic",
    ];
    let all = GpuMarket::new(&[Model::H100], &listing, 0);
    let renter = all.renter();
    renter.wait_for_goods_of(&["--partition", "3g.40gb"], 1);
    let _ = rent_slice(renter, "goes", "3g.40gb");
    let _ = rent_slice(renter, "stays", "1g.10gb");
    let (goes, stays) = (
        "MIG-00000001-0000-5000-8000-000000000000",
        "MIG-00000007-0000-5000-8000-000000000000",
    );
    leave_in(&all.machine, goes);
    leave_in(&all.machine, stays);
    let cost = ended(&all, renter, "goes");
    wait_for("the slice to be clean", SOON, || {
        (!is_left_in(&all.machine, goes)).then_some(())
    });
    assert!(is_left_in(&all.machine, stays));
    assert_eq!(renter.lease("stays")["state"], "running");
    let costs = [cost, ended(&all, renter, "stays")];
    check_money(&all, renter, &costs);
}

/// Row 45: a container has nothing to change settings of its GPU with: not the driver's program or its capabilities, and
/// not the right to use them.
#[test]
fn row_45_a_container_cannot_reach_the_settings_of_its_gpu() {
    let all = one();
    let _ = rent_whole(all.renter(), "lease", "1");
    let look = "which nvidia-smi || echo no; ls /dev/nvidia-caps 2>/dev/null || echo none; \
                grep CapEff /proc/self/status";
    let said = all
        .renter()
        .feira(&["exec", "lease", "--", "sh", "-c", look])
        .ok()
        .out;
    assert!(said.starts_with("no\nnone\n"), "{said}");
    let mask = said.split_whitespace().last().expect("a mask");
    let mask = u64::from_str_radix(mask, 16).expect("a mask");
    // CAP_SYS_ADMIN is bit 21.
    assert_eq!(mask & (1 << 21), 0, "{said}");
    let cost = ended(&all, all.renter(), "lease");
    check_money(&all, all.renter(), &[cost]);
}

/// Row 46: errors that a renter's own program makes end nothing and give nothing back.
#[test]
fn row_46_errors_of_a_program_give_no_refund() {
    let mut all = one();
    let _ = rent_whole(all.renter(), "lease", "1");
    for xid in [31, 13, 43] {
        all.change(|scenario| scenario.xid(0, xid, None));
        std::thread::sleep(Duration::from_millis(500));
    }
    let charged = |all: &GpuMarket| micro_usd(&all.renter().lease("lease")["charged_usd"]);
    let before = charged(&all);
    wait_for("it to be billed on", SOON, || {
        (charged(&all) > before).then_some(())
    });
    assert_eq!(all.renter().lease("lease")["state"], "running");
    let cost = ended(&all, all.renter(), "lease");
    let receipt = all
        .renter()
        .feira(&["receipt", "lease", "--json"])
        .ok()
        .json();
    let running = receipt["running_ms"].as_i64().expect("how long it ran");
    // All that ran is paid: $2.25 an hour.
    assert_eq!(cost, 2_250_000 * running / 3_600_000, "{receipt}");
    check_money(&all, all.renter(), &[cost]);
}

/// Row 48: the library hangs on one GPU; reports about the leases on the other go on.
#[test]
fn row_48_a_library_that_hangs_holds_up_nobody_else() {
    let listing = ["--price", PRICE, "--storage", "0"];
    let mut all = GpuMarket::new(&[Model::H100, Model::H100], &listing, 0);
    all.renter().wait_for_goods_of(&["num_gpus=2"], 1);
    let lease = rent_whole(all.renter(), "lease", "1");
    let taken = lease["gpus"].to_string();
    let other = usize::from(taken.contains(all.machine.uuid(0)));
    all.change(|scenario| {
        scenario.fault(
            "*",
            other,
            Misdeed::Hangs {
                milliseconds: 60_000,
            },
        )
    });
    all.renter().wait_for_goods(0);
    let charged = |all: &GpuMarket| micro_usd(&all.renter().lease("lease")["charged_usd"]);
    let before = charged(&all);
    wait_for("reports of the other", SOON, || {
        (charged(&all) > before).then_some(())
    });
    assert_eq!(all.renter().lease("lease")["state"], "running");
    // peers 3.5 #82: it is leased again when it answers, without a restart of anything.
    all.change(|scenario| scenario.faults.clear());
    wait_for("it to be offered again", Duration::from_secs(150), || {
        (!all.renter().goods(&[]).is_empty()).then_some(())
    });
    let cost = ended(&all, all.renter(), "lease");
    check_money(&all, all.renter(), &[cost]);
}
