//! What the process uses and how old its backup is, read from the system at each scrape.

use super::signed;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The gauges.
#[derive(Debug, Default)]
pub(super) struct ProcessMetrics {
    resident: Gauge,
    open_files: Gauge,
    started: Gauge,
    backup_age: Family<[(&'static str, &'static str); 0], Gauge>,
}

impl ProcessMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
        to.register(
            "process_resident_memory_bytes",
            "Memory in use",
            self.resident.clone(),
        );
        to.register(
            "process_open_fds",
            "Open files and sockets",
            self.open_files.clone(),
        );
        let help = "When the process started, since 1970";
        to.register("process_start_time_seconds", help, self.started.clone());
        to.register(
            "broker_backup_age_seconds",
            "How long ago the journal was copied; absent before the first time",
            self.backup_age.clone(),
        );
    }

    pub(super) fn set_backup_age(&self, seconds: u64) {
        self.backup_age.get_or_create(&[]).set(signed(seconds));
    }

    pub(super) fn set_started(&self, seconds_since_1970: u64) {
        self.started.set(signed(seconds_since_1970));
    }

    pub(super) fn take(&self) {
        if let Some(bytes) = resident_bytes() {
            self.resident.set(signed(bytes));
        }
        if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
            self.open_files
                .set(i64::try_from(entries.count()).unwrap_or(i64::MAX));
        }
    }
}

/// `VmRSS:    12345 kB`
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}
