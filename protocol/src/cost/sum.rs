//! The sum itself: the facts of a job and of a site, put into the formula.
//!
//! Makes no list and no text: a search comes here once for every offer.

use super::assumption::{
    Assumption, Assumptions, BOOT_SECONDS, COMPUTE_EFFICIENCY, DISK_BYTES_PER_SECOND,
    HAZARD_PER_HOUR, INTERRUPTIONS_PER_HOUR, MEMORY_EFFICIENCY, NETWORK_BYTES_PER_SECOND,
    UNPACK_BYTES_PER_SECOND,
};
use super::formula::Run;
use super::number::{float, known, nearest};
use super::profile::{Fraction, JobProfile};
use super::site::Site;
use super::{Costs, JobCost, Times, Unfit};
use crate::terms::{compute_due, storage_due, traffic_due};
use crate::units::{Bytes, Millis, Seconds};

/// Longest that anything is estimated to take: ten years, which is also the longest lease.
const SECONDS_MAX: f64 = 10.0 * 365.0 * 86_400.0;

/// What `job` takes and costs at `site`.
///
/// # Errors
/// When it cannot be done there, or nobody knows how fast it would be.
pub fn estimate(job: &JobProfile, site: &Site) -> Result<JobCost, Unfit> {
    if let Some(allowed) = site.disk_max.filter(|allowed| *allowed < job.disk) {
        let needed = job.disk;
        return Err(Unfit::DiskTooLarge { needed, allowed });
    }
    let mut assumed = Assumptions::default();
    let work = work(job, site, &mut assumed)?;
    let mut times = setup(job, site, &mut assumed);
    times.work = work;
    let expected = run(job, site, &times, &mut assumed).expected();
    times.checkpoints = expected.checkpoints;
    times.lost = expected.lost;
    if job.upload.0 > 0 {
        let speed = known(site.upload);
        let speed = assumed.or(speed, Assumption::Upload, NETWORK_BYTES_PER_SECOND);
        times.upload = float(job.upload.0) / speed;
    }
    let total = times.total();
    if total.is_nan() || total > SECONDS_MAX {
        return Err(Unfit::NeverDone);
    }
    if let Some(allowed) = site.duration_max.filter(|allowed| total > float(allowed.0)) {
        let needed = Seconds(nearest(total));
        return Err(Unfit::TooLong { needed, allowed });
    }
    let costs = costs(job, site, &times);
    Ok(JobCost {
        times,
        costs,
        assumed,
    })
}

/// What offers are ranked by: micro-dollars for the finished job, and the largest number where it cannot be
/// finished.
#[must_use]
pub fn rank_key(job: &JobProfile, site: &Site) -> u64 {
    estimate(job, site).map_or(u64::MAX, |cost| {
        u64::try_from(cost.costs.total().0).unwrap_or(u64::MAX)
    })
}

/// Seconds of work if nothing goes wrong.
fn work(job: &JobProfile, site: &Site, assumed: &mut Assumptions) -> Result<f64, Unfit> {
    let units = job.work.units;
    let measured = known(site.rate);
    let together = |assumed: &mut Assumptions| gpus(job, site, assumed);
    if let Some((units, rate)) = units.zip(measured) {
        return Ok(float(units.get()) / (rate * together(assumed)));
    }
    let operations = job.work.gigaflops.map(|count| float(count.get()) * 1e9);
    let bytes = job
        .work
        .memory_megabytes
        .map(|count| float(count.get()) * 1e6);
    if operations.is_none() && bytes.is_none() {
        // Without anything to do there is setup alone; with pieces to do, nobody knows how fast.
        return if units.is_none() {
            Ok(0.0)
        } else {
            Err(Unfit::SpeedUnknown)
        };
    }
    let computing = match operations {
        Some(count) => count / operations_per_second(job, site, assumed)?,
        None => 0.0,
    };
    let moving = match bytes {
        Some(count) => count / bytes_per_second(job, site, assumed)?,
        None => 0.0,
    };
    Ok(computing.max(moving) / together(assumed))
}

/// As how many single GPUs those of the site work.
fn gpus(job: &JobProfile, site: &Site, assumed: &mut Assumptions) -> f64 {
    let used = job
        .gpus_max
        .map_or(site.gpus, |most| site.gpus.min(most.get()))
        .max(1);
    if used == 1 {
        return 1.0;
    }
    let scaling = job.scaling.map(Fraction::ratio);
    f64::from(used) * assumed.or(scaling, Assumption::Scaling, 1.0)
}

