//! One predicate for each thing that a container may not be able to do, held against bodies of any job and
//! image, and each shown to notice the body that breaks it.

use super::*;
use crate::runtime::ImageConfig;
use bollard::models::{ContainerCreateBody as Body, DeviceMapping, Mount};
use proptest::prelude::*;
use protocol::bounded::{List, Text};
use protocol::ids::BrokerId;
use protocol::job::{Job, PinnedImage, Variable};
use protocol::units::Seconds;

const GIB: u64 = 1 << 30;

fn engine() -> EngineFacts {
    EngineFacts {
        version: "20.10.24".to_owned(),
        api: (1, 41),
        runtime: "runc 1.1.5".to_owned(),
        runtimes: vec!["runc".to_owned()],
        data_root: "/var/lib/docker".to_owned(),
        storage_driver: "overlay2".to_owned(),
        disk_quota: false,
        cgroup_version: 1,
        cgroup_driver: "cgroupfs".to_owned(),
        apparmor: true,
        open_files_max: 1 << 30,
        kernel: "6.1".to_owned(),
        system: "Debian".to_owned(),
        cpu_cores: 8,
        ram: Bytes(16 * GIB),
    }
}

fn host() -> HostId {
    HostId::from_bytes([2; 32])
}

fn spec() -> ContainerSpec {
    ContainerSpec {
        lease: LeaseId::from_bytes([1; 16]),
        broker: BrokerId::from_bytes([3; 32]),
        epoch: 7,
        run: 1,
        job: Job {
            image: PinnedImage { name: Text::new("demo").unwrap(), sha256: [9; 32] },
            entrypoint: None,
            command: None,
            environment: List::default(),
        },
        gpus: List::default(),
        cpu_millicores: 1500,
        ram: Bytes(2 * GIB),
        shared_memory: Bytes(GIB),
        disk: Bytes(10 * GIB),
        network: ContainerNetwork::None,
        stop_grace: Seconds(10),
    }
}

fn image() -> PulledImage {
    let config = ImageConfig {
        environment: vec!["PATH=/bin".to_owned()],
        command: vec!["/bin/demo".to_owned()],
        ..ImageConfig::default()
    };
    PulledImage { id: "sha256:0a".to_owned(), size: Bytes(GIB), config }
}

fn body() -> Body {
    container_body(&spec(), &image(), &engine(), host()).unwrap()
}

fn hosts(body: &Body) -> &HostConfig {
    body.host_config.as_ref().unwrap()
}

fn last_value<'a>(body: &'a Body, name: &str) -> Option<&'a str> {
    let variables = body.env.as_ref()?;
    variables.iter().rev().find_map(|v| v.split_once('=').filter(|(n, _)| *n == name)).map(|(_, v)| v)
}

fn capabilities_are_few(body: &Body) -> bool {
    let dropped = hosts(body).cap_drop.as_deref() == Some(&["ALL".to_owned()]);
    let added = hosts(body).cap_add.as_ref().is_some_and(|caps| {
        caps.iter().all(|cap| CAPABILITIES.contains(&cap.as_str()))
    });
    dropped && added
}

fn no_secret_security_option(body: &Body) -> bool {
    hosts(body).security_opt.as_ref().is_some_and(|options| {
        options.iter().all(|o| o == "no-new-privileges:true" || o == "apparmor=docker-default")
    })
}

fn no_new_privileges(body: &Body) -> bool {
    hosts(body).security_opt.iter().flatten().any(|option| option == "no-new-privileges:true")
}

fn every_mount_in_memory_is_bounded(body: &Body) -> bool {
    let mounts = hosts(body).tmpfs.clone().unwrap_or_default();
    let wanted = ["nosuid", "nodev", "size=", "nr_inodes="];
    mounts.contains_key("/tmp")
        && mounts.contains_key("/run")
        && mounts.into_iter().all(|(path, options)| {
            path.starts_with('/')
                && !path.contains("..")
                && !["/proc", "/sys", "/dev"].iter().any(|root| paths::is_within(&path, root))
                && wanted.iter().all(|option| options.contains(option))
        })
}

