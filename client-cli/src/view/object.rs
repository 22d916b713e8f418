//! A lease as people see it.

use super::json::lease_json;
use super::phase::reason_in_words;
use super::sums::{cancelled, disk_per_day, ends_by, hourly, term_ends};
use super::{Held, clock_time, cores_in_words, goods_in_words, ram_in_words, unit};
use super::{apart_in_words, slice_in_words};
use crate::commands::bid::to_win;
use crate::printer::Object;
use protocol::lease::{LeaseView, Phase};
use protocol::terms::{ContractKind, RateStep};
use protocol::units::{Bytes, MicroUsd, Millis, Timestamp};
use protocol::usage::Term;

/// A lease as people see it.
pub(crate) fn lease_object(held: &Held, now: Timestamp) -> Object {
    let view = &held.view;
    let hourly = hourly(view);
    let mut lines = vec![
        line("Name", format!("{} ({})", view.name, view.id)),
        line("State", state_in_words(view, now)),
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
        line("GPU", gpu_in_words(view)),
    ];
    if let Some(slice) = &view.partition {
        lines.push(line("Slice", slice_in_words(slice)));
        lines.push(line("", apart_in_words(slice.isolation).to_owned()));
    }
    lines.extend([
        line("Machine", machine_in_words(view)),
        line("Image", view.image.to_string()),
        line("Kind", kind_in_words(view)),
        line("Price", price_in_words(view, hourly)),
        line("So far", so_far_in_words(view)),
        line("Ordered", clock_time(view.ordered_at)),
    ]);
    lines.extend(deal_lines(view, now));
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

fn state_in_words(view: &LeaseView, now: Timestamp) -> String {
    let (word, since) = (view.phase.word(), clock_time(view.since));
    let left = match &view.phase {
        Phase::Noticed(_, by) | Phase::Clearing(by) => {
            format!(" ({} left)", by.since(now).seconds())
        }
        Phase::Resting
        | Phase::Offered
        | Phase::Accepted
        | Phase::Preparing
        | Phase::Running
        | Phase::Suspect
        | Phase::Paused(_)
        | Phase::Closing(_)
        | Phase::Closed(_) => String::new(),
    };
    match reason_in_words(&view.phase) {
        Some(reason) => format!("{word}{left} since {since}: {reason}"),
        None => format!("{word} since {since}"),
    }
}

fn gpu_in_words(view: &LeaseView) -> String {
    match (view.gpus.is_empty(), view.gpu_count) {
        (true, 1..) => format!("{} asked for", view.gpu_count),
        _ => {
            let count = u16::try_from(view.gpus.len()).unwrap_or(u16::MAX);
            goods_in_words(&view.gpus, count, view.partition.as_ref())
        }
    }
}

fn kind_in_words(view: &LeaseView) -> String {
    match view.kind {
        ContractKind::OnDemand => "on demand: nobody can push you out".to_owned(),
        ContractKind::Bid if view.phase == Phase::Resting => {
            "a bid that waits; then on demand at what the host asks".to_owned()
        }
        ContractKind::Bid => "on demand, bought by a bid: nobody can push you out".to_owned(),
        ContractKind::Interruptible => {
            "interruptible: you pay your bid while it runs, and only then".to_owned()
        }
        ContractKind::Reserved => "reserved: prepaid, and nobody can push you out".to_owned(),
    }
}

/// Bid, waiting, rates that changed, term.
fn deal_lines(view: &LeaseView, now: Timestamp) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    if let Some(bid) = view.bid {
        let win = to_win(view).map_or_else(String::new, |words| format!("; {words}"));
        lines.push(line(
            "Bid",
            format!("{bid} for {}{win}", unit(view.gpu_count)),
        ));
    }
    if let (Phase::Resting, Some(until)) = (&view.phase, view.rests_until) {
        let left = until.since(now).seconds();
        let text = format!("until {} ({left} left)", clock_time(until));
        lines.push(line("Waits", text));
    }
    let steps = view.rates.steps();
    if view.term.is_none() && steps.len() > 1 {
        let step = |step: &RateStep| {
            let after = step.from.seconds();
            format!("{} after {after} of running", step.price)
        };
        let steps: Vec<String> = steps.iter().map(step).collect();
        lines.push(line("Rates", steps.join(", ")));
    }
    if let Some(term) = &view.term {
        lines.extend(term_lines(view, term, now));
    }
    lines
}

fn term_lines(view: &LeaseView, term: &Term, now: Timestamp) -> Vec<(String, String)> {
    let mut lines = vec![line(
        "Term",
        match (term.begins, term_ends(term)) {
            (Some(begins), Some(ends)) => format!(
                "{} days from {} to {}",
                term.days,
                clock_time(begins),
                clock_time(ends)
            ),
            _ => format!("{} days, from when it first runs", term.days),
        },
    )];
    let left = term.left();
    let prepaid = format!(
        "{} (discount {}): {} earned, {left} left",
        term.prepaid, term.discount, term.earned
    );
    lines.push(line("Prepaid", prepaid));
    if term.down > Millis(0) {
        let text = format!("the host was away for {}, not earned", term.down.seconds());
        lines.push(line("", text));
    }
    if let Some(cancel) = cancelled(view, now) {
        lines.push(line(
            "Cancel",
            format!("ended now, {} comes back", cancel.refund),
        ));
    }
    if term.refunded > MicroUsd::ZERO || term.from_bond > MicroUsd::ZERO {
        let text = format!(
            "{} of it, {} of the host's bond",
            term.refunded, term.from_bond
        );
        lines.push(line("Refunded", text));
    }
    lines
}

fn line(label: &str, value: String) -> (String, String) {
    (label.to_owned(), value)
}

fn machine_in_words(view: &LeaseView) -> String {
    let (cpu, ram) = (view.cpu_millicores, view.ram);
    // A bid that waits has no machine yet, and mostly asks for no part of one by number.
    let share = match (cpu > 0, ram > Bytes(0)) {
        (true, true) => format!("{} vCPU, {} RAM", cores_in_words(cpu), ram_in_words(ram)),
        (true, false) => format!("{} vCPU, RAM in proportion", cores_in_words(cpu)),
        (false, true) => format!("{} RAM, vCPU in proportion", ram_in_words(ram)),
        (false, false) => "vCPU and RAM in proportion to its GPUs".to_owned(),
    };
    format!("{share}, {} disk", view.disk)
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
