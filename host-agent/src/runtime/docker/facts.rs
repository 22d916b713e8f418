//! What the engine says of itself. Asked when the agent starts and when somebody wants to know, never on the
//! way to a container: the answer takes the engine tens of milliseconds.

use std::path::Path;

use bollard::Docker;
use bollard::models::{SystemInfo, SystemInfoCgroupVersionEnum, SystemVersion};
use protocol::units::Bytes;
use tokio::net::UnixStream;

use super::super::{EngineFacts, RuntimeError};
use super::failures;

pub(super) async fn ask(docker: &Docker, socket: &Path) -> Result<EngineFacts, RuntimeError> {
    let failed = |error| failures::of_engine(socket, "describe itself", &error);
    let (info, version) = tokio::try_join!(docker.info(), docker.version()).map_err(failed)?;
    let spoken = docker.client_version();
    let number = |part: usize| u32::try_from(part).unwrap_or(u32::MAX);
    let machine = Machine {
        mounts: tokio::fs::read_to_string("/proc/self/mountinfo")
            .await
            .unwrap_or_default(),
        limits: limits(socket).await.unwrap_or_default(),
    };
    let api = (number(spoken.major_version), number(spoken.minor_version));
    Ok(read(info, version, api, &machine))
}

/// What the engine does not say, and this machine does.
struct Machine {
    /// `/proc/self/mountinfo`.
    mounts: String,
    /// `/proc/PID/limits` of the engine; empty when it cannot be read.
    limits: String,
}

/// The limits of whoever listens at the socket.
async fn limits(socket: &Path) -> Option<String> {
    let engine = UnixStream::connect(socket)
        .await
        .ok()?
        .peer_cred()
        .ok()?
        .pid()?;
    tokio::fs::read_to_string(format!("/proc/{engine}/limits"))
        .await
        .ok()
}

fn read(
    info: SystemInfo,
    version: SystemVersion,
    api: (u32, u32),
    machine: &Machine,
) -> EngineFacts {
    let data_root = info.docker_root_dir.unwrap_or_default();
    let storage_driver = info.driver.unwrap_or_default();
    let mut runtimes: Vec<String> = info.runtimes.unwrap_or_default().into_keys().collect();
    runtimes.sort();
    let options = info.security_options.unwrap_or_default();
    EngineFacts {
        disk_quota: storage_driver == "overlay2" && has_project_quota(&machine.mounts, &data_root),
        version: version.version.clone().unwrap_or_default(),
        api,
        runtime: runtime_version(&version),
        runtimes,
        default_runtime: info.default_runtime.unwrap_or_default(),
        cdi_spec_dirs: info.cdi_spec_dirs.unwrap_or_default(),
        data_root,
        storage_driver,
        cgroup_version: match info.cgroup_version {
            Some(SystemInfoCgroupVersionEnum::_2) => 2,
            Some(SystemInfoCgroupVersionEnum::_1 | SystemInfoCgroupVersionEnum::EMPTY) | None => 1,
        },
        cgroup_driver: info
            .cgroup_driver
            .map(|driver| driver.to_string())
            .unwrap_or_default(),
        apparmor: options
            .iter()
            .any(|option| option.starts_with("name=apparmor")),
        open_files_max: open_files_max(&machine.limits),
        kernel: info.kernel_version.unwrap_or_default(),
        system: info.operating_system.unwrap_or_default(),
        cpu_cores: info
            .ncpu
            .and_then(|cores| u16::try_from(cores).ok())
            .unwrap_or(0),
        ram: Bytes(
            info.mem_total
                .and_then(|bytes| u64::try_from(bytes).ok())
                .unwrap_or(0),
        ),
    }
}

/// `runc 1.1.5`, from the engine's list of its parts.
fn runtime_version(version: &SystemVersion) -> String {
    let parts = version.components.iter().flatten();
    let mut runtimes = parts.filter(|part| part.name == "runc");
    runtimes.next().map_or_else(
        || "runc".to_owned(),
        |part| {
            format!(
                "runc {}",
                part.version.split('+').next().unwrap_or_default()
            )
        },
    )
}

/// The hard limit of open files in the text of `/proc/PID/limits`; what every system allows when there is
/// none.
fn open_files_max(limits: &str) -> u64 {
    const SAFE: u64 = 4096;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    match line.and_then(|line| line.split_whitespace().nth(1)) {
        Some("unlimited") => u64::MAX,
        Some(number) => number.parse().unwrap_or(SAFE),
        None => SAFE,
    }
}

/// Whether the file system that holds `folder` is xfs mounted with project quotas: what the engine needs to
/// limit a container's disk. `mounts` is `/proc/self/mountinfo`; the last longest mount point wins.
fn has_project_quota(mounts: &str, folder: &str) -> bool {
    let holding = |line: &&str| {
        line.split(' ')
            .nth(4)
            .is_some_and(|point| Path::new(folder).starts_with(point))
    };
    let length = |line: &&str| line.split(' ').nth(4).map_or(0, str::len);
    mounts
        .lines()
        .filter(holding)
        .max_by_key(length)
        .is_some_and(|line| {
            let Some((_, system)) = line.split_once(" - ") else {
                return false;
            };
            let options = system.split(' ').nth(2).unwrap_or_default();
            system.starts_with("xfs ")
                && options
                    .split(',')
                    .any(|option| option == "prjquota" || option == "pquota")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_the_hard_one() {
        let limits = "Limit   Soft Limit  Hard Limit  Units\n\
            Max processes             1         2         processes\n\
            Max open files            1024      524288    files";
        assert_eq!(open_files_max(limits), 524_288);
        assert_eq!(
            open_files_max(&limits.replace("524288", "unlimited")),
            u64::MAX
        );
        assert_eq!(open_files_max(""), 4096);
    }

    #[test]
    fn a_quota_needs_xfs_with_project_quotas_under_the_data_root() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
            40 22 8:2 / /var/lib/docker rw,relatime shared:2 - xfs /dev/sdb rw,attr2,prjquota\n\
            41 22 8:3 / /srv rw - xfs /dev/sdc rw,noquota";
        assert!(has_project_quota(mounts, "/var/lib/docker"));
        assert!(has_project_quota(mounts, "/var/lib/docker/x"));
        assert!(!has_project_quota(mounts, "/var/lib/docker2"));
        assert!(!has_project_quota(mounts, "/srv/docker"));
        assert!(!has_project_quota("", "/var/lib/docker"));
    }
}
