//! The baselines for durable orders: SQLite with the journal's settings and group commit, written by
//! someone who does not verify, decide, hash or encode.
//!
//! One writer thread takes what waits, writes for each job, commits once, and answers after the
//! commit. Must not know what an order is.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use broker::store::{JOURNAL_FILE, Store};
use protocol::ids::BrokerId;
use rusqlite::{Connection, TransactionBehavior, params};
use tokio::sync::{mpsc, oneshot};

use crate::Outcome;
use crate::clock;

/// Most jobs in one transaction: as many as the broker takes.
const BATCH_MAX: usize = 512;
/// Accounts that money moves between.
const ACCOUNTS: i64 = 100;

/// What is written for each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// A transfer in a plain ledger: its record, two entries and two balances, in a savepoint.
    Transfer,
    /// The rows of an order in the broker's own journal, and not a byte more.
    Rows,
}

impl Work {
    /// A new database in `folder` with the tables for it.
    fn open(self, folder: &Path, broker: BrokerId) -> Outcome<Connection> {
        fs::create_dir(folder)?;
        if self == Self::Rows {
            let (store, _) = Store::create(folder, broker)?;
            store.close()?;
        }
        let connection = Connection::open(folder.join(JOURNAL_FILE))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        if self == Self::Transfer {
            connection.execute_batch(LEDGER)?;
            let mut insert = connection.prepare("INSERT INTO account VALUES (?1, ?2)")?;
            for account in 0..ACCOUNTS {
                insert.execute([account, 1_000_000_000])?;
            }
        }
        Ok(connection)
    }

    fn write(self, connection: &Connection, number: i64, body: &[u8]) -> rusqlite::Result<()> {
        match self {
            Self::Transfer => transfer(connection, number),
            Self::Rows => rows(connection, number, body),
        }
    }
}

const LEDGER: &str = "
    CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0)) STRICT;
    CREATE TABLE transfer (id INTEGER PRIMARY KEY, idem BLOB NOT NULL UNIQUE) STRICT;
    CREATE TABLE entry (
        transfer INTEGER NOT NULL REFERENCES transfer (id),
        account  INTEGER NOT NULL REFERENCES account (id),
        amount   INTEGER NOT NULL,
        PRIMARY KEY (transfer, account)
    ) STRICT, WITHOUT ROWID;
";

/// Five statements, as a ledger in SQLite usually has them.
fn transfer(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    let (from, to) = (number % ACCOUNTS, (number + 1) % ACCOUNTS);
    // Ids of transfers come from many clients, in no order.
    let id = scattered(number);
    connection.prepare_cached("SAVEPOINT job")?.execute([])?;
    connection
        .prepare_cached("INSERT INTO transfer (id, idem) VALUES (?1, ?2)")?
        .execute(params![number, &id[..]])?;
    let mut entry = connection.prepare_cached("INSERT INTO entry VALUES (?1, ?2, ?3)")?;
    entry.execute([number, from, -1])?;
    entry.execute([number, to, 1])?;
    let mut balance =
        connection.prepare_cached("UPDATE account SET balance = balance + ?2 WHERE id = ?1")?;
    balance.execute([from, -1])?;
    balance.execute([to, 1])?;
    connection.prepare_cached("RELEASE job")?.execute([])?;
    Ok(())
}

/// An event, and the money it holds on two accounts.
fn rows(connection: &Connection, number: i64, body: &[u8]) -> rusqlite::Result<()> {
    const EVENT: &str =
        "INSERT INTO events (seq, at, kind, body, chain) VALUES (?1, ?2, ?3, ?4, ?5)";
    const ENTRIES: &str = "INSERT INTO entries (event, n, account, amount)
        VALUES (?1, 0, ?2, ?3), (?1, 1, ?4, ?5)";
    let (mut renter, mut lease) = ([7_u8; 33], [7_u8; 33]);
    (renter[0], lease[0]) = (1, 2);
    connection.prepare_cached(EVENT)?.execute(params![
        number,
        number,
        "order",
        body,
        &renter[1..]
    ])?;
    connection
        .prepare_cached(ENTRIES)?
        .execute(params![number, renter, -1, lease, 1])?;
    Ok(())
}

