//! `feira-host bench` as an owner types it: what it prints and keeps, what it refuses, which exit code.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feira-host"));
    command
        .args(arguments)
        .arg("--data")
        .arg(folder)
        .env_remove("DOCKER_HOST")
        .env("NO_COLOR", "1");
    command
}

#[track_caller]
fn ends(output: &Output, code: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(
        output.status.code(),
        Some(code),
        "stdout: {out}\nstderr: {err}"
    );
    (out, err)
}

#[track_caller]
fn bench(folder: &Path, arguments: &[&str], code: i32) -> (String, String) {
    let all = [&["bench"], arguments].concat();
    ends(&command(folder, &all).output().unwrap(), code)
}

/// A host that looks for its engine where there is none.
fn host() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    ends(&command(folder.path(), &["init"]).output().unwrap(), 0);
    let file = folder.path().join("host.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let engine = folder.path().join("none.sock");
    let text = format!("engine = \"{}\"\n{text}", engine.display());
    std::fs::write(&file, text).unwrap();
    folder
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_part_is_measured_by_name_kept_and_shown_again() {
    let folder = host();
    let (_, err) = bench(folder.path(), &["--show"], 3);
    assert!(
        err.contains("nothing was measured yet") && err.contains("bench"),
        "{err}"
    );
    let (out, _) = bench(folder.path(), &["ram", "--json"], 0);
    let said = json(&out);
    assert_eq!(said["schema"], "feira.host-bench/1");
    let items = said["items"].as_array().unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0]["part"], "ram");
    assert_eq!(items[0]["unit"], "MB/s");
    assert_eq!(items[0]["method"], "stream-triad");
    let value: u64 = items[0]["value"].as_str().unwrap().parse().unwrap();
    // A stick of the slowest memory of 2003 moved 1600 MB/s; no machine moves 10 TB/s.
    assert!((100..10_000_000).contains(&value), "{value}");
    let (shown, _) = bench(folder.path(), &["--show", "--json"], 0);
    assert_eq!(json(&shown)["items"], said["items"]);
    let (table, _) = bench(folder.path(), &["--show"], 0);
    assert!(table.starts_with("PART"), "{table}");
    assert!(table.contains(&format!("{value}  MB/s")), "{table}");
}

#[test]
fn what_cannot_be_measured_ends_with_its_reason_and_code() {
    let folder = host();
    let (_, err) = bench(folder.path(), &["disc"], 2);
    assert!(
        err.contains("disc") && err.contains("disk") && err.contains("network"),
        "{err}"
    );
    let (_, err) = bench(folder.path(), &["disk"], 8);
    assert!(err.contains("none.sock"), "{err}");
    let (_, err) = bench(folder.path(), &["network"], 8);
    assert!(err.contains("no broker is connected"), "{err}");
    // Nothing to measure is no failure.
    let (_, err) = bench(folder.path(), &["gpu"], 0);
    assert!(err.contains("there is no GPU"), "{err}");
    let nowhere = TempDir::new().unwrap();
    bench(nowhere.path(), &["ram"], 3);
}

#[test]
fn two_at_once_are_refused_and_an_interrupt_ends_one() {
    let folder = host();
    let first = command(folder.path(), &["bench", "cpu"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lock = folder.path().join("bench.lock");
    while !std::fs::read_to_string(&lock).is_ok_and(|text| !text.is_empty()) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = first.id().to_string();
    let (_, err) = bench(folder.path(), &["ram"], 1);
    assert!(err.contains(&format!("under way (process {pid})")), "{err}");
    // It hears signals from when it measures on.
    std::thread::sleep(Duration::from_secs(2));
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let (_, err) = ends(&first.wait_with_output().unwrap(), 130);
    assert!(err.contains("cpu: stopped before its end"), "{err}");
    assert!(!folder.path().join("bench.json").exists());
    bench(folder.path(), &["--show"], 3);
}

/// Through a process of its own, to a device that is a program: shown as that, and left out of what is offered.
#[test]
fn a_software_device_is_measured_in_a_process_of_its_own() {
    let folder = host();
    let output = command(folder.path(), &["bench", "gpu", "--software", "--json"])
        .output()
        .unwrap();
    let said = json(&String::from_utf8_lossy(&output.stdout));
    if output.status.code() == Some(1) {
        // A machine without Mesa's software driver says so.
        let why = said["failed"][0]["why"].as_str().unwrap();
        assert!(why.starts_with("software: "), "{why}");
        return;
    }
    let items = said["items"].as_array().unwrap();
    let methods: Vec<&str> = items
        .iter()
        .filter_map(|item| item["method"].as_str())
        .collect();
    assert_eq!(methods, ["vulkan-fma-chains", "vulkan-copy-both-counted"]);
    assert!(
        items
            .iter()
            .all(|item| item["software"] == true && item["on"] == "software")
    );
}
