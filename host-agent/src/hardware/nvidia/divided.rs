//! How NVIDIA's GPUs are divided, in the words of the agent's rules; and what these rules tell the driver.

use super::process::CallError;
use super::supervisor::Supervisor;
use crate::core::slices::acts::Act;
use crate::core::slices::{Divisible, Divisibles, Mode, Standing, chip_of};
use crate::hardware::CutProblem;
use futures::future::join_all;
use host_nvml::fault::Fault;
use host_nvml::slices::{Instance, MigMode, Profile};
use mig::board::Reported;
use protocol::bounded::Text;
use protocol::machine::Gpu;

/// The GPUs that can be divided and answer now. Each is asked beside the others.
pub(in crate::hardware) async fn divisibles(supervisor: &Supervisor) -> Divisibles {
    let seen = supervisor.seen().await;
    let gpus = seen.gpus().iter().filter(|gpu| gpu.is_divided.is_some());
    let found = join_all(gpus.map(|gpu| divisible(supervisor, gpu))).await;
    found
        .into_iter()
        .flatten()
        .map(|gpu| (gpu.gpu.clone(), gpu))
        .collect()
}

async fn divisible(supervisor: &Supervisor, gpu: &Gpu) -> Option<Divisible> {
    let known = async {
        let mode = supervisor.mig_mode(&gpu.uuid).await?;
        let profiles = supervisor.profiles(&gpu.uuid).await?;
        let instances = supervisor.instances(&gpu.uuid).await?;
        let facts = supervisor.reset_facts(&gpu.uuid).await?;
        Ok::<_, CallError>((mode, profiles, instances, facts))
    };
    let (mode, profiles, instances, facts) = match known.await {
        Ok(known) => known,
        // It says so itself where it does not answer.
        Err(error) => {
            tracing::debug!(gpu = %gpu.uuid.as_str(), %error, "how the GPU is divided is not known");
            return None;
        }
    };
    let reported: Vec<Reported> = profiles.iter().filter_map(reported).collect();
    let chip = chip_of(gpu, &reported)
        .inspect_err(|error| tracing::warn!(%error, "this GPU is not divided"))
        .ok()?;
    Some(Divisible {
        gpu: gpu.uuid.clone(),
        mode: mode_of(mode),
        chip,
        standing: instances.iter().filter_map(standing).collect(),
        // Of a driver that does not say who uses it, nobody is thrown off.
        in_use: facts.processes.is_none_or(|users| !users.is_empty()),
        uniform: None,
    })
}

/// Does one thing about slices; of one that was made, says which device it is.
pub(in crate::hardware) async fn cut(
    supervisor: &Supervisor,
    act: &Act,
) -> Result<Option<Text<64>>, CutProblem> {
    let gpu = Text::new(act.gpu()).map_err(|error| CutProblem {
        is_in_use: false,
        detail: format!("{} is no GPU: {error}", act.gpu()),
    })?;
    match act {
        Act::SetMode { divided, .. } => {
            supervisor
                .set_mig_mode(&gpu, *divided)
                .await
                .map_err(problem)?;
            Ok(None)
        }
        Act::Make { profile, start, .. } => {
            let made = supervisor
                .create_instance(&gpu, *profile, u32::from(*start))
                .await
                .map_err(problem)?;
            Ok(made.compute.and_then(|compute| compute.uuid))
        }
        Act::Divide { gpu, .. } => Err(CutProblem {
            is_in_use: false,
            detail: format!("{gpu} is cut into slices, not divided into equal parts"),
        }),
        Act::End { number, .. } => {
            supervisor
                .destroy_instance(&gpu, *number)
                .await
                .map_err(problem)?;
            Ok(None)
        }
    }
}

fn problem(error: CallError) -> CutProblem {
    CutProblem {
        is_in_use: error == CallError::Fault(Fault::InUse),
        detail: error.to_string(),
    }
}

fn mode_of(mode: MigMode) -> Mode {
    match (mode.current, mode.pending) {
        (false, false) => Mode::Whole,
        (true, true) => Mode::Divided,
        (true, false) | (false, true) => Mode::Pending,
    }
}

/// A profile as the rules want it; nothing for one whose numbers no GPU has.
fn reported(profile: &Profile) -> Option<Reported> {
    let mut starts = Vec::new();
    for placement in &profile.placements {
        starts.push(u8::try_from(placement.start).ok()?);
    }
    starts.sort_unstable();
    Some(Reported {
        name: profile.name.as_str().to_owned(),
        id: profile.id,
        compute: u8::try_from(profile.compute_slices).ok()?,
        size: u8::try_from(profile.placements.first()?.size).ok()?,
        starts,
        count_max: u8::try_from(profile.count_max).ok()?,
        memory_mib: u32::try_from(profile.memory.0 >> 20).ok()?,
        sm: u16::try_from(profile.multiprocessors).ok()?,
    })
}

fn standing(instance: &Instance) -> Option<Standing> {
    Some(Standing {
        number: instance.gpu_instance,
        profile: instance.profile,
        start: u8::try_from(instance.placement.start).ok()?,
        size: u8::try_from(instance.placement.size).ok()?,
        device: instance
            .compute
            .as_ref()
            .and_then(|compute| compute.uuid.clone()),
    })
}
