//! What the engine and the machine show: containers, the engine's own facts, the disk; and the offers that
//! follow from them. Each is looked at in a task of its own, one at a time.

use super::AgentError;
use super::desk::{Desk, millis};
use super::events::Done;
use crate::core::award;
use crate::core::health::as_fast_as_they_are;
use crate::core::meter::Moment;
use crate::core::offer::{Listed, offers};
use crate::core::reconcile::{Containers, Observed};
use crate::core::traffic::Crossed;
use crate::hardware::{Hardware, Measured, machine};
use crate::runtime::{Container, ContainerEvent, EngineFacts, Exit, RunState, Runtime, Traffic};
use protocol::ids::{BrokerId, HostId, LeaseId};
use protocol::machine::{ContainerNetwork, Machine};
use protocol::units::{Bytes, Millis};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// An engine that does not answer in this time is not there.
const LOOK_DEADLINE: Duration = Duration::from_secs(30);
/// Small files, and what the drivers' processes know already. A GPU without such a process is missed within this.
const HARDWARE_PERIOD: Millis = Millis(10_000);
/// An engine that was lost is asked so much later, and each time twice as much up to the other. The watch of its
/// events hears first that it is back.
const LOST_PAUSE_FIRST: Millis = Millis(2_000);
const LOST_PAUSE_LAST: Millis = Millis(16_000);

/// What is known of the engine.
#[derive(Debug)]
pub(super) struct Engine {
    state: Result<EngineFacts, String>,
    containers: Containers,
    /// Number of the last sight that began, and of the last that came back.
    begun: u64,
    seen: Option<u64>,
    seen_at: Millis,
    looking: bool,
    next_look: Millis,
    checking: bool,
    next_check: Millis,
    /// It was said that it does not answer.
    is_missed: bool,
    lost_pause: Millis,
}

impl Engine {
    pub(super) fn new(now: Millis) -> Self {
        Self {
            state: Err("it was not asked yet".to_owned()),
            containers: Containers::new(),
            begun: 0,
            seen: None,
            seen_at: Millis(0),
            looking: false,
            next_look: now,
            checking: false,
            next_check: now,
            is_missed: false,
            lost_pause: LOST_PAUSE_FIRST,
        }
    }

    pub(super) const fn is_up(&self) -> bool {
        self.state.is_ok()
    }

    pub(super) const fn state(&self) -> &Result<EngineFacts, String> {
        &self.state
    }

    pub(super) const fn containers(&self) -> &Containers {
        &self.containers
    }

    /// The last sight that came back.
    pub(super) const fn last_sight(&self) -> Option<u64> {
        self.seen
    }

    /// The next sight that begins.
    pub(super) const fn next_sight(&self) -> u64 {
        self.begun.saturating_add(1)
    }

    pub(super) const fn look_soon(&mut self) {
        self.next_look = Millis(0);
    }

    pub(super) const fn check_soon(&mut self) {
        self.next_check = Millis(0);
    }

    /// Whether what was seen last is recent enough to be signed for.
    pub(super) fn is_fresh(&self, within: Millis, now: Millis) -> bool {
        self.is_up() && now.0.saturating_sub(self.seen_at.0) <= within.0
    }
}

/// What is known of the machine, and what it is sold as.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) measured: Option<Measured>,
    pub(super) machine: Option<Machine>,
    pub(super) offers: Vec<Listed>,
    /// When the last measuring began; nothing when it is to be done again.
    pub(super) measured_at: Option<Millis>,
}

