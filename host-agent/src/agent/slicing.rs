//! Slices at work: what the driver shows of the GPUs that can be divided, what it is told next, one act for a GPU at a
//! time, and the device that each lease's container gets. It decides nothing: [`crate::core::slices`] does.

use super::AgentError;
use super::desk::Desk;
use super::events::Done;
use crate::core::lease::{LeaseRecord, State};
use crate::core::reconcile::Outcome;
use crate::core::slices::acts::{Act, Device, Wanted, acts, device};
use crate::core::slices::known::{Known, KnownChange, Made, adopted, apply, foreign};
use crate::core::slices::policy::SlicePolicy;
use crate::core::slices::replan::{Demands, Ground, WINDOW, demands, propose};
use crate::core::slices::{Divisibles, Mode};
use crate::hardware::{CutProblem, Hardware};
use crate::runtime::Runtime;
use protocol::bounded::Text;
use protocol::ids::LeaseId;
use protocol::lease::{Detail, Problem, ProblemKind, Stage, Want};
use protocol::offer::{ResourceName, parent};
use protocol::units::{Millis, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Longest that the driver may take for one act: a change of mode resets some GPUs.
const ACT_DEADLINE: Duration = Duration::from_secs(60);
/// Longest that it may take to say how GPUs are divided.
const LOOK_DEADLINE: Duration = Duration::from_secs(10);
/// What the driver refused is tried again so much later.
const REFUSED_PAUSE: Millis = Millis(5_000);

/// A change that waits for somebody to load the driver anew is no matter of seconds.
const UNDIVIDED_PAUSE: Millis = Millis(60_000);

/// How often it is thought about how the GPUs should be cut.
const PLAN_PERIOD: Millis = Millis(300_000);

/// What ran of slices lately, by these leases.
pub(crate) fn demands_of<'a>(
    records: impl Iterator<Item = &'a LeaseRecord>,
    now: Timestamp,
) -> Demands {
    let recent = records.filter(|record| match record.state {
        State::Gone { at, .. } => now.since(at) <= WINDOW.millis(),
        State::Preparing { .. }
        | State::Running { .. }
        | State::Stopped { .. }
        | State::Failed { .. } => true,
    });
    let all = recent.flat_map(|record| {
        let ran = record.running();
        record.share.resources.iter().map(move |name| (name, ran))
    });
    demands(all)
}

/// What is known of slices, and what is under way.
#[derive(Debug)]
pub(super) struct Slicing {
    divisibles: Divisibles,
    known: Known,
    /// Whether the driver was seen since the agent started.
    is_seen: bool,
    looking: bool,
    look_soon: bool,
    /// Rises when an act begins or ends: an older look says nothing.
    turn: u64,
    /// GPUs on which an act is under way, or which were not looked at since.
    busy: BTreeSet<ResourceName>,
    /// GPUs of which the driver refused something, until when they are left alone.
    paused: BTreeMap<ResourceName, Millis>,
    /// Why a slice could not be made, last.
    failed: BTreeMap<ResourceName, CutProblem>,
    /// What is made before it is leased, since when, and when that is thought about again.
    planned: BTreeSet<ResourceName>,
    planned_at: Millis,
    next_plan: Millis,
}

/// The end of one act.
#[derive(Debug)]
pub(super) struct Cut {
    act: Act,
    result: Result<Option<Text<64>>, CutProblem>,
}

impl Slicing {
    pub(super) fn new(known: Known) -> Self {
        Self {
            divisibles: Divisibles::new(),
            known,
            is_seen: false,
            looking: false,
            look_soon: true,
            turn: 0,
            busy: BTreeSet::new(),
            paused: BTreeMap::new(),
            failed: BTreeMap::new(),
            planned: BTreeSet::new(),
            planned_at: Millis(0),
            next_plan: Millis(0),
        }
    }

    /// The GPUs that can be divided, as they were seen last.
    pub(super) const fn divisibles(&self) -> &Divisibles {
        &self.divisibles
    }

    /// The driver is asked anew with the next turn of the loop.
    pub(super) const fn look_soon(&mut self) {
        self.look_soon = true;
    }

    /// What cannot be sold: what others than the agent made, and GPUs that have to be reset first.
    pub(super) fn withheld(&self) -> Vec<ResourceName> {
        let pending = self
            .divisibles
            .values()
            .filter(|gpu| gpu.mode == Mode::Pending);
        let pending = pending.map(|gpu| gpu.gpu.clone());
        let mut all = foreign(&self.known, &self.divisibles);
        all.extend(pending);
        all
    }

