//! A portion of an offer as programs see it.

use super::{network, pieces};
use crate::commands::search::candidate::Candidate;
use crate::view::{kind_word, rfc3339, slice_json};
use protocol::cost::hazard_of;
use protocol::filter::{Fact, Field};
use protocol::machine::{Gpu, Measure};
use protocol::message::Search;
use protocol::offer::Isolation;
use protocol::terms::Need;
use protocol::units::{MicroUsd, PricePerHour};
use protocol::verify::VerificationLevel;
use serde_json::{Value, json};

/// A portion, with what it costs in the kind of contract that was asked for.
pub(in crate::commands::search) fn offer_json(candidate: &Candidate, search: &Search) -> Value {
    let mut json = of_offer(candidate);
    for more in [of_prices(candidate, search), of_hardware(candidate)] {
        if let (Some(fields), Some(more)) = (json.as_object_mut(), more.as_object()) {
            fields.extend(more.clone());
        }
    }
    json
}

fn of_offer(candidate: &Candidate) -> Value {
    let offer = candidate.offer.body();
    let (machine, share, limits) = (&offer.machine, &offer.share, &offer.limits);
    let (cpus, ram, shared_memory, disk) = offer.proportion(candidate.gpus);
    let count = usize::from(candidate.gpus);
    json!({
        "id": offer.id.to_string(),
        "host": candidate.host().to_string(),
        "brokers": candidate.brokers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        // Which of them a lease gets is decided when it does: they are of one model.
        "gpus": share.gpus.iter().take(count).map(gpu_json).collect::<Vec<_>>(),
        "gpu_name": share.gpus.first().map_or("none", |gpu| gpu.model.as_str()),
        "num_gpus": candidate.gpus,
        "offer_gpus": share.gpus.len(),
        "portions": pieces(offer),
        "reliability": f64::from(candidate.reliability) / 1e6,
        "failures_per_hour": hazard_of(candidate.hazard),
        "cpu_millicores": cpus,
        "cpu_name": machine.cpu_model.as_str(),
        "architecture": machine.architecture.as_str(),
        "ram_bytes": ram.0,
        "shared_memory_bytes": shared_memory.0,
        "disk_max_bytes": disk.0,
        "disk_enforced": machine.disk_enforced,
        "network": network(machine.network),
        "min_seconds": limits.duration_min.0,
        "max_seconds": limits.duration_max.map(|most| most.0),
        "promised_until": limits.until.map(rfc3339),
        "start_within_seconds": limits.start_within.0,
        "notice_seconds": limits.notice.0,
        "system": machine.system.as_str(),
        "kernel": machine.kernel.as_str(),
        "engine": machine.engine.as_str(),
        "runtime": machine.runtime.as_str(),
        "toolkit": some(&machine.toolkit),
        "listed_at": rfc3339(offer.listed_at),
        "expires_at": rfc3339(candidate.offer.header().expires),
    })
}

/// What it is by hardware: measured, divided, proved. Null where nobody said.
fn of_hardware(candidate: &Candidate) -> Value {
    let offer = candidate.offer.body();
    let facts = candidate.facts();
    let number = |field: Field, scale: i32| match facts.fact(field, Need::default()) {
        Fact::Number(number) => i32::try_from(number)
            .ok()
            .map(|it| f64::from(it) / f64::from(scale)),
        Fact::Version(_)
        | Fact::Flag(_)
        | Fact::Choice(_)
        | Fact::Words(_)
        | Fact::Model(_)
        | Fact::Id(_)
        | Fact::Unknown => None,
    };
    let isolation = match offer.partition.as_ref().map(|slice| slice.isolation) {
        None => "whole",
        Some(Isolation::Hardware) => "hardware",
        Some(Isolation::Shared) => "shared",
    };
    let machine = &offer.machine;
    json!({
        "partition": slice_json(offer.partition.as_ref()),
        "isolation": isolation,
        "verified": matches!(candidate.verification, VerificationLevel::Verified { .. }),
        "verification": verification_json(&candidate.verification),
        "score": number(Field::Score, 100),
        "score_per_usd_hour": number(Field::ScorePerDollar, 100),
        "fp32_tflops": number(Field::TotalFlops, 1000),
        "fp16_tflops": number(Field::TotalFlopsHalf, 1000),
        "fp32_tflops_per_usd_hour": number(Field::FlopsPerDollar, 1000),
        "measures": offer.measures.iter().map(measure_json).collect::<Vec<_>>(),
        "cpu_mhz": (machine.cpu_mhz > 0).then_some(machine.cpu_mhz),
        "numa_nodes": machine.numa_nodes,
        "mainboard": some(&machine.mainboard),
        "disk_model": some(&machine.disk_model),
    })
}

