//! Offers as people and programs see them: one line each, the price all in.
//!
//! Pure.

use super::merge::{Candidate, Finding};
use super::why::grouped;
use crate::amounts::in_gigabytes;
use crate::printer::{Column, Listing, Row};
use crate::view::{cores_in_words, portion_in_words, ram_in_words, rfc3339};
use protocol::machine::{ContainerNetwork, Gpu};
use protocol::message::Search;
use protocol::units::Seconds;
use serde_json::{Value, json};

const SCHEMA: &str = "feira.offers/1";

/// The offers, priced with `disk`; `empty` is what people are told when there is none.
pub(super) fn listing(finding: &Finding, search: &Search, empty: String) -> Listing {
    Listing {
        schema: SCHEMA,
        columns: vec![
            Column::left("OFFER"),
            Column::left("GPU"),
            Column::right("$/H"),
            Column::right("VCPU").rank(1),
            Column::right("RAM").rank(2),
            Column::right("DISK MAX").rank(4),
            Column::right("CUDA").rank(3),
            Column::left("HOST").rank(5),
            Column::left("NETWORK").wide(),
            Column::left("MAX TIME").wide(),
            Column::right("$/GB UP").wide(),
            Column::left("DRIVER").wide(),
            Column::left("CPU").wide(),
            Column::left("BROKERS").wide(),
        ],
        rows: finding
            .candidates
            .iter()
            .map(|one| row(one, search))
            .collect(),
        empty,
        next: None,
    }
}

/// What stands below the table for people.
pub(super) fn closing_lines(finding: &Finding, search: &Search) -> Vec<String> {
    let shown = u32::try_from(finding.candidates.len()).unwrap_or(u32::MAX);
    let count = if shown < finding.matching {
        let (matching, of) = (grouped(finding.matching), grouped(finding.of));
        format!(
            "{shown} of {matching} that match, of {of} offers; more: --limit, or narrower conditions."
        )
    } else {
        format!("{} of {} offers.", grouped(shown), grouped(finding.of))
    };
    let price = format!(
        "{count} $/H is all-in with {} GB of disk.",
        in_gigabytes(search.need.disk)
    );
    let first = finding.candidates.first().map(|first| {
        format!(
            "Rent the first: feira rent {} --image IMAGE",
            first.offer.body().id.short()
        )
    });
    std::iter::once(price).chain(first).collect()
}

fn row(candidate: &Candidate, search: &Search) -> Row {
    let offer = candidate.offer.body();
    let share = &offer.share;
    let brokers: Vec<String> = candidate
        .brokers
        .iter()
        .map(|broker| broker.short())
        .collect();
    let longest = offer.limits.duration_max;
    Row {
        id: offer.id.to_string(),
        cells: vec![
            offer.id.short(),
            portion_in_words(&share.gpus, candidate.gpus),
            candidate.hourly(search.need).to_string().replace('$', ""),
            cores_in_words(share.cpu_millicores),
            ram_in_words(share.ram),
            format!("{} GB", offer.limits.disk_max.gb()),
            share.gpus.first().map_or_else(|| "-".to_owned(), cuda),
            candidate.host().short(),
            network(offer.machine.network).to_owned(),
            longest.map_or_else(|| "any".to_owned(), |most: Seconds| most.to_string()),
            offer.prices.upload.amount().to_string().replace('$', ""),
            share
                .gpus
                .first()
                .map_or_else(|| "-".to_owned(), |gpu| gpu.driver.to_string()),
            offer.machine.cpu_model.to_string(),
            brokers.join(","),
        ],
        json: offer_json(candidate, search),
    }
}

fn cuda(gpu: &Gpu) -> String {
    match gpu.cuda {
        (0, 0) => "-".to_owned(),
        (major, minor) => format!("{major}.{minor}"),
    }
}

const fn network(network: ContainerNetwork) -> &'static str {
    match network {
        ContainerNetwork::None => "none",
        ContainerNetwork::Bridge => "bridge",
    }
}

