//! The health of the GPUs, as `status` and `doctor` say it.

use super::Place;
use crate::admin::wire::{AdminReply, AdminRequest, HealthRow, Status};
use crate::hardware::kernel_log;
use crate::hardware::nvidia::scrub;
use crate::journal;
use gpu_health::between::driver_clears;
use gpu_health::unit::{Kept, Until};
use protocol::operator::doctor::Check;
use std::fs::{File, read_to_string};

/// Lines of `status`: what is not as it should be, and what it takes; nothing of GPUs that are fit.
pub(super) fn lines(place: &Place, status: &Status) -> Vec<String> {
    let drained = status.drained.iter();
    let drained = drained.map(|why| format!("no lease until the machine was booted anew: {why}"));
    let rows = status.health.iter();
    drained
        .chain(rows.flat_map(|row| row_lines(place, row)))
        .collect()
}

fn row_lines(place: &Place, row: &HealthRow) -> Vec<String> {
    let said = |text: &str| format!("{}: {text}", row.resource);
    let mut lines = Vec::new();
    if row.state != "fit" {
        lines.push(said(&row.words));
        lines.extend(row.waits.map(|until| fix(place, &row.resource, until)));
    }
    lines.extend(row.lowered.as_deref().map(said));
    let reset = row.reset_wanted.as_ref();
    lines.extend(reset.map(|why| said(&format!("it is reset when nobody has it: {why}"))));
    lines
}

/// What somebody has to do.
fn fix(place: &Place, gpu: &str, until: Until) -> String {
    match until {
        Until::Tested => "it is tested as soon as it answers and nobody has it".to_owned(),
        Until::Reset => "it is reset as soon as nobody has it and what it is linked to".to_owned(),
        Until::Reboot => "boot the machine anew when its leases are over".to_owned(),
        Until::Checked => format!(
            "look at the card, and then: {}",
            place.command(&format!("checked {gpu}"))
        ),
    }
}

/// Checks of `doctor`.
pub(super) fn checks(place: &Place) -> Vec<Check> {
    let mut checks = faults(place);
    let params = read_to_string(scrub::PARAMS);
    if let Ok(params) = params {
        checks.push(clearing(&params));
        checks.push(kernel_lines());
    }
    checks
}

/// What GPUs wait for: as the running agent says, or as its journal does.
fn faults(place: &Place) -> Vec<Check> {
    let asked: Result<Option<AdminReply>, _> = place.ask_if_running(&AdminRequest::Status);
    match asked {
        Ok(Some(AdminReply::Status(status))) => told(place, &status),
        Ok(_) => match journal::peek(place.folder.path()) {
            Ok(recovered) => kept(place, &recovered.unwrap_or_default().health),
            Err(error) => vec![Check::failed("health", place.journal_failed(&error))],
        },
        Err(failure) => vec![Check::failed("health", failure)],
    }
}

fn told(place: &Place, status: &Status) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    if let Some(why) = &status.drained {
        let reboot = fix(place, "", Until::Reboot);
        checks.push(Check::fail("health", why.clone(), reboot));
    }
    let unfit = status.health.iter().filter(|row| row.state != "fit");
    checks.extend(unfit.map(|row| {
        let found = format!("{}: {}", row.resource, row.words);
        match row.waits {
            Some(until) => waiting(place, &row.resource, found, until),
            None if row.state == "cleaning" || row.state == "resetting" => {
                Check::ok("health", found)
            }
            None => Check::warn("health", found, "see dmesg, and the agent's log"),
        }
    }));
    let lowered = status.health.iter().filter_map(|row| {
        let lowered = row.lowered.as_ref()?;
        Some(format!("{}: {lowered}", row.resource))
    });
    checks.extend(
        lowered.map(|found| Check::warn("health", found, "see nvidia-smi -q -d PERFORMANCE")),
    );
    if checks.is_empty() && !status.health.is_empty() {
        checks.push(Check::ok("health", "no GPU waits for anything"));
    }
    checks
}

fn kept(place: &Place, kept: &Kept) -> Vec<Check> {
    let drained = kept.drain.iter();
    let drained =
        drained.map(|why| Check::fail("health", why.clone(), fix(place, "", Until::Reboot)));
    let gpus = kept.gpus.iter().filter_map(|known| {
        let wait = known.wait.as_ref()?;
        let found = format!(
            "{}: {}; it waits {}",
            known.gpu,
            wait.why,
            wait.until.in_words()
        );
        Some(waiting(place, &known.gpu, found, wait.until))
    });
    drained.chain(gpus).collect()
}

fn waiting(place: &Place, gpu: &str, found: String, until: Until) -> Check {
    let fix = fix(place, gpu, until);
    match until {
        Until::Tested | Until::Reset => Check::warn("health", found, fix),
        Until::Reboot | Until::Checked => Check::fail("health", found, fix),
    }
}

fn clearing(params: &str) -> Check {
    if driver_clears(params) {
        return Check::ok("scrub", "the driver clears memory that is freed");
    }
    Check::fail(
        "scrub",
        "the driver was told not to clear memory that is freed (RMDisableScrubOnFree): no GPU is leased twice",
        "take it out of the options of the nvidia module in /etc/modprobe.d, and boot anew",
    )
}

fn kernel_lines() -> Check {
    match File::open(kernel_log::PATH) {
        Ok(_) => Check::ok("kernel log", "faults of GPUs are read from it"),
        Err(error) => Check::warn(
            "kernel log",
            format!(
                "{}: {error}: faults come from the driver's library alone",
                kernel_log::PATH
            ),
            "give the agent CAP_SYSLOG",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_keeps_what_is_freed_is_told_of() {
        let kept = clearing("RegistryDwords: \"RMDisableScrubOnFree=1\"\n");
        assert!(kept.fix.is_some_and(|fix| fix.contains("modprobe.d")));
        assert_eq!(clearing("RegistryDwords: \"\"\n").fix, None);
    }
}
