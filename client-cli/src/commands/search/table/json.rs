//! A portion of an offer as programs see it.

use super::{network, pieces};
use crate::commands::search::candidate::Candidate;
use crate::view::{kind_word, rfc3339};
use protocol::cost::hazard_of;
use protocol::machine::Gpu;
use protocol::message::Search;
use protocol::terms::Need;
use protocol::units::{MicroUsd, PricePerHour};
use serde_json::{Value, json};

/// A portion, with what it costs in the kind of contract that was asked for.
pub(in crate::commands::search) fn offer_json(candidate: &Candidate, search: &Search) -> Value {
    let mut json = of_offer(candidate);
    if let (Some(fields), Some(prices)) = (
        json.as_object_mut(),
        of_prices(candidate, search).as_object(),
    ) {
        fields.extend(prices.clone());
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
        "listed_at": rfc3339(offer.listed_at),
        "expires_at": rfc3339(candidate.offer.header().expires),
    })
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
    })
}