fn environment_is_the_hosts(body: &Body) -> bool {
    let empty = ["LD_PRELOAD", "LD_AUDIT", "NVIDIA_IMEX_CHANNELS", "NVIDIA_MIG_CONFIG_DEVICES"];
    empty.iter().all(|name| last_value(body, name) == Some(""))
        && last_value(body, "NVIDIA_DRIVER_CAPABILITIES") == Some("compute,utility")
}

fn gpus_are_the_leased_ones(body: &Body) -> bool {
    match (&hosts(body).device_requests, last_value(body, "NVIDIA_VISIBLE_DEVICES")) {
        (None, Some("void")) => true,
        (Some(requests), Some(visible)) => {
            requests.len() == 1
                && requests[0].driver.as_deref() == Some("nvidia")
                && requests[0].device_ids.as_ref().map(|ids| ids.join(",")).as_deref()
                    == Some(visible)
                && visible.split(',').all(|id| id.starts_with("GPU-"))
        }
        _ => false,
    }
}

fn labels_name_lease_and_host(body: &Body) -> bool {
    body.labels.as_ref().is_some_and(|labels| {
        [LABEL_LEASE, LABEL_HOST, LABEL_BROKER, LABEL_EPOCH, LABEL_RUN, LABEL_DISK]
            .iter()
            .all(|label| labels.contains_key(*label))
    })
}

