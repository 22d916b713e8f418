//! Durable orders: how many a second a broker acknowledges, beside what its database can do at all.
//!
//! Must not use the network; the rows of the search do.

use std::path::Path;
use std::sync::Arc;

use ed25519_dalek::SigningKey;
use protocol::units::Timestamp;
use tokio::runtime::Runtime;

use crate::Outcome;
use crate::desk::{Desk, IN_FLIGHT, Message};
use crate::group_commit::{Before, Work, Writer};
use crate::market;
use crate::recorded::{self, Recorded};
use crate::report::Row;
use crate::rounds::{ROUNDS, by_turns, median};
use crate::threads::cpu_of;

/// Orders in one round: a fifth of a second at the rate that is asked for.
const ORDERS: usize = 2000;
const RENTERS: u32 = 100;
/// What the threads of a bench's runtime are called.
const WORKERS: &str = "bench-worker";

/// The threads on which messages are verified, and their senders wait.
pub(crate) fn workers() -> Outcome<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .thread_name(WORKERS)
        .enable_all()
        .build()?)
}

/// One row: acknowledged orders a second.
pub(crate) fn measure() -> Outcome<Vec<Row>> {
    let folder = tempfile::Builder::new().prefix("feira-bench").tempdir()?;
    let runtime = workers()?;
    let (ours, transfers) = (folder.path().join("broker"), folder.path().join("plain"));
    let desk = Desk::open(&ours, &runtime)?;
    let mut batches = prepare(&desk, &runtime, ROUNDS + 2)?.into_iter();
    // Once to see what an order leaves in the journal.
    let before = recorded::last_event(&ours)?;
    let first = batches.next().ok_or("no orders")?;
    desk.send(&runtime, first.clone())?;
    let rows = recorded::after(&ours, before, ORDERS)?;
    let bytes = recorded::mean_bytes(&rows);
    let bare = Bare::measure(&runtime, folder.path(), rows, (first, &desk))?;
    let writer = Writer::start(&transfers, Work::Transfer, desk.broker)?;
    let mut cpu = Cpu::default();
    let medians = by_turns(
        || {
            let batch = batches.next().ok_or("no orders left")?;
            cpu.of(batch.len(), || Ok(desk.send(&runtime, batch)?.rate))
        },
        || runtime.block_on(writer.rate(ORDERS, IN_FLIGHT)),
    )?;
    writer.stop()?;
    runtime.block_on(desk.close())?;
    let row = Row::new("orders", "orders/s", medians)
        .beside("a ledger transfer in SQLite, same settings and group commit")
        .goal("at least 10000 and half the baseline", |row| {
            row.ours() >= 10_000.0 && row.ratio() >= 0.5
        })
        .note(format!(
            "{IN_FLIGHT} in flight; an order is {bytes} bytes of journal"
        ))
        .note(bare.note(medians.ours))
        .note(cpu.note());
    Ok(vec![row])
}

/// Money for the renters, offers in the book, and `rounds` batches of signed orders for them.
fn prepare(desk: &Desk, runtime: &Runtime, rounds: usize) -> Outcome<Vec<Vec<Message>>> {
    let renters = renters(desk, runtime)?;
    let sellers = market::sellers(rounds * ORDERS, desk.broker, desk.clock.now())?;
    let mut payers = renters.iter().cycle();
    let mut orders = Vec::with_capacity(rounds * ORDERS);
    for seller in sellers {
        for offer in &seller.offers {
            let renter = payers.next().ok_or("no renters")?;
            let order = market::order(renter, offer.body(), desk.broker, desk.clock.now())?;
            orders.push(Message::Order(Box::new(order.signed().clone())));
        }
        runtime.block_on(desk.announce(&seller))?;
    }
    Ok(orders.chunks(ORDERS).map(<[Message]>::to_vec).collect())
}

/// Those who pay, with money.
pub(crate) fn renters(desk: &Desk, runtime: &Runtime) -> Outcome<Vec<SigningKey>> {
    let renters: Vec<SigningKey> = (0..RENTERS)
        .map(|number| market::key(b'r', number))
        .collect();
    for renter in &renters {
        runtime.block_on(desk.deposit(renter))?;
    }
    Ok(renters)
}

/// How fast the journal's own rows could be written at most.
#[derive(Debug)]
pub(crate) struct Bare {
    /// By clients that only ask.
    pub(crate) rate: f64,
    /// By clients that verify a signature before each.
    pub(crate) verified: f64,
}

impl Bare {
    /// Writes `rows` again and again, alone and after the verification of the messages that they came of.
    pub(crate) fn measure(
        runtime: &Runtime,
        folder: &Path,
        rows: Vec<Vec<Recorded>>,
        (messages, desk): (Vec<Message>, &Desk),
    ) -> Outcome<Self> {
        let (count, broker) = (messages.len(), desk.broker);
        let writer = Writer::start(&folder.join("bare"), Work::Rows(rows.into()), broker)?;
        let now: Timestamp = desk.clock.now();
        let verify: Before = Arc::new(move |job| {
            let message = messages.get(job);
            message.is_some_and(|message| message.verified(broker.into(), now).is_ok())
        });
        let (mut alone, mut verified) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            alone.push(runtime.block_on(writer.rate(count, IN_FLIGHT))?);
            let verifying = writer.rate_after(count, IN_FLIGHT, Arc::clone(&verify));
            verified.push(runtime.block_on(verifying)?);
        }
        writer.stop()?;
        Ok(Self {
            rate: median(&mut alone),
            verified: median(&mut verified),
        })
    }

    /// What that says of a rate of `ours`.
    pub(crate) fn note(&self, ours: f64) -> String {
        format!(
            "the journal's rows alone: {:.0} a second (ratio {:.2}); with every signature verified, and nothing \
             decided: {:.0} (ratio {:.2})",
            self.rate,
            ours / self.rate,
            self.verified,
            ours / self.verified,
        )
    }
}

/// The CPU time of some rounds, by thread.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    market: u64,
    workers: u64,
    messages: usize,
}

impl Cpu {
    /// Counts what `round` takes for so many messages.
    pub(crate) fn of<T>(
        &mut self,
        messages: usize,
        round: impl FnOnce() -> Outcome<T>,
    ) -> Outcome<T> {
        let before = (cpu_of("market")?, cpu_of(WORKERS)?);
        let done = round()?;
        self.market += cpu_of("market")?.saturating_sub(before.0);
        self.workers += cpu_of(WORKERS)?.saturating_sub(before.1);
        self.messages += messages;
        Ok(done)
    }

    /// What that says of how many there can be.
    pub(crate) fn note(&self) -> String {
        let messages = u32::try_from(self.messages.max(1)).unwrap_or(u32::MAX);
        let each = |nanoseconds: u64| {
            let microseconds = u32::try_from(nanoseconds / 1000).unwrap_or(u32::MAX);
            f64::from(microseconds) / f64::from(messages)
        };
        let (market, workers) = (each(self.market), each(self.workers));
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let cores = f64::from(u32::try_from(cores).unwrap_or(1));
        let most = (cores / (market + workers)).min(1.0 / market) * 1_000_000.0;
        format!(
            "CPU time of one: {market:.1} µs on the market's thread, {workers:.1} µs on those that verify: \
             {cores} cores do {most:.0} a second at most"
        )
    }
}
