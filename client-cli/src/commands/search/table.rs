//! Offers as people see them: one line for each portion that can be had, the price all in.
//!
//! Pure.

mod json;

use super::candidate::{Candidate, DAYS_SHOWN};
use super::machines::by_machine;
use super::merge::Finding;
use super::why::grouped;
use crate::amounts::{in_gigabytes, shortened};
use crate::printer::{Column, Listing, Row};
use crate::view::{cores_in_words, offered_in_words, ram_in_words};
pub(super) use json::offer_json;
pub(crate) use json::verification_json;
use protocol::filter::{Fact, Field};
use protocol::machine::{ContainerNetwork, Gpu};
use protocol::message::{FOUND_MAX, Search};
use protocol::offer::Offer;
use protocol::terms::{ContractKind, Need};
use protocol::units::{Bytes, PricePerHour};
use protocol::verify::VerificationLevel;

const SCHEMA: &str = "feira.offers/1";

/// The portions of offers, priced as was asked; `empty` is what people are told when there is none.
pub(super) fn listing(finding: &Finding, search: &Search, empty: String) -> Listing {
    let price = match search.kind {
        ContractKind::OnDemand | ContractKind::Bid => "$/H",
        ContractKind::Interruptible => "$/H TO WIN",
        ContractKind::Reserved => "$/H 30 DAYS",
    };
    Listing {
        schema: SCHEMA,
        columns: vec![
            Column::left("OFFER"),
            Column::left("GPU"),
            Column::right(price),
            Column::right("REL").rank(1),
            Column::right("VCPU").rank(2),
            Column::right("RAM").rank(3),
            Column::right("DISK MAX").rank(4),
            Column::left("HOST").rank(5),
            Column::left("PROVED").rank(6),
            Column::right("$/GPU").wide(),
            Column::left("SOLD AS").wide(),
            Column::right("FLOOR").wide(),
            Column::right("DISCOUNT").wide(),
            Column::left("PUSHES OUT").wide(),
            Column::right("CUDA").wide(),
            Column::left("NETWORK").wide(),
            Column::left("MAX TIME").wide(),
            Column::right("$/GB UP").wide(),
            Column::left("DRIVER").wide(),
            Column::left("CPU").wide(),
            Column::left("BROKERS").wide(),
            Column::right("SCORE").wide(),
            Column::right("SCORE/$").wide(),
        ],
        rows: by_machine(&finding.candidates)
            .into_iter()
            .map(|one| row(one, search))
            .collect(),
        empty,
        next: next(finding),
    }
}

/// How to see more: a higher limit, as far as brokers answer.
fn next(finding: &Finding) -> Option<String> {
    let shown = finding.candidates.len();
    let matching = usize::try_from(finding.matching).unwrap_or(usize::MAX);
    let limit = matching.min(FOUND_MAX);
    (shown < limit).then(|| format!("--limit {limit}"))
}

/// What stands below the table for people.
pub(super) fn closing_lines(finding: &Finding, search: &Search) -> Vec<String> {
    let shown = u32::try_from(finding.candidates.len()).unwrap_or(u32::MAX);
    let count = if shown < finding.matching {
        let (matching, of) = (grouped(finding.matching), grouped(finding.of));
        let more = next(finding).unwrap_or_else(|| "narrower conditions".to_owned());
        format!("{shown} of {matching} that match, of {of} offers; more: {more}.")
    } else {
        format!("{} of {} offers.", grouped(shown), grouped(finding.of))
    };
    let price = format!("{count} {}", price_in_words(search));
    let first = by_machine(&finding.candidates).into_iter().next();
    let first = first.map(|first| format!("Rent the first: {}", way_to(first, search.kind)));
    std::iter::once(price).chain(first).collect()
}

/// What the price of a row is.
fn price_in_words(search: &Search) -> String {
    let traffic = |bytes: Bytes, way: &str| {
        (bytes.0 > 0).then(|| format!(", {} GB an hour {way}", in_gigabytes(bytes)))
    };
    let need = search.need;
    let with: String = [traffic(need.upload, "up"), traffic(need.download, "down")]
        .into_iter()
        .flatten()
        .collect();
    let what = match search.kind {
        ContractKind::OnDemand | ContractKind::Bid => "all-in".to_owned(),
        ContractKind::Interruptible => "what wins now, all-in".to_owned(),
        ContractKind::Reserved => format!("what {DAYS_SHOWN} prepaid days come to, all-in"),
    };
    format!(
        "$/H is {what} with {} GB of disk{with}.",
        in_gigabytes(need.disk)
    )
}

