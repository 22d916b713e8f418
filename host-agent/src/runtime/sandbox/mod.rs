//! From lease, job and image to the one container body that is ever sent to an engine. Pure.
//!
//! The job and the image are strangers' input. Every field of the body that bounds what a container may do
//! is set here, whatever they say; what cannot be made safe is refused with a [`Problem`]. Nothing outside
//! this module may change a body, and there is no setting that weakens one.

mod environment;
mod gpus;
mod paths;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    Mount, MountBindOptions, MountBindOptionsPropagationEnum, MountType, ResourcesUlimits,
    RestartPolicy, RestartPolicyNameEnum,
};
use protocol::ids::{HostId, LeaseId};
use protocol::lease::{Detail, Problem, ProblemKind, Stage};
use protocol::machine::ContainerNetwork;
use protocol::units::Bytes;

use super::gpus::way::Injection;
use super::{ContainerSpec, EngineFacts, PulledImage};

pub(crate) use environment::refuse_variables;

/// Label with the lease.
pub const LABEL_LEASE: &str = "feira.lease";
/// Label with the host, so that two agents on one engine leave each other's containers alone.
pub const LABEL_HOST: &str = "feira.host";
/// Label with the broker.
pub const LABEL_BROKER: &str = "feira.broker";
/// Label with the epoch of the resources.
pub const LABEL_EPOCH: &str = "feira.epoch";
/// Label with the run that the container was made in.
pub const LABEL_RUN: &str = "feira.run";
/// Label with the GPUs that it was given, where it has any; see [`Given`](super::gpus::given::Given).
pub const LABEL_GPUS: &str = "feira.gpus";
/// Label with the bytes that the writable layer may have.
pub const LABEL_DISK: &str = "feira.disk";

/// Where a container finds what its host tells it: a folder with a file that appears, and that it cannot write.
pub const NOTICES_PATH: &str = "/run/feira";

/// Enough for package managers and an SSH server; no raw sockets, device nodes, tracing or mounts.
const CAPABILITIES: [&str; 9] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "SETUID",
    "SETGID",
    "KILL",
    "SYS_CHROOT",
    "NET_BIND_SERVICE",
];

/// The engine's own list and three that it shows: kernel addresses, interrupts, power counters.
const MASKED_PATHS: [&str; 13] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/interrupts",
    "/proc/kallsyms",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];

const READONLY_PATHS: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

const PROCESSES_MAX: i64 = 4096;
/// Before anything of the host's own when memory runs out.
const OOM_SCORE: i64 = 500;
const OPEN_FILES_SOFT: i64 = 65_536;
const OPEN_FILES_HARD: i64 = 1_048_576;

/// The container's name with the engine: what every later call finds it by, without a list. It carries the
/// whole id, since a short one could be made to match on purpose.
#[must_use]
pub fn container_name(lease: LeaseId) -> String {
    format!("feira-{lease}")
}

/// What the writable layer may have: the lease's disk less the image.
#[must_use]
pub fn writable_bytes(spec: &ContainerSpec, image: &PulledImage) -> Bytes {
    Bytes(spec.disk.0.saturating_sub(image.size.0))
}

/// Refuses an image that does not fit the lease's disk.
///
/// # Errors
/// [`ProblemKind::ImageTooBig`] with both sizes.
pub(crate) fn check_size(image: Bytes, disk: Bytes) -> Result<(), Problem> {
    if image < disk {
        return Ok(());
    }
    let detail =
        format!("the image has {image} and the lease has {disk} of disk: ask for more with --disk");
    Err(problem(Stage::Pulling, ProblemKind::ImageTooBig, &detail))
}

/// The container of `spec` from `image` on an engine like `engine`, for `host`, with the GPUs of `injection`.
///
/// # Errors
/// What about the job or the image cannot be run safely.
pub fn container_body(
    spec: &ContainerSpec,
    image: &PulledImage,
    engine: &EngineFacts,
    host: HostId,
    injection: &Injection,
) -> Result<ContainerCreateBody, Problem> {
    check_size(image.size, spec.disk)?;
    check_command(spec, image)?;
    paths::check_working_directory(&image.config.working_directory)?;
    Ok(ContainerCreateBody {
        hostname: Some(spec.lease.short()),
        image: Some(image.id.clone()),
        entrypoint: spec.job.entrypoint.as_ref().map(|words| owned(words)),
        cmd: spec.job.command.as_ref().map(|words| owned(words)),
        env: Some(environment::variables(
            spec,
            &image.config.environment,
            injection,
        )?),
        // An image whose command is a shell ends at once when its input is closed.
        open_stdin: Some(true),
        stdin_once: Some(false),
        tty: Some(false),
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        labels: Some(labels(spec, image, host, injection)),
        stop_timeout: Some(signed(spec.stop_grace.0)),
        host_config: Some(host_config(spec, image, engine, injection)?),
        ..ContainerCreateBody::default()
    })
}

fn check_command(spec: &ContainerSpec, image: &PulledImage) -> Result<(), Problem> {
    let job = &spec.job;
    let entrypoint = job
        .entrypoint
        .as_ref()
        .map_or(image.config.entrypoint.len(), |words| words.len());
    let command = match (&job.command, &job.entrypoint) {
        (Some(words), _) => words.len(),
        // An entrypoint of the job's own sets the image's command aside.
        (None, Some(words)) if !words.is_empty() => 0,
        (None, _) => image.config.command.len(),
    };
    if entrypoint + command > 0 {
        return Ok(());
    }
    let detail = "the image names no command, and the order names none: add one after --";
    Err(problem(
        Stage::Creating,
        ProblemKind::CommandUnknown,
        detail,
    ))
}

