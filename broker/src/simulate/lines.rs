//! What happened, as lines of JSON: the names of the scenario for ids, and amounts in µ$.

use crate::core::event::{Event, Fact, Move};
use crate::core::lease::State;
use crate::core::ledger::Account;
use crate::core::market::Market;
use crate::core::payment::{PaymentKind, Payout};
use protocol::ids::{HostId, LeaseId, RenterId};
use protocol::lease::{EndCause, PauseCause};
use protocol::units::{MicroUsd, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;

/// One line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    pub(super) at_s: u64,
    pub(super) event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) order: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) renter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gpus: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) price_uh: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) amount: Option<i64>,
}

/// Who is who in a scenario.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) orders: BTreeMap<LeaseId, String>,
    pub(super) renters: BTreeMap<RenterId, String>,
    pub(super) hosts: BTreeMap<HostId, String>,
}

/// The lines of one event. `market` is as it was before it.
pub(super) fn of(event: &Event, market: &Market, names: &Names, start: Timestamp) -> Vec<Line> {
    let at_s = event.at.since(start).0 / 1000;
    let order = event
        .lease()
        .and_then(|lease| names.orders.get(&lease).cloned());
    let base = Line {
        at_s,
        order,
        ..Line::default()
    };
    let mut lines = fact_lines(event, market, names, start, &base);
    lines.extend(money_lines(event, names, &base));
    lines
}

fn fact_lines(
    event: &Event,
    market: &Market,
    names: &Names,
    start: Timestamp,
    base: &Line,
) -> Vec<Line> {
    let line = |event: &'static str| Line {
        event,
        ..base.clone()
    };
    match &event.fact {
        Fact::Rested(rest) => vec![Line {
            kind: Some(rest.order.body().deal.kind().word()),
            until_s: Some(rest.until.since(start).0 / 1000),
            ..line("order_accepted")
        }],
        Fact::Matched(matched) => {
            let award = matched.award.body();
            let offered = Line {
                host: names.hosts.get(&award.host).cloned(),
                kind: Some(award.kind.word()),
                gpus: u16::try_from(matched.share.gpus.len()).ok(),
                price_uh: Some(award.prices.compute.0),
                until_s: matched.clear_by.map(|by| by.since(start).0 / 1000),
                ..line("lease_offered")
            };
            let accepted = market.resting(award.lease).is_none().then(|| Line {
                kind: Some(award.kind.word()),
                ..line("order_accepted")
            });
            accepted.into_iter().chain([offered]).collect()
        }
        Fact::Moved(moved) => moved_line(moved, market, start, base).into_iter().collect(),
        Fact::Lapsed { cause, .. } => vec![Line {
            cause: Some(end_word(cause).to_owned()),
            ..line("lease_closed")
        }],
        Fact::Paid { payment, .. } => match payment.what {
            PaymentKind::Payout(host, Payout::Paid(_)) => vec![Line {
                host: names.hosts.get(&host).cloned(),
                amount: Some(payment.amount.0),
                ..line("paid_out")
            }],
            PaymentKind::Refund(_) => vec![Line {
                amount: Some(payment.amount.0),
                ..line("refunded")
            }],
            PaymentKind::Payout(..)
            | PaymentKind::Bond(_)
            | PaymentKind::BondReturned(_)
            | PaymentKind::DepositReversed(_) => Vec::new(),
        },
        Fact::Deposited { .. }
        | Fact::Granted { .. }
        | Fact::Metered(_)
        | Fact::Held { .. }
        | Fact::Warned { .. }
        | Fact::Commanded(_)
        | Fact::Cleared { .. }
        | Fact::RestRebid { .. }
        | Fact::Changed(_)
        | Fact::Matured { .. }
        | Fact::Suspended { .. }
        | Fact::Heard(_)
        | Fact::Away(_)
        | Fact::Funded { .. }
        | Fact::Reclaimed { .. }
        | Fact::Proved(_) => Vec::new(),
    }
}

