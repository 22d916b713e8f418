//! What a container can do and see, from inside and as the engine says it.

use crate::engine::{Bench, bench};
use bollard::query_parameters::InspectContainerOptions;
use host_agent::runtime::Runtime;
use host_agent::runtime::exec::{ExecSpec, Piece};
use host_agent::runtime::sandbox::container_name;
use protocol::ids::LeaseId;

pub(crate) async fn inside(bench: &Bench, lease: LeaseId, script: &str) -> String {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    let spec = ExecSpec {
        command,
        environment: Vec::new(),
        terminal: None,
    };
    let mut session = bench.runtime.exec(lease, &spec).await.unwrap();
    let mut said = Vec::new();
    while let Some(piece) = session.output.next().await.unwrap() {
        let (Piece::Output(bytes) | Piece::Errors(bytes)) = piece;
        said.extend(bytes);
    }
    String::from_utf8(said).unwrap()
}

#[tokio::test]
async fn the_kernel_holds_what_the_body_asked_for() {
    let Some(bench) = bench().await else { return };
    let spec = bench.started("feira-demo", &[]).await;
    let lease = spec.lease;
    let status = inside(&bench, lease, "cat /proc/1/status").await;
    let value = |name: &str| {
        let line = status
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_default();
        line.split_whitespace()
            .last()
            .unwrap_or_default()
            .to_owned()
    };
    // CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, FSETID 4, KILL 5, SETGID 6, SETUID 7, NET_BIND_SERVICE 10,
    // SYS_CHROOT 18: bits 0x404fb.
    assert_eq!(value("CapBnd:"), "00000000000404fb");
    assert_eq!(value("NoNewPrivs:"), "1");
    assert_eq!(value("Seccomp:"), "2");

    let limits = inside(&bench, lease, "cat /proc/1/limits").await;
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"))
        .unwrap();
    assert!(core.split_whitespace().any(|word| word == "0"), "{core}");

    let groups = "cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null; \
        cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null";
    assert_eq!(inside(&bench, lease, groups).await, "4096\n268435456\n");
}

#[tokio::test]
async fn mounts_network_and_variables_are_the_hosts() {
    let Some(bench) = bench().await else { return };
    let spec = bench.started("feira-demo", &[]).await;
    let lease = spec.lease;
    let mounts = inside(&bench, lease, "cat /proc/mounts").await;
    let mount = |path: &str| {
        mounts
            .lines()
            .find(|line| line.split(' ').nth(1) == Some(path))
            .unwrap_or_default()
            .to_owned()
    };
    // Half of 256 MiB, in kibibytes.
    assert!(mount("/tmp").contains("nosuid,nodev") && mount("/tmp").contains("size=131072k"));
    assert!(
        !mount("/tmp").contains("noexec"),
        "jobs compile there: {}",
        mount("/tmp")
    );
    assert!(mount("/run").contains("noexec") && mount("/run").contains("size=65536k"));
    assert_eq!(
        inside(&bench, lease, "cat /proc/kallsyms | wc -c")
            .await
            .trim(),
        "0"
    );

    let devices = inside(&bench, lease, "cat /proc/net/dev").await;
    assert_eq!(
        devices.lines().count(),
        3,
        "two lines of head, and loopback alone: {devices}"
    );
    let variables = inside(&bench, lease, "cat /proc/1/environ | tr '\\0' '\\n'").await;
    for expected in ["NVIDIA_VISIBLE_DEVICES=void", "LD_PRELOAD=", "LD_AUDIT="] {
        assert!(
            variables.lines().any(|line| line == expected),
            "{expected}: {variables}"
        );
    }
    let denied = inside(&bench, lease, "mount -t tmpfs x /mnt 2>&1; echo $?").await;
    assert!(
        !denied.trim().ends_with("\n0") && denied.trim() != "0",
        "{denied}"
    );
}

#[tokio::test]
async fn the_engine_has_the_body_as_it_was_sent() {
    let Some(bench) = bench().await else { return };
    let spec = bench.created("feira-demo", &[]).await;
    let docker = bench.docker();
    let name = container_name(spec.lease);
    let found = docker
        .inspect_container(&name, None::<InspectContainerOptions>)
        .await
        .unwrap();
    let (config, hosts) = (found.config.unwrap(), found.host_config.unwrap());
    assert!(config.image.unwrap().starts_with("sha256:"));
    assert_eq!(
        config.healthcheck.unwrap().test,
        Some(vec!["NONE".to_owned()])
    );
    assert_eq!((config.open_stdin, config.tty), (Some(true), Some(false)));
    assert_eq!(
        (hosts.memory, hosts.memory_swap),
        (Some(268_435_456), Some(268_435_456))
    );
    assert_eq!(
        (hosts.nano_cpus, hosts.pids_limit),
        (Some(500_000_000), Some(4096))
    );
    assert_eq!((hosts.privileged, hosts.init), (Some(false), Some(true)));
    assert_eq!(hosts.network_mode.as_deref(), Some("none"));
    assert_eq!(hosts.ipc_mode.as_deref(), Some("private"));
    assert_eq!(hosts.oom_score_adj, Some(500));
    assert_eq!(hosts.shm_size, Some(67_108_864));
    let log = hosts.log_config.unwrap();
    assert_eq!(log.config.unwrap()["max-size"], "10m");
    assert_eq!(
        config.labels.unwrap()["feira.lease"],
        spec.lease.to_string()
    );
}

#[tokio::test]
async fn a_shell_as_the_command_stays_up_without_a_terminal() {
    let Some(bench) = bench().await else { return };
    let spec = bench.started("feira-demo", &["sh"]).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(inside(&bench, spec.lease, "echo here").await, "here\n");
}
