//! Where the built library is, and how it becomes that of an older driver.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a driver of the R450 family does not have yet.
pub const MISSING_IN_R450: [&str; 14] = [
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetComputeRunningProcesses_v2",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v2",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v2",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetNvLinkRemotePciInfo_v2",
    "nvmlDeviceGetGpuInstanceProfileInfoV",
    "nvmlDeviceGetGpuInstancePossiblePlacements_v2",
    "nvmlComputeInstanceGetInfo_v2",
    "nvmlEventSetWait_v2",
    "nvmlDeviceGetNumGpuCores",
];

/// The built library, beside the program that asks for it: it is built with whatever depends on this crate.
///
/// # Errors
/// When it is not there.
pub fn library() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let found = program
        .ancestors()
        .skip(1)
        .take(2)
        .flat_map(|folder| [folder.join(NAME), folder.join("deps").join(NAME)])
        .find(|path| path.exists());
    found.ok_or_else(|| {
        let near = program.display();
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("no {NAME} near {near}: build the package fake-nvml"),
        )
    })
}

const NAME: &str = "libfake_nvml.so";

/// A copy of the library in `folder` without the functions of these names: to the loader they are not there.
///
/// # Errors
/// When the library is not there, or does not have one of them.
pub fn without(folder: &Path, names: &[&str]) -> io::Result<PathBuf> {
    let mut bytes = fs::read(library()?)?;
    let mut missing: Vec<&str> = names.to_vec();
    let mut places = Vec::new();
    let mut at = 0;
    // Whole texts between two zeros, so that no other function loses its name.
    for text in bytes.split(|byte| *byte == 0) {
        if let Some(name) = names.iter().find(|name| name.as_bytes() == text) {
            places.push(at);
            missing.retain(|other| other != name);
        }
        at += text.len() + 1;
    }
    if let Some(name) = missing.first() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("the library has no {name}"),
        ));
    }
    for place in places {
        bytes[place] = b'x';
    }
    let path = folder.join("libnvidia-ml-old.so.1");
    fs::write(&path, bytes)?;
    Ok(path)
}
