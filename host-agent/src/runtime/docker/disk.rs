//! How much a container wrote to its own layer. The engine has no counter for it: the layer is walked, and
//! the walk ends as soon as it has seen enough.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bollard::query_parameters::InspectContainerOptionsBuilder;
use protocol::ids::LeaseId;
use protocol::units::Bytes;

use super::super::RuntimeError;
use super::super::sandbox::container_name;
use super::{DockerRuntime, lifecycle};

/// What a file's blocks are counted in, whatever the file system's own block is.
const BLOCK_BYTES: u64 = 512;
/// What a file without blocks costs all the same: its inode.
const INODE_BYTES: u64 = 256;

pub(super) async fn used(runtime: &DockerRuntime, lease: LeaseId) -> Result<Bytes, RuntimeError> {
    used_up_to(runtime, lease, Bytes(u64::MAX)).await
}

/// What it wrote; when that is more than `enough`, perhaps only so much as was seen by then.
pub(super) async fn used_up_to(
    runtime: &DockerRuntime,
    lease: LeaseId,
    enough: Bytes,
) -> Result<Bytes, RuntimeError> {
    let name = container_name(lease);
    let found = lifecycle::look(runtime, &name)
        .await?
        .ok_or(RuntimeError::NoContainer)?;
    let layer = found
        .graph_driver
        .and_then(|driver| driver.data.get("UpperDir").cloned());
    let walked = match layer.map(PathBuf::from) {
        Some(layer) if layer.is_dir() => tokio::task::spawn_blocking(move || walk(&layer, enough))
            .await
            .ok(),
        _ => None,
    };
    match walked {
        Some(walked) => Ok(walked),
        None => ask(runtime, &name).await,
    }
}

/// The engine walks it itself: for other storage drivers, and where its folder cannot be read.
async fn ask(runtime: &DockerRuntime, name: &str) -> Result<Bytes, RuntimeError> {
    let options = InspectContainerOptionsBuilder::default().size(true).build();
    let failed = runtime.failed("measure the container");
    let found = runtime
        .docker
        .inspect_container(name, Some(options))
        .await
        .map_err(failed)?;
    Ok(Bytes(
        found
            .size_rw
            .and_then(|size| u64::try_from(size).ok())
            .unwrap_or(0),
    ))
}

/// Blocks of every file below `root`, links not followed. What vanishes meanwhile is not counted.
fn walk(root: &Path, enough: Bytes) -> Bytes {
    let mut folders = vec![root.to_owned()];
    let mut sum = 0_u64;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(file) = entry.metadata() else { continue };
            sum = sum.saturating_add((file.blocks() * BLOCK_BYTES).max(INODE_BYTES));
            if file.is_dir() {
                folders.push(entry.path());
            }
        }
        if sum > enough.0 {
            break;
        }
    }
    Bytes(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_count_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("big"), vec![1; 1 << 20]).unwrap();
        fs::create_dir(folder.path().join("inner")).unwrap();
        fs::write(folder.path().join("inner/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        let Bytes(sum) = walk(folder.path(), Bytes(u64::MAX));
        assert!((100_000..200_000).contains(&sum), "{sum}");
    }
}
