//! A broker's market without its network, and those who send it signed messages, many at once.
//!
//! A message counts when its signature was verified, the market decided, what came of it is on the disk, and
//! the answer came back. Signing it is its sender's work and is done before. Must not know what is sold.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use broker::api::door;
use broker::clock::Clock;
use broker::core::book::BookLimits;
use broker::core::command::{Command, VerifiedAnnouncement};
use broker::core::settings::MarketSettings;
use broker::market::{MarketHandle, MarketSetup, MarketThread};
use broker::store::Store;
use ed25519_dalek::SigningKey;
use protocol::bounded::Text;
use protocol::ids::{BrokerId, DepositId, HostId, PublicKey};
use protocol::lease::{Grant, Report};
use protocol::order::{LeaseCommand, Order};
use protocol::signed::{SignatureError, Signed};
use protocol::units::{MicroUsd, Seconds, Timestamp};
use tokio::runtime::Runtime;

use crate::market::{self, Seller};
use crate::{Outcome, clock};

/// Messages whose answers are waited for at once.
pub(crate) const IN_FLIGHT: usize = 256;
/// Enough for every order of a renter.
const DEPOSIT: MicroUsd = MicroUsd(1_000_000_000_000);
/// No lease gives up while the run lasts: hosts answer when it is their turn, or not at all.
const ACCEPT_WITHIN: Seconds = Seconds(3600);

/// What somebody sends.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    Order(Box<Signed<Order>>),
    Command(Signed<LeaseCommand>),
    Grant(Signed<Grant>),
    Report(Signed<Report>),
}

impl Message {
    /// Verifies it as the broker's shell does: on a worker, not on the market's thread.
    pub(crate) fn verified(
        &self,
        broker: PublicKey,
        now: Timestamp,
    ) -> Result<Command, SignatureError> {
        Ok(match self {
            Self::Order(order) => Command::Order(Box::new(door::verified(order, broker, now)?)),
            Self::Command(command) => Command::Lease(door::verified(command, broker, now)?),
            Self::Grant(grant) => Command::Grant(door::verified(grant, broker, now)?),
            Self::Report(report) => Command::Report(door::verified(report, broker, now)?),
        })
    }
}

/// What a round came to.
#[derive(Debug)]
pub(crate) struct Round {
    /// Acknowledged messages a second.
    pub(crate) rate: f64,
    /// How long each of them took, from before its verification to its answer.
    pub(crate) waits: Vec<Duration>,
}

/// A broker's market.
pub(crate) struct Desk {
    thread: MarketThread,
    pub(crate) handle: MarketHandle,
    pub(crate) clock: Clock,
    pub(crate) broker: BrokerId,
}

impl Desk {
    pub(crate) fn open(folder: &Path, runtime: &Runtime) -> Outcome<Self> {
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

    /// Money for a renter.
    pub(crate) async fn deposit(&self, renter: &SigningKey) -> Outcome<()> {
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

    /// A host's offers.
    pub(crate) async fn announce(&self, seller: &Seller) -> Outcome<()> {
        let host = HostId::from(market::public(&seller.key));
        let announced = VerifiedAnnouncement {
            offers: seller.offers.clone(),
            ..VerifiedAnnouncement::default()
        };
        self.handle.announce(host, announced).await?;
        Ok(())
    }

    /// Sends `messages`, [`IN_FLIGHT`] at once. Every one of them has to be accepted.
    pub(crate) fn send(&self, runtime: &Runtime, messages: Vec<Message>) -> Outcome<Round> {
        let count = f64::from(u32::try_from(messages.len())?);
        let (messages, next) = (Arc::new(messages), Arc::new(AtomicUsize::new(0)));
        let began = clock::now();
        let waits = runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..IN_FLIGHT {
                let sender = Sender {
                    messages: Arc::clone(&messages),
                    next: Arc::clone(&next),
                    handle: self.handle.clone(),
                    clock: self.clock.clone(),
                    broker: self.broker.into(),
                };
                tasks.spawn(sender.send());
            }
            let mut waits = Vec::with_capacity(messages.len());
            while let Some(finished) = tasks.join_next().await {
                let sent = finished?;
                waits.extend(sent.map_err(|problem| format!("a message failed: {problem}"))?);
            }
            Ok::<_, Box<dyn std::error::Error>>(waits)
        })?;
        let rate = count / began.elapsed().as_secs_f64();
        Ok(Round { rate, waits })
    }

    pub(crate) async fn close(mut self) -> Outcome<()> {
        self.handle.shutdown().await;
        self.thread.stopped().await?;
        Ok(())
    }
}

/// One of those who send, each when its last message was answered.
struct Sender {
    messages: Arc<Vec<Message>>,
    next: Arc<AtomicUsize>,
    handle: MarketHandle,
    clock: Clock,
    broker: PublicKey,
}

impl Sender {
    async fn send(self) -> Result<Vec<Duration>, String> {
        let mut waits = Vec::new();
        while let Some(message) = self.messages.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let began = clock::now();
            let command = message.verified(self.broker, self.clock.now());
            let command = command.map_err(|refusal| refusal.to_string())?;
            let answer = self.handle.command(command).await;
            answer.map_err(|rejection| format!("{rejection}: {message:?}"))?;
            waits.push(began.elapsed());
        }
        Ok(waits)
    }
}