type Predicate = (&'static str, fn(&Body) -> bool, fn(&mut Body));

fn hosts_mut(body: &mut Body) -> &mut HostConfig {
    body.host_config.as_mut().unwrap()
}

/// What must hold of every body, and a change of the body that must be noticed.
const PREDICATES: &[Predicate] = &[
    ("image by id", |b| b.image.as_ref().is_some_and(|i| i.starts_with("sha256:")), |b| b.image = Some("demo:1".to_owned())),
    ("capabilities", capabilities_are_few, |b| hosts_mut(b).cap_add = Some(vec!["SYS_ADMIN".to_owned()])),
    ("capabilities dropped", capabilities_are_few, |b| hosts_mut(b).cap_drop = None),
    ("no new privileges", no_new_privileges, |b| hosts_mut(b).security_opt = None),
    ("security options", no_secret_security_option, |b| hosts_mut(b).security_opt.as_mut().unwrap().push("seccomp=unconfined".to_owned())),
    ("not privileged", |b| hosts(b).privileged == Some(false), |b| hosts_mut(b).privileged = Some(true)),
    ("processes", |b| hosts(b).pids_limit == Some(4096), |b| hosts_mut(b).pids_limit = Some(-1)),
    ("memory", |b| hosts(b).memory.is_some_and(|m| m > 0), |b| hosts_mut(b).memory = None),
    ("no swap", |b| hosts(b).memory_swap == hosts(b).memory, |b| hosts_mut(b).memory_swap = Some(-1)),
    ("swappiness", |b| hosts(b).memory_swappiness == Some(0), |b| hosts_mut(b).memory_swappiness = Some(60)),
    ("cpu", |b| hosts(b).nano_cpus.is_some_and(|n| (10_000_000..=8_000_000_000).contains(&n)), |b| hosts_mut(b).nano_cpus = None),
    ("killed first", |b| hosts(b).oom_score_adj == Some(500) && hosts(b).oom_kill_disable == Some(false), |b| hosts_mut(b).oom_kill_disable = Some(true)),
    ("own pids", |b| hosts(b).pid_mode.as_deref() == Some(""), |b| hosts_mut(b).pid_mode = Some("host".to_owned())),
    ("own ipc", |b| hosts(b).ipc_mode.as_deref() == Some("private"), |b| hosts_mut(b).ipc_mode = Some("host".to_owned())),
    ("own uts", |b| hosts(b).uts_mode.as_deref() == Some(""), |b| hosts_mut(b).uts_mode = Some("host".to_owned())),
    ("user namespace", |b| hosts(b).userns_mode.as_deref() == Some(""), |b| hosts_mut(b).userns_mode = Some("host".to_owned())),
    ("own cgroups", |b| hosts(b).cgroupns_mode == Some(HostConfigCgroupnsModeEnum::PRIVATE), |b| hosts_mut(b).cgroupns_mode = Some(HostConfigCgroupnsModeEnum::HOST)),
    ("network", |b| hosts(b).network_mode.as_deref().is_some_and(|n| n == "none" || n.starts_with("feira-l-")), |b| hosts_mut(b).network_mode = Some("host".to_owned())),
    ("no ports", |b| hosts(b).port_bindings.is_none() && hosts(b).publish_all_ports == Some(false), |b| hosts_mut(b).publish_all_ports = Some(true)),
    ("shared memory", |b| hosts(b).shm_size <= hosts(b).memory, |b| hosts_mut(b).shm_size = Some(i64::MAX)),
    ("core files", |b| hosts(b).ulimits.iter().flatten().any(|u| u.name.as_deref() == Some("core") && u.hard == Some(0)), |b| hosts_mut(b).ulimits = None),
    ("open files", |b| hosts(b).ulimits.iter().flatten().any(|u| u.name.as_deref() == Some("nofile") && u.hard == Some(1_048_576)), |b| hosts_mut(b).ulimits = None),
    ("memory file systems", every_mount_in_memory_is_bounded, |b| { hosts_mut(b).tmpfs.as_mut().unwrap().insert("/x".to_owned(), "rw".to_owned()); }),
    ("masked paths", |b| hosts(b).masked_paths.as_ref().is_some_and(|p| p.len() == 13), |b| hosts_mut(b).masked_paths = Some(Vec::new())),
    ("read-only paths", |b| hosts(b).readonly_paths.as_ref().is_some_and(|p| p.contains(&"/proc/sys".to_owned())), |b| hosts_mut(b).readonly_paths = None),
    ("bounded logs", |b| hosts(b).log_config.as_ref().is_some_and(|l| l.typ.as_deref() == Some("json-file") && l.config.as_ref().is_some_and(|c| c["max-size"] == "10m" && c["max-file"] == "3")), |b| hosts_mut(b).log_config = None),
    ("no restart", |b| hosts(b).restart_policy.as_ref().is_some_and(|p| p.name == Some(RestartPolicyNameEnum::NO)), |b| hosts_mut(b).restart_policy = None),
    ("kept until removed", |b| hosts(b).auto_remove == Some(false), |b| hosts_mut(b).auto_remove = Some(true)),
    ("init", |b| hosts(b).init == Some(true), |b| hosts_mut(b).init = None),
    ("runtime", |b| hosts(b).runtime.as_deref() == Some("runc"), |b| hosts_mut(b).runtime = Some("nvidia".to_owned())),
    ("no binds", |b| hosts(b).binds.is_none() && hosts(b).mounts.is_none() && hosts(b).volumes_from.is_none(), |b| hosts_mut(b).mounts = Some(vec![Mount::default()])),
    ("no devices", |b| hosts(b).devices.is_none() && hosts(b).device_cgroup_rules.is_none(), |b| hosts_mut(b).devices = Some(vec![DeviceMapping::default()])),
    ("no kernel settings", |b| hosts(b).sysctls.is_none() && hosts(b).cgroup_parent.is_none(), |b| hosts_mut(b).cgroup_parent = Some("/".to_owned())),
    ("no health check", |b| b.healthcheck.as_ref().and_then(|h| h.test.clone()) == Some(vec!["NONE".to_owned()]), |b| b.healthcheck = None),
    ("host's variables", environment_is_the_hosts, |b| b.env.as_mut().unwrap().push("LD_PRELOAD=/evil.so".to_owned())),
    ("gpus", gpus_are_the_leased_ones, |b| b.env.as_mut().unwrap().push("NVIDIA_VISIBLE_DEVICES=all".to_owned())),
    ("open input, no terminal", |b| b.open_stdin == Some(true) && b.tty == Some(false), |b| b.tty = Some(true)),
    ("labels", labels_name_lease_and_host, |b| b.labels = None),
    ("stop", |b| b.stop_timeout.is_some_and(|t| t >= 0), |b| b.stop_timeout = None),
];

fn broken(body: &Body) -> Vec<&'static str> {
    let failed = PREDICATES.iter().filter(|(_, holds, _)| !holds(body));
    failed.map(|(name, _, _)| *name).collect()
}

