//! Durable orders: how many a second a broker acknowledges, beside what its database can do at all.
//!
//! An order counts when its signature was verified, the market decided, the event is on the disk, and
//! the answer came back. Signing it is the renter's work and is done before. Must not use the network;
//! the rows of the search do.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use broker::clock::Clock;
use broker::core::book::BookLimits;
use broker::core::command::{Answer, Command};
use broker::core::settings::MarketSettings;
use broker::market::{MarketHandle, MarketSetup, MarketThread};
use broker::store::Store;
use ed25519_dalek::SigningKey;
use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, DepositId, HostId, PublicKey};
use protocol::order::Order;
use protocol::signed::Signed;
use protocol::units::{MicroUsd, Seconds};
use tokio::runtime::Runtime;

use crate::group_commit::{Work, Writer, event_bytes};
use crate::market::{self, Seller};
use crate::report::Row;
use crate::rounds::{ROUNDS, by_turns, median};
use crate::{Outcome, clock};

/// Orders in one round: a fifth of a second at the rate that is asked for.
const ORDERS: usize = 2000;
/// Orders whose answers are waited for at once.
const IN_FLIGHT: usize = 256;
const RENTERS: u32 = 100;
/// Enough for every order of a renter.
const DEPOSIT: MicroUsd = MicroUsd(1_000_000_000_000);
/// No lease gives up while the run lasts: nobody is there to accept it.
const ACCEPT_WITHIN: Seconds = Seconds(3600);

