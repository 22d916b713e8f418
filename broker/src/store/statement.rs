//! A renter's account as a list of movements, read from the entries.
//!
//! Charges are taken from what is held, so the available money does not move by them. A line shows one all
//! the same where a run or a lease ends: what was held for it comes back (`release`), and what it cost goes
//! (`charge`). Every line's balance is what the lines up to it add up to; after the last line of an event it
//! is what the renter could spend then.

use crate::core::event::{Event, Fact, Move};
use crate::core::lease::State;
use crate::core::ledger::Account;
use crate::core::market::Market;
use crate::core::payment::PaymentKind;
use crate::store::{StoreError, doing, loaded, loaded_amount, stored, stored_time};
use protocol::bounded::{List, Text};
use protocol::codec;
use protocol::ids::{LeaseId, RenterId};
use protocol::units::{MicroUsd, Timestamp};
use protocol::usage::{AccountStatement, StatementLine};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;

/// Lines of one page.
const PAGE: usize = 500;

/// From the last movement back to the first, each found by the one after it.
const MOVEMENTS: &str = "WITH RECURSIVE movements (event, amount, previous) AS (
        SELECT event, amount, previous FROM entries WHERE event = ?2 AND account = ?1
        UNION ALL
        SELECT n.event, n.amount, n.previous FROM movements m CROSS JOIN entries n
        WHERE n.event = m.previous AND n.account = ?1
    )
    SELECT m.event, m.amount, e.kind IN ('stopped', 'closing', 'ended')
    FROM movements m CROSS JOIN events e ON e.seq = m.event";
const BODY: &str = "SELECT body FROM events WHERE seq = ?1";
const TIME: &str = "SELECT at FROM events WHERE seq = ?1";
const LAST: &str = "SELECT coalesce(max(seq), 0) FROM events";
const ENDS_FROM: &str = "SELECT seq, body FROM events
    WHERE seq >= ?1 AND at <= ?2 AND kind = 'ended' ORDER BY seq LIMIT 1000";

/// An event that has lines.
#[derive(Debug, Clone, Copy)]
struct Movement {
    event: u64,
    /// What it did to the available money.
    amount: MicroUsd,
    /// Whether a run or a lease ended by it.
    is_end: bool,
}

/// The movements after event `after`; `last` is the event of the renter's last one, if there is any.
pub(super) fn read(
    connection: &Connection,
    market: &Market,
    (renter, last): (RenterId, Option<u64>),
    after: u64,
) -> Result<AccountStatement, StoreError> {
    let mut movements = movements(connection, renter, last)?;
    movements.extend(silent_ends(connection, market, renter, &movements)?);
    movements.sort_by_key(|movement| movement.event);
    let mut account = Lines::default();
    let (mut lines, mut next) = (Vec::new(), None);
    for movement in movements {
        let Movement { event, amount, .. } = movement;
        if event <= after && !movement.is_end {
            account.balance = account.balance.saturating_add(amount);
            continue;
        }
        let of_event = account.of(event, &body(connection, event)?, amount);
        if event <= after {
            continue;
        }
        // All lines of an event are on one page.
        if lines.len() + of_event.len() > PAGE {
            next = lines.last().map(|line: &StatementLine| line.event);
            break;
        }
        lines.extend(of_event);
    }
    Ok(AccountStatement {
        renter,
        lines: List::first(lines),
        next,
    })
}

fn movements(
    connection: &Connection,
    renter: RenterId,
    last: Option<u64>,
) -> Result<Vec<Movement>, StoreError> {
    let key = Account::RenterAvailable(renter).key();
    let mut select = connection
        .prepare_cached(MOVEMENTS)
        .map_err(doing("read an account"))?;
    let rows = select
        .query_map(params![key, last.map(stored)], |row| {
            Ok(Movement {
                event: loaded(row.get(0)?),
                // On disk what the broker owes is negative.
                amount: loaded_amount(row.get(1)?).negated(),
                is_end: row.get(2)?,
            })
        })
        .map_err(doing("read an account"))?;
    rows.collect::<Result<_, _>>()
        .map_err(doing("read an account"))
}

/// Ends at which nothing came back: the last that was held was charged.
fn silent_ends(
    connection: &Connection,
    market: &Market,
    renter: RenterId,
    movements: &[Movement],
) -> Result<Vec<Movement>, StoreError> {
    let mut shown: BTreeMap<LeaseId, MicroUsd> = BTreeMap::new();
    for movement in movements.iter().filter(|movement| movement.is_end) {
        if let Fact::Moved(moved) = body(connection, movement.event)?.fact {
            shown.insert(moved.lease, moved.charged.total());
        }
    }
    let mut ends = Vec::new();
    for lease in market.leases_of(renter.into()) {
        let known = shown.get(&lease.id).copied().unwrap_or(MicroUsd::ZERO);
        if lease.state.is_closed()
            && lease.contract.renter == renter
            && lease.charged.total() > known
        {
            let end = end_of(connection, lease.id, lease.since)?;
            ends.extend(end.map(|event| Movement {
                event,
                amount: MicroUsd::ZERO,
                is_end: true,
            }));
        }
    }
    Ok(ends)
}

/// The event by which `lease` was over at `at`.
fn end_of(
    connection: &Connection,
    lease: LeaseId,
    at: Timestamp,
) -> Result<Option<u64>, StoreError> {
    let first = first_at(connection, at)?;
    let mut select = connection
        .prepare_cached(ENDS_FROM)
        .map_err(doing("find an end"))?;
    let mut rows = select
        .query(params![stored(first), stored_time(at)])
        .map_err(doing("find an end"))?;
    while let Some(row) = rows.next().map_err(doing("find an end"))? {
        let read = || Ok((loaded(row.get(0)?), row.get(1)?));
        let (event, body): (u64, Vec<u8>) = read().map_err(doing("find an end"))?;
        if codec::decode::<Event>(&body)?.lease() == Some(lease) {
            return Ok(Some(event));
        }
    }
    Ok(None)
}

