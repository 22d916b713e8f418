//! A stand-in for NVIDIA's driver library (`libcuda.so.1`), for machines without a GPU: as much of it as the scrub
//! between two leases calls. Memory of a GPU is a file, which a test writes to and reads as a renter would.
//!
//! [`VRAM`] names the folder of these files, one for each device that `CUDA_VISIBLE_DEVICES` names. Work that is asked
//! for is done before the call returns; kernels do nothing. Without the variable there is no device.

use std::path::PathBuf;

mod calls;
mod memory;

pub use memory::SIZE;

/// The environment variable that names the folder of the devices' memory.
pub const VRAM: &str = "FEIRA_FAKE_VRAM";

/// The built library, beside the program that asks for it: it is built with whatever depends on this crate.
///
/// # Errors
/// When it is not there.
pub fn library() -> std::io::Result<PathBuf> {
    const NAME: &str = "libfake_cuda.so";
    let program = std::env::current_exe()?;
    let found = program
        .ancestors()
        .skip(1)
        .take(2)
        .flat_map(|folder| [folder.join(NAME), folder.join("deps").join(NAME)])
        .find(|path| path.exists());
    found.ok_or_else(|| {
        let near = program.display();
        let detail = format!("no {NAME} near {near}: build the package fake-cuda");
        std::io::Error::new(std::io::ErrorKind::NotFound, detail)
    })
}