    /// The driver's devices of a GPU or slice: of a divided GPU those of its slices. Nothing for a slice that is not
    /// there.
    pub(super) fn devices_at(&self, resource: &ResourceName) -> Option<Vec<String>> {
        let whole = self.divisibles.get(resource);
        match (whole, device(resource, &self.divisibles, &self.known)) {
            (Some(gpu), _) if gpu.mode == Mode::Divided => {
                let devices = gpu.standing.iter().filter_map(|one| one.device.as_ref());
                Some(devices.map(ToString::to_string).collect())
            }
            (_, Device::Ready(device)) => Some(vec![device.to_string()]),
            (_, Device::Never(_) | Device::Waits) => None,
        }
    }

    /// What the container of a lease gets; nothing while some of it is about to be there.
    ///
    /// # Errors
    /// Why it will not get it.
    fn devices(&self, record: &LeaseRecord) -> Result<Option<Vec<ResourceName>>, String> {
        // A machine that is leased as a whole gives its container no GPU.
        if record.share.gpus.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let mut devices = Vec::new();
        for resource in &record.share.resources {
            match device(resource, &self.divisibles, &self.known) {
                Device::Ready(device) => devices.push(device),
                // What stood before the last act says nothing: the slice that had to go may be gone.
                Device::Never(_) if self.busy.contains(parent(resource)) => return Ok(None),
                Device::Never(reason) => return Err(reason.to_owned()),
                Device::Waits => {
                    let failed = self.failed.get(resource).filter(|it| !it.is_in_use);
                    return failed.map_or(Ok(None), |it| Err(it.detail.clone()));
                }
            }
        }
        Ok(Some(devices))
    }
}

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Looks at the driver when it is due, fits the journal to what it shows, and tells it what is to be done next.
    pub(super) async fn align_slices(&mut self) -> Result<(), AgentError> {
        self.look_at_slices();
        if !self.slicing.is_seen || self.draining {
            return Ok(());
        }
        let busy = &self.slicing.busy;
        let changes = adopted(&self.slicing.known, &self.slicing.divisibles, |gpu| {
            busy.iter().any(|it| it.as_str() == gpu)
        });
        self.note_slices(&changes).await?;
        self.fail_unmade().await?;
        self.plan_if_due();
        self.begin_acts().await
    }

    /// What leases have now.
    fn held(&self) -> BTreeSet<ResourceName> {
        let held = self.leases.capacity().held();
        let held = held.map(|(name, _)| name.clone());
        // What is not clean is not given back before it is.
        held.chain(self.care.health.unclean().cloned()).collect()
    }

    /// Thinks about how the GPUs should be cut for what was leased lately, and does it when it is worth it.
    fn plan_if_due(&mut self) {
        let now = self.now().monotonic;
        let Some(listing) = self
            .listing
            .as_ref()
            .filter(|_| now >= self.slicing.next_plan)
        else {
            return;
        };
        let held = self.held();
        let demands = demands_of(self.leases.records().values(), self.now().wall);
        let proposal = propose(Ground {
            policy: &listing.slices,
            divisibles: &self.slicing.divisibles,
            held: &held,
            demands: &demands,
            price: listing.prices.compute,
            stood: Millis(now.0.saturating_sub(self.slicing.planned_at.0)).seconds(),
        });
        self.slicing.next_plan = now.plus(PLAN_PERIOD);
        if let Some(proposal) = proposal.filter(|proposal| proposal.is_worth) {
            tracing::info!(reason = proposal.reason, "GPUs are cut anew");
            self.slicing.planned = proposal.targets(&self.slicing.divisibles);
            self.slicing.planned_at = now;
        }
    }

    /// What a lease's container gets, when all of it is there.
    pub(super) fn devices_of(&self, lease: LeaseId) -> Option<Vec<ResourceName>> {
        let Some(record) = self.leases.record(lease) else {
            return Some(Vec::new());
        };
        if !self.slicing.is_seen && !record.share.gpus.is_empty() {
            return None;
        }
        self.slicing.devices(record).ok().flatten()
    }

    fn look_at_slices(&mut self) {
        if self.slicing.looking || !std::mem::take(&mut self.slicing.look_soon) {
            return;
        }
        self.slicing.looking = true;
        let (hardware, turn) = (Arc::clone(&self.hardware), self.slicing.turn);
        self.tasks.spawn(async move {
            let found = tokio::time::timeout(LOOK_DEADLINE, hardware.divisibles()).await;
            Done::Divisibles(turn, found.ok())
        });
    }

    /// The driver said how the GPUs are divided. What it said before an act ended is not how they are now.
    pub(super) fn slices_seen(&mut self, turn: u64, found: Option<Divisibles>) {
        self.slicing.looking = false;
        let Some(found) = found else {
            tracing::warn!("the driver does not say how GPUs are divided");
            // GPUs that cannot be divided are not held up by it.
            self.slicing.is_seen = true;
            return;
        };
        if turn != self.slicing.turn {
            self.slicing.look_soon = true;
            return;
        }
        self.slicing.busy.clear();
        let is_first = !std::mem::replace(&mut self.slicing.is_seen, true);
        if is_first || self.slicing.divisibles != found {
            self.slicing.divisibles = found;
            self.derive_offers();
            self.announce_soon();
        }
    }

    async fn note_slices(&mut self, changes: &[KnownChange]) -> Result<(), AgentError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.journal.note_slices(changes).await?;
        apply(&mut self.slicing.known, changes);
        self.announce_soon();
        Ok(())
    }

    /// A lease whose slice will not be there is told so, and not billed.
    async fn fail_unmade(&mut self) -> Result<(), AgentError> {
        let prepares = |record: &&LeaseRecord| {
            matches!(
                (&record.state, record.want),
                (State::Preparing { .. }, Want::Run(_))
            )
        };
        let failing = self.leases.records().values().filter(prepares);
        let failing: Vec<(LeaseId, String)> = failing
            .filter_map(|record| Some((record.lease, self.slicing.devices(record).err()?)))
            .collect();
        for (lease, reason) in failing {
            let problem = Problem {
                stage: Stage::Creating,
                kind: ProblemKind::GpuUnavailable,
                detail: Detail::cut(&reason),
            };
            let now = self.now();
            let outcome = Outcome::Problem(problem);
            let decision = self.leases.decide_outcome(lease, &outcome, now);
            self.record(&decision).await?;
        }
        let capacity = self.leases.capacity();
        let failed = &mut self.slicing.failed;
        failed.retain(|resource, _| capacity.holder(resource).is_some());
        Ok(())
    }

    async fn begin_acts(&mut self) -> Result<(), AgentError> {
        let now = self.now().monotonic;
        self.slicing.paused.retain(|_, until| *until > now);
        let none = SlicePolicy::default();
        let policy = self
            .listing
            .as_ref()
            .map_or(&none, |listing| &listing.slices);
        let held = self.held();
        let wanted = Wanted {
            policy,
            held: &held,
            planned: &self.slicing.planned,
        };
        let wanted = acts(wanted, &self.slicing.divisibles, &self.slicing.known);
        for (gpu, act) in wanted {
            if self.slicing.busy.contains(&gpu) || self.slicing.paused.contains_key(&gpu) {
                continue;
            }
            if let Act::Make { resource, .. } = &act {
                let begun = KnownChange::Set(resource.clone(), Made::Begun);
                self.note_slices(&[begun]).await?;
            }
            self.slicing.busy.insert(gpu);
            self.slicing.turn += 1;
            tracing::info!(?act, "the driver is told");
            let hardware = Arc::clone(&self.hardware);
            self.tasks.spawn(async move {
                let result = tokio::time::timeout(ACT_DEADLINE, hardware.cut(&act)).await;
                let result = result.unwrap_or_else(|_| {
                    Err(CutProblem {
                        is_in_use: false,
                        detail: "the driver does not answer".to_owned(),
                    })
                });
                Done::Cut(Box::new(Cut { act, result }))
            });
        }
        Ok(())
    }

    /// An act ended: what came of it is recorded, and the driver is asked how the GPUs are now.
    pub(super) async fn cut_ended(&mut self, cut: Cut) -> Result<(), AgentError> {
        let Cut { act, result } = cut;
        self.slicing.turn += 1;
        self.slicing.look_soon = true;
        let gpu = ResourceName::cut(act.gpu());
        let change = match (act, result) {
            (Act::Make { resource, .. }, Ok(Some(device))) => {
                self.slicing.failed.remove(&resource);
                Some(KnownChange::Set(resource, Made::Done { device }))
            }
            (Act::End { resource, .. }, Ok(_)) => Some(KnownChange::Gone(resource)),
            // Whether it stands after all, the next look says.
            (Act::Make { .. } | Act::SetMode { .. } | Act::Divide { .. }, Ok(_)) => None,
            (act, Err(problem)) => {
                tracing::warn!(?act, %problem, "the driver refuses");
                let pause = match act {
                    Act::Divide { .. } => UNDIVIDED_PAUSE,
                    Act::SetMode { .. } | Act::Make { .. } | Act::End { .. } => REFUSED_PAUSE,
                };
                let until = self.now().monotonic.plus(pause);
                self.slicing.paused.insert(gpu, until);
                if let Act::Make { resource, .. } = act {
                    self.slicing.failed.insert(resource, problem);
                }
                None
            }
        };
        self.note_slices(change.as_slice()).await
    }
}
