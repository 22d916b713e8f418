//! How leases, times and money look: the JSON that programs read and the words that people read.
//!
//! Pure: everything shown is an argument.

use crate::failure::{end_in_words, problem_in_words};
use crate::printer::{Column, Listing, Object, Row};
use protocol::filter::gigabytes_as_sold;
use protocol::ids::BrokerId;
use protocol::lease::{LeaseView, PauseCause, Phase};
use protocol::machine::Gpu;
use protocol::terms::{ContractKind, Need, Prices, storage_due};
use protocol::units::{Bytes, MicroUsd, Millis, Seconds, Timestamp};
use serde_json::{Value, json};

/// Schema of one lease.
pub(crate) const LEASE_SCHEMA: &str = "feira.lease/1";
/// Schema of many.
pub(crate) const LEASES_SCHEMA: &str = "feira.leases/1";

const DAY: Seconds = Seconds(86_400);

/// A lease with the broker that keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// Who keeps it.
    pub broker: BrokerId,
    /// The lease.
    pub view: LeaseView,
}

fn moment(at: Timestamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(i64::try_from(at.0).ok()?).ok()
}

/// RFC 3339 in UTC, to the millisecond.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    moment(at).map_or_else(|| "unknown".to_owned(), |moment| format!("{moment:.3}"))
}

/// For people: local time with its zone.
pub(crate) fn clock_time(at: Timestamp) -> String {
    let zoned = moment(at).map(|moment| moment.to_zoned_datetime(jiff::tz::TimeZone::system()));
    zoned.map_or_else(
        || "unknown".to_owned(),
        |zoned| zoned.strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
    )
}

fn optional_time(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| Value::String(rfc3339(at)))
}

/// GPUs as people say them: `2x RTX 4090 24 GB`, or `none` on a CPU machine.
pub(crate) fn gpus_in_words(gpus: &[Gpu]) -> String {
    portion_in_words(gpus, u16::try_from(gpus.len()).unwrap_or(u16::MAX))
}

/// So many of these GPUs, which are all of one model.
pub(crate) fn portion_in_words(gpus: &[Gpu], count: u16) -> String {
    let Some(first) = gpus.first() else {
        return "none".to_owned();
    };
    let model = first.model.replace("NVIDIA ", "").replace("GeForce ", "");
    // As it is sold, which drivers never quite report.
    let gigabytes = gigabytes_as_sold(first.vram) / 1000;
    format!("{count}x {model} {gigabytes} GB")
}

/// Cores as people say them: `2`, `1.5`.
pub(crate) fn cores_in_words(millicores: u32) -> String {
    let (whole, rest) = (millicores / 1000, millicores % 1000);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{rest:03}")
        .trim_end_matches('0')
        .to_owned()
}

/// RAM as people say it, in binary gigabytes.
pub(crate) fn ram_in_words(ram: Bytes) -> String {
    let tenths = u128::from(ram.0) * 10 / (1 << 30);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

/// What an hour of it costs all in while it runs: by the bid while nothing else is agreed.
pub(crate) fn hourly(view: &LeaseView) -> MicroUsd {
    let mut prices = view.prices;
    if let (Phase::Resting, Some(bid)) = (&view.phase, view.bid) {
        prices = Prices {
            compute: bid,
            ..prices
        }
        .of_gpus(view.gpu_count);
    }
    prices.all_in_hour(Need::disk(view.disk))
}

/// What a stopped lease costs a day.
pub(crate) fn disk_per_day(view: &LeaseView) -> MicroUsd {
    storage_due(view.prices.storage, view.disk, DAY.millis())
}

/// How long `money` lasts at `per_hour`; nothing when it lasts for ever.
pub(crate) fn lasts(money: MicroUsd, per_hour: MicroUsd) -> Option<Seconds> {
    let money = u128::try_from(money.0).unwrap_or(0);
    let per_hour = u128::try_from(per_hour.0).ok().filter(|rate| *rate > 0)?;
    u64::try_from(money * 3600 / per_hour).ok().map(Seconds)
}

/// When a running lease ends by itself at the latest.
pub(crate) fn ends_by(view: &LeaseView, now: Timestamp) -> Option<Timestamp> {
    if view.phase != Phase::Running {
        return None;
    }
    let hourly = hourly(view);
    let left = view.budget.saturating_sub(view.charged.total());
    let by_money = lasts(left, hourly).map(|left| now.after(left.millis()));
    let by_time = view.duration_max.map(|most| {
        let left = most.millis().0.saturating_sub(view.running.0);
        now.after(Millis(left))
    });
    by_money.into_iter().chain(by_time).min()
}

/// The phase with its reason, in words.
pub(crate) fn phase_in_words(phase: &Phase) -> String {
    match reason_in_words(phase) {
        Some(reason) => format!("{}: {reason}", phase.word()),
        None => phase.word().to_owned(),
    }
}

fn reason_in_words(phase: &Phase) -> Option<String> {
    match phase {
        Phase::Resting => Some("the bid waits for its price, or for a free resource".to_owned()),
        Phase::Clearing(by) => Some(format!(
            "those who are there are told to go, by {} at the latest",
            clock_time(*by)
        )),
        Phase::Noticed(cause, by) => Some(format!(
            "it has to go, by {} at the latest: {}",
            clock_time(*by),
            pause_in_words(cause)
        )),
        Phase::Offered | Phase::Accepted | Phase::Preparing | Phase::Running => None,
        Phase::Suspect => Some("the host is not heard; nothing is billed".to_owned()),
        Phase::Paused(cause) => Some(pause_in_words(cause)),
        Phase::Closing(cause) | Phase::Closed(cause) => Some(end_in_words(cause)),
    }
}

fn pause_in_words(cause: &PauseCause) -> String {
    match cause {
        PauseCause::Renter => "you stopped it".to_owned(),
        PauseCause::Exited(code) => format!("its main process ended with code {code}"),
        PauseCause::OutOfMemory => "its main process was killed for memory".to_owned(),
        PauseCause::Outbid => "somebody bid more; it resumes by itself when its bid wins".to_owned(),
        PauseCause::Preempted => {
            "a lease on demand took its place; it resumes by itself when its bid wins".to_owned()
        }
        PauseCause::DiskFull => "it wrote more than its disk and was stopped".to_owned(),
        PauseCause::FundsLow => "the money would not last another five minutes".to_owned(),
        PauseCause::ResumeFailed(problem) => {
            format!(
                "it could not be started again: {}",
                problem_in_words(problem)
            )
        }
    }
}

/// The kind as programs read it.
pub(crate) const fn kind_word(kind: ContractKind) -> &'static str {
    match kind {
        ContractKind::OnDemand => "on_demand",
        ContractKind::Bid => "bid",
        ContractKind::Interruptible => "interruptible",
        ContractKind::Reserved => "reserved",
    }
}

