//! The numeric facts of a portion: what is sold, what it costs, what was measured of it.
//!
//! What was measured counts to three digits, rounded down: no benchmark repeats itself more closely. Must not
//! depend on what is asked.

use super::field::Field;
use super::model::{ModelName, gigabytes_as_sold};
use crate::catalogue::sheet_of;
use crate::machine::{Gpu, Machine, Quantity};
use crate::offer::Offer;
use crate::reliability::Score;
use crate::units::{Bytes, MicroUsd};

/// The numeric facts of `gpus` GPUs of an offer, each at its field's place.
pub(super) fn numbers(offer: &Offer, gpus: u16, model: &ModelName) -> Vec<Option<i64>> {
    let mut numbers = vec![None; super::fields().len()];
    let all = of_goods(offer, gpus)
        .into_iter()
        .chain(of_terms(offer, gpus))
        .chain(of_hardware(offer, gpus, model))
        .chain(of_speed(offer, gpus));
    for (field, value) in all {
        if let Some(place) = numbers.get_mut(field as usize) {
            *place = value;
        }
    }
    numbers
}

type Known = (Field, Option<i64>);

fn size(bytes: Bytes) -> Option<i64> {
    Some(i64::try_from(bytes.0).unwrap_or(i64::MAX))
}

fn known(number: u64) -> Option<i64> {
    i64::try_from(number).ok().filter(|number| *number > 0)
}

/// What every GPU of an offer has at least.
fn weakest(offer: &Offer, key: fn(&Gpu) -> u64) -> Option<i64> {
    known(offer.share.gpus.iter().map(key).min().unwrap_or(0))
}

fn of_goods(offer: &Offer, gpus: u16) -> [Known; 9] {
    let (cpu_millicores, ram, shared_memory, disk_max) = offer.proportion(gpus);
    let sold = |vram: Bytes| i64::try_from(gigabytes_as_sold(vram)).unwrap_or(i64::MAX);
    let whole = || offer.share.gpus.iter().map(|gpu| sold(gpu.vram)).min();
    let slice = offer.partition.as_ref().map(|slice| sold(slice.vram));
    let each = slice.or_else(whole).unwrap_or(0);
    [
        (Field::NumGpus, Some(gpus.into())),
        (Field::GpuRam, Some(each)),
        (Field::GpuTotalRam, Some(each.saturating_mul(gpus.into()))),
        (Field::GpuFrac, Some(fraction(offer, gpus))),
        (Field::DiskSpace, size(disk_max)),
        (Field::CpuCores, Some(offer.machine.cpu_cores.into())),
        (Field::CpuCoresEffective, Some(cpu_millicores.into())),
        (Field::CpuRam, size(ram)),
        (Field::SharedMemory, size(shared_memory)),
    ]
}

fn of_terms(offer: &Offer, gpus: u16) -> [Known; 12] {
    let Offer {
        prices,
        sales,
        limits,
        ..
    } = offer;
    let price = |amount: MicroUsd| Some(amount.0);
    // No limit is longer than every limit.
    let longest = limits.duration_max.map_or(u64::MAX, |most| most.0);
    let until = limits.until.map_or(u64::MAX, |until| until.0 / 1000);
    let whole = prices.of_gpus(gpus);
    [
        (Field::DphBase, price(whole.compute.amount())),
        (Field::StorageCost, price(prices.storage.amount())),
        (Field::UploadCost, price(prices.upload.amount())),
        (Field::DownloadCost, price(prices.download.amount())),
        (Field::Duration, size(Bytes(longest))),
        (Field::StartWithin, size(Bytes(limits.start_within.0))),
        (
            Field::MinBid,
            sales.floor.and_then(|floor| price(floor.amount())),
        ),
        (
            Field::DiscountMax,
            sales.discount_max.map(|most| i64::from(most.0) * 100),
        ),
        (Field::DurationMin, size(Bytes(limits.duration_min.0))),
        (Field::EndDate, size(Bytes(until))),
        (Field::Notice, size(Bytes(limits.notice.0))),
        (Field::Reliability, Some(Score::unknown().ppm.into())),
    ]
}

fn of_hardware(offer: &Offer, gpus: u16, model: &ModelName) -> [Known; 7] {
    let machine: &Machine = &offer.machine;
    let links = if offer.share.gpus.is_empty() {
        None
    } else if !are_linked(offer, gpus) {
        Some(0)
    } else {
        let vram = offer.share.gpus.first().map_or(Bytes(0), |gpu| gpu.vram);
        sheet_of(model, vram).and_then(|sheet| known(sheet.links))
    };
    // A link at rest runs slower than it can, and one in a bad slot never runs as fast as it says it could.
    let under_load = |quantity, could: fn(&Gpu) -> u64| {
        let measured = offer.measured(quantity).and_then(known);
        let could = weakest(offer, could);
        measured.map_or(could, |ran| Some(could.map_or(ran, |could| ran.min(could))))
    };
    [
        (
            Field::GpuMaxPower,
            weakest(offer, |gpu| gpu.power_limit_mw.into()),
        ),
        (
            Field::PciGeneration,
            under_load(Quantity::PcieGeneration, |gpu| gpu.pcie_generation.into()),
        ),
        (
            Field::PciLanes,
            under_load(Quantity::PcieLanes, |gpu| gpu.pcie_width.into()),
        ),
        (
            Field::GpuMaxTemperature,
            offer.measured(Quantity::GpuTemperatureMax).and_then(known),
        ),
        (Field::CpuGhz, known(machine.cpu_mhz.into())),
        (Field::NumaNodes, known(machine.numa_nodes.into())),
        (Field::LinkBandwidth, links),
    ]
}