/// How far a broker has proof of the hardware.
pub(crate) fn verification_json(level: &VerificationLevel) -> Value {
    match level {
        VerificationLevel::Unverified => json!({"level": "unverified"}),
        VerificationLevel::Verified { at, verdict } => {
            json!({"level": "verified", "at": rfc3339(*at), "verdict": verdict.to_string()})
        }
        VerificationLevel::Withdrawn { reason, at } => {
            json!({"level": "deverified", "at": rfc3339(*at), "reason": reason.to_string()})
        }
    }
}

fn measure_json(measure: &Measure) -> Value {
    json!({
        "quantity": measure.quantity.key(),
        "value": measure.value,
        "method": measure.method.as_str(),
        "version": measure.version,
        "at": rfc3339(measure.at),
    })
}

/// A text, if it says something.
fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn of_prices(candidate: &Candidate, search: &Search) -> Value {
    let offer = candidate.offer.body();
    let (ask, sales) = (&offer.prices, &offer.sales);
    let dollars = |price: PricePerHour| price.amount().decimal();
    let on_demand: MicroUsd = ask.of_gpus(candidate.gpus).all_in_hour(search.need);
    let Need {
        disk,
        upload,
        download,
    } = search.need;
    json!({
        "kind": kind_word(search.kind),
        "price_usd_per_hour": candidate.hourly(search.need).decimal(),
        "price_usd_per_gpu_hour": dollars(candidate.price),
        "contract_usd_per_hour": dollars(candidate.prices().compute),
        "on_demand_usd_per_hour": on_demand.decimal(),
        "priced_disk_bytes": disk.0,
        "priced_upload_bytes_per_hour": upload.0,
        "priced_download_bytes_per_hour": download.0,
        "pushes_out": candidate.pushes_out,
        "floor_usd_per_gpu_hour": sales.floor.map(dollars),
        "discount_max_basis_points": sales.discount_max.map(|most| most.0),
        "compute_usd_per_hour": dollars(ask.compute),
        "storage_usd_per_gb_month": ask.storage.amount().decimal(),
        "upload_usd_per_gb": ask.upload.amount().decimal(),
        "download_usd_per_gb": ask.download.amount().decimal(),
    })
}

fn gpu_json(gpu: &Gpu) -> Value {
    let known = |number: u32| (number > 0).then_some(number);
    let version =
        |(major, minor): (u16, u16)| ((major, minor) != (0, 0)).then(|| format!("{major}.{minor}"));
    json!({
        "model": gpu.model.as_str(),
        "uuid": gpu.uuid.as_str(),
        "vram_bytes": gpu.vram.0,
        "driver": gpu.driver.as_str(),
        "cuda": version(gpu.cuda),
        "compute_capability": version(gpu.compute_capability),
        "pcie_generation": known(gpu.pcie_generation.into()),
        "pcie_width": known(gpu.pcie_width.into()),
        "power_limit_mw": known(gpu.power_limit_mw),
        "vendor": gpu.vendor.word(),
        "architecture": some(&gpu.architecture),
        "multiprocessors": known(gpu.multiprocessors.into()),
        "clock_max_mhz": known(gpu.clock_max_mhz),
        "memory_clock_max_mhz": known(gpu.memory_clock_max_mhz),
        "pci_address": some(&gpu.pci_address),
        "ecc": gpu.ecc,
        "link_group": known(gpu.link_group.into()),
        "links": gpu.links,
        "is_divided": gpu.is_divided,
        "has_display": gpu.has_display,
    })
}