/// The command that rents a portion.
fn way_to(candidate: &Candidate, kind: ContractKind) -> String {
    let offer = candidate.offer.body();
    let id = offer.id.short();
    let fewest = offer.counts().next();
    let gpus = if fewest == Some(candidate.gpus) {
        String::new()
    } else {
        format!(" --gpus {}", candidate.gpus)
    };
    match kind {
        ContractKind::OnDemand | ContractKind::Bid => {
            format!("feira rent {id}{gpus} --image IMAGE")
        }
        ContractKind::Interruptible => {
            let price = shortened(&candidate.price.amount().decimal());
            format!("feira bid {id}{gpus} --max-price {price} --image IMAGE")
        }
        ContractKind::Reserved => {
            format!("feira rent {id}{gpus} --reserve {DAYS_SHOWN} --image IMAGE")
        }
    }
}

fn row(candidate: &Candidate, search: &Search) -> Row {
    let offer = candidate.offer.body();
    let (cpus, ram, _, disk) = offer.proportion(candidate.gpus);
    Row {
        id: offer.id.to_string(),
        cells: [
            vec![
                offer.id.short(),
                offered_in_words(offer, candidate.gpus),
                bare(candidate.hourly(search.need)),
                percent(candidate.reliability),
                cores_in_words(cpus),
                ram_in_words(ram),
                format!("{} GB", disk.gb()),
                candidate.host().short(),
                proved(&candidate.verification).to_owned(),
            ],
            wide_cells(candidate),
        ]
        .concat(),
        json: offer_json(candidate, search),
    }
}

fn wide_cells(candidate: &Candidate) -> Vec<String> {
    let offer = candidate.offer.body();
    let (sales, first) = (&offer.sales, offer.share.gpus.first());
    let none = || "-".to_owned();
    let brokers: Vec<String> = candidate.brokers.iter().map(|one| one.short()).collect();
    let portions: Vec<String> = pieces(offer).iter().map(ToString::to_string).collect();
    let longest = offer.limits.duration_max;
    vec![
        bare(candidate.price.amount()),
        portions.join(","),
        sales
            .floor
            .map_or_else(none, |floor: PricePerHour| bare(floor.amount())),
        sales
            .discount_max
            .map_or_else(none, |most| most.to_string()),
        if candidate.pushes_out { "yes" } else { "no" }.to_owned(),
        first.map_or_else(none, cuda),
        network(offer.machine.network).to_owned(),
        longest.map_or_else(|| "any".to_owned(), |most| most.to_string()),
        bare(offer.prices.upload.amount()),
        first.map_or_else(none, |gpu| gpu.driver.to_string()),
        offer.machine.cpu_model.to_string(),
        brokers.join(","),
        hundredths(score(candidate, Field::Score)),
        hundredths(score(candidate, Field::ScorePerDollar)),
    ]
}

/// A score in hundredths, if it was measured.
fn score(candidate: &Candidate, field: Field) -> Option<i64> {
    match candidate.facts().fact(field, Need::default()) {
        Fact::Number(number) => Some(number),
        Fact::Version(_)
        | Fact::Flag(_)
        | Fact::Choice(_)
        | Fact::Words(_)
        | Fact::Model(_)
        | Fact::Id(_)
        | Fact::Unknown => None,
    }
}

fn hundredths(number: Option<i64>) -> String {
    number.map_or_else(
        || "-".to_owned(),
        |number| format!("{}.{}", number / 100, number / 10 % 10),
    )
}

/// Whether the broker has proof of the hardware.
const fn proved(level: &VerificationLevel) -> &'static str {
    match level {
        VerificationLevel::Verified { .. } => "yes",
        VerificationLevel::Unverified => "no",
        VerificationLevel::Withdrawn { .. } => "failed",
    }
}

/// In which numbers of GPUs an offer is sold.
fn pieces(offer: &Offer) -> Vec<u16> {
    offer.counts().collect()
}

/// An amount under a head that says what it is.
fn bare(amount: protocol::units::MicroUsd) -> String {
    amount.to_string().replace('$', "")
}

/// Millionths as people say them: `99.8%`, rounded down, since a promise is not rounded up.
fn percent(millionths: u32) -> String {
    format!("{}.{}%", millionths / 10_000, millionths / 1000 % 10)
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

#[cfg(test)]
mod tests;