/// What a look at engine and machine found.
pub(super) type Checked = Result<(EngineFacts, Measured, Machine), String>;

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Begins the looks that are due.
    pub(super) fn look_if_due(&mut self) {
        let now = self.now().monotonic;
        if !self.engine.looking && now >= self.engine.next_look {
            self.engine.looking = true;
            self.engine.begun += 1;
            self.engine.next_look = now.plus(millis(self.config.periods.reconcile));
            let (runtime, number) = (Arc::clone(&self.runtime), self.engine.begun);
            let begun = self.now();
            self.tasks.spawn(async move {
                let found = tokio::time::timeout(LOOK_DEADLINE, runtime.containers()).await;
                let found = match found {
                    Ok(found) => found.map_err(|error| error.to_string()),
                    Err(_) => Err("it does not answer".to_owned()),
                };
                Done::Sight {
                    number,
                    begun,
                    found,
                }
            });
        }
        if !self.engine.checking && now >= self.engine.next_check {
            self.check_engine(now);
        }
    }

    fn check_engine(&mut self, now: Millis) {
        self.engine.checking = true;
        self.slicing.look_soon();
        self.disks.measure_begins();
        let period = millis(self.config.periods.measure);
        self.engine.next_check = now.plus(if self.engine.is_up() {
            period
        } else {
            self.engine.lost_pause
        });
        let (runtime, hardware) = (Arc::clone(&self.runtime), Arc::clone(&self.hardware));
        let is_recent = |at: Millis| now.0.saturating_sub(at.0) < HARDWARE_PERIOD.0;
        let is_old = !self.standing.measured_at.is_some_and(is_recent);
        let known = self.standing.measured.clone().filter(|_| !is_old);
        if known.is_none() {
            self.standing.measured_at = Some(now);
        }
        let network = self
            .listing
            .as_ref()
            .map_or(ContainerNetwork::None, |listed| listed.network);
        self.tasks.spawn(async move {
            let check = check(&*runtime, &*hardware, known, network);
            let found = tokio::time::timeout(LOOK_DEADLINE, check).await;
            let found = found.unwrap_or_else(|_| Err("it does not answer".to_owned()));
            Done::Checked(Box::new(found))
        });
    }

    /// A sight of all containers came back.
    pub(super) async fn sighted(
        &mut self,
        number: u64,
        begun: Moment,
        found: Result<Vec<Container>, String>,
    ) -> Result<(), AgentError> {
        self.engine.looking = false;
        let found = match found {
            Ok(found) => found,
            Err(reason) => {
                self.engine_lost(reason);
                return Ok(());
            }
        };
        let unseen = self.jobs.unseen_by(number);
        let containers = observed(&found, self.disks.overfull());
        let counted = self.care.counted(&containers);
        let decision = self.leases.decide_sight(&counted, &unseen, begun);
        self.engine.containers = containers;
        self.engine.seen = Some(number);
        self.engine.seen_at = begun.monotonic;
        self.record(&decision).await?;
        self.tidy_jobs(number);
        Ok(())
    }

    /// Engine and machine were looked at.
    pub(super) fn checked(&mut self, found: Checked) {
        self.engine.checking = false;
        let (facts, measured, machine) = match found {
            Ok(found) => found,
            Err(reason) => {
                self.standing.measured_at = None;
                self.engine_lost(reason);
                let pause = &mut self.engine.lost_pause;
                *pause = pause.plus(*pause).min(LOST_PAUSE_LAST);
                return;
            }
        };
        if !self.engine.is_up() {
            tracing::info!(version = %facts.version, runtime = %facts.runtime, "the engine answers");
            self.engine.look_soon();
            self.announce_soon();
        }
        self.engine.state = Ok(facts);
        self.engine.is_missed = false;
        self.engine.lost_pause = LOST_PAUSE_FIRST;
        if !matches!(&self.standing.measured, Some(before) if before.is_as(&measured)) {
            let gpus = measured.gpus().count();
            tracing::info!(gpus, cpu = %measured.processor.model, "the machine is measured");
            self.announce_soon();
        }
        self.care.measured();
        self.disks.measured();
        self.standing.measured = Some(measured);
        self.standing.machine = Some(machine);
        self.derive_offers();
    }

    /// What is offered follows from the machine and the listing.
    pub(super) fn derive_offers(&mut self) {
        let brokers: Vec<BrokerId> = self.brokers.keys().copied().collect();
        let host: HostId = self.leases.host();
        let listed = match (&self.standing.machine, &self.listing) {
            (Some(machine), Some(listing)) => {
                offers(host, machine, self.slicing.divisibles(), listing, &brokers)
            }
            (None, _) | (_, None) => Ok(Vec::new()),
        };
        match listed {
            Ok(listed) => {
                let found = self.standing.measured.as_ref();
                let measured = self.benches.offered(listed, found);
                self.standing.offers = as_fast_as_they_are(measured, &self.care.health);
            }
            Err(error) => tracing::error!(%error, "the machine cannot be offered"),
        }
    }

    pub(super) fn engine_lost(&mut self, reason: String) {
        if !std::mem::replace(&mut self.engine.is_missed, true) {
            tracing::warn!(
                reason,
                "the container engine does not answer; nothing is offered until it does"
            );
            self.announce_soon();
        }
        self.engine.state = Err(reason);
        self.engine.check_soon_after(self.clock.now().monotonic);
    }

    /// Something happened to a container: the list is always the truth.
    pub(super) fn engine_said(&mut self, event: ContainerEvent) {
        match event {
            ContainerEvent::Listed(_) => {
                self.engine.look_soon();
                self.engine.check_soon();
            }
            ContainerEvent::Paused { lease } => {
                let lease = lease.short();
                tracing::warn!(%lease, "a container was paused on this machine; it is made to go on");
                self.engine.look_soon();
            }
            ContainerEvent::Started { lease, .. } | ContainerEvent::Removed { lease } => {
                self.disks.begins_anew(lease);
                self.engine.look_soon();
            }
            ContainerEvent::Died { .. } => self.engine.look_soon(),
            ContainerEvent::DiskExceeded {
                lease,
                used,
                allowed,
            } => {
                tracing::warn!(lease = %lease.short(), %used, %allowed, "a container wrote more than its disk and was stopped");
                self.disks.overflowed(lease);
                self.engine.look_soon();
            }
            ContainerEvent::EngineLost { reason } => self.engine_lost(reason),
        }
    }

    /// Disk that a new lease may have: free, not kept for the system, and promised to no other lease.
    pub(super) fn disk_for_leases(&self) -> Bytes {
        let promised = self.leases.promised_disk(self.disks.left());
        Bytes(self.disk_not_reserved().0.saturating_sub(promised.0))
    }

    fn disk_not_reserved(&self) -> Bytes {
        let free = self
            .standing
            .machine
            .as_ref()
            .map_or(Bytes(0), |machine| machine.disk_free);
        Bytes(free.0.saturating_sub(self.config.disk_reserve.0))
    }

    /// What this host knows of itself when it judges a match.
    pub(super) fn judging(&self) -> award::Standing<'_> {
        award::Standing {
            offers: &self.standing.offers,
            engine: self
                .engine
                .state()
                .as_ref()
                .map(|_| ())
                .map_err(Clone::clone),
            disk_free: self.disk_not_reserved(),
            disk_left: self.disks.left(),
            health: &self.care.health,
            draining: self.draining,
        }
    }
}