#[test]
fn an_honest_body_breaks_nothing_and_each_predicate_notices_its_break() {
    assert_eq!(broken(&body()), Vec::<&str>::new());
    for (name, holds, break_it) in PREDICATES {
        let mut body = body();
        break_it(&mut body);
        assert!(!holds(&body), "'{name}' did not notice");
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Z_]{0,12}=?.{0,20}",
        Just("NVIDIA_VISIBLE_DEVICES=all".to_owned()),
        Just("LD_PRELOAD=/evil.so".to_owned()),
        Just("LD_LIBRARY_PATH=/proc/self/cwd:/usr/lib".to_owned()),
        Just("NVIDIA_DRIVER_CAPABILITIES=all".to_owned()),
        "(/|/\\.\\./|//)?(proc|sys|dev|var|tmp|x)(/[a-z.]{0,6}){0,3}/?",
    ]
}

fn any_variable() -> impl Strategy<Value = Variable> {
    let name = prop_oneof![
        "[A-Za-z0-9_=-]{0,10}",
        Just("NVIDIA_VISIBLE_DEVICES".to_owned()),
        Just("LD_PRELOAD".to_owned()),
        Just("NVIDIA_DRIVER_CAPABILITIES".to_owned()),
        Just("LD_AUDIT".to_owned()),
    ];
    (name, "[ -~]{0,20}").prop_map(|(name, value)| Variable {
        name: Text::new(name).unwrap(),
        value: Text::new(value).unwrap(),
    })
}

fn any_words() -> impl Strategy<Value = Option<List<Text<4096>, 64>>> {
    let word = "[ -~]{0,12}".prop_map(|word| Text::new(word).unwrap());
    proptest::option::of(prop::collection::vec(word, 0..4).prop_map(List::first))
}

prop_compose! {
    fn any_spec()(
        entrypoint in any_words(),
        command in any_words(),
        environment in prop::collection::vec(any_variable(), 0..3),
        gpus in 0_usize..3,
        cpu_millicores in any::<u32>(),
        ram in (6_u64 << 20)..(1 << 50),
        shared_memory in any::<u64>(),
        disk in any::<u64>(),
        bridge in any::<bool>(),
        grace in any::<u64>(),
    ) -> ContainerSpec {
        let mut spec = spec();
        spec.job.entrypoint = entrypoint;
        spec.job.command = command;
        spec.job.environment = List::first(environment);
        spec.gpus = List::first((0..gpus).map(|n| Text::cut(&format!("GPU-{n}"))));
        spec.cpu_millicores = cpu_millicores;
        spec.ram = Bytes(ram);
        spec.shared_memory = Bytes(shared_memory);
        spec.disk = Bytes(disk);
        spec.network = if bridge { ContainerNetwork::Bridge } else { ContainerNetwork::None };
        spec.stop_grace = Seconds(grace);
        spec
    }
}

prop_compose! {
    fn any_image()(
        size in 0_u64..(1 << 40),
        environment in prop::collection::vec(any_text(), 0..5),
        command in prop::collection::vec(any_text(), 0..3),
        working_directory in prop_oneof![Just(String::new()), any_text()],
        volumes in prop::collection::vec(any_text(), 0..3),
    ) -> PulledImage {
        let config = ImageConfig {
            environment, entrypoint: Vec::new(), command, working_directory, volumes,
        };
        PulledImage { id: "sha256:0a".to_owned(), size: Bytes(size), config }
    }
}

proptest! {
    #[test]
    fn no_job_and_no_image_can_break_a_predicate(spec in any_spec(), image in any_image()) {
        if let Ok(body) = container_body(&spec, &image, &engine(), host()) {
            prop_assert_eq!(broken(&body), Vec::<&str>::new());
        }
    }
}

