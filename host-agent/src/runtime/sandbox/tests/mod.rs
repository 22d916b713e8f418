//! One predicate for each thing that a container may not be able to do, held against bodies of any job and
//! image, and each shown to notice the body that breaks it.

mod gpus;
mod mounts;
mod predicates;

use super::*;
use crate::runtime::ImageConfig;
use crate::runtime::gpus::given::{Expected, Given, Way};
use crate::runtime::gpus::way::GivenNode;
use bollard::models::ContainerCreateBody as Body;
use predicates::{PREDICATES, hosts, last_value};
use proptest::prelude::*;
use protocol::bounded::{List, Text};
use protocol::ids::BrokerId;
use protocol::job::{Job, PinnedImage, Variable};
use protocol::units::Seconds;
use std::collections::BTreeMap;

const GIB: u64 = 1 << 30;

fn engine() -> EngineFacts {
    EngineFacts {
        version: "20.10.24".to_owned(),
        api: (1, 41),
        runtime: "runc 1.1.5".to_owned(),
        runtimes: vec!["runc".to_owned()],
        default_runtime: "runc".to_owned(),
        cdi_spec_dirs: Vec::new(),
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
            image: PinnedImage {
                name: Text::new("demo").unwrap(),
                sha256: [9; 32],
            },
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
        notices: "/var/lib/feira-host/notices/l-x".into(),
    }
}

fn image() -> PulledImage {
    let config = ImageConfig {
        environment: vec!["PATH=/bin".to_owned()],
        command: vec!["/bin/demo".to_owned()],
        ..ImageConfig::default()
    };
    PulledImage {
        id: "sha256:0a".to_owned(),
        size: Bytes(GIB),
        config,
    }
}

fn none() -> Injection {
    Injection::default()
}

/// A GPU of the lease, given in this way.
fn given(way: Way) -> Injection {
    let device = "GPU-0a".to_owned();
    let names = match way {
        Way::Cdi => vec![format!("nvidia.com/gpu={device}")],
        Way::Request => vec![device.clone()],
        Way::Nodes => Vec::new(),
    };
    let node = |name: &str, is_written| GivenNode {
        path: format!("/dev/{name}").into(),
        name: name.to_owned(),
        is_written,
    };
    let is_listed = way == Way::Nodes;
    let nodes = [
        node("nvidia0", true),
        node("nvidia-caps/nvidia-cap30", false),
    ];
    let file = (
        "/usr/lib64/libcuda.so.570".into(),
        "/usr/local/nvidia/lib64/libcuda.so.1".to_owned(),
    );
    Injection {
        names,
        nodes: nodes.into_iter().filter(|_| is_listed).collect(),
        files: [file].into_iter().filter(|_| is_listed).collect(),
        groups: is_listed.then_some(44).into_iter().collect(),
        given: Some(Given {
            way,
            devices: vec![device],
            expected: Expected::Count(1),
        }),
    }
}

fn any_injection() -> impl Strategy<Value = Injection> {
    prop_oneof![
        Just(none()),
        Just(given(Way::Cdi)),
        Just(given(Way::Request)),
        Just(given(Way::Nodes)),
    ]
}

fn body() -> Body {
    container_body(&spec(), &image(), &engine(), host(), &none()).unwrap()
}

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
        "(/|/\\.\\./|//)?(proc|sys|dev|var|tmp|run|run/feira|x)(/[a-z.]{0,6}){0,3}/?",
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
            labels: BTreeMap::new(),
        };
        PulledImage { id: "sha256:0a".to_owned(), size: Bytes(size), config }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn no_job_and_no_image_can_break_a_predicate(
        spec in any_spec(), image in any_image(), injection in any_injection(),
    ) {
        if let Ok(body) = container_body(&spec, &image, &engine(), host(), &injection) {
            prop_assert_eq!(broken(&body), Vec::<&str>::new());
        }
    }
}

#[test]
fn an_engine_with_quotas_and_new_control_groups_is_told_so() {
    let engine = EngineFacts {
        disk_quota: true,
        cgroup_version: 2,
        apparmor: false,
        ..engine()
    };
    let body = container_body(&spec(), &image(), &engine, host(), &none()).unwrap();
    let host_config = hosts(&body);
    // 10 GiB of disk less 1 GiB of image.
    assert_eq!(
        host_config.storage_opt.as_ref().unwrap()["size"],
        "9663676416"
    );
    assert_eq!(host_config.memory_swappiness, None);
    assert_eq!(host_config.security_opt.as_ref().unwrap().len(), 1);
    assert_eq!(hosts(&self::body()).storage_opt, None);
}

#[test]
fn an_engine_with_a_low_limit_of_open_files_passes_no_more_on() {
    let engine = EngineFacts {
        open_files_max: 20_000,
        ..engine()
    };
    let body = container_body(&spec(), &image(), &engine, host(), &none()).unwrap();
    let limits = hosts(&body).ulimits.clone().unwrap();
    assert_eq!(
        (limits[0].soft, limits[0].hard),
        (Some(20_000), Some(20_000))
    );
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
    container_body(spec, image, &engine(), host(), &none()).unwrap_err()
}

#[test]
fn a_variable_of_the_hosts_is_refused_by_name() {
    for name in [
        "NVIDIA_VISIBLE_DEVICES",
        "LD_PRELOAD",
        "NVIDIA_REQUIRE_CUDA",
        "GCONV_PATH",
        "1X",
    ] {
        let mut spec = spec();
        let variable = Variable {
            name: Text::new(name).unwrap(),
            value: Text::new("all").unwrap(),
        };
        spec.job.environment = List::first([variable]);
        let problem = refused(&spec, &image());
        assert_eq!(problem.kind, ProblemKind::ImageUnusable);
        assert!(problem.detail.contains(name), "{}", problem.detail);
    }
}

#[test]
fn what_an_image_sets_of_the_hosts_is_emptied() {
    let mut image = image();
    image.config.environment = vec![
        "GLIBC_TUNABLES=x".to_owned(),
        "LD_LIBRARY_PATH=/dev/shm:/opt/lib".to_owned(),
    ];
    let body = container_body(&spec(), &image, &engine(), host(), &none()).unwrap();
    assert_eq!(last_value(&body, "GLIBC_TUNABLES"), Some(""));
    assert_eq!(last_value(&body, "LD_LIBRARY_PATH"), Some("/opt/lib"));
}

#[test]
fn an_image_as_large_as_the_disk_is_too_big_and_both_sizes_are_said() {
    let image = PulledImage {
        size: Bytes(10 * GIB),
        ..image()
    };
    let problem = refused(&spec(), &image);
    assert_eq!(problem.kind, ProblemKind::ImageTooBig);
    assert!(
        problem
            .detail
            .contains("the image has 10.7 GB and the lease has 10.7 GB")
    );
}

#[test]
fn nothing_to_run_is_said() {
    let mut image = image();
    image.config.command = Vec::new();
    assert_eq!(refused(&spec(), &image).kind, ProblemKind::CommandUnknown);
    let mut spec = spec();
    spec.job.command = Some(List::first([Text::new("true").unwrap()]));
    assert!(container_body(&spec, &image, &engine(), host(), &none()).is_ok());
}