fn of_speed(offer: &Offer, gpus: u16) -> [Known; 11] {
    let measured = |quantity| offer.measured(quantity).map(three_digits);
    let all = |each: Option<u64>| each.and_then(|each| each.checked_mul(gpus.max(1).into()));
    let single = all(measured(Quantity::Fp32));
    let half = measured(Quantity::Fp16Matrix).or_else(|| measured(Quantity::Bf16Matrix));
    let half = all(half);
    let score = score(offer, gpus).map(three_digits);
    let hourly = offer.prices.of_gpus(gpus).compute.0;
    let per_dollar = |amount: Option<u64>| {
        let per = u128::from(amount?) * 1_000_000;
        let per = per.checked_div(u128::from(hourly))?;
        u64::try_from(per).ok().map(three_digits)
    };
    let plain = |number: Option<u64>| number.and_then(known);
    [
        (Field::TotalFlops, plain(single)),
        (Field::TotalFlopsHalf, plain(half)),
        (
            Field::TotalFlopsDouble,
            plain(all(measured(Quantity::Fp64))),
        ),
        (
            Field::GpuMemoryBandwidth,
            plain(measured(Quantity::GpuMemory)),
        ),
        (
            Field::PcieBandwidth,
            plain(measured(Quantity::HostToDevice)),
        ),
        (Field::DiskBandwidth, plain(measured(Quantity::DiskRead))),
        (Field::UploadSpeed, plain(measured(Quantity::Upload))),
        (Field::DownloadSpeed, plain(measured(Quantity::Download))),
        (Field::Score, plain(score)),
        (Field::ScorePerDollar, plain(per_dollar(score))),
        (Field::FlopsPerDollar, plain(per_dollar(single))),
    ]
}

/// Hundredths of the score of so many GPUs: of each, 100 times the geometric mean of its speed with 16-bit numbers
/// and its memory's bandwidth, both against the data sheet of an RTX 3090 (71.2 TFLOP/s, 936 GB/s). What trains or
/// infers waits for one of the two. Without matrix units its speed with 32 bits counts.
fn score(offer: &Offer, gpus: u16) -> Option<u64> {
    const HALF: u128 = 71_200;
    const MEMORY: u128 = 936_000;
    let half = offer
        .measured(Quantity::Fp16Matrix)
        .or_else(|| offer.measured(Quantity::Bf16Matrix))
        .or_else(|| offer.measured(Quantity::Fp32))?;
    let memory = offer.measured(Quantity::GpuMemory)?;
    let product = u128::from(half).checked_mul(u128::from(memory))?;
    // Ten thousand hundredths are one; their square is under the root.
    let square = product.checked_mul(100_000_000)? / (HALF * MEMORY);
    let each = u64::try_from(square.isqrt()).ok()?;
    each.checked_mul(gpus.max(1).into())
}

/// A number to three digits, rounded down.
pub(super) fn three_digits(number: u64) -> u64 {
    let mut unit = 1;
    while number / unit >= 1000 {
        unit *= 10;
    }
    number / unit * unit
}

/// Whether whichever GPUs a portion gets are linked with each other past PCIe.
pub(super) fn are_linked(offer: &Offer, gpus: u16) -> bool {
    let mut groups = offer.share.gpus.iter().map(|gpu| gpu.link_group);
    let first = groups.next().unwrap_or(0);
    gpus > 1 && first > 0 && groups.all(|group| group == first)
}

/// Millionths of the machine's GPUs that are in it, rounded down: of a slice, its part of the multiprocessors.
fn fraction(offer: &Offer, gpus: u16) -> i64 {
    let (part, whole) = offer.partition.as_ref().map_or((1, 1), |slice| {
        (slice.multiprocessors.0, slice.multiprocessors.1.max(1))
    });
    let all = u64::try_from(offer.machine.gpus.len()).unwrap_or(u64::MAX);
    let parts = u64::from(gpus) * u64::from(part.min(whole)) * 1_000_000;
    let millionths = parts.checked_div(all.saturating_mul(whole.into()));
    millionths
        .and_then(|it| i64::try_from(it).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_kept_and_the_rest_is_dropped() {
        for (number, wanted) in [
            (0, 0),
            (7, 7),
            (999, 999),
            (1009, 1000),
            (94_990, 94_900),
            (1_060_999, 1_060_000),
            (u64::MAX, 18_400_000_000_000_000_000),
        ] {
            assert_eq!(three_digits(number), wanted);
        }
    }
}