fn moved_line(moved: &Move, market: &Market, start: Timestamp, base: &Line) -> Option<Line> {
    let before = market.lease(moved.lease)?;
    let line = |event: &'static str| Line {
        event,
        ..base.clone()
    };
    match &moved.to {
        State::Running if before.started_at.is_none() => Some(line("lease_started")),
        State::Running => Some(line("lease_resumed")),
        State::Noticed { cause, by } => Some(Line {
            cause: Some(pause_word(cause).to_owned()),
            until_s: Some(by.since(start).0 / 1000),
            ..line("lease_notice")
        }),
        State::Paused { cause, .. } => Some(Line {
            cause: Some(pause_word(cause).to_owned()),
            ..line("lease_paused")
        }),
        State::Suspect { .. } => Some(Line {
            cause: Some("host_silent".to_owned()),
            ..line("lease_paused")
        }),
        State::Closed { cause } => Some(Line {
            cause: Some(end_word(cause).to_owned()),
            ..line("lease_closed")
        }),
        State::Clearing { .. }
        | State::Offered { .. }
        | State::Accepted { .. }
        | State::Preparing { .. }
        | State::Closing { .. } => None,
    }
}

/// What an event did to the money of its lease: one line for each kind of move.
fn money_lines(event: &Event, names: &Names, base: &Line) -> Vec<Line> {
    let sum = |of: fn(&Account) -> bool| -> i64 {
        let entries = event.entries.iter().filter(|entry| of(&entry.account));
        entries.map(|entry| entry.amount).sum()
    };
    // On the books what the broker owes is negative: more of it is a credit.
    let free = sum(|account| matches!(account, Account::RenterAvailable(_)));
    let locked = sum(|account| matches!(account, Account::RenterLocked(_)));
    let prepaid = sum(|account| matches!(account, Account::Prepaid(_)));
    let is_refund = matches!(event.fact, Fact::Paid { .. } | Fact::Deposited { .. });
    if is_refund || event.lease().is_none() {
        return Vec::new();
    }
    let renter = event.entries.iter().find_map(|entry| {
        let Account::RenterAvailable(renter) = entry.account else {
            return None;
        };
        names.renters.get(&renter).cloned()
    });
    let line = |event: &'static str, amount: i64| Line {
        event,
        renter: renter.clone(),
        amount: Some(amount),
        ..base.clone()
    };
    // All that left the renter's two pockets and the prepaid term was charged.
    let charged = free + locked + prepaid;
    let mut lines = Vec::new();
    if charged > 0 {
        lines.push(line("charged", charged));
    }
    if charged < 0 {
        lines.push(line("refunded", -charged));
    }
    match free {
        1.. => lines.push(line("held", free)),
        0 => {}
        _ => lines.push(line("released", -free)),
    }
    lines
}

/// A cause in one word.
pub(super) fn pause_word(cause: &PauseCause) -> &'static str {
    match cause {
        PauseCause::Renter => "renter",
        PauseCause::Exited(_) => "exited",
        PauseCause::OutOfMemory => "out_of_memory",
        PauseCause::FundsLow => "funds_low",
        PauseCause::ResumeFailed(_) => "resume_failed",
        PauseCause::DiskFull => "disk_full",
        PauseCause::GpuFault(_) => "gpu_fault",
        PauseCause::Outbid => "outbid",
        PauseCause::Preempted => "preempted",
    }
}

/// A cause in one word.
pub(super) fn end_word(cause: &EndCause) -> &'static str {
    match cause {
        EndCause::Renter => "renter",
        EndCause::Budget => "budget",
        EndCause::Duration => "duration",
        EndCause::DiskExpired => "disk_expired",
        EndCause::Refused(_) => "refused",
        EndCause::NotAccepted => "not_accepted",
        EndCause::NotStarted => "not_started",
        EndCause::Failed(_) => "failed",
        EndCause::HostLost => "host_lost",
        EndCause::Host(_) => "host",
        EndCause::Operator => "operator",
        EndCause::BidExpired => "bid_expired",
        EndCause::TermOver => "term_over",
        EndCause::OfferEnded => "offer_ended",
        EndCause::HostFailed(_) => "host_failed",
    }
}

/// An amount as lines show it.
pub(super) const fn micro(amount: MicroUsd) -> i64 {
    amount.0
}
