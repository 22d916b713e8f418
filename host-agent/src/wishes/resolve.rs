//! From what an owner says, what was listed before, and the machine, to what is listed now; or why that makes no
//! sense.

use super::{GpuChoice, Limit, Wishes, partition};
use crate::core::offer::{Listing, resources_of};
use crate::core::slices::Divisibles;
use protocol::bounded::List;
use protocol::machine::{ContainerNetwork, GPUS_MAX, Machine};
use protocol::offer::{Chunks, ResourceName, WHOLE_MACHINE};
use protocol::terms::{Limits, Prices, Sales};
use protocol::units::{Bytes, PricePerGb, PricePerGbMonth, PricePerHour, Seconds, Timestamp};
use std::collections::BTreeMap;

/// RAM that is left to the system unless the owner says otherwise.
const RAM_KEPT: u64 = 16;
/// Offered RAM is a multiple of this, so that it stays the same when the kernel takes a page more.
const RAM_STEP: u64 = 64 << 20;
/// A promise must be worth making, and can be kept.
const UNTIL_MIN: Seconds = Seconds(3600);
const UNTIL_MAX: Seconds = Seconds(10 * 366 * 86_400);

/// What a listing is made against.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// The machine as measured.
    pub machine: &'a Machine,
    /// Its GPUs that can be divided.
    pub divisibles: &'a Divisibles,
    /// Disk that is never given to leases.
    pub disk_reserve: Bytes,
    /// Where the disk is, for people.
    pub data_root: &'a str,
    /// What was listed before.
    pub before: Option<&'a Listing>,
    /// Now.
    pub now: Timestamp,
}

/// What is listed from now on.
///
/// # Errors
/// What makes no sense, with the flag that says it.
pub fn listing(wishes: &Wishes, ground: Ground<'_>) -> Result<Listing, String> {
    let before = ground.before;
    let resources = resources(wishes, ground)?;
    let (cpu_millicores, ram) = means(wishes, ground)?;
    let listing = Listing {
        chunks: wishes
            .chunks
            .map(Chunks::from)
            .or(before.map(|listed| listed.chunks))
            .unwrap_or(Chunks::Any),
        gpus_min: gpus_min(wishes, ground, &resources)?,
        prices: prices(wishes, before)?,
        sales: Sales {
            floor: bound(wishes.floor, before.and_then(|listed| listed.sales.floor)),
            discount_max: bound(
                wishes.max_discount,
                before.and_then(|listed| listed.sales.discount_max),
            ),
        },
        limits: Limits {
            disk_max: disk_max(wishes, ground)?,
            ..limits(wishes, before)
        },
        network: wishes
            .network
            .map(ContainerNetwork::from)
            .or(before.map(|listed| listed.network))
            .unwrap_or(ContainerNetwork::None),
        cpu_millicores,
        ram,
        listed_at: before.map_or(ground.now, |listed| listed.listed_at),
        slices: partition::policy(wishes, ground, &resources)?,
        resources,
    };
    check(wishes, &listing, ground.now)?;
    Ok(listing)
}

/// What was said, or what was before.
fn bound<T>(said: Option<Limit<T>>, before: Option<T>) -> Option<T> {
    match said {
        Some(Limit::At(value)) => Some(value),
        Some(Limit::None) => None,
        None => before,
    }
}

fn prices(wishes: &Wishes, before: Option<&Listing>) -> Result<Prices, String> {
    let before = before.map(|listed| listed.prices);
    let compute = wishes
        .price
        .or(before.map(|prices| prices.compute))
        .ok_or("what does an hour cost? Say --price, or set price under [offer] in host.toml")?;
    Ok(Prices {
        compute,
        storage: wishes
            .storage_price
            .or(before.map(|prices| prices.storage))
            .unwrap_or(PricePerGbMonth(100_000)),
        upload: wishes
            .upload_price
            .or(before.map(|prices| prices.upload))
            .unwrap_or(PricePerGb(0)),
        download: wishes
            .download_price
            .or(before.map(|prices| prices.download))
            .unwrap_or(PricePerGb(0)),
    })
}

/// All but the disk.
fn limits(wishes: &Wishes, before: Option<&Listing>) -> Limits {
    let before = before.map(|listed| listed.limits);
    let or = |said: Option<Seconds>, of: fn(&Limits) -> Seconds, otherwise| {
        said.or(before.as_ref().map(of))
            .unwrap_or(Seconds(otherwise))
    };
    Limits {
        start_within: or(wishes.start_within, |limits| limits.start_within, 600),
        duration_min: or(wishes.min_duration, |limits| limits.duration_min, 0),
        duration_max: bound(
            wishes.max_duration,
            before.and_then(|limits| limits.duration_max),
        ),
        until: bound(wishes.until, before.and_then(|limits| limits.until)),
        stop_grace: or(wishes.stop_grace, |limits| limits.stop_grace, 10),
        notice: or(wishes.notice, |limits| limits.notice, 120),
        disk_max: Bytes(0),
    }
}

/// Which GPUs, or the machine as a whole.
fn resources(wishes: &Wishes, ground: Ground<'_>) -> Result<List<ResourceName, GPUS_MAX>, String> {
    let Ground {
        machine, before, ..
    } = ground;
    let known = before.filter(|_| wishes.gpus.is_none());
    if let Some(known) = known {
        return Ok(known.resources.clone());
    }
    match &wishes.gpus {
        None | Some(GpuChoice::All) => Ok(resources_of(machine)),
        Some(GpuChoice::None) => Ok(List::first([ResourceName::cut(WHOLE_MACHINE)])),
        Some(GpuChoice::Some(names)) => {
            let mut chosen = Vec::new();
            for name in names {
                let found = gpu("--gpus", name, machine)?;
                if chosen.contains(&found) {
                    return Err(format!("--gpus names {found} twice"));
                }
                chosen.push(found);
            }
            List::new(chosen).map_err(|_| format!("--gpus: at most {GPUS_MAX} can be sold"))
        }
    }
}