fn labels(
    spec: &ContainerSpec,
    image: &PulledImage,
    host: HostId,
    injection: &Injection,
) -> HashMap<String, String> {
    let given = injection.given.as_ref();
    let gpus = given.map(|given| (LABEL_GPUS.to_owned(), given.to_string()));
    let labels = HashMap::from([
        (LABEL_LEASE.to_owned(), spec.lease.to_string()),
        (LABEL_HOST.to_owned(), host.to_string()),
        (LABEL_BROKER.to_owned(), spec.broker.to_string()),
        (LABEL_EPOCH.to_owned(), spec.epoch.to_string()),
        (LABEL_RUN.to_owned(), spec.run.to_string()),
        (
            LABEL_DISK.to_owned(),
            writable_bytes(spec, image).0.to_string(),
        ),
    ]);
    labels.into_iter().chain(gpus).collect()
}

fn host_config(
    spec: &ContainerSpec,
    image: &PulledImage,
    engine: &EngineFacts,
    injection: &Injection,
) -> Result<HostConfig, Problem> {
    let memory = signed(spec.ram.0);
    Ok(HostConfig {
        runtime: Some("runc".to_owned()),
        network_mode: Some(network_mode(spec)),
        publish_all_ports: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: Some(texts(&CAPABILITIES)),
        security_opt: Some(security_options(engine)),
        privileged: Some(false),
        pid_mode: Some(String::new()),
        uts_mode: Some(String::new()),
        userns_mode: Some(String::new()),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        pids_limit: Some(PROCESSES_MAX),
        memory: Some(memory),
        memory_swap: Some(memory),
        // Version 2 of the control groups has no such file, and needs none: swap is zero.
        memory_swappiness: (engine.cgroup_version < 2).then_some(0),
        nano_cpus: Some(nano_cpus(spec.cpu_millicores, engine.cpu_cores)),
        oom_kill_disable: Some(false),
        oom_score_adj: Some(OOM_SCORE),
        shm_size: Some(signed(spec.shared_memory.0.min(spec.ram.0))),
        ulimits: Some(vec![open_files(engine), limit("core", 0, 0)]),
        readonly_rootfs: Some(false),
        mounts: Some(
            [notices(spec)]
                .into_iter()
                .chain(gpus::mounts(injection))
                .collect(),
        ),
        tmpfs: Some(paths::memory_file_systems(spec.ram, &image.config.volumes)?),
        storage_opt: engine.disk_quota.then(|| {
            HashMap::from([("size".to_owned(), writable_bytes(spec, image).0.to_string())])
        }),
        device_requests: gpus::requests(injection),
        devices: gpus::devices(injection),
        group_add: gpus::groups(injection),
        masked_paths: Some(texts(&MASKED_PATHS)),
        readonly_paths: Some(texts(&READONLY_PATHS)),
        log_config: Some(log_config()),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        auto_remove: Some(false),
        init: Some(true),
        ..HostConfig::default()
    })
}

/// The one thing of this machine, beside a GPU's driver, that a container sees. It is read only, nothing mounted later shows through, and
/// where it comes from is the host's own choice.
fn notices(spec: &ContainerSpec) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(spec.notices.display().to_string()),
        target: Some(NOTICES_PATH.to_owned()),
        read_only: Some(true),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            create_mountpoint: None,
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    }
}

fn network_mode(spec: &ContainerSpec) -> String {
    match spec.network {
        ContainerNetwork::None => "none".to_owned(),
        ContainerNetwork::Bridge => container_name(spec.lease),
    }
}

/// The engine's own system call filter stays: it is on unless a body switches it off.
fn security_options(engine: &EngineFacts) -> Vec<String> {
    let mut options = vec!["no-new-privileges:true".to_owned()];
    if engine.apparmor {
        options.push("apparmor=docker-default".to_owned());
    }
    options
}

/// Never more than the machine has: the engine refuses that.
fn nano_cpus(millicores: u32, cores: u16) -> i64 {
    let most = u32::from(cores.max(1)) * 1000;
    i64::from(millicores.clamp(10, most)) * 1_000_000
}

fn log_config() -> HostConfigLogConfig {
    let config = HashMap::from([
        ("max-size".to_owned(), "10m".to_owned()),
        ("max-file".to_owned(), "3".to_owned()),
    ]);
    HostConfigLogConfig {
        typ: Some("json-file".to_owned()),
        config: Some(config),
    }
}

/// An engine without the right to raise limits cannot start a container with more than it has itself.
fn open_files(engine: &EngineFacts) -> ResourcesUlimits {
    let hard = OPEN_FILES_HARD.min(signed(engine.open_files_max));
    limit("nofile", OPEN_FILES_SOFT.min(hard), hard)
}

fn limit(name: &str, soft: i64, hard: i64) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(soft),
        hard: Some(hard),
    }
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn owned<const N: usize>(words: &[protocol::bounded::Text<N>]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// What stopped a start, in words.
pub(crate) fn problem(stage: Stage, kind: ProblemKind, detail: &str) -> Problem {
    Problem {
        stage,
        kind,
        detail: Detail::cut(detail),
    }
}
