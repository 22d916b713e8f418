//! What must hold of every container body, one predicate for each thing.

use super::super::*;
use super::gpus::{devices_are_gpus, gpus_are_the_leased_ones};
use super::mounts::{mount, nothing_covers_the_notices, only_notices_are_mounted};
use bollard::models::{ContainerCreateBody as Body, DeviceMapping, Mount};

pub(super) fn hosts(body: &Body) -> &HostConfig {
    body.host_config.as_ref().unwrap()
}

pub(super) fn last_value<'a>(body: &'a Body, name: &str) -> Option<&'a str> {
    let variables = body.env.as_ref()?;
    variables
        .iter()
        .rev()
        .find_map(|v| v.split_once('=').filter(|(n, _)| *n == name))
        .map(|(_, v)| v)
}

fn capabilities_are_few(body: &Body) -> bool {
    let dropped = hosts(body).cap_drop.as_deref() == Some(&["ALL".to_owned()]);
    let added = hosts(body)
        .cap_add
        .as_ref()
        .is_some_and(|caps| caps.iter().all(|cap| CAPABILITIES.contains(&cap.as_str())));
    dropped && added
}

fn no_secret_security_option(body: &Body) -> bool {
    hosts(body).security_opt.as_ref().is_some_and(|options| {
        options
            .iter()
            .all(|o| o == "no-new-privileges:true" || o == "apparmor=docker-default")
    })
}

fn no_new_privileges(body: &Body) -> bool {
    hosts(body)
        .security_opt
        .iter()
        .flatten()
        .any(|option| option == "no-new-privileges:true")
}

fn every_mount_in_memory_is_bounded(body: &Body) -> bool {
    let mounts = hosts(body).tmpfs.clone().unwrap_or_default();
    let wanted = ["nosuid", "nodev", "size=", "nr_inodes="];
    mounts.contains_key("/tmp")
        && mounts.contains_key("/run")
        && mounts.into_iter().all(|(path, options)| {
            path.starts_with('/')
                && !path.split('/').any(|part| part == "..")
                && !["/proc", "/sys", "/dev"]
                    .iter()
                    .any(|root| paths::is_within(&path, root))
                && wanted.iter().all(|option| options.contains(option))
        })
}

fn environment_is_the_hosts(body: &Body) -> bool {
    let empty = [
        "LD_PRELOAD",
        "LD_AUDIT",
        "NVIDIA_IMEX_CHANNELS",
        "NVIDIA_MIG_CONFIG_DEVICES",
    ];
    empty.iter().all(|name| last_value(body, name) == Some(""))
        && last_value(body, "NVIDIA_DRIVER_CAPABILITIES") == Some("compute,utility")
}

fn labels_name_lease_and_host(body: &Body) -> bool {
    body.labels.as_ref().is_some_and(|labels| {
        [
            LABEL_LEASE,
            LABEL_HOST,
            LABEL_BROKER,
            LABEL_EPOCH,
            LABEL_RUN,
            LABEL_DISK,
        ]
        .iter()
        .all(|label| labels.contains_key(*label))
    })
}