/// One row: acknowledged orders a second.
pub(crate) fn measure() -> Outcome<Vec<Row>> {
    let folder = tempfile::Builder::new().prefix("feira-bench").tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let desk = Desk::open(&folder.path().join("broker"), &runtime)?;
    let mut batches = desk.prepare(&runtime, ROUNDS + 2)?.into_iter();
    // Once to see how large an order's event is.
    desk.rate(&runtime, batches.next().ok_or("no orders")?)?;
    let bytes = event_bytes(&folder.path().join("broker"))?;
    let bare = bare_rows(&runtime, &folder.path().join("bare"), bytes, desk.broker)?;
    let writer = Writer::start(&folder.path().join("raw"), Work::Transfer, desk.broker)?;
    let medians = by_turns(
        || desk.rate(&runtime, batches.next().ok_or("no orders left")?),
        || runtime.block_on(writer.rate(ORDERS, bytes, IN_FLIGHT)),
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
        .note(format!(
            "the journal's rows of an order alone, nothing decided: {bare:.0} a second"
        ));
    Ok(vec![row])
}

/// How fast the journal's own rows could be written at most.
fn bare_rows(runtime: &Runtime, folder: &Path, bytes: usize, broker: BrokerId) -> Outcome<f64> {
    let writer = Writer::start(folder, Work::Rows, broker)?;
    let mut rates = Vec::new();
    for _ in 0..5 {
        rates.push(runtime.block_on(writer.rate(ORDERS, bytes, IN_FLIGHT))?);
    }
    writer.stop()?;
    Ok(median(&mut rates))
}

/// A broker's market without its network.
struct Desk {
    thread: MarketThread,
    handle: MarketHandle,
    clock: Clock,
    broker: BrokerId,
}

impl Desk {
    fn open(folder: &Path, runtime: &Runtime) -> Outcome<Self> {
        fs::create_dir(folder)?;
        let key = market::key(b'k', 1);
        let broker = BrokerId::from(market::public(&key));
        let (store, recovered) = Store::create(folder, broker)?;
        let clock = Clock::system();
        let settings = MarketSettings {
            accept_within: ACCEPT_WITHIN,
            ..MarketSettings::default()
        };
        let setup = MarketSetup {
            settings,
            key,
            limits: BookLimits::default(),
            clock: clock.clone(),
        };
        let entered = runtime.enter();
        let thread = MarketThread::start(store, recovered, setup)?;
        drop(entered);
        let handle = thread.handle();
        Ok(Self {
            thread,
            handle,
            clock,
            broker,
        })
    }

    /// Money for the renters, offers in the book, and `rounds` batches of signed orders for them.
    fn prepare(&self, runtime: &Runtime, rounds: usize) -> Outcome<Vec<Vec<Signed<Order>>>> {
        let renters: Vec<SigningKey> = (0..RENTERS)
            .map(|number| market::key(b'r', number))
            .collect();
        for renter in &renters {
            runtime.block_on(self.deposit(renter))?;
        }
        let sellers = market::sellers(rounds * ORDERS, self.broker, self.clock.now())?;
        let mut payers = renters.iter().cycle();
        let mut orders: Vec<Signed<Order>> = Vec::with_capacity(rounds * ORDERS);
        for seller in sellers {
            for offer in &seller.offers {
                let renter = payers.next().ok_or("no renters")?;
                let order = market::order(renter, offer.body(), self.broker, self.clock.now())?;
                orders.push(order.signed().clone());
            }
            runtime.block_on(self.announce(seller))?;
        }
        Ok(orders
            .chunks(ORDERS)
            .map(<[Signed<Order>]>::to_vec)
            .collect())
    }

    async fn deposit(&self, renter: &SigningKey) -> Outcome<()> {
        let mut id = [0; 16];
        id.copy_from_slice(&renter.verifying_key().as_bytes()[..16]);
        let deposit = Command::Deposit {
            id: DepositId::from_bytes(id),
            renter: market::renter_id(renter),
            amount: DEPOSIT,
            memo: Text::new("bench")?,
        };
        self.handle.command(deposit).await?;
        Ok(())
    }

    async fn announce(&self, seller: Seller) -> Outcome<()> {
        let host = HostId::from(market::public(&seller.key));
        self.handle
            .announce(host, seller.offers, List::new(Vec::new())?)
            .await?;
        Ok(())
    }

    /// Acknowledged orders a second, with [`IN_FLIGHT`] at once.
    fn rate(&self, runtime: &Runtime, orders: Vec<Signed<Order>>) -> Outcome<f64> {
        let count = f64::from(u32::try_from(orders.len())?);
        let (orders, next) = (Arc::new(orders), Arc::new(AtomicUsize::new(0)));
        let began = clock::now();
        runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..IN_FLIGHT {
                let buyer = Buyer {
                    orders: Arc::clone(&orders),
                    next: Arc::clone(&next),
                    handle: self.handle.clone(),
                    clock: self.clock.clone(),
                    broker: self.broker.into(),
                };
                tasks.spawn(buyer.buy());
            }
            while let Some(finished) = tasks.join_next().await {
                finished?.map_err(|problem| format!("an order failed: {problem}"))?;
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        })?;
        Ok(count / began.elapsed().as_secs_f64())
    }

    async fn close(mut self) -> Outcome<()> {
        self.handle.shutdown().await;
        self.thread.stopped().await?;
        Ok(())
    }
}

/// One of those who send orders, each when its last one was answered.
struct Buyer {
    orders: Arc<Vec<Signed<Order>>>,
    next: Arc<AtomicUsize>,
    handle: MarketHandle,
    clock: Clock,
    broker: PublicKey,
}

impl Buyer {
    async fn buy(self) -> Result<(), String> {
        while let Some(order) = self.orders.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            // As the broker's shell does: on a worker, not on the market's thread.
            let verified = order
                .verify_fresh(self.broker, self.clock.now())
                .map_err(|refusal| refusal.to_string())?;
            match self
                .handle
                .command(Command::Order(Box::new(verified)))
                .await
            {
                Ok(Answer::Lease(_)) => {}
                Ok(Answer::Deposited(_) | Answer::DepositedBefore(_) | Answer::Noted) => {
                    return Err("no lease".to_owned());
                }
                Err(rejection) => return Err(rejection.to_string()),
            }
        }
        Ok(())
    }
}
