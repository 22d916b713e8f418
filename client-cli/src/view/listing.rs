//! Many leases, one line each.

use super::json::lease_json;
use super::sums::{ends_by, hourly};
use super::{Held, clock_time, goods_in_words};
use crate::printer::{Column, Listing, Row};
use protocol::lease::{PauseCause, Phase};
use protocol::units::Timestamp;

/// Schema of many leases.
const LEASES_SCHEMA: &str = "feira.leases/1";

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
            Column::left("KIND").rank(1),
            Column::left("GPU").rank(2),
            Column::right("$/H"),
            Column::right("SO FAR"),
            Column::left("ENDS IN").rank(4),
            Column::right("BUDGET").wide(),
            Column::right("BID").wide(),
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
    let gpus = u16::try_from(view.gpus.len()).unwrap_or(u16::MAX);
    let ends = ends_by(view, now).map(|at| at.since(now).seconds().to_string());
    Row {
        id: view.id.to_string(),
        cells: vec![
            view.name.to_string(),
            view.id.short(),
            state(&view.phase, now),
            view.kind.word().to_owned(),
            goods_in_words(&view.gpus, gpus, view.partition.as_ref()),
            hourly(view).to_string().replace('$', ""),
            view.charged.total().to_string(),
            ends.unwrap_or_else(|| "-".to_owned()),
            view.budget.to_string(),
            view.bid
                .map_or_else(|| "-".to_owned(), |bid| bid.to_string()),
            view.image.name.to_string(),
            view.place
                .map_or_else(|| "-".to_owned(), |(host, _)| host.short()),
            held.broker.short(),
            clock_time(view.ordered_at),
        ],
        json: lease_json(held, now),
    }
}

/// The phase, with the time that is left in it.
fn state(phase: &Phase, now: Timestamp) -> String {
    match phase {
        Phase::Noticed(_, by) | Phase::Clearing(by) => {
            format!("{} {}", phase.word(), by.since(now).seconds())
        }
        Phase::Paused(PauseCause::Outbid) => "outbid".to_owned(),
        Phase::Paused(PauseCause::Preempted) => "preempted".to_owned(),
        Phase::Resting
        | Phase::Offered
        | Phase::Accepted
        | Phase::Preparing
        | Phase::Running
        | Phase::Suspect
        | Phase::Paused(_)
        | Phase::Closing(_)
        | Phase::Closed(_) => phase.word().to_owned(),
    }
}