/// A lease as programs see it.
pub(crate) fn lease_json(held: &Held, now: Timestamp) -> Value {
    let view = &held.view;
    json!({
        "schema": LEASE_SCHEMA,
        "id": view.id.to_string(),
        "name": view.name.as_str(),
        "kind": kind_word(view.kind),
        "state": view.phase.word(),
        "reason": reason_in_words(&view.phase),
        "since": rfc3339(view.since),
        "broker": held.broker.to_string(),
        "host": view.place.map(|(host, _)| host.to_string()),
        "offer": view.place.map(|(_, offer)| offer.to_string()),
        "order": view.order.to_string(),
        "renter": view.renter.to_string(),
        "image": view.image.to_string(),
        "gpus": view.gpus.iter().map(gpu_json).collect::<Vec<_>>(),
        "cpu_millicores": view.cpu_millicores,
        "ram_bytes": view.ram.0,
        "disk_bytes": view.disk.0,
        "price_usd_per_hour": hourly(view).decimal(),
        "compute_usd_per_hour": view.prices.compute.amount().decimal(),
        "storage_usd_per_gb_month": view.prices.storage.amount().decimal(),
        "upload_usd_per_gb": view.prices.upload.amount().decimal(),
        "download_usd_per_gb": view.prices.download.amount().decimal(),
        "fee_basis_points": view.fee.0,
        "ordered_at": rfc3339(view.ordered_at),
        "started_at": optional_time(view.started_at),
        "ends_by": optional_time(ends_by(view, now)),
        "disk_until": optional_time(view.disk_until),
        "running_seconds": view.running.seconds().0,
        "max_seconds": view.duration_max.map(|most| most.0),
        "charged_usd": view.charged.total().decimal(),
        "held_usd": view.held.decimal(),
        "budget_usd": view.budget.decimal(),
        "low_balance": view.low_balance,
        "addresses": addresses(view),
    })
}

/// Each address once, in the order in which the broker has them.
fn addresses(view: &LeaseView) -> Vec<&str> {
    let mut once: Vec<&str> = Vec::new();
    for address in view.access.addresses.iter().map(|a| a.as_str()) {
        if !once.contains(&address) {
            once.push(address);
        }
    }
    once
}

fn gpu_json(gpu: &Gpu) -> Value {
    json!({"model": gpu.model.as_str(), "uuid": gpu.uuid.as_str(), "vram_bytes": gpu.vram.0})
}

