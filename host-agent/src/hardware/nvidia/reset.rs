//! A reset of one GPU, by the driver's own program: no call of the library does it.

use super::process::CallError;
use host_nvml::fault::Fault;
use host_nvml::library::ResetFacts;
use host_nvml::sample::RecoveryAction;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// The driver's program, by the path of the system.
pub const PROGRAM: &str = "nvidia-smi";
/// How long it may take; a healthy GPU is back within ten seconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// Whether the GPU itself may be reset now. Who else is linked to it, and what is leased, the caller knows.
///
/// # Errors
/// What stands in the way.
pub(super) fn allowed(facts: &ResetFacts) -> Result<(), Fault> {
    match &facts.processes {
        Some(processes) if processes.is_empty() => {}
        Some(_) => return Err(Fault::InUse),
        None => return Err(Fault::NotSupported),
    }
    match facts.recovery {
        Some(RecoveryAction::Reboot) => Err(Fault::Refused {
            detail: "the driver wants a reboot of the machine, not a reset".to_owned(),
        }),
        Some(
            RecoveryAction::None
            | RecoveryAction::Reset
            | RecoveryAction::DrainPeers
            | RecoveryAction::DrainAndReset
            | RecoveryAction::Other(_),
        )
        | None => Ok(()),
    }
}

/// Resets the GPU at `pci`. One that the persistence daemon holds open is let go of for as long as it takes.
pub(super) async fn run(program: &Path, pci: &str, persistence: bool) -> Result<(), CallError> {
    if persistence {
        tell(program, &["-i", pci, "-pm", "0"]).await?;
    }
    let done = tell(program, &["--gpu-reset", "-i", pci]).await;
    if persistence && let Err(error) = tell(program, &["-i", pci, "-pm", "1"]).await {
        tracing::warn!(pci, %error, "the driver is not kept loaded for this GPU any more");
    }
    done
}

async fn tell(program: &Path, words: &[&str]) -> Result<(), CallError> {
    let child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(DEADLINE, child)
        .await
        .map_err(|_| CallError::Hangs(DEADLINE))?
        .map_err(|error| CallError::Ended(format!("{}: {error}", program.display())))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let said = said.lines().find(|line| !line.trim().is_empty());
    Err(CallError::Ended(format!(
        "{} {}: {}",
        program.display(),
        words.join(" "),
        said.unwrap_or("it failed without a word")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_nvml::sample::{Process, ProcessKind};

    fn facts() -> ResetFacts {
        ResetFacts {
            processes: Some(Vec::new()),
            instances: 0,
            persistence: Some(true),
            recovery: Some(RecoveryAction::Reset),
        }
    }

    #[test]
    fn a_gpu_in_use_or_of_unknown_use_is_not_reset() {
        assert_eq!(allowed(&facts()), Ok(()));
        let mut used = facts();
        used.processes = Some(vec![Process {
            pid: 7,
            kind: ProcessKind::Compute,
            memory: None,
            gpu_instance: None,
            compute_instance: None,
        }]);
        assert_eq!(allowed(&used), Err(Fault::InUse));
        let mut unknown = facts();
        unknown.processes = None;
        assert_eq!(allowed(&unknown), Err(Fault::NotSupported));
    }

    #[test]
    fn the_drivers_wish_for_a_reboot_is_not_answered_with_a_reset() {
        let mut facts = facts();
        facts.recovery = Some(RecoveryAction::Reboot);
        assert!(matches!(allowed(&facts), Err(Fault::Refused { .. })));
        // A driver without the field leaves it to the rules of the agent.
        facts.recovery = None;
        assert_eq!(allowed(&facts), Ok(()));
    }
}
