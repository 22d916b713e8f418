//! Whether a GPU may be reset now: the one place that says so. A reset ends whatever runs on it, and takes its links
//! from its neighbours.

use crate::machine::{Machine, Tenants};
use host_nvml::sample::{Process, RecoveryAction};
use protocol::ids::LeaseId;
use protocol::offer::ResourceName;

/// What is known of the GPU itself.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Who uses it; nothing when the driver does not say, and then it is not reset.
    pub processes: Option<&'a [Process]>,
    /// What the driver wants done; nothing for a driver that does not say, which leaves it to the table.
    pub verdict: Option<RecoveryAction>,
    /// Whether it answers.
    pub answers: bool,
    /// Whether the driver is kept loaded by its persistence daemon, which holds the GPU open.
    pub persistence: Option<bool>,
}

/// A reset that may be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    /// Which GPU.
    pub gpu: ResourceName,
    /// Whether the persistence daemon has to let go of it first.
    pub persistence: bool,
}

/// What stands in the way of a reset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Blocked {
    /// It or what it is linked to is leased.
    #[error("{on} is leased, by {lease}")]
    Leased {
        /// By whom.
        lease: LeaseId,
        /// Which.
        on: ResourceName,
    },
    /// Processes use it.
    #[error("processes use it: {}", list(.pids))]
    Used {
        /// Their ids on the host.
        pids: Vec<u32>,
    },
    /// Nobody can say who uses it.
    #[error("the driver does not say who uses it")]
    UseUnknown,
    /// It does not answer.
    #[error("it does not answer")]
    Silent,
    /// The driver wants something else.
    #[error("the driver wants {}", wanted(*.0))]
    Verdict(RecoveryAction),
}

/// Whether `gpu` may be reset.
///
/// # Errors
/// What stands in the way.
pub fn permit(
    machine: &Machine,
    tenants: &Tenants,
    gpu: &ResourceName,
    facts: Facts<'_>,
) -> Result<Permit, Blocked> {
    let touched = machine.reset_domain(gpu);
    if let Some(tenancy) = tenants.within(&touched).next() {
        let on = tenancy.places.iter().map(|place| &place.gpu);
        let on = on.clone().find(|on| touched.contains(*on)).unwrap_or(gpu);
        return Err(Blocked::Leased {
            lease: tenancy.lease,
            on: on.clone(),
        });
    }
    if !facts.answers {
        return Err(Blocked::Silent);
    }
    let processes = facts.processes.ok_or(Blocked::UseUnknown)?;
    if !processes.is_empty() {
        let pids = processes.iter().map(|process| process.pid).collect();
        return Err(Blocked::Used { pids });
    }
    match facts.verdict {
        None | Some(RecoveryAction::Reset | RecoveryAction::DrainAndReset) => Ok(Permit {
            gpu: gpu.clone(),
            persistence: facts.persistence.unwrap_or(false),
        }),
        Some(
            other @ (RecoveryAction::None
            | RecoveryAction::Reboot
            | RecoveryAction::DrainPeers
            | RecoveryAction::Other(_)),
        ) => Err(Blocked::Verdict(other)),
    }
}

fn list(pids: &[u32]) -> String {
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    pids.join(", ")
}

fn wanted(verdict: RecoveryAction) -> String {
    match verdict {
        RecoveryAction::None => "no reset".to_owned(),
        RecoveryAction::Reset => "a reset".to_owned(),
        RecoveryAction::Reboot => "a reboot of the machine".to_owned(),
        RecoveryAction::DrainPeers => "no new work across GPUs".to_owned(),
        RecoveryAction::DrainAndReset => "it emptied and reset".to_owned(),
        RecoveryAction::Other(number) => format!("action {number}"),
    }
}

#[cfg(test)]
mod tests;