/// The first event that is not before `at`; events are in the order of time.
fn first_at(connection: &Connection, at: Timestamp) -> Result<u64, StoreError> {
    let last: i64 = connection
        .query_row(LAST, [], |row| row.get(0))
        .map_err(doing("find an event"))?;
    let mut time = connection
        .prepare_cached(TIME)
        .map_err(doing("find an event"))?;
    let (mut low, mut high) = (1, loaded(last));
    while low < high {
        let middle = low.midpoint(high);
        let found: i64 = time
            .query_row(params![stored(middle)], |row| row.get(0))
            .map_err(doing("find an event"))?;
        if found < stored_time(at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

fn body(connection: &Connection, event: u64) -> Result<Event, StoreError> {
    let mut select = connection
        .prepare_cached(BODY)
        .map_err(doing("read an event"))?;
    let body: Vec<u8> = select
        .query_row(params![stored(event)], |row| row.get(0))
        .map_err(doing("read an event"))?;
    Ok(codec::decode(&body)?)
}

/// An account while its lines are made, oldest first.
#[derive(Debug, Default)]
struct Lines {
    balance: MicroUsd,
    /// What the lines so far charged for each lease.
    charged: BTreeMap<LeaseId, MicroUsd>,
    /// What they said of each prepaid term: its price, what was given back, what a bond paid.
    terms: BTreeMap<LeaseId, (MicroUsd, MicroUsd, MicroUsd)>,
}

impl Lines {
    /// The lines of one event: together they move the balance by `amount`.
    fn of(&mut self, number: u64, event: &Event, amount: MicroUsd) -> Vec<StatementLine> {
        let charge = self.charge(event);
        let of_term = self.of_term(event);
        let moved = of_term
            .iter()
            .fold(amount.saturating_add(charge), |left, (_, by)| {
                left.saturating_sub(*by)
            });
        let what = match (&event.fact, moved < MicroUsd::ZERO) {
            (Fact::Deposited { .. }, _) => "deposit",
            (Fact::Paid { payment, .. }, _) => match payment.what {
                PaymentKind::DepositReversed(_) => "reversal",
                PaymentKind::Refund(_)
                | PaymentKind::Bond(_)
                | PaymentKind::BondReturned(_)
                | PaymentKind::Payout(..) => "refund",
            },
            (Fact::Funded { .. } | Fact::Reclaimed { .. }, _) => "proof",
            (_, true) => "hold",
            (_, false) => "release",
        };
        let of_event = [(what, moved), ("charge", charge.negated())]
            .into_iter()
            .chain(of_term)
            .filter(|(_, by)| *by != MicroUsd::ZERO);
        of_event
            .map(|(what, by)| {
                self.balance = self.balance.saturating_add(by);
                StatementLine {
                    event: number,
                    at: event.at,
                    lease: event.lease(),
                    what: Text::cut(what),
                    amount: by,
                    balance: self.balance,
                }
            })
            .collect()
    }

    /// What an event did to a prepaid term: bought, given back, and paid from a host's bond.
    fn of_term(&mut self, event: &Event) -> [(&'static str, MicroUsd); 3] {
        let term = match &event.fact {
            Fact::Matched(matched) => matched.term,
            Fact::Changed(terms) => terms.term,
            Fact::Moved(moved) => moved.term,
            Fact::Deposited { .. }
            | Fact::Granted { .. }
            | Fact::Metered(_)
            | Fact::Held { .. }
            | Fact::Warned { .. }
            | Fact::Commanded(_)
            | Fact::Rested(_)
            | Fact::Lapsed { .. }
            | Fact::Cleared { .. }
            | Fact::RestRebid { .. }
            | Fact::Paid { .. }
            | Fact::Matured { .. }
            | Fact::Suspended { .. }
            | Fact::Heard(_)
            | Fact::Away(_)
            | Fact::Funded { .. }
            | Fact::Reclaimed { .. }
            | Fact::Proved(_) => None,
        };
        let known = event.lease().and_then(|lease| self.terms.get(&lease));
        let before = known.copied().unwrap_or_default();
        let now = term.map_or(before, |term| (term.prepaid, term.refunded, term.from_bond));
        if let (Some(lease), Some(_)) = (event.lease(), term) {
            self.terms.insert(lease, now);
        }
        [
            ("prepay", before.0.saturating_sub(now.0)),
            ("refund", now.1.saturating_sub(before.1)),
            ("bond", now.2.saturating_sub(before.2)),
        ]
    }

    /// What was charged since the last line that said so, where a run or the lease ends.
    fn charge(&mut self, event: &Event) -> MicroUsd {
        let Fact::Moved(moved) = &event.fact else {
            return MicroUsd::ZERO;
        };
        let Move {
            lease, to, charged, ..
        } = &**moved;
        match to {
            State::Paused { .. } | State::Closing { .. } | State::Closed { .. } => {
                let before = self.charged.insert(*lease, charged.total());
                let before = before.unwrap_or(MicroUsd::ZERO);
                charged.total().saturating_sub(before)
            }
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Accepted { .. }
            | State::Preparing { .. }
            | State::Running
            | State::Noticed { .. }
            | State::Suspect { .. } => MicroUsd::ZERO,
        }
    }
}
