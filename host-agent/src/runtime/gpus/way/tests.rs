//! Each way with the facts that lead there, and what is asked of the engine on it.

use super::*;
use crate::runtime::gpus::host::{Number, SliceNodes};
use protocol::bounded::Text;
use protocol::machine::Gpu;
use protocol::units::Bytes;
use std::collections::BTreeMap;

const NUMBER: Number = Number {
    major: 195,
    minor: 0,
};

/// Docker 28 with CDI and NVIDIA's runtime.
fn engine() -> EngineFacts {
    EngineFacts {
        version: "28.2.2".to_owned(),
        runtimes: vec!["nvidia".to_owned(), "runc".to_owned()],
        cdi_spec_dirs: vec!["/etc/cdi".to_owned()],
        ..EngineFacts::default()
    }
}

/// Two GPUs, the first with slice 3; and one of AMD.
fn host() -> HostGpus {
    let slice = SliceNodes {
        gpu_instance: 30,
        compute_instances: vec![31],
    };
    let names = [
        "nvidia0",
        "nvidia1",
        "nvidiactl",
        "nvidia-uvm",
        "nvidia-caps/nvidia-cap30",
        "nvidia-caps/nvidia-cap31",
        "kfd",
        "dri/renderD129",
        "dri/renderD128",
    ];
    let node = |name: &str| {
        let node = Node {
            path: format!("/dev/{name}").into(),
            number: NUMBER,
            group: name.starts_with("dri/").then_some(44),
        };
        (name.to_owned(), node)
    };
    let minors = [("GPU-0a".to_owned(), 0), ("GPU-1b".to_owned(), 1)];
    let library = (
        "libcuda.so.1".to_owned(),
        "/usr/lib64/libcuda.so.570".into(),
    );
    let lists = ["nvidia.com/gpu=GPU-0a", "nvidia.com/gpu=MIG-77"];
    let render = ("0000:63:00.0".to_owned(), vec!["dri/renderD129".to_owned()]);
    HostGpus {
        minors: Some(BTreeMap::from(minors)),
        slices: BTreeMap::from([((0, 3), slice)]),
        cdi: lists.map(str::to_owned).into(),
        toolkit: Version::parse("1.18.0"),
        nodes: names.iter().map(|name| node(name)).collect(),
        render: BTreeMap::from([render]),
        libraries: BTreeMap::from([library]),
        programs: BTreeMap::new(),
    }
}

fn leased(vendor: Vendor, device: &str, gpu: &str, gpu_instance: Option<u32>) -> LeasedGpu {
    LeasedGpu {
        device: Text::new(device).unwrap(),
        card: Gpu {
            uuid: Text::new(gpu).unwrap(),
            pci_address: Text::new("0000:63:00.0").unwrap(),
            ..Gpu::unknown(vendor)
        },
        gpu_instance,
        memory: Bytes(0),
    }
}

fn whole(gpu: &str) -> LeasedGpu {
    leased(Vendor::Nvidia, gpu, gpu, None)
}

fn slice() -> LeasedGpu {
    leased(Vendor::Nvidia, "MIG-77", "GPU-0a", Some(3))
}

#[track_caller]
fn way(gpus: &[LeasedGpu], engine: &EngineFacts, host: &HostGpus) -> Way {
    injection(gpus, engine, host).unwrap().way().unwrap()
}

#[test]
fn the_first_way_that_is_open_is_taken() {
    let gpu = [whole("GPU-0a")];
    assert_eq!(way(&gpu, &engine(), &host()), Way::Cdi);
    let older = EngineFacts {
        version: "24.0.9".to_owned(),
        ..engine()
    };
    assert_eq!(way(&gpu, &older, &host()), Way::Request);
    let first = EngineFacts {
        version: "25.0.0".to_owned(),
        ..engine()
    };
    assert_eq!(way(&gpu, &first, &host()), Way::Cdi);
    let off = EngineFacts {
        cdi_spec_dirs: Vec::new(),
        ..engine()
    };
    assert_eq!(way(&gpu, &off, &host()), Way::Request);
    // The list has the first and the slice, and not the second.
    assert_eq!(way(&[whole("GPU-1b")], &engine(), &host()), Way::Request);
    assert_eq!(
        way(&[whole("GPU-0a"), whole("GPU-1b")], &engine(), &host()),
        Way::Request
    );
    assert_eq!(way(&[slice()], &engine(), &host()), Way::Cdi);
    let plain = EngineFacts {
        runtimes: vec!["runc".to_owned()],
        ..off
    };
    assert_eq!(way(&gpu, &plain, &host()), Way::Nodes);
}

#[test]
fn hooks_of_an_old_toolkit_do_not_run() {
    let old = HostGpus {
        toolkit: Version::parse("1.17.7"),
        ..host()
    };
    assert_eq!(way(&[whole("GPU-0a")], &engine(), &old), Way::Nodes);
    let floor = HostGpus {
        toolkit: Version::parse("1.17.8"),
        ..host()
    };
    assert_eq!(way(&[whole("GPU-0a")], &engine(), &floor), Way::Cdi);
    let bare = HostGpus {
        libraries: BTreeMap::new(),
        ..old
    };
    let reason = injection(&[whole("GPU-0a")], &engine(), &bare).unwrap_err();
    assert_eq!(
        reason,
        "device list: toolkit 1.17.7 runs what an image says as root, and 1.17.8 does not; \
         runtime: toolkit 1.17.7 runs what an image says as root, and 1.17.8 does not; \
         own list: libcuda.so.1 and libnvidia-ml.so.1 are in none of the usual folders"
    );
}

