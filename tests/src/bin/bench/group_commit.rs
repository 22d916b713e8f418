//! The baseline for durable orders: the broker's own journal, its tables and settings, written by
//! someone with nothing else to do.
//!
//! One writer thread takes what waits, writes for each the rows that an order writes, of the same
//! sizes, in one transaction, and answers after the commit. Must not verify, decide, sign, hash or
//! encode; what those cost is what the row is about.

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
/// What an order writes: its event, and the money it holds on two accounts.
const EVENT: &str = "INSERT INTO events (seq, at, kind, body, chain) VALUES (?1, ?2, ?3, ?4, ?5)";
const ENTRIES: &str = "INSERT INTO entries (event, n, account, amount)
    VALUES (?1, 0, ?2, ?3), (?1, 1, ?4, ?5)";

type Job = (Arc<[u8]>, oneshot::Sender<()>);

/// The writer thread, and the way to it.
pub(crate) struct Writer {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<Result<(), rusqlite::Error>>,
}

impl Writer {
    /// Makes a new journal in `folder`, and writes to it from now on.
    pub(crate) fn start(folder: &Path, broker: BrokerId) -> Outcome<Self> {
        fs::create_dir(folder)?;
        let (store, _) = Store::open(folder, broker)?;
        store.close()?;
        let connection = Connection::open(folder.join(JOURNAL_FILE))?;
        for (name, value) in [("journal_mode", "WAL"), ("synchronous", "FULL")] {
            connection.pragma_update(None, name, value)?;
        }
        connection.pragma_update(None, "foreign_keys", true)?;
        let (jobs, waiting) = mpsc::channel(1024);
        let thread = thread::Builder::new()
            .name("group-commit".to_owned())
            .spawn(move || write(connection, waiting))?;
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

fn write(mut connection: Connection, mut waiting: mpsc::Receiver<Job>) -> rusqlite::Result<()> {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut last: i64 =
        connection.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| {
            row.get(0)
        })?;
    let (renter, lease) = (account(1), account(2));
    while waiting.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut event = transaction.prepare_cached(EVENT)?;
            let mut entries = transaction.prepare_cached(ENTRIES)?;
            for (body, _) in &batch {
                last += 1;
                event.execute(params![last, last, "order", &body[..], &renter[..32]])?;
                entries.execute(params![last, renter, -1, lease, 1])?;
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

/// An account as the journal writes it: what kind it is, and whose.
const fn account(kind: u8) -> [u8; 33] {
    let mut account = [7; 33];
    account[0] = kind;
    account
}