/// Sixteen bytes that look drawn, and are the same for the same number.
fn scattered(number: i64) -> [u8; 16] {
    // The multiplier of a 64-bit linear congruential generator (Knuth, MMIX).
    let mixed = number
        .cast_unsigned()
        .wrapping_mul(6_364_136_223_846_793_005)
        .rotate_left(29);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mixed.to_le_bytes());
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    bytes
}

type Job = (Arc<[u8]>, oneshot::Sender<()>);

/// The writer thread, and the way to it.
pub(crate) struct Writer {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<Result<(), rusqlite::Error>>,
}

impl Writer {
    /// Makes a new database in `folder`, and does `work` in it from now on.
    pub(crate) fn start(folder: &Path, work: Work, broker: BrokerId) -> Outcome<Self> {
        let connection = work.open(folder, broker)?;
        let (jobs, waiting) = mpsc::channel(1024);
        let thread = thread::Builder::new()
            .name("group-commit".to_owned())
            .spawn(move || write(connection, work, waiting))?;
        Ok(Self { jobs, thread })
    }

    /// Rows a second that are written and answered, of `rows` rows of `bytes` bytes with `in_flight` at
    /// once.
    pub(crate) async fn rate(&self, rows: usize, bytes: usize, in_flight: usize) -> Outcome<f64> {
        let body: Arc<[u8]> = vec![0x5a; bytes].into();
        let next = Arc::new(AtomicUsize::new(0));
        let began = clock::now();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..in_flight {
            let (jobs, body, next) = (self.jobs.clone(), Arc::clone(&body), Arc::clone(&next));
            tasks.spawn(async move {
                while next.fetch_add(1, Ordering::Relaxed) < rows {
                    let (answer, answered) = oneshot::channel();
                    if jobs.send((Arc::clone(&body), answer)).await.is_err() {
                        return false;
                    }
                    if answered.await.is_err() {
                        return false;
                    }
                }
                true
            });
        }
        while let Some(finished) = tasks.join_next().await {
            if !finished? {
                return Err("the group-commit writer stopped".into());
            }
        }
        Ok(f64::from(u32::try_from(rows)?) / began.elapsed().as_secs_f64())
    }

    /// Ends the thread and says what it met.
    pub(crate) fn stop(self) -> Outcome<()> {
        drop(self.jobs);
        self.thread
            .join()
            .map_err(|_| "the group-commit writer panicked")??;
        Ok(())
    }
}

/// Mean size of an order's event in the journal in `folder`, in bytes.
pub(crate) fn event_bytes(folder: &Path) -> Outcome<usize> {
    let connection = Connection::open(folder.join(JOURNAL_FILE))?;
    // Of the events that moved money for a lease, the newest are the orders.
    let bytes: i64 = connection.query_row(
        "SELECT avg(length(body)) FROM (SELECT body FROM events ORDER BY seq DESC LIMIT 1000)",
        [],
        |row| {
            row.get::<_, f64>(0)
                .map(|mean| mean.round().to_string().parse().unwrap_or(0))
        },
    )?;
    Ok(usize::try_from(bytes)?)
}

fn write(
    mut connection: Connection,
    work: Work,
    mut waiting: mpsc::Receiver<Job>,
) -> rusqlite::Result<()> {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut last = 0;
    while waiting.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (body, _) in &batch {
            last += 1;
            work.write(&transaction, last, body)?;
        }
        transaction.commit()?;
        for (_, answer) in batch.drain(..) {
            // Whoever asked may have given up.
            let _ = answer.send(());
        }
    }
    Ok(())
}
