//! What a body says of GPUs: by what the way to them needs, and nothing else of the machine.

use bollard::models::{
    DeviceMapping, DeviceRequest, Mount, MountBindOptions, MountBindOptionsPropagationEnum,
    MountType,
};

use super::super::gpus::given::Way;
use super::super::gpus::way::{GivenNode, Injection};
use super::texts;

/// What the engine is asked for.
pub(super) fn requests(injection: &Injection) -> Option<Vec<DeviceRequest>> {
    let request = match injection.way()? {
        Way::Cdi => DeviceRequest {
            driver: Some("cdi".to_owned()),
            device_ids: Some(injection.names.clone()),
            ..DeviceRequest::default()
        },
        Way::Request => DeviceRequest {
            driver: Some("nvidia".to_owned()),
            count: Some(0),
            device_ids: Some(injection.names.clone()),
            capabilities: Some(vec![texts(&["gpu", "compute", "utility"])]),
            options: None,
        },
        Way::Nodes => return None,
    };
    Some(vec![request])
}

/// Nodes of our own list. None may be made anew in the container.
pub(super) fn devices(injection: &Injection) -> Option<Vec<DeviceMapping>> {
    let device = |node: &GivenNode| DeviceMapping {
        path_on_host: Some(node.path.display().to_string()),
        path_in_container: Some(format!("/dev/{}", node.name)),
        cgroup_permissions: Some(if node.is_written { "rw" } else { "r" }.to_owned()),
    };
    let devices: Vec<DeviceMapping> = injection.nodes.iter().map(device).collect();
    (!devices.is_empty()).then_some(devices)
}

/// Groups of the host that may use those nodes.
pub(super) fn groups(injection: &Injection) -> Option<Vec<String>> {
    let groups: Vec<String> = injection.groups.iter().map(ToString::to_string).collect();
    (!groups.is_empty()).then_some(groups)
}

/// The driver's files of our own list.
pub(super) fn mounts(injection: &Injection) -> impl Iterator<Item = Mount> {
    injection.files.iter().map(|(source, target)| Mount {
        typ: Some(MountType::BIND),
        source: Some(source.display().to_string()),
        target: Some(target.clone()),
        read_only: Some(true),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    })
}
