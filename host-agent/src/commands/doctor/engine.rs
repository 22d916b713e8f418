//! The container engine: whether it answers, how old it is, what it can enforce.

use super::Check;
use super::versions::{engine_lack, runtime_hole};
use crate::commands::failures::engine_failed;
use crate::config::Config;
use crate::runtime::docker::DockerRuntime;
use crate::runtime::{EngineFacts, Runtime, RuntimeError};
use protocol::ids::HostId;

/// Everything about the engine.
pub(super) async fn checks(config: &Config, host: HostId) -> Vec<Check> {
    match facts(config, host).await {
        Ok(facts) => vec![
            engine(&facts),
            runtime(&facts),
            groups(&facts),
            disk_limit(&facts),
        ],
        Err(error) => vec![Check::failed("engine", engine_failed(&error))],
    }
}

/// What the engine says of itself.
pub(super) async fn facts(config: &Config, host: HostId) -> Result<EngineFacts, RuntimeError> {
    DockerRuntime::connect(&config.engine, host)
        .await?
        .facts()
        .await
}

fn engine(facts: &EngineFacts) -> Check {
    let (major, minor) = facts.api;
    let found = format!(
        "Docker {}, API {major}.{minor}, data in {}",
        facts.version, facts.data_root
    );
    match engine_lack(&facts.version) {
        Some(lack) => Check::warn("engine", found, lack),
        None => Check::ok("engine", found),
    }
}

fn runtime(facts: &EngineFacts) -> Check {
    let found = facts.runtime.clone();
    match runtime_hole(&facts.runtime) {
        Some(hole) => {
            let fix = "upgrade runc, unless your distribution has the fix under this number";
            Check::warn("runtime", format!("{found}: {hole}"), fix)
        }
        None => Check::ok("runtime", found),
    }
}

fn groups(facts: &EngineFacts) -> Check {
    let found = format!(
        "version {} by {}",
        facts.cgroup_version, facts.cgroup_driver
    );
    if facts.cgroup_version >= 2 {
        return Check::ok("cgroups", found);
    }
    Check::warn(
        "cgroups",
        format!("{found}: limits hold, and a container killed for memory is told apart less well"),
        "boot with systemd.unified_cgroup_hierarchy=1",
    )
}

fn disk_limit(facts: &EngineFacts) -> Check {
    if facts.disk_quota {
        let found = format!(
            "{} with quotas: disk limits are enforced",
            facts.storage_driver
        );
        return Check::ok("disk limit", found);
    }
    Check::warn(
        "disk limit",
        format!(
            "{}: disk limits are watched, and a container over its own is stopped",
            facts.storage_driver
        ),
        "for limits that the kernel enforces, put Docker's data on xfs mounted with pquota",
    )
}
