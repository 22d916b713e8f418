//! A renter's account as a list of movements, read from the entries.

use crate::core::event::{Event, Fact};
use crate::core::ledger::Account;
use crate::store::{StoreError, doing, loaded, loaded_amount, stored};
use protocol::bounded::{List, Text};
use protocol::codec;
use protocol::ids::RenterId;
use protocol::units::MicroUsd;
use protocol::usage::{AccountStatement, StatementLine};
use rusqlite::{Connection, params};

/// Lines of one page.
const PAGE: usize = 500;

/// Both bounds of the partial index stand in every query that is to use it.
const BALANCE_BEFORE: &str = "SELECT coalesce(sum(amount), 0) FROM entries
    WHERE account = ?1 AND event <= ?2 AND account >= x'01' AND account < x'02'";
const MOVEMENTS: &str = "SELECT n.event, n.amount, e.body
    FROM entries n JOIN events e ON e.seq = n.event
    WHERE n.account = ?1 AND n.event > ?2 AND n.account >= x'01' AND n.account < x'02'
    ORDER BY n.event LIMIT ?3";

/// The movements after event `after`.
pub(super) fn read(
    connection: &Connection,
    renter: RenterId,
    after: u64,
) -> Result<AccountStatement, StoreError> {
    let key = Account::RenterAvailable(renter).key();
    let before: i64 = connection
        .query_row(BALANCE_BEFORE, params![key, stored(after)], |row| {
            row.get(0)
        })
        .map_err(doing("read a balance"))?;
    // On disk what the broker owes is negative.
    let mut balance = loaded_amount(before).negated();
    let mut select = connection
        .prepare_cached(MOVEMENTS)
        .map_err(doing("read an account"))?;
    let limit = stored(u64::try_from(PAGE + 1).unwrap_or(u64::MAX));
    let mut rows = select
        .query(params![key, stored(after), limit])
        .map_err(doing("read an account"))?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next().map_err(doing("read an account"))? {
        let read = || Ok((loaded(row.get(0)?), row.get(1)?, row.get(2)?));
        let (event, amount, body): (u64, i64, Vec<u8>) =
            read().map_err(doing("read an account"))?;
        let amount = loaded_amount(amount).negated();
        balance = balance.saturating_add(amount);
        lines.push(line(event, &codec::decode(&body)?, amount, balance));
    }
    let next = (lines.len() > PAGE)
        .then(|| lines.get(PAGE - 1).map(|line| line.event))
        .flatten();
    Ok(AccountStatement {
        renter,
        lines: List::first(lines.into_iter().take(PAGE)),
        next,
    })
}

fn line(number: u64, event: &Event, amount: MicroUsd, balance: MicroUsd) -> StatementLine {
    let what = match &event.fact {
        Fact::Deposited { .. } => "deposit",
        Fact::Matched(_)
        | Fact::Granted { .. }
        | Fact::Moved(_)
        | Fact::Metered(_)
        | Fact::Held { .. }
        | Fact::Warned { .. }
        | Fact::Commanded(_) => {
            if amount < MicroUsd::ZERO {
                "hold"
            } else {
                "release"
            }
        }
    };
    let (event_at, lease) = (event.at, event.lease());
    StatementLine {
        event: number,
        at: event_at,
        lease,
        what: Text::cut(what),
        amount,
        balance,
    }
}
