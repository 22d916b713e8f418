//! A scrub of a GPU or slice between two leases, by a process of its own: this program again, which has the driver to
//! itself, sees that one device alone, and is killed when its time is over.

use gpu_bench::Scrub;
use gpu_health::between::{Dirty, Scrubbed, driver_clears};
use protocol::units::Bytes;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// The subcommand of this program that scrubs.
pub const SUBCOMMAND: &str = "gpu-scrub";
/// Where the driver tells what it was loaded with.
pub const PARAMS: &str = "/proc/driver/nvidia/params";
/// The largest GPU is written and read in well under a minute; a driver that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(300);

/// Scrubs these devices, one after the other, with `program`; `params` is [`PARAMS`] but for tests.
///
/// # Errors
/// Why they are not clean.
pub async fn scrub(program: &Path, params: &Path, devices: &[String]) -> Result<Scrubbed, Dirty> {
    // A driver without that file was told nothing.
    let text = tokio::fs::read_to_string(params).await.unwrap_or_default();
    if !driver_clears(&text) {
        return Err(Dirty::DriverKeeps);
    }
    let mut all = Scrubbed {
        written: Bytes(0),
        memory: Bytes(0),
        wrong: 0,
    };
    for device in devices {
        let one = scrub_one(program, device).await.map_err(Dirty::Scrub)?;
        all.written.0 = all.written.0.saturating_add(one.written);
        all.memory.0 = all.memory.0.saturating_add(one.memory);
        all.wrong = all.wrong.saturating_add(one.wrong);
    }
    Ok(all)
}

async fn scrub_one(program: &Path, device: &str) -> Result<Scrub, String> {
    let mut command = Command::new(program);
    command
        .arg0("feira-host")
        .arg(SUBCOMMAND)
        .env("CUDA_VISIBLE_DEVICES", device)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(DEADLINE, command.output()).await;
    let output = output
        .map_err(|_| format!("it was not done within {} s", DEADLINE.as_secs()))?
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().rfind(|line| !line.trim().is_empty());
        return Err(said.unwrap_or("it failed without a word").to_owned());
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("it said something else: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use tempfile::TempDir;

    /// A program that stands for this one.
    fn program(folder: &TempDir, script: &str) -> PathBuf {
        let path = folder.path().join("scrub");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    #[tokio::test]
    async fn devices_are_scrubbed_one_by_one_and_counted_together() {
        let folder = TempDir::new().unwrap();
        let script = r#"[ "$1" = gpu-scrub ] && [ -n "$CUDA_VISIBLE_DEVICES" ] || exit 1
echo '{"written":90,"memory":100,"wrong":1}'"#;
        let program = program(&folder, script);
        let params = folder.path().join("none");
        let devices = ["MIG-a".to_owned(), "MIG-b".to_owned()];
        let done = scrub(&program, &params, &devices).await.unwrap();
        assert_eq!(
            (done.written, done.memory, done.wrong),
            (Bytes(180), Bytes(200), 2)
        );
    }

    #[tokio::test]
    async fn what_went_wrong_is_told() {
        let folder = TempDir::new().unwrap();
        let params = folder.path().join("params");
        let failing = program(&folder, "echo 'error: no driver' >&2; exit 1");
        let device = ["GPU-a".to_owned()];
        let failed = scrub(&failing, &params, &device).await;
        assert_eq!(failed, Err(Dirty::Scrub("error: no driver".to_owned())));
        // Threat 44: a driver that keeps what is freed is not asked to clear anything.
        fs::write(&params, "RegistryDwords: \"RMDisableScrubOnFree=1\"\n").unwrap();
        let kept = scrub(&failing, &params, &device).await;
        assert_eq!(kept, Err(Dirty::DriverKeeps));
    }
}
