//! Whether the entries on disk and the balances in memory say the same.

use crate::core::market::Market;
use crate::store::journal::Heads;
use crate::store::recover::{beginning, replay};
use crate::store::{JOURNAL_FILE, StoreError, doing, schema};
use protocol::ids::{BrokerId, RenterId};
use protocol::units::{MicroUsd, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;
use std::path::Path;

/// How many problems are told of.
const PROBLEMS_MAX: usize = 20;

/// What a check of the ledger found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerReport {
    /// The number of the journal's last event.
    pub last_event: u64,
    /// When that happened.
    pub last_at: Timestamp,
    /// Entries looked at.
    pub entries: u64,
    /// Accounts that are not empty.
    pub accounts: u64,
    /// What each kind of account adds up to, as its holders see it.
    pub by_kind: BTreeMap<&'static str, MicroUsd>,
    /// Sum of all entries; zero, or money was made or lost.
    pub sum: i128,
    /// What is wrong, in words; nothing when all is well.
    pub problems: Vec<String>,
}

/// Folds every entry on disk and compares with the balances of `market`.
pub(super) fn compare(
    connection: &Connection,
    market: &Market,
) -> Result<(LedgerReport, Heads), StoreError> {
    let Folded {
        sums: folded,
        heads,
        mut report,
    } = fold(connection).map_err(doing("read its entries"))?;
    report.last_at = market.last_at();
    if report.sum != 0 {
        report
            .problems
            .push(format!("all entries together are {} and not 0", report.sum));
    }
    let mut balances: BTreeMap<Vec<u8>, i128> = BTreeMap::new();
    for (account, balance) in market.ledger().iter() {
        balances.insert(account.key(), i128::from(balance));
        let of_kind = report
            .by_kind
            .entry(account.kind())
            .or_insert(MicroUsd::ZERO);
        *of_kind = of_kind.saturating_add(market.ledger().balance(account));
        if market.ledger().balance(account).0 < 0 {
            report
                .problems
                .push(format!("{} is below zero: {balance}", account.kind()));
        }
    }
    report.accounts = u64::try_from(balances.len()).unwrap_or(u64::MAX);
    for (key, sum) in &folded {
        let held = balances.remove(key).unwrap_or(0);
        if held != *sum {
            let name = name_of(key);
            report
                .problems
                .push(format!("{name} is {held} in memory and {sum} on disk"));
        }
    }
    for (key, held) in &balances {
        report.problems.push(format!(
            "{} is {held} in memory and absent on disk",
            name_of(key)
        ));
    }
    report.problems.truncate(PROBLEMS_MAX);
    Ok((report, heads))
}

/// All entries, added up.
#[derive(Default)]
struct Folded {
    /// By account, as it stands on disk.
    sums: BTreeMap<Vec<u8>, i128>,
    heads: Heads,
    report: LedgerReport,
}

fn fold(connection: &Connection) -> rusqlite::Result<Folded> {
    let Folded {
        mut sums,
        mut heads,
        mut report,
    } = Folded::default();
    let events: i64 =
        connection.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| {
            row.get(0)
        })?;
    report.last_event = crate::store::loaded(events);
    let mut select = connection
        .prepare("SELECT account, amount, event, previous FROM entries ORDER BY event, n")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let account = row.get_ref(0)?.as_blob()?;
        let amount = i128::from(row.get::<_, i64>(1)?);
        report.entries += 1;
        report.sum += amount;
        let event = crate::store::loaded(row.get(2)?);
        let before = renter_of(account).and_then(|renter| heads.insert(renter, event));
        if before != row.get::<_, Option<i64>>(3)?.map(crate::store::loaded) {
            report.problems.push(format!(
                "event {event} says another event than {before:?} moved {} before",
                name_of(account)
            ));
        }
        match sums.get_mut(account) {
            Some(sum) => *sum += amount,
            None => {
                sums.insert(account.to_vec(), amount);
            }
        }
    }
    Ok(Folded {
        sums,
        heads,
        report,
    })
}

/// The renter whose available money that account is, by the key that it has on disk.
fn renter_of(account: &[u8]) -> Option<RenterId> {
    let id = account.strip_prefix(&[1])?;
    id.try_into().ok().map(RenterId::from_bytes)
}

/// Checks the whole journal in `folder`, from its first event, beside the broker that may be writing it:
/// every hash, every sum, every balance.
///
/// # Errors
/// When it cannot be read, or an event is not what was written.
pub fn check(folder: &Path) -> Result<LedgerReport, StoreError> {
    check_file(&folder.join(JOURNAL_FILE))
}

/// Checks a journal by its file's name, as [`check`] does: a backup.
///
/// # Errors
/// When it cannot be read, or an event is not what was written.
pub fn check_file(path: &Path) -> Result<LedgerReport, StoreError> {
    if !path.is_file() {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(StoreError::Io {
            what: "open",
            path: path.to_owned(),
            source,
        });
    }
    let connection = schema::connect_to_read(path)?;
    // One transaction, so that all of it is about one moment.
    connection.execute_batch("BEGIN").map_err(doing("begin"))?;
    schema::check_file(&connection)?;
    let owner: Option<String> = connection
        .query_row("SELECT value FROM meta WHERE name = 'broker'", [], |row| {
            row.get(0)
        })
        .optional()
        .map_err(doing("read its owner"))?;
    let owner = owner.unwrap_or_default();
    let broker: BrokerId = owner
        .parse()
        .map_err(|_| StoreError::Damaged(format!("its owner is '{owner}', which is no broker")))?;
    let (market, _) = replay(&connection, beginning(broker))?;
    compare(&connection, &market).map(|(report, _)| report)
}

fn name_of(key: &[u8]) -> String {
    let hexadecimal: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("account {hexadecimal}")
}