#[test]
fn a_leased_gpu_is_asked_for_by_its_uuid() {
    let mut spec = spec();
    spec.gpus = List::first([Text::new("GPU-1a").unwrap(), Text::new("GPU-2b").unwrap()]);
    let body = container_body(&spec, &image(), &engine(), host()).unwrap();
    let request = &hosts(&body).device_requests.as_ref().unwrap()[0];
    assert_eq!(request.device_ids, Some(vec!["GPU-1a".to_owned(), "GPU-2b".to_owned()]));
    assert_eq!(last_value(&body, "NVIDIA_VISIBLE_DEVICES"), Some("GPU-1a,GPU-2b"));
}

#[test]
fn an_engine_with_quotas_and_new_control_groups_is_told_so() {
    let engine = EngineFacts { disk_quota: true, cgroup_version: 2, apparmor: false, ..engine() };
    let body = container_body(&spec(), &image(), &engine, host()).unwrap();
    let host_config = hosts(&body);
    // 10 GiB of disk less 1 GiB of image.
    assert_eq!(host_config.storage_opt.as_ref().unwrap()["size"], "9663676416");
    assert_eq!(host_config.memory_swappiness, None);
    assert_eq!(host_config.security_opt.as_ref().unwrap().len(), 1);
    assert_eq!(hosts(&self::body()).storage_opt, None);
}

#[test]
fn an_engine_with_a_low_limit_of_open_files_passes_no_more_on() {
    let engine = EngineFacts { open_files_max: 20_000, ..engine() };
    let body = container_body(&spec(), &image(), &engine, host()).unwrap();
    let limits = hosts(&body).ulimits.clone().unwrap();
    assert_eq!((limits[0].soft, limits[0].hard), (Some(20_000), Some(20_000)));
}

#[test]
fn sizes_and_times_are_the_leases() {
    let body = body();
    assert_eq!(hosts(&body).nano_cpus, Some(1_500_000_000));
    assert_eq!(hosts(&body).memory, Some(2_147_483_648));
    assert_eq!(hosts(&body).shm_size, Some(1_073_741_824));
    assert_eq!(body.stop_timeout, Some(10));
    assert_eq!(body.labels.unwrap()[LABEL_DISK], "9663676416");
}

fn refused(spec: &ContainerSpec, image: &PulledImage) -> Problem {
    container_body(spec, image, &engine(), host()).unwrap_err()
}

#[test]
fn a_variable_of_the_hosts_is_refused_by_name() {
    for name in ["NVIDIA_VISIBLE_DEVICES", "LD_PRELOAD", "NVIDIA_REQUIRE_CUDA", "GCONV_PATH", "1X"] {
        let mut spec = spec();
        let variable =
            Variable { name: Text::new(name).unwrap(), value: Text::new("all").unwrap() };
        spec.job.environment = List::first([variable]);
        let problem = refused(&spec, &image());
        assert_eq!(problem.kind, ProblemKind::ImageUnusable);
        assert!(problem.detail.contains(name), "{}", problem.detail);
    }
}

#[test]
fn what_an_image_sets_of_the_hosts_is_emptied() {
    let mut image = image();
    image.config.environment =
        vec!["GLIBC_TUNABLES=x".to_owned(), "LD_LIBRARY_PATH=/dev/shm:/opt/lib".to_owned()];
    let body = container_body(&spec(), &image, &engine(), host()).unwrap();
    assert_eq!(last_value(&body, "GLIBC_TUNABLES"), Some(""));
    assert_eq!(last_value(&body, "LD_LIBRARY_PATH"), Some("/opt/lib"));
}

#[test]
fn an_image_as_large_as_the_disk_is_too_big_and_both_sizes_are_said() {
    let image = PulledImage { size: Bytes(10 * GIB), ..image() };
    let problem = refused(&spec(), &image);
    assert_eq!(problem.kind, ProblemKind::ImageTooBig);
    assert!(problem.detail.contains("the image has 10.7 GB and the lease has 10.7 GB"));
}

#[test]
fn nothing_to_run_is_said() {
    let mut image = image();
    image.config.command = Vec::new();
    assert_eq!(refused(&spec(), &image).kind, ProblemKind::CommandUnknown);
    let mut spec = spec();
    spec.job.command = Some(List::first([Text::new("true").unwrap()]));
    assert!(container_body(&spec, &image, &engine(), host()).is_ok());
}
