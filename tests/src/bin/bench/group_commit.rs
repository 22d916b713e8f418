//! The baseline for durable orders: SQLite with the journal's settings and nothing else to do.
//!
//! One writer thread takes what waits, writes one row for each in one transaction, and answers after
//! the commit. Must not verify, decide or know what the rows mean.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use crate::Outcome;
use crate::clock;

/// Most rows in one transaction: the journal's own.
const BATCH_MAX: usize = 512;

type Job = (Arc<[u8]>, oneshot::Sender<()>);

/// The writer thread, and the way to it.
pub(crate) struct Writer {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<Result<(), rusqlite::Error>>,
}

impl Writer {
    /// Opens a new database at `path`.
    pub(crate) fn start(path: &Path) -> Outcome<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection
            .execute_batch("CREATE TABLE event (number INTEGER PRIMARY KEY, body BLOB) STRICT")?;
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

fn write(mut connection: Connection, mut waiting: mpsc::Receiver<Job>) -> rusqlite::Result<()> {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while waiting.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO event (body) VALUES (?1)")?;
            for (body, _) in &batch {
                insert.execute(params![&body[..]])?;
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