/// An offer as programs see it.
pub(super) fn offer_json(candidate: &Candidate, search: &Search) -> Value {
    let offer = candidate.offer.body();
    let (machine, share, prices) = (&offer.machine, &offer.share, &offer.prices);
    json!({
        "id": offer.id.to_string(),
        "host": candidate.host().to_string(),
        "brokers": candidate.brokers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "gpus": share.gpus.iter().map(gpu_json).collect::<Vec<_>>(),
        "gpu_name": share.gpus.first().map_or("none", |gpu| gpu.model.as_str()),
        "num_gpus": candidate.gpus,
        "kind": search.kind.word(),
        "contract_usd_per_hour": candidate.prices().compute.amount().decimal(),
        "reliability": f64::from(candidate.reliability) / 1e6,
        "notice_seconds": offer.limits.notice.0,
        "price_usd_per_hour": candidate.hourly(search.need).decimal(),
        "priced_disk_bytes": search.need.disk.0,
        "compute_usd_per_hour": prices.compute.amount().decimal(),
        "storage_usd_per_gb_month": prices.storage.amount().decimal(),
        "upload_usd_per_gb": prices.upload.amount().decimal(),
        "download_usd_per_gb": prices.download.amount().decimal(),
        "cpu_millicores": share.cpu_millicores,
        "cpu_name": machine.cpu_model.as_str(),
        "architecture": machine.architecture.as_str(),
        "ram_bytes": share.ram.0,
        "disk_max_bytes": offer.limits.disk_max.0,
        "disk_enforced": machine.disk_enforced,
        "network": network(machine.network),
        "max_seconds": offer.limits.duration_max.map(|most| most.0),
        "start_within_seconds": offer.limits.start_within.0,
        "system": machine.system.as_str(),
        "kernel": machine.kernel.as_str(),
        "engine": machine.engine.as_str(),
        "runtime": machine.runtime.as_str(),
        "listed_at": rfc3339(offer.listed_at),
        "expires_at": rfc3339(candidate.offer.header().expires),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::offers;
    use protocol::bounded::List;
    use protocol::filter::Filter;
    use protocol::terms::{ContractKind, Need};
    use protocol::units::Bytes;

    fn finding() -> Finding {
        Finding {
            candidates: vec![offers::candidate(1, 1, 318_000)],
            matching: 1,
            of: 1204,
            ..Finding::default()
        }
    }

    fn search() -> Search {
        Search {
            filter: Filter::default(),
            sort: List::default(),
            need: Need::disk(Bytes::from_gb(60)),
            kind: ContractKind::OnDemand,
            limit: 20,
        }
    }

    #[test]
    fn an_offer_is_one_line_with_the_price_all_in() {
        // 60 GB at $0.10 a GB-month: 8 333 µ$ an hour.
        let listing = listing(&finding(), &search(), String::new());
        let row = &listing.rows[0];
        assert_eq!(
            row.cells[1..7],
            [
                "1x RTX 4090 24 GB",
                "0.326333",
                "16",
                "60.0 GiB",
                "500 GB",
                "12.8"
            ]
        );
        assert_eq!(row.cells.len(), listing.columns.len());
        assert_eq!(row.id, finding().candidates[0].offer.body().id.to_string());
        assert_eq!(row.json["price_usd_per_hour"], "0.326333");
        assert_eq!(row.json["max_seconds"], Value::Null);
        assert_eq!(row.json["brokers"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn the_closing_lines_say_what_was_counted_and_what_comes_next() {
        let search = search();
        let mut finding = finding();
        let id = finding.candidates[0].offer.body().id.short();
        let next = format!("Rent the first: feira rent {id} --image IMAGE");
        let first = "1 of 1,204 offers. $/H is all-in with 60 GB of disk.".to_owned();
        assert_eq!(closing_lines(&finding, &search), [first, next]);
        finding.matching = 30;
        let first = &closing_lines(&finding, &search)[0];
        assert!(
            first.starts_with("1 of 30 that match, of 1,204 offers"),
            "{first}"
        );
    }
}
