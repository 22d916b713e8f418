//! What the programs weigh: their size, their memory at rest, the CPU that `--version` takes.
//!
//! Must not put load on anything; that is what other rows do.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use feira_tests::programs::program;
use feira_tests::stage::Stage;

use crate::report::Row;
use crate::rounds::{Medians, by_turns};
use crate::{Outcome, cpu};

/// Runs in one measurement, so that a millisecond of resolution is a tenth of one.
const TIMES: u32 = 10;

/// CPU time of `feira --version`.
pub(crate) fn measure_version() -> Outcome<Vec<Row>> {
    let feira = path_text(&program("feira"))?;
    let medians = by_turns(
        || cpu::milliseconds(&[&feira, "--version"], &[], TIMES),
        || cpu::milliseconds(&["docker", "--version"], &[], TIMES),
    )?;
    let row = Row::new("version", "ms CPU", medians)
        .beside("docker --version")
        .goal("at most 10 ms", |row| row.ours() <= 10.0);
    Ok(vec![row])
}

/// Sizes of the programs, and resident memory of those that stay, beside Docker's.
pub(crate) fn measure_sizes() -> Outcome<Vec<Row>> {
    let docker = which("docker")?;
    let mut rows = Vec::new();
    for name in ["feira", "feira-host", "feira-broker"] {
        let medians = Medians {
            ours: megabytes(&program(name))?,
            baseline: megabytes(&docker)?,
        };
        let row = Row::new(format!("memory.{name}_size"), "MB", medians);
        rows.push(row.beside("the docker client's size").once());
    }
    let stage = Stage::new();
    let broker = stage.broker("broker", &[]);
    let host = stage.host("host", &[&broker.address], &["--price", "0.10"]);
    let renter = stage.renter("renter", &[&broker.address]);
    renter.wait_for_offers(1);
    // What the start needed has been given back by then.
    thread::sleep(Duration::from_secs(5));
    let engine = resident(engine_pid()?)?;
    for (name, running) in [
        ("feira-broker", &broker.running),
        ("feira-host", &host.running),
    ] {
        let pid = running.as_ref().ok_or("it does not run")?.pid();
        let medians = Medians {
            ours: resident(pid)?,
            baseline: engine,
        };
        let row = Row::new(format!("memory.{name}_idle"), "MB", medians);
        rows.push(row.beside("dockerd, resident").once());
    }
    Ok(rows)
}

fn path_text(path: &Path) -> Outcome<String> {
    Ok(path.to_str().ok_or("a path that is not UTF-8")?.to_owned())
}

fn megabytes(path: &Path) -> Outcome<f64> {
    let bytes = fs::metadata(path)
        .map_err(|error| format!("{}: {error}", path.display()))?
        .len();
    // Kilobytes of a program fit.
    Ok(f64::from(u32::try_from(bytes / 1000)?) / 1000.0)
}

/// Resident memory of a process, in megabytes.
fn resident(pid: u32) -> Outcome<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|value| value.split_whitespace().next())
        .ok_or("no VmRSS in /proc")?;
    Ok(kibibytes.parse::<f64>()? * 1024.0 / 1_000_000.0)
}

/// The first program of that name in the folders of `PATH`.
fn which(name: &str) -> Outcome<std::path::PathBuf> {
    let path = std::env::var_os("PATH").ok_or("no PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("{name} is not in PATH").into())
}

/// The process id of an engine on this machine.
fn engine_pid() -> Outcome<u32> {
    for entry in fs::read_dir("/proc")? {
        let folder = entry?.path();
        let Some(pid) = folder
            .file_name()
            .and_then(|name| name.to_str()?.parse().ok())
        else {
            continue;
        };
        // A process may end while it is looked at.
        let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
        if name.trim() == "dockerd" {
            return Ok(pid);
        }
    }
    Err("no dockerd runs on this machine".into())
}