#[test]
fn each_way_names_the_device_and_what_must_be_seen_of_it() {
    let cdi = injection(&[slice()], &engine(), &host()).unwrap();
    assert_eq!(cdi.names, ["nvidia.com/gpu=MIG-77"]);
    assert!(cdi.nodes.is_empty() && cdi.files.is_empty());
    assert_eq!(
        cdi.given.unwrap().to_string(),
        "cdi MIG-77 /dev/nvidia-caps/nvidia-cap30,/dev/nvidia-caps/nvidia-cap31,/dev/nvidia0"
    );
    let both = [whole("GPU-0a"), whole("GPU-1b")];
    let request = injection(&both, &engine(), &host()).unwrap();
    assert_eq!(request.names, ["GPU-0a", "GPU-1b"]);
    assert_eq!(
        request.given.unwrap().to_string(),
        "request GPU-0a,GPU-1b /dev/nvidia0,/dev/nvidia1"
    );
    // Behind a kernel that shows no driver, their number is what can be seen.
    let blind = HostGpus {
        minors: None,
        ..host()
    };
    let request = injection(&both, &engine(), &blind).unwrap();
    assert_eq!(
        request.given.unwrap().to_string(),
        "request GPU-0a,GPU-1b 2"
    );
}

#[test]
fn our_own_list_has_the_leased_nodes_alone_and_no_name() {
    let plain = EngineFacts {
        version: "20.10.24".to_owned(),
        runtimes: Vec::new(),
        ..engine()
    };
    let found = injection(&[slice()], &plain, &host()).unwrap();
    assert!(found.names.is_empty() && found.groups.is_empty());
    let nodes: Vec<(&str, bool)> = found
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.is_written))
        .collect();
    let wanted = [
        ("nvidia-caps/nvidia-cap30", false),
        ("nvidia-caps/nvidia-cap31", false),
        ("nvidia0", true),
        ("nvidiactl", true),
        ("nvidia-uvm", true),
    ];
    assert_eq!(nodes, wanted);
    let file = (
        PathBuf::from("/usr/lib64/libcuda.so.570"),
        "/usr/local/nvidia/lib64/libcuda.so.1".to_owned(),
    );
    assert_eq!(found.files, [file]);
    assert!(is_drivers("/usr/local/nvidia/lib64/x") && !is_drivers("/usr/local/nvidia2/x"));
}

#[test]
fn a_gpu_or_slice_that_is_not_there_is_given_in_no_way() {
    let reason = |gpu: LeasedGpu, host: &HostGpus| injection(&[gpu], &engine(), host).unwrap_err();
    assert_eq!(reason(whole("GPU-9"), &host()), "the driver shows no GPU-9");
    let other = leased(Vendor::Nvidia, "MIG-77", "GPU-0a", Some(4));
    assert_eq!(
        reason(other, &host()),
        "the driver shows no capability of MIG-77"
    );
    let mut cut = host();
    let parts = cut.slices.get_mut(&(0, 3)).unwrap();
    parts.compute_instances.push(32);
    assert_eq!(
        reason(slice(), &cut),
        "MIG-77 is cut into 2 compute instances, and not one"
    );
    let mixed = [whole("GPU-0a"), leased(Vendor::Amd, "GPU-x", "GPU-x", None)];
    assert!(
        injection(&mixed, &engine(), &host())
            .unwrap_err()
            .contains("two vendors")
    );
    assert_eq!(injection(&[], &engine(), &host()), Ok(Injection::default()));
}

#[test]
fn other_vendors_gpus_come_by_their_own_render_node() {
    let amd = injection(
        &[leased(Vendor::Amd, "GPU-x", "GPU-x", None)],
        &engine(),
        &host(),
    )
    .unwrap();
    let names: Vec<&str> = amd.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["dri/renderD129", "kfd"]);
    assert_eq!(amd.groups, BTreeSet::from([44]));
    assert!(amd.files.is_empty() && amd.names.is_empty());
    assert_eq!(
        amd.given.unwrap().to_string(),
        "nodes GPU-x /dev/dri/renderD129"
    );
    // An equal part of a GPU: its own node alone, and not that of the part that is the device on the bus.
    let part = leased(Vendor::Amd, "renderD128", "GPU-x", None);
    let part = injection(&[part], &engine(), &host()).unwrap();
    let names: Vec<&str> = part.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["dri/renderD128", "kfd"]);
    let intel = leased(Vendor::Intel, "PCI-x", "PCI-x", None);
    let intel = injection(&[intel], &engine(), &host()).unwrap();
    assert_eq!(intel.nodes.len(), 1);
    let bare = HostGpus {
        render: BTreeMap::new(),
        ..host()
    };
    let amd = leased(Vendor::Amd, "GPU-x", "GPU-x", None);
    assert_eq!(
        injection(&[amd], &engine(), &bare).unwrap_err(),
        "the GPU at 0000:63:00.0 has no render node"
    );
}
