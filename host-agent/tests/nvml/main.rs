//! What is read of GPUs, against a management library made for the occasion: two cards, a card that fell off
//! the bus, an old driver, no driver, a driver that hangs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use host_agent::clock;
use host_agent::hardware::nvidia::{Nvidia, Probe};
use protocol::units::Bytes;
use tempfile::TempDir;

/// Builds the library with these flags. The compiler is the one that SQLite is built with.
fn library(folder: &TempDir, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvml/fake.c");
    let target = folder.path().join("libnvidia-ml.so.1");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&target)
        .arg(source)
        .args(flags)
        .status()
        .unwrap();
    assert!(built.success());
    target
}

async fn measured(flags: &[&str]) -> Nvidia {
    let folder = TempDir::new().unwrap();
    Probe::new(Some(library(&folder, flags))).ask().await
}

#[tokio::test]
async fn two_cards_are_read_as_the_driver_has_them() {
    let Nvidia::Ready {
        driver,
        gpus,
        unreadable,
    } = measured(&[]).await
    else {
        panic!()
    };
    assert_eq!(
        (driver.as_str(), gpus.len(), unreadable),
        ("570.124.06", 2, 0)
    );
    let gpu = &gpus[1];
    assert_eq!(gpu.model.as_str(), "NVIDIA GeForce RTX 4090");
    assert_eq!(gpu.uuid.as_str(), "GPU-fake-1");
    assert_eq!(gpu.vram, Bytes(25_757_220_864));
    assert_eq!((gpu.cuda, gpu.compute_capability), ((12, 8), (8, 9)));
    assert_eq!((gpu.pcie_generation, gpu.pcie_width), (4, 16));
    assert_eq!(gpu.power_limit_mw, 450_000);
}

#[tokio::test]
async fn a_card_that_fell_off_is_counted_and_the_other_one_stays() {
    let Nvidia::Ready {
        gpus, unreadable, ..
    } = measured(&["-DLOST_ONE"]).await
    else {
        panic!()
    };
    assert_eq!((gpus.len(), unreadable), (1, 1));
    assert_eq!(gpus[0].uuid.as_str(), "GPU-fake-0");
}

#[tokio::test]
async fn what_an_old_driver_does_not_say_is_unknown() {
    let Nvidia::Ready { gpus, .. } = measured(&["-DOLD"]).await else {
        panic!()
    };
    assert_eq!(gpus.len(), 2);
    assert_eq!(
        (gpus[0].compute_capability, gpus[0].pcie_width),
        ((0, 0), 0)
    );
}

#[tokio::test]
async fn a_library_without_its_driver_is_a_cpu_machine() {
    assert_eq!(measured(&["-DNO_DRIVER"]).await, Nvidia::DriverNotLoaded);
}

#[tokio::test]
async fn a_driver_that_hangs_is_given_two_seconds_once() {
    let folder = TempDir::new().unwrap();
    let probe = Probe::new(Some(library(&folder, &["-DHANGS"])));
    let begun = clock::monotonic();
    assert_eq!(probe.ask().await, Nvidia::Hangs);
    let took = Duration::from_millis(clock::monotonic().0 - begun.0);
    assert!(
        (Duration::from_secs(2)..Duration::from_secs(4)).contains(&took),
        "{took:?}"
    );
    // The thread still hangs: it is not joined by another, and nobody waits again.
    let begun = clock::monotonic();
    assert_eq!(probe.ask().await, Nvidia::Hangs);
    assert!(clock::monotonic().0 - begun.0 < 100);
}
