//! What the agent's loop owns, and the one way in which a decision becomes true: journal first, then memory,
//! then the world. It holds no rule of its own.

use super::benches::Benches;
use super::disks::Disks;
use super::entry::{Doors, Lookup, entrance};
use super::events::Done;
use super::gauges::Gauges;
use super::health::Care;
use super::jobs::Jobs;
use super::mood::Mood;
use super::sight::{Engine, Standing};
use super::slicing::Slicing;
use super::talk::Talks;
use super::words;
use super::{AgentError, LOGS_NAME};
use crate::access::AccessService;
use crate::clock::{self, Clock};
use crate::config::Config;
use crate::core::lease::{LeaseRecord, State};
use crate::core::leases::{Change, Decision, Leases};
use crate::core::meter::Moment;
use crate::core::offer::Listing;
use crate::core::slices::known::Known;
use crate::hardware::Hardware;
use crate::journal::writer::JournalWriter;
use crate::runtime::Runtime;
use gpu_health::health::Health;
use protocol::ids::{BrokerId, LeaseId, PublicKey};
use protocol::lease::Goal;
use protocol::net::{Identity, LinkHandle, Node, ReserveRelay};
use protocol::units::{Millis, Timestamp};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// What a desk is made from.
pub(super) struct Parts<R, H> {
    pub(super) folder: PathBuf,
    pub(super) config: Config,
    pub(super) identity: Identity,
    pub(super) clock: Clock,
    pub(super) node: Node,
    pub(super) runtime: R,
    pub(super) hardware: H,
    pub(super) journal: JournalWriter,
    pub(super) leases: Leases,
    pub(super) listing: Option<Listing>,
    pub(super) slices: Known,
    pub(super) health: Health,
    pub(super) metrics_address: SocketAddr,
}

/// One broker of this host.
pub(super) struct Broker {
    pub(super) link: LinkHandle,
    /// Whether it was connected when last looked at.
    pub(super) was_up: bool,
    /// When it noted the offers.
    pub(super) offers_noted_at: Option<Timestamp>,
    pub(super) announcing: bool,
    /// When the offers are said to it again.
    pub(super) next_announce: Millis,
    pub(super) mood: Mood,
}

/// Everything that the loop owns.
pub(super) struct Desk<R, H> {
    pub(super) folder: PathBuf,
    pub(super) config: Config,
    pub(super) identity: Arc<Identity>,
    pub(super) clock: Clock,
    pub(super) node: Node,
    pub(super) runtime: Arc<R>,
    pub(super) hardware: Arc<H>,
    pub(super) journal: JournalWriter,

    pub(super) leases: Leases,
    pub(super) listing: Option<Listing>,
    pub(super) standing: Standing,
    pub(super) engine: Engine,
    pub(super) disks: Disks,
    pub(super) slicing: Slicing,
    pub(super) benches: Benches,
    pub(super) care: Care,
    pub(super) gauges: Gauges,

    pub(super) brokers: BTreeMap<BrokerId, Broker>,
    pub(super) talks: Talks,
    pub(super) jobs: Jobs,
    pub(super) doors: Doors,
    pub(super) access: Arc<AccessService<R, Lookup>>,
    pub(super) tasks: JoinSet<Done>,
    pub(super) visits: JoinSet<()>,

    /// Goals of which something waits for a lease to be gone.
    pub(super) unfinished: BTreeMap<BrokerId, Goal>,
    /// Resources were freed since those goals were followed last.
    pub(super) freed: bool,
    pub(super) sequence: u64,
    pub(super) metrics_address: SocketAddr,
    pub(super) started_at: Timestamp,
    pub(super) draining: bool,
    pub(super) refusals: BTreeMap<&'static str, u64>,
    pub(super) next_prune: Millis,
}