/// A lease as people see it.
pub(crate) fn lease_object(held: &Held, now: Timestamp) -> Object {
    let view = &held.view;
    let hourly = hourly(view);
    let mut lines = vec![
        line("Name", format!("{} ({})", view.name, view.id)),
        line("State", state_in_words(view)),
        line(
            "Host",
            match view.place {
                Some((host, offer)) => format!("{}, offer {}", host.short(), offer.short()),
                None => "none yet".to_owned(),
            },
        ),
        line(
            "Broker",
            format!("{}, fee {} of what you pay", held.broker.short(), view.fee),
        ),
        line("GPU", gpus_in_words(&view.gpus)),
        line("Machine", machine_in_words(view)),
        line("Image", view.image.to_string()),
        line("Price", price_in_words(view, hourly)),
        line("So far", so_far_in_words(view)),
        line("Ordered", clock_time(view.ordered_at)),
    ];
    if let Some(started) = view.started_at {
        lines.push(line("Started", clock_time(started)));
    }
    if let Some(ends) = ends_by(view, now) {
        let left = ends.since(now).seconds();
        lines.push(line(
            "Ends",
            format!("by itself in {left}, at {}", clock_time(ends)),
        ));
    }
    if let Some(until) = view.disk_until {
        let per_day = disk_per_day(view);
        let text = format!("kept until {}, {} a day", clock_time(until), per_day);
        lines.push(line("Disk", text));
    }
    if view.low_balance {
        lines.push(line(
            "Money",
            "lasts for less than 15 minutes: top up".to_owned(),
        ));
    }
    Object {
        id: view.id.to_string(),
        lines,
        json: lease_json(held, now),
    }
}

fn state_in_words(view: &LeaseView) -> String {
    let (word, since) = (view.phase.word(), clock_time(view.since));
    match reason_in_words(&view.phase) {
        Some(reason) => format!("{word} since {since}: {reason}"),
        None => format!("{word} since {since}"),
    }
}

fn line(label: &str, value: String) -> (String, String) {
    (label.to_owned(), value)
}

fn machine_in_words(view: &LeaseView) -> String {
    format!(
        "{} vCPU, {} RAM, {} disk",
        cores_in_words(view.cpu_millicores),
        ram_in_words(view.ram),
        view.disk
    )
}

fn price_in_words(view: &LeaseView, hourly: MicroUsd) -> String {
    let stopped = disk_per_day(view);
    format!("{hourly}/h all in while it runs; {stopped}/day for the disk while stopped")
}

fn so_far_in_words(view: &LeaseView) -> String {
    format!(
        "{} of {} in {} of running; {} held",
        view.charged.total(),
        view.budget,
        view.running.seconds(),
        view.held
    )
}

/// Many leases.
pub(crate) fn lease_listing(leases: &[Held], now: Timestamp, all: bool) -> Listing {
    let empty = if all {
        "You have had no lease yet. Find one: feira search"
    } else {
        "No lease is open. Those that are over: feira ls --all"
    };
    Listing {
        schema: LEASES_SCHEMA,
        columns: vec![
            Column::left("NAME"),
            Column::left("ID").rank(3),
            Column::left("STATE"),
            Column::left("GPU").rank(2),
            Column::right("$/H"),
            Column::right("SO FAR"),
            Column::right("BUDGET").rank(1),
            Column::left("ENDS IN").rank(4),
            Column::left("IMAGE").wide(),
            Column::left("HOST").wide(),
            Column::left("BROKER").wide(),
            Column::left("ORDERED").wide(),
        ],
        rows: leases.iter().map(|held| lease_row(held, now)).collect(),
        empty: empty.to_owned(),
        next: None,
    }
}

fn lease_row(held: &Held, now: Timestamp) -> Row {
    let view = &held.view;
    let ends = ends_by(view, now).map(|at| at.since(now).seconds().to_string());
    Row {
        id: view.id.to_string(),
        cells: vec![
            view.name.to_string(),
            view.id.short(),
            view.phase.word().to_owned(),
            gpus_in_words(&view.gpus),
            hourly(view).to_string()
                .replace('$', ""),
            view.charged.total().to_string(),
            view.budget.to_string(),
            ends.unwrap_or_else(|| "-".to_owned()),
            view.image.name.to_string(),
            view.place
                .map_or_else(|| "-".to_owned(), |(host, _)| host.short()),
            held.broker.short(),
            clock_time(view.ordered_at),
        ],
        json: lease_json(held, now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_utc() {
        // 2026-11-30T14:02:44.103Z, by `date -u -d … +%s`.
        assert_eq!(
            rfc3339(Timestamp(1_796_047_364_103)),
            "2026-11-30T14:02:44.103Z"
        );
        assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn money_lasts_as_long_as_division_says() {
        // $5.00 at $0.336/h: 5 / 0.336 h = 53571.4… s.
        let five = MicroUsd(5_000_000);
        assert_eq!(lasts(five, MicroUsd(336_000)), Some(Seconds(53_571)));
        assert_eq!(lasts(five, MicroUsd::ZERO), None);
        assert_eq!(lasts(MicroUsd(-1), MicroUsd(1)), Some(Seconds(0)));
    }

    #[test]
    fn sizes_in_words() {
        assert_eq!(cores_in_words(2000), "2");
        assert_eq!(cores_in_words(1500), "1.5");
        assert_eq!(ram_in_words(Bytes(64 << 30)), "64.0 GiB");
        assert_eq!(gpus_in_words(&[]), "none");
    }
}