/// What one GPU does.
fn operations_per_second(
    job: &JobProfile,
    site: &Site,
    assumed: &mut Assumptions,
) -> Result<f64, Unfit> {
    if let Some(measured) = known(site.sustained_operations) {
        return Ok(measured);
    }
    let peak = site.card.and_then(|card| card.peak(job.work.precision));
    let (peak, is_longer) = peak.ok_or(Unfit::SpeedUnknown)?;
    assumed.note(Assumption::DataSheet);
    if is_longer {
        assumed.note(Assumption::LongerNumbers);
    }
    let reached = job.compute_efficiency.map(Fraction::ratio);
    Ok(peak * assumed.or(reached, Assumption::ComputeEfficiency, COMPUTE_EFFICIENCY))
}

/// What one GPU's memory moves.
fn bytes_per_second(
    job: &JobProfile,
    site: &Site,
    assumed: &mut Assumptions,
) -> Result<f64, Unfit> {
    if let Some(measured) = known(site.sustained_memory) {
        return Ok(measured);
    }
    let peak = known(site.card.map(|card| card.memory)).ok_or(Unfit::SpeedUnknown)?;
    assumed.note(Assumption::DataSheet);
    let reached = job.memory_efficiency.map(Fraction::ratio);
    Ok(peak * assumed.or(reached, Assumption::MemoryEfficiency, MEMORY_EFFICIENCY))
}

/// The times until work begins.
fn setup(job: &JobProfile, site: &Site, assumed: &mut Assumptions) -> Times {
    let mut times = Times {
        boot: assumed.or(known(site.boot), Assumption::Boot, BOOT_SECONDS),
        ..Times::default()
    };
    let pulled = pulled(job, site);
    if pulled.0 > 0 || job.data.0 > 0 {
        let speed = known(site.download);
        let speed = assumed.or(speed, Assumption::Download, NETWORK_BYTES_PER_SECOND);
        times.image = float(pulled.0) / speed;
        times.data = float(job.data.0) / speed;
    }
    if pulled.0 > 0 {
        if site.has_image.is_none() {
            assumed.note(Assumption::ImageAbsent);
        }
        let speed = known(site.unpack);
        times.unpack =
            float(pulled.0) / assumed.or(speed, Assumption::Unpack, UNPACK_BYTES_PER_SECOND);
    }
    times.load = disk_time(job.load, site, assumed);
    times
}

/// What has to be pulled of the image.
fn pulled(job: &JobProfile, site: &Site) -> Bytes {
    if site.has_image == Some(true) {
        Bytes(0)
    } else {
        job.image
    }
}

fn disk_time(size: Bytes, site: &Site, assumed: &mut Assumptions) -> f64 {
    if size.0 == 0 {
        return 0.0;
    }
    let speed = known(site.disk);
    float(size.0) / assumed.or(speed, Assumption::Disk, DISK_BYTES_PER_SECOND)
}

/// The run of the job's work among failures and interruptions.
fn run(job: &JobProfile, site: &Site, times: &Times, assumed: &mut Assumptions) -> Run {
    let checkpoint = job.checkpoint.map(|size| disk_time(size, site, assumed));
    // Exactly none is a hazard that is known; a negative one is not.
    let hazard = site
        .hazard
        .filter(|hazard| hazard.is_finite() && *hazard >= 0.0);
    let hazard = assumed.or(hazard, Assumption::Hazard, HAZARD_PER_HOUR);
    let mut run = Run {
        work: times.work,
        hazard: hazard * f64::from(site.machines.max(1)) / 3600.0,
        restart: times.boot + times.load,
        checkpoint,
        interruptions: 0.0,
    };
    if let Some(interruption) = site.interruption {
        let per_hour = interruption
            .per_hour
            .filter(|rate| rate.is_finite() && *rate >= 0.0);
        let per_hour = assumed.or(per_hour, Assumption::Interruptions, INTERRUPTIONS_PER_HOUR);
        let notice = float(interruption.notice.0);
        if checkpoint.is_some_and(|time| time <= notice) {
            run.interruptions = per_hour / 3600.0;
        } else {
            run.hazard += per_hour / 3600.0;
        }
    }
    run
}

fn costs(job: &JobProfile, site: &Site, times: &Times) -> Costs {
    let total = Millis(nearest(times.total() * 1000.0));
    let incoming = Bytes(pulled(job, site).0.saturating_add(job.data.0));
    Costs {
        compute: compute_due(site.prices.compute, total),
        storage: storage_due(site.prices.storage, job.disk, total),
        download: traffic_due(site.prices.download, incoming),
        upload: traffic_due(site.prices.upload, job.upload),
    }
}