/// A GPU by its number, as `nvidia-smi` counts, or by the beginning of its UUID.
pub(super) fn gpu(flag: &str, name: &str, machine: &Machine) -> Result<ResourceName, String> {
    let gpus = &machine.gpus;
    if let Ok(number) = name.parse::<usize>() {
        return gpus.get(number).map(|gpu| gpu.uuid.clone()).ok_or_else(|| {
            format!(
                "{flag} {name}: this machine has {} GPUs, counted from 0",
                gpus.len()
            )
        });
    }
    let mut found = gpus.iter().filter(|gpu| gpu.uuid.starts_with(name));
    match (found.next(), found.next()) {
        (Some(gpu), None) => Ok(gpu.uuid.clone()),
        (None, _) => Err(format!("{flag} {name}: no GPU of this machine begins so")),
        (Some(_), Some(_)) => Err(format!("{flag} {name}: more than one GPU begins so")),
    }
}

fn gpus_min(
    wishes: &Wishes,
    ground: Ground<'_>,
    resources: &[ResourceName],
) -> Result<u16, String> {
    let mut models = BTreeMap::new();
    for gpu in ground.machine.gpus.iter() {
        if resources.contains(&gpu.uuid) {
            *models.entry((&gpu.model, gpu.vram)).or_insert(0_u16) += 1;
        }
    }
    let most = models.into_values().max().unwrap_or(0);
    match wishes.min_gpus {
        Some(least) if most == 0 => Err(format!("--min-gpus {least}: no GPU is sold")),
        Some(least) if least > most => Err(format!(
            "--min-gpus {least}: {most} of one model are the most that are sold"
        )),
        Some(least) => Ok(least),
        None => Ok(ground.before.map_or(1, |listed| listed.gpus_min)),
    }
}

/// CPU and RAM.
fn means(wishes: &Wishes, ground: Ground<'_>) -> Result<(u32, Bytes), String> {
    let Ground {
        machine, before, ..
    } = ground;
    let cores = wishes.cpus.map(|cores| u32::from(cores) * 1000);
    let all = u32::from(machine.cpu_cores) * 1000;
    let cpu = cores
        .or(before.map(|listed| listed.cpu_millicores))
        .unwrap_or(all);
    if cpu > all {
        return Err(format!(
            "--cpus {}: this machine has {}",
            cpu / 1000,
            machine.cpu_cores
        ));
    }
    let kept = machine.ram.0 / RAM_KEPT;
    let ram = wishes
        .ram
        .map(Bytes::from_gb)
        .or(before.map(|listed| listed.ram))
        .unwrap_or(Bytes(machine.ram.0.saturating_sub(kept)));
    if ram > machine.ram {
        return Err(format!(
            "--ram {}: this machine has {}",
            ram.gb(),
            machine.ram
        ));
    }
    Ok((cpu, Bytes(ram.0 / RAM_STEP * RAM_STEP)))
}

fn disk_max(wishes: &Wishes, ground: Ground<'_>) -> Result<Bytes, String> {
    let Ground {
        machine,
        disk_reserve,
        ..
    } = ground;
    let free = Bytes(machine.disk_free.0.saturating_sub(disk_reserve.0));
    let disk = wishes
        .disk_max
        .map(Bytes::from_gb)
        .or(ground.before.map(|listed| listed.limits.disk_max))
        .unwrap_or(Bytes::from_gb(free.gb() * 4 / 5));
    if disk.0 == 0 || disk > machine.disk_total {
        return Err(format!(
            "a disk of {} for leases cannot be promised: {} are free under {}, and {disk_reserve} are kept \
             (--disk-max)",
            disk, machine.disk_free, ground.data_root
        ));
    }
    Ok(disk)
}

/// What is said must make sense together.
fn check(wishes: &Wishes, listing: &Listing, now: Timestamp) -> Result<(), String> {
    let Listing {
        prices,
        sales,
        limits,
        ..
    } = listing;
    check_floor(wishes, sales.floor, prices.compute)?;
    let (least, most) = (limits.duration_min, limits.duration_max);
    if let Some(most) = most {
        if most.0 == 0 {
            return Err("--max-duration: no lease is that short".to_owned());
        }
        if least > most {
            return Err(format!(
                "--min-duration {least} is longer than --max-duration {most}"
            ));
        }
    }
    let Some(until) = limits.until else {
        return Ok(());
    };
    let ahead = until.since(now).seconds();
    if ahead < UNTIL_MIN {
        return Err(format!(
            "--until: that is over, or less than {UNTIL_MIN} away; promise more, or nothing: --until none"
        ));
    }
    if ahead > UNTIL_MAX {
        return Err("--until: that is more than ten years away".to_owned());
    }
    if least > ahead {
        return Err(format!(
            "--min-duration {least} is longer than what is left until --until, {ahead}"
        ));
    }
    Ok(())
}

fn check_floor(
    wishes: &Wishes,
    floor: Option<PricePerHour>,
    price: PricePerHour,
) -> Result<(), String> {
    match floor {
        Some(PricePerHour(0)) if !wishes.free => Err(
            "--floor 0: bids of nothing would run; name the least that an hour must bring, or --floor none"
                .to_owned(),
        ),
        Some(floor) if floor > price => Err(format!(
            "--floor {}: nobody bids that for a lease that may be interrupted, when {} buys one that may not",
            floor.amount().decimal(),
            price.amount()
        )),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