impl<R: Runtime, H: Hardware> Desk<R, H> {
    pub(super) fn new(parts: Parts<R, H>) -> Self {
        let Parts {
            folder,
            config,
            identity,
            clock,
            node,
            runtime,
            hardware,
            ..
        } = parts;
        let now = clock.now();
        let brokers = config
            .brokers
            .iter()
            .map(|address| {
                let key = PublicKey::from(address.broker);
                let link = node.keep_connected(key, address.addresses.clone(), ReserveRelay::Yes);
                let broker = Broker {
                    link,
                    was_up: false,
                    offers_noted_at: None,
                    announcing: false,
                    next_announce: now.monotonic,
                    mood: Mood::default(),
                };
                (address.broker, broker)
            })
            .collect();
        let (doors, runtime) = (Doors::new(), Arc::new(runtime));
        let host = parts.leases.host();
        let access = AccessService::new(Arc::clone(&runtime), doors.lookup(), host, clock::wall);
        let desk = Self {
            talks: Talks::recovered(&parts.leases),
            doors,
            access: Arc::new(access),
            jobs: Jobs::new(),
            standing: Standing::default(),
            engine: Engine::new(now.monotonic),
            disks: Disks::default(),
            slicing: Slicing::new(parts.slices),
            benches: Benches::new(now.monotonic),
            care: Care::new(parts.health),
            gauges: Gauges::new(now.monotonic),
            metrics_address: parts.metrics_address,
            identity: Arc::new(identity),
            runtime,
            hardware: Arc::new(hardware),
            journal: parts.journal,
            leases: parts.leases,
            listing: parts.listing,
            tasks: JoinSet::new(),
            visits: JoinSet::new(),
            unfinished: BTreeMap::new(),
            freed: false,
            sequence: 0,
            started_at: now.wall,
            draining: false,
            refusals: BTreeMap::new(),
            next_prune: now.monotonic,
            folder,
            config,
            clock,
            node,
            brokers,
        };
        desk.publish_doors();
        desk
    }

    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Makes a decision true: on disk, then in memory, then known to whoever waits for it.
    pub(super) async fn record(&mut self, decision: &Decision) -> Result<(), AgentError> {
        self.journal.commit(&decision.changes).await?;
        self.recorded(decision);
        Ok(())
    }

    /// What is on disk by now is true in memory, and known to whoever waits for it.
    pub(super) fn recorded(&mut self, decision: &Decision) {
        let mut moved = false;
        for change in &decision.changes {
            match change {
                Change::Lease(record) => {
                    let before = self.leases.record(record.lease);
                    let held = before.map_or(0, |before| before.state.held().len());
                    self.freed |= held > record.state.held().len();
                    if before.is_none_or(|before| differs(before, record)) {
                        moved = true;
                        log_move(before, record);
                        self.talks.moved(before, record);
                    }
                }
                Change::Forgotten(lease) => {
                    moved = true;
                    self.talks.forget(*lease);
                }
            }
        }
        self.leases.apply(decision);
        if moved {
            self.publish_doors();
            self.announce_soon();
        }
    }

    /// Lets tunnels see the leases as they are now.
    pub(super) fn publish_doors(&self) {
        let kept = self.config.logs_kept;
        let entrances = self.leases.records().values().map(|record| {
            let path = self.logs_path(record.lease);
            (record.lease, entrance(record, path, kept))
        });
        self.doors.publish(entrances.collect());
    }

    /// Where a lease's logs are saved.
    pub(super) fn logs_path(&self, lease: LeaseId) -> PathBuf {
        self.folder.join(LOGS_NAME).join(format!("{lease}.log"))
    }

    /// Counts something that was refused, for the owner to see.
    pub(super) fn count(&mut self, reason: &'static str) {
        *self.refusals.entry(reason).or_default() += 1;
    }

    /// Leases that are over for long enough lose their logs and their record.
    pub(super) async fn prune(&mut self) -> Result<(), AgentError> {
        let now = self.now();
        if now.monotonic < self.next_prune {
            return Ok(());
        }
        self.next_prune = now.monotonic.plus(PRUNE_PERIOD);
        let old = self.leases.forgettable(self.config.logs_kept, now.wall);
        for lease in &old {
            let path = self.logs_path(*lease);
            if let Err(error) = tokio::fs::remove_file(&path).await
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(path = %path.display(), %error, "old logs could not be deleted");
            }
        }
        let changes = old.into_iter().map(Change::Forgotten).collect();
        self.record(&Decision {
            changes,
            notes: Vec::new(),
        })
        .await
    }
}

const PRUNE_PERIOD: Millis = Millis(60_000);

/// `duration` in the monotonic clock's unit.
pub(super) fn millis(duration: Duration) -> Millis {
    Millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Whether there is anything new about a lease that its broker, its renter or the market should know. The
/// meter alone is not: it moves all the time.
fn differs(before: &LeaseRecord, after: &LeaseRecord) -> bool {
    before.state != after.state || before.want != after.want
}

/// The one place where a lease's way is logged.
fn log_move(before: Option<&LeaseRecord>, after: &LeaseRecord) {
    let from = before.map_or("nothing", |record| record.state.word());
    let to = after.state.word();
    let (lease, broker) = (after.lease.short(), after.broker.short());
    let run = after.state.run();
    match &after.state {
        State::Failed { problem, .. } => {
            tracing::warn!(%lease, %broker, from, to, run, reason = %problem.detail, "lease");
        }
        State::Stopped { reason, .. } => {
            let reason = words::stopped(reason);
            tracing::info!(%lease, %broker, from, to, run, reason, "lease");
        }
        State::Preparing { .. } | State::Running { .. } | State::Gone { .. } => {
            let want = words::want(after.want);
            tracing::info!(%lease, %broker, from, to, run, want, "lease");
        }
    }
}