impl Engine {
    const fn check_soon_after(&mut self, now: Millis) {
        self.next_check = now.plus(self.lost_pause);
    }
}

async fn check<R: Runtime, H: Hardware>(
    runtime: &R,
    hardware: &H,
    known: Option<Measured>,
    network: ContainerNetwork,
) -> Checked {
    let facts = runtime.facts().await.map_err(|error| error.to_string())?;
    let measured = match known {
        Some(measured) => measured,
        None => hardware
            .measure()
            .await
            .map_err(|error| error.to_string())?,
    };
    let disk = hardware
        .disk(Path::new(&facts.data_root))
        .map_err(|error| error.to_string())?;
    let machine = machine(&measured, disk, &facts, network);
    Ok((facts, measured, machine))
}

/// The containers as the rules see them; `overfull` are those that were stopped for their disks.
fn observed(found: &[Container], overfull: &BTreeSet<LeaseId>) -> Containers {
    found
        .iter()
        .map(|container| {
            let disk_full = overfull.contains(&container.lease);
            (container.lease, observed_one(container, disk_full))
        })
        .collect()
}

fn observed_one(container: &Container, disk_full: bool) -> Observed {
    match container.state {
        // One that is being removed does not run and is not gone.
        RunState::Created | RunState::Removing => Observed::Created,
        RunState::Running { since } => Observed::Running {
            started_at: since,
            crossed: crossed(container.traffic),
        },
        RunState::Paused { since } => Observed::Paused { started_at: since },
        RunState::Exited(Exit {
            code,
            out_of_memory,
            started,
            finished,
        }) => Observed::Exited {
            code,
            out_of_memory,
            disk_full,
            started_at: started,
            finished_at: finished,
        },
    }
}

/// What crossed a container's network, as the rules count it.
pub(super) const fn crossed(traffic: Traffic) -> Crossed {
    Crossed {
        uploaded: traffic.uploaded,
        downloaded: traffic.downloaded,
    }
}
