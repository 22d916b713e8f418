//! The baselines for durable orders: SQLite with the journal's own settings and group commit, written by
//! someone who does not verify, decide, hash or encode.
//!
//! One writer thread takes what waits, writes for each job, commits once, and answers after the
//! commit, with as many waiting and through the same kind of channel as the broker. There are two:
//!
//! * a **transfer** in a plain ledger: five statements (its record, two entries, two balances) in a
//!   savepoint. The ledger is as large as the broker's is at the end of the row, with an account for each
//!   renter and each order, and their ids come in no order, as ids do: a hundred accounts in a row of one
//!   page each would say what SQLite does in a cache, and not what a ledger costs.
//! * the **rows** that the broker's journal got for the same messages, and not a byte more.
//!
//! With clients that verify a signature first, the rows say what is left for anyone who checks what is sent.
//! Must not know what an order is.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use broker::store::{JOURNAL_FILE, Store, configure};
use protocol::ids::BrokerId;
use rusqlite::{Connection, TransactionBehavior, params};
use tokio::sync::{mpsc, oneshot};

use crate::Outcome;
use crate::clock;
use crate::recorded::Recorded;

/// Most jobs in one transaction: as many as the broker takes.
const BATCH_MAX: usize = 512;
/// Accounts that money comes from: the renters.
const PAYERS: u32 = 100;
/// Accounts that money goes to: as many as there are orders in a run.
const PAYEES: u32 = 44_000;

/// What is written for each job.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// A transfer in a plain ledger.
    Transfer,
    /// Rows that the broker's journal got, those of each job in turn.
    Rows(Arc<[Vec<Recorded>]>),
}

impl Work {
    /// A new database in `folder` with the tables for it.
    fn open(&self, folder: &Path, broker: BrokerId) -> Outcome<Connection> {
        fs::create_dir(folder)?;
        if let Self::Rows(_) = self {
            let (store, _) = Store::create(folder, broker)?;
            store.close()?;
        }
        let connection = Connection::open(folder.join(JOURNAL_FILE))?;
        configure(&connection)?;
        if let Self::Transfer = self {
            open_ledger(&connection)?;
        }
        Ok(connection)
    }
}

const LEDGER: &str = "
    CREATE TABLE account (
        id      BLOB PRIMARY KEY,
        balance INTEGER NOT NULL CHECK (balance >= 0)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE transfer (id INTEGER PRIMARY KEY, idem BLOB NOT NULL UNIQUE) STRICT;
    CREATE TABLE entry (
        transfer INTEGER NOT NULL REFERENCES transfer (id),
        account  BLOB NOT NULL REFERENCES account (id),
        amount   INTEGER NOT NULL,
        PRIMARY KEY (transfer, account)
    ) STRICT, WITHOUT ROWID;
";

fn open_ledger(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(LEDGER)?;
    connection.execute_batch("BEGIN")?;
    let mut insert = connection.prepare("INSERT INTO account VALUES (?1, ?2)")?;
    for account in 0..PAYERS + PAYEES {
        insert.execute(params![scattered(b'a', account.into()), 1_000_000_000])?;
    }
    connection.execute_batch("COMMIT")
}

/// Five statements, as a ledger in SQLite usually has them.
fn transfer(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    let from = scattered(b'a', number % i64::from(PAYERS));
    let to = scattered(b'a', i64::from(PAYERS) + number % i64::from(PAYEES));
    connection.prepare_cached("SAVEPOINT job")?.execute([])?;
    connection
        .prepare_cached("INSERT INTO transfer (id, idem) VALUES (?1, ?2)")?
        .execute(params![number, scattered(b't', number)])?;
    let mut entry = connection.prepare_cached("INSERT INTO entry VALUES (?1, ?2, ?3)")?;
    entry.execute(params![number, from, -1])?;
    entry.execute(params![number, to, 1])?;
    let mut balance =
        connection.prepare_cached("UPDATE account SET balance = balance + ?2 WHERE id = ?1")?;
    balance.execute(params![from, -1])?;
    balance.execute(params![to, 1])?;
    connection.prepare_cached("RELEASE job")?.execute([])?;
    Ok(())
}

/// Sixteen bytes that look drawn, and are the same for the same kind and number.
fn scattered(kind: u8, number: i64) -> [u8; 16] {
    let seed = number.cast_unsigned() ^ (u64::from(kind) << 56);
    // The multiplier of a 64-bit linear congruential generator (Knuth, MMIX).
    let mixed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .rotate_left(29)
        .wrapping_mul(6_364_136_223_846_793_005);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mixed.to_be_bytes());
    bytes[8..].copy_from_slice(&seed.to_le_bytes());
    bytes
}

type Job = (usize, oneshot::Sender<()>);

/// What a client does before it asks, by the number of its job; whether that went well.
pub(crate) type Before = Arc<dyn Fn(usize) -> bool + Send + Sync>;

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
            .spawn(move || write(connection, &work, waiting))?;
        Ok(Self { jobs, thread })
    }

    /// Jobs a second that are written and answered, of `count` jobs with `in_flight` at once.
    pub(crate) async fn rate(&self, count: usize, in_flight: usize) -> Outcome<f64> {
        self.rate_after(count, in_flight, Arc::new(|_| true)).await
    }

    /// The same, of clients that do something first.
    pub(crate) async fn rate_after(
        &self,
        count: usize,
        in_flight: usize,
        before: Before,
    ) -> Outcome<f64> {
        let next = Arc::new(AtomicUsize::new(0));
        let began = clock::now();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..in_flight {
            let (jobs, next) = (self.jobs.clone(), Arc::clone(&next));
            let before = Arc::clone(&before);
            tasks.spawn(async move {
                loop {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    if job >= count {
                        return true;
                    }
                    let (answer, answered) = oneshot::channel();
                    if !before(job) || jobs.send((job, answer)).await.is_err() {
                        return false;
                    }
                    if answered.await.is_err() {
                        return false;
                    }
                }
            });
        }
        while let Some(finished) = tasks.join_next().await {
            if !finished? {
                return Err("the group-commit writer stopped, or a client gave up".into());
            }
        }
        Ok(f64::from(u32::try_from(count)?) / began.elapsed().as_secs_f64())
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

fn write(
    mut connection: Connection,
    work: &Work,
    mut waiting: mpsc::Receiver<Job>,
) -> rusqlite::Result<()> {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut last = 0;
    while waiting.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        match work {
            Work::Transfer => {
                for _ in &batch {
                    last += 1;
                    transfer(&transaction, last)?;
                }
            }
            Work::Rows(rows) => {
                let of_batch = batch
                    .iter()
                    .filter_map(|(job, _)| rows.get(job % rows.len()));
                last = crate::recorded::write(&transaction, last, of_batch.flatten())?;
            }
        }
        transaction.commit()?;
        for (_, answer) in batch.drain(..) {
            // Whoever asked may have given up.
            let _ = answer.send(());
        }
    }
    Ok(())
}
