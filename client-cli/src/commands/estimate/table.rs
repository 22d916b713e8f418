//! Estimates as people and programs see them: one line an offer, with what its time and its money go to.
//!
//! Pure.

use super::Estimate;
use crate::amounts::in_gigabytes;
use crate::printer::{Column, Listing, Row};
use protocol::cost::{Assumption, JobCost, JobProfile, Unfit, rounded};
use protocol::units::{MICRO_PER_USD, MicroUsd};
use serde_json::{Value, json};

const SCHEMA: &str = "feira.offers/1";
/// Most offers of which it is said one by one why they cannot do the job.
const UNFIT_SHOWN: usize = 5;

/// The estimates; `empty` is what people are told when there is none.
pub(crate) fn listing(estimates: &[Estimate], empty: String) -> Listing {
    Listing {
        schema: SCHEMA,
        columns: vec![
            Column::left("OFFER"),
            Column::left("GPU"),
            Column::right("$/JOB"),
            Column::right("TIME"),
            Column::right("$/H"),
            Column::right("SETUP").rank(2),
            Column::right("WORK").rank(1),
            Column::right("CHECKPOINTS").rank(4),
            Column::right("LOST").rank(3),
            Column::right("UPLOAD").rank(5),
            Column::right("$ STORAGE").rank(6),
            Column::right("$ TRAFFIC").rank(7),
        ],
        rows: estimates.iter().map(row).collect(),
        empty,
        next: None,
    }
}

fn row(one: &Estimate) -> Row {
    let time = |seconds: f64| rounded(seconds).to_string();
    let (total, parts, money) = match &one.cost {
        Ok(JobCost { times, costs, .. }) => {
            let traffic = costs.download.saturating_add(costs.upload);
            (
                [dollars(costs.total()), time(times.total())],
                [
                    times.setup(),
                    times.work,
                    times.checkpoints,
                    times.lost,
                    times.upload,
                ]
                .map(time),
                [costs.storage, traffic].map(dollars),
            )
        }
        Err(_) => ([0; 2].map(none), [0; 5].map(none), [0; 2].map(none)),
    };
    let begin = [one.short.clone(), one.gpus.clone()];
    let hourly = one.hourly.to_string().replace('$', "");
    let cells = begin.into_iter().chain(total).chain([hourly]);
    let mut json = one.json.clone();
    if let Some(object) = json.as_object_mut() {
        object.insert("job".to_owned(), job_json(&one.cost));
    }
    Row {
        id: one.id.clone(),
        cells: cells.chain(parts).chain(money).collect(),
        json,
    }
}

fn none(_: u8) -> String {
    "-".to_owned()
}

/// An estimated amount: to the cent from a dollar on, else to a hundredth of one.
fn dollars(amount: MicroUsd) -> String {
    let (unit, places) = if amount.0 >= MICRO_PER_USD {
        (10_000, 2)
    } else {
        (100, 4)
    };
    let rounded = MicroUsd(amount.0.saturating_add(unit / 2) / unit * unit).decimal();
    let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
    format!("{whole}.{}", fraction.get(..places).unwrap_or(fraction))
}

/// An estimate as programs see it.
fn job_json(cost: &Result<JobCost, Unfit>) -> Value {
    // To the millisecond.
    let time = |seconds: f64| (seconds * 1000.0).round() / 1000.0;
    match cost {
        Err(unfit) => json!({ "unfit": unfit.to_string() }),
        Ok(JobCost {
            times,
            costs,
            assumed,
        }) => json!({
            "cost_usd": costs.total().decimal(),
            "compute_usd": costs.compute.decimal(),
            "storage_usd": costs.storage.decimal(),
            "download_usd": costs.download.decimal(),
            "upload_usd": costs.upload.decimal(),
            "seconds": time(times.total()),
            "boot_seconds": time(times.boot),
            "image_seconds": time(times.image),
            "unpack_seconds": time(times.unpack),
            "data_seconds": time(times.data),
            "load_seconds": time(times.load),
            "work_seconds": time(times.work),
            "checkpoint_seconds": time(times.checkpoints),
            "lost_seconds": time(times.lost),
            "upload_seconds": time(times.upload),
            "assumed": assumed.iter().map(Assumption::word).collect::<Vec<_>>(),
            "unfit": null,
        }),
    }
}

/// What stands below the table for people: what cannot do it and why, what was assumed, what the price is.
/// `of` is how many offers there were.
pub(crate) fn closing_lines(estimates: &[Estimate], job: &JobProfile, of: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let unfit = |one: &Estimate| one.cost.err().map(|why| format!("{}: {why}.", one.short));
    lines.extend(estimates.iter().filter_map(unfit).take(UNFIT_SHOWN));
    let costs = || estimates.iter().filter_map(|one| one.cost.as_ref().ok());
    let fit = costs().count();
    for one in Assumption::ALL {
        let count = costs().filter(|cost| cost.assumed.has(one)).count();
        let where_ = if count == fit {
            String::new()
        } else {
            format!(" (of {count} of {fit})")
        };
        if count > 0 {
            lines.push(format!("Assumed{where_}: {one}."));
        }
    }
    let shown = estimates.len();
    let count = if shown < of {
        format!("{shown} of {of} offers")
    } else {
        format!("{shown} offers")
    };
    if shown > 0 {
        lines.push(format!(
            "{count}, cheapest job first, with {} GB of disk. Setup counts as paid; pulling the image is not billed.",
            in_gigabytes(job.disk)
        ));
    }
    let first = estimates.first().filter(|first| first.cost.is_ok());
    lines.extend(first.map(|first| {
        let disk = in_gigabytes(job.disk);
        format!(
            "Rent the first: feira rent {} --disk {disk} --image IMAGE",
            first.short
        )
    }));
    lines
}

#[cfg(test)]
mod tests;