pub(super) type Predicate = (&'static str, fn(&Body) -> bool, fn(&mut Body));

pub(super) fn hosts_mut(body: &mut Body) -> &mut HostConfig {
    body.host_config.as_mut().unwrap()
}

/// What must hold of every body, and a change of the body that must be noticed.
pub(super) const PREDICATES: &[Predicate] = &[
    (
        "image by id",
        |b| b.image.as_ref().is_some_and(|i| i.starts_with("sha256:")),
        |b| b.image = Some("demo:1".to_owned()),
    ),
    ("capabilities", capabilities_are_few, |b| {
        hosts_mut(b).cap_add = Some(vec!["SYS_ADMIN".to_owned()])
    }),
    ("capabilities dropped", capabilities_are_few, |b| {
        hosts_mut(b).cap_drop = None
    }),
    ("no new privileges", no_new_privileges, |b| {
        hosts_mut(b).security_opt = None
    }),
    ("security options", no_secret_security_option, |b| {
        hosts_mut(b)
            .security_opt
            .as_mut()
            .unwrap()
            .push("seccomp=unconfined".to_owned())
    }),
    (
        "not privileged",
        |b| hosts(b).privileged == Some(false),
        |b| hosts_mut(b).privileged = Some(true),
    ),
    (
        "processes",
        |b| hosts(b).pids_limit == Some(4096),
        |b| hosts_mut(b).pids_limit = Some(-1),
    ),
    (
        "memory",
        |b| hosts(b).memory.is_some_and(|m| m > 0),
        |b| hosts_mut(b).memory = None,
    ),
    (
        "no swap",
        |b| hosts(b).memory_swap == hosts(b).memory,
        |b| hosts_mut(b).memory_swap = Some(-1),
    ),
    (
        "swappiness",
        |b| hosts(b).memory_swappiness == Some(0),
        |b| hosts_mut(b).memory_swappiness = Some(60),
    ),
    (
        "cpu",
        |b| {
            hosts(b)
                .nano_cpus
                .is_some_and(|n| (10_000_000..=8_000_000_000).contains(&n))
        },
        |b| hosts_mut(b).nano_cpus = None,
    ),
    (
        "killed first",
        |b| hosts(b).oom_score_adj == Some(500) && hosts(b).oom_kill_disable == Some(false),
        |b| hosts_mut(b).oom_kill_disable = Some(true),
    ),
    (
        "own pids",
        |b| hosts(b).pid_mode.as_deref() == Some(""),
        |b| hosts_mut(b).pid_mode = Some("host".to_owned()),
    ),
    (
        "own ipc",
        |b| hosts(b).ipc_mode.as_deref() == Some("private"),
        |b| hosts_mut(b).ipc_mode = Some("host".to_owned()),
    ),
    (
        "own uts",
        |b| hosts(b).uts_mode.as_deref() == Some(""),
        |b| hosts_mut(b).uts_mode = Some("host".to_owned()),
    ),
    (
        "user namespace",
        |b| hosts(b).userns_mode.as_deref() == Some(""),
        |b| hosts_mut(b).userns_mode = Some("host".to_owned()),
    ),
    (
        "own cgroups",
        |b| hosts(b).cgroupns_mode == Some(HostConfigCgroupnsModeEnum::PRIVATE),
        |b| hosts_mut(b).cgroupns_mode = Some(HostConfigCgroupnsModeEnum::HOST),
    ),
    (
        "network",
        |b| {
            hosts(b)
                .network_mode
                .as_deref()
                .is_some_and(|n| n == "none" || n.starts_with("feira-l-"))
        },
        |b| hosts_mut(b).network_mode = Some("host".to_owned()),
    ),
    (
        "no ports",
        |b| hosts(b).port_bindings.is_none() && hosts(b).publish_all_ports == Some(false),
        |b| hosts_mut(b).publish_all_ports = Some(true),
    ),
    (
        "shared memory",
        |b| hosts(b).shm_size <= hosts(b).memory,
        |b| hosts_mut(b).shm_size = Some(i64::MAX),
    ),
    (
        "core files",
        |b| {
            hosts(b)
                .ulimits
                .iter()
                .flatten()
                .any(|u| u.name.as_deref() == Some("core") && u.hard == Some(0))
        },
        |b| hosts_mut(b).ulimits = None,
    ),
    (
        "open files",
        |b| {
            hosts(b)
                .ulimits
                .iter()
                .flatten()
                .any(|u| u.name.as_deref() == Some("nofile") && u.hard == Some(1_048_576))
        },
        |b| hosts_mut(b).ulimits = None,
    ),
    (
        "memory file systems",
        every_mount_in_memory_is_bounded,
        |b| {
            hosts_mut(b)
                .tmpfs
                .as_mut()
                .unwrap()
                .insert("/x".to_owned(), "rw".to_owned());
        },
    ),
    (
        "masked paths",
        |b| {
            hosts(b)
                .masked_paths
                .as_ref()
                .is_some_and(|p| p.len() == 13)
        },
        |b| hosts_mut(b).masked_paths = Some(Vec::new()),
    ),
    (
        "read-only paths",
        |b| {
            hosts(b)
                .readonly_paths
                .as_ref()
                .is_some_and(|p| p.contains(&"/proc/sys".to_owned()))
        },
        |b| hosts_mut(b).readonly_paths = None,
    ),
    (
        "bounded logs",
        |b| {
            hosts(b).log_config.as_ref().is_some_and(|l| {
                l.typ.as_deref() == Some("json-file")
                    && l.config
                        .as_ref()
                        .is_some_and(|c| c["max-size"] == "10m" && c["max-file"] == "3")
            })
        },
        |b| hosts_mut(b).log_config = None,
    ),
    (
        "no restart",
        |b| {
            hosts(b)
                .restart_policy
                .as_ref()
                .is_some_and(|p| p.name == Some(RestartPolicyNameEnum::NO))
        },
        |b| hosts_mut(b).restart_policy = None,
    ),
    (
        "kept until removed",
        |b| hosts(b).auto_remove == Some(false),
        |b| hosts_mut(b).auto_remove = Some(true),
    ),
    (
        "init",
        |b| hosts(b).init == Some(true),
        |b| hosts_mut(b).init = None,
    ),
    (
        "runtime",
        |b| hosts(b).runtime.as_deref() == Some("runc"),
        |b| hosts_mut(b).runtime = Some("nvidia".to_owned()),
    ),
    (
        "no binds",
        |b| hosts(b).binds.is_none() && hosts(b).volumes_from.is_none(),
        |b| hosts_mut(b).binds = Some(vec!["/:/host".to_owned()]),
    ),
    ("no mount but the notices", only_notices_are_mounted, |b| {
        hosts_mut(b).mounts.as_mut().unwrap().push(Mount::default())
    }),
    ("the host's own notices", only_notices_are_mounted, |b| {
        mount(b).source = Some("/".to_owned())
    }),
    ("notices where they belong", only_notices_are_mounted, |b| {
        mount(b).target = Some("/etc".to_owned())
    }),
    (
        "notices that cannot be written",
        only_notices_are_mounted,
        |b| mount(b).read_only = None,
    ),
    (
        "notices that nothing shows through",
        only_notices_are_mounted,
        |b| mount(b).bind_options = None,
    ),
    (
        "notices that nothing covers",
        nothing_covers_the_notices,
        |b| {
            hosts_mut(b)
                .tmpfs
                .as_mut()
                .unwrap()
                .insert("/run/feira/x".to_owned(), "rw".to_owned());
        },
    ),
    ("no devices but the GPU's", devices_are_gpus, |b| {
        hosts_mut(b).devices = Some(vec![DeviceMapping::default()])
    }),
    ("no rules of devices", devices_are_gpus, |b| {
        hosts_mut(b).device_cgroup_rules = Some(vec!["a *:* rwm".to_owned()])
    }),
    ("no groups but the nodes'", devices_are_gpus, |b| {
        hosts_mut(b).group_add = Some(vec!["docker".to_owned()])
    }),
    (
        "no kernel settings",
        |b| hosts(b).sysctls.is_none() && hosts(b).cgroup_parent.is_none(),
        |b| hosts_mut(b).cgroup_parent = Some("/".to_owned()),
    ),
    (
        "no health check",
        |b| b.healthcheck.as_ref().and_then(|h| h.test.clone()) == Some(vec!["NONE".to_owned()]),
        |b| b.healthcheck = None,
    ),
    ("host's variables", environment_is_the_hosts, |b| {
        b.env
            .as_mut()
            .unwrap()
            .push("LD_PRELOAD=/evil.so".to_owned())
    }),
    ("gpus", gpus_are_the_leased_ones, |b| {
        b.env
            .as_mut()
            .unwrap()
            .push("NVIDIA_VISIBLE_DEVICES=all".to_owned())
    }),
    (
        "open input, no terminal",
        |b| b.open_stdin == Some(true) && b.tty == Some(false),
        |b| b.tty = Some(true),
    ),
    ("labels", labels_name_lease_and_host, |b| b.labels = None),
    (
        "stop",
        |b| b.stop_timeout.is_some_and(|t| t >= 0),
        |b| b.stop_timeout = None,
    ),
];
