//! What a container sees of the machine: the folder of its notices, where it belongs, read only, and nothing over it;
//! and with GPUs the driver's files, read only and in their own folder.

use super::super::*;
use super::predicates::{hosts, hosts_mut};
use bollard::models::{ContainerCreateBody as Body, MountType};

/// The folder that the tests' agent keeps for the lease; a request cannot name another.
const NOTICES: &str = "/var/lib/feira-host/notices/l-x";

pub(super) fn only_notices_are_mounted(body: &Body) -> bool {
    let Some([mount, files @ ..]) = hosts(body).mounts.as_deref() else {
        return false;
    };
    let is_of_nodes = hosts(body).devices.is_some();
    (files.is_empty() || is_of_nodes)
        && files.iter().all(is_drivers_file)
        && mount.typ == Some(MountType::BIND)
        && mount.source.as_deref() == Some(NOTICES)
        && mount.target.as_deref() == Some("/run/feira")
        && mount.read_only == Some(true)
        && mount.bind_options.as_ref().is_some_and(|options| {
            options.propagation == Some(MountBindOptionsPropagationEnum::RPRIVATE)
                && options.create_mountpoint.is_none()
        })
        && mount.volume_options.is_none()
        && mount.tmpfs_options.is_none()
}

fn is_drivers_file(mount: &Mount) -> bool {
    let target = mount.target.as_deref().unwrap_or_default();
    mount.typ == Some(MountType::BIND)
        && mount.source.as_deref() == Some("/usr/lib64/libcuda.so.570")
        && target == "/usr/local/nvidia/lib64/libcuda.so.1"
        && mount.read_only == Some(true)
        && mount.bind_options.as_ref().is_some_and(|options| {
            options.propagation == Some(MountBindOptionsPropagationEnum::RPRIVATE)
        })
}

pub(super) fn nothing_covers_the_notices(body: &Body) -> bool {
    let mounts = hosts(body).tmpfs.clone().unwrap_or_default();
    !mounts
        .keys()
        .any(|path| paths::is_within(path, "/run/feira"))
}

pub(super) fn mount(body: &mut Body) -> &mut Mount {
    hosts_mut(body)
        .mounts
        .as_mut()
        .unwrap()
        .first_mut()
        .unwrap()
}
