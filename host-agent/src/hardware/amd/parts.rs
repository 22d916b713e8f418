//! GPUs of AMD's that are divided into equal parts, in the words of the agent's rules; and the change of it, through the
//! driver's files. Nothing is decided here: who is idle, the rules have seen before.

use super::AmdGpu;
use crate::core::slices::{Divisible, Divisibles, Mode, Standing};
use crate::hardware::CutProblem;
use crate::hardware::pci::text;
use mig::amd::{Division, MemoryMode, Model, Modes};
use mig::chip::Chip;
use protocol::bounded::Text;
use protocol::offer::ResourceName;
use rustix::io::Errno;
use std::fs;
use std::io;
use std::path::Path;

const COMPUTE: &str = "current_compute_partition";
const COMPUTE_AVAILABLE: &str = "available_compute_partition";
const MEMORY: &str = "current_memory_partition";

/// Those of `gpus` that are of a model known to be divided, as they are now.
#[must_use]
pub fn divisibles(gpus: &[AmdGpu]) -> Divisibles {
    let all = gpus.iter().filter_map(divisible);
    all.map(|gpu| (gpu.gpu.clone(), gpu)).collect()
}

fn divisible(found: &AmdGpu) -> Option<Divisible> {
    let partition = found.partition.as_ref()?;
    let model = Model::find(&found.gpu.model)?;
    let modes = Modes {
        compute: partition.compute.parse().ok()?,
        memory: Some(match &partition.memory {
            Some(memory) => memory.parse().ok()?,
            None => MemoryMode::Nps1,
        }),
    };
    let division = Division::new(model, modes.compute, modes.memory?).ok()?;
    let chip = model.chip(u32::try_from(found.gpu.vram.0 >> 20).ok()?)?;
    let minors = &partition.render_minors;
    let standing = parts(&chip, division, |part| {
        let minor = minors.get(usize::from(part))?;
        Some(Text::cut(&format!("renderD{minor}")))
    });
    Some(Divisible {
        gpu: found.gpu.uuid.clone(),
        mode: if standing.is_empty() {
            Mode::Whole
        } else {
            Mode::Divided
        },
        chip,
        standing,
        in_use: partition.in_use,
        uniform: Some(division),
    })
}

/// The parts of a GPU that is divided so; none of one that is whole. `device` is the render node of each.
#[must_use]
pub fn parts(
    chip: &Chip,
    division: Division,
    device: impl Fn(u8) -> Option<Text<64>>,
) -> Vec<Standing> {
    let name = division.profile_name();
    let profile = chip.find(&name).and_then(|index| chip.profile(index));
    let of_profile = profile.into_iter().flat_map(|profile| {
        let starts = profile.starts.iter();
        (0..)
            .zip(starts)
            .map(move |(part, start)| (profile, part, *start))
    });
    of_profile
        .map(|(profile, part, start)| Standing {
            number: u32::from(part),
            profile: profile.id,
            start,
            size: profile.size,
            device: device(part),
        })
        .collect()
}

/// Divides the GPU of that UUID as it is wanted: its memory first, because the driver may follow with its compute mode by
/// itself. `root` is `/sys`.
///
/// # Errors
/// What the driver does not take, what takes more than a file, and who must do it.
pub fn divide(
    root: &Path,
    gpus: &[AmdGpu],
    gpu: &ResourceName,
    wanted: Division,
) -> Result<(), CutProblem> {
    let found = gpus.iter().find(|known| known.gpu.uuid == *gpu);
    let found = found.ok_or_else(|| failed(format!("{gpu} is not there")))?;
    let folder = root
        .join("bus/pci/devices")
        .join(found.gpu.pci_address.as_str());
    let modes = wanted.modes();
    if let Some(memory) = modes.memory.map(|memory| memory.to_string()) {
        set_memory(&folder, &memory)?;
    }
    let compute = modes.compute.to_string();
    if text(&folder.join(COMPUTE)).as_deref() == Some(&compute) {
        return Ok(());
    }
    let available = text(&folder.join(COMPUTE_AVAILABLE)).unwrap_or_default();
    if !available.split(',').any(|mode| mode.trim() == compute) {
        return Err(failed(format!(
            "the driver has no {compute} here: {available}"
        )));
    }
    write(&folder.join(COMPUTE), &compute)?;
    match text(&folder.join(COMPUTE)) {
        Some(now) if now == compute => Ok(()),
        now => Err(failed(format!(
            "the driver took {compute} and shows {}",
            now.as_deref().unwrap_or("nothing")
        ))),
    }
}

fn set_memory(folder: &Path, wanted: &str) -> Result<(), CutProblem> {
    let file = folder.join(MEMORY);
    let now = text(&file);
    // A driver that does not say has one way only.
    if now.as_deref() == Some(wanted) || (now.is_none() && wanted == "NPS1") {
        return Ok(());
    }
    write(&file, wanted)?;
    if text(&file).as_deref() == Some(wanted) {
        return Ok(());
    }
    Err(failed(format!(
        "{wanted} is asked for; the driver takes it when it is loaded anew: stop what uses the GPUs, then \
         'modprobe -r amdgpu && modprobe amdgpu', or reboot"
    )))
}

fn write(file: &Path, mode: &str) -> Result<(), CutProblem> {
    // Never made anew: a file that is not there is one that the driver does not have.
    let written = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(file)
        .and_then(|mut file| io::Write::write_all(&mut file, mode.as_bytes()));
    written.map_err(|error| CutProblem {
        is_in_use: error.raw_os_error() == Some(Errno::BUSY.raw_os_error()),
        detail: format!("{mode} to {}: {error}", file.display()),
    })
}

fn failed(detail: String) -> CutProblem {
    CutProblem {
        is_in_use: false,
        detail,
    }
}

#[cfg(test)]
mod tests;
