//! The health of the GPUs at work: what is heard of them goes to the rules of [`gpu_health`], and what those want is
//! done: written down first, then leases stopped, offers withheld, GPUs scrubbed and reset. It decides nothing.

use super::AgentError;
use super::desk::Desk;
use super::events::Done;
use crate::core::reconcile::{Containers, Observed};
use crate::core::slices::Divisibles;
use crate::hardware::Hardware;
use crate::runtime::Runtime;
use gpu_health::between::{Dirty, Took};
use gpu_health::health::{Decision, Health};
use gpu_health::input::{Act, AmdEvent, Input};
use gpu_health::log::{Line, slot};
use gpu_health::machine::{Device, Place, Tenancy};
use gpu_health::unit::Kept;
use host_nvml::news::GpuNews;
use mig::name::SliceName;
use protocol::ids::LeaseId;
use protocol::lease::GpuFault;
use protocol::machine::{Gpu, Vendor};
use protocol::offer::ResourceName;
use protocol::units::Millis;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;

/// What waits long enough is looked for this often.
const TICK: Millis = Millis(1_000);
/// The machine is measured again so soon for a GPU that came or went, when once was not enough.
const MEASURE_PAUSE: Millis = Millis(5_000);
/// GPUs whose memory is the processor's as well.
const COHERENT: [&str; 3] = ["GH200", "GB200", "GB300"];

/// What is known of the GPUs' health, and what the rules were told last.
#[derive(Debug)]
pub(super) struct Care {
    pub(super) health: Health,
    devices: Vec<Device>,
    tenants: Option<Vec<Tenancy>>,
    /// Leases whose time is not counted: their GPU is being reset by its driver.
    frozen: BTreeSet<LeaseId>,
    /// How long the last cleaning of each took.
    pub(super) took: BTreeMap<ResourceName, Took>,
    next_tick: Millis,
    next_measure: Millis,
    /// The machine was measured since GPUs of AMD's were last said to be sound.
    is_measured: bool,
}

impl Care {
    pub(super) const fn new(health: Health) -> Self {
        Self {
            health,
            devices: Vec::new(),
            tenants: None,
            frozen: BTreeSet::new(),
            took: BTreeMap::new(),
            next_tick: Millis(0),
            next_measure: Millis(0),
            is_measured: false,
        }
    }

    /// The machine was measured: what it showed is there, and answers.
    pub(super) const fn measured(&mut self) {
        self.is_measured = true;
    }

    /// The containers as a meter sees them: those of leases whose time is not counted stand still.
    pub(super) fn counted(&self, containers: &Containers) -> Containers {
        let mut counted = containers.clone();
        for lease in &self.frozen {
            if let Some(seen) = counted.get_mut(lease)
                && let Observed::Running { started_at, .. } = *seen
            {
                *seen = Observed::Paused { started_at };
            }
        }
        counted
    }
}

/// Waits for the next thing that is heard of GPUs; for ever where nothing is.
pub(super) async fn next_heard(heard: &mut Option<mpsc::Receiver<Input>>) -> Input {
    if let Some(receiver) = heard {
        if let Some(input) = receiver.recv().await {
            return input;
        }
        *heard = None;
    }
    std::future::pending().await
}

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Tells the rules which GPUs there are and who has them, when that is another, and that time goes by. This comes
    /// before goals are followed: what was just left is not clean.
    pub(super) async fn care(&mut self) -> Result<(), AgentError> {
        self.tell_devices().await?;
        let divisibles = self.slicing.divisibles();
        let containers = self.engine.containers();
        let tenants = self
            .leases
            .tenancies(containers, |name| instance(name, divisibles));
        if self.care.tenants.as_ref() != Some(&tenants) {
            self.care.tenants = Some(tenants.clone());
            self.freed = true;
            self.heard(Input::Tenants(tenants)).await?;
        }
        let now = self.now().monotonic;
        if now >= self.care.next_tick {
            self.care.next_tick = now.plus(TICK);
            self.heard(Input::Tick).await?;
            self.measure_what_changed(now);
        }
        Ok(())
    }

    async fn tell_devices(&mut self) -> Result<(), AgentError> {
        let Some(machine) = &self.standing.machine else {
            return Ok(());
        };
        let cleans = self.hardware.cleans();
        let gpus = machine.gpus.iter();
        let devices: Vec<Device> = gpus.map(|gpu| device(gpu, cleans)).collect();
        // One that does not answer now is still there: its absence is told by itself.
        let known = &self.care.devices;
        if devices.iter().any(|device| !known.contains(device)) {
            let known = std::mem::take(&mut self.care.devices).into_iter();
            let gone = known.filter(|known| !devices.iter().any(|device| device.gpu == known.gpu));
            self.care.devices = gone.chain(devices.iter().cloned()).collect();
            let all = self.care.devices.clone();
            self.care.tenants = None;
            self.heard(Input::Machine(all)).await?;
        }
        if std::mem::take(&mut self.care.is_measured) {
            for device in devices.iter().filter(|it| it.vendor == Vendor::Amd) {
                let (gpu, event) = (device.gpu.clone(), AmdEvent::Healthy);
                self.heard(Input::Amd { gpu, event }).await?;
            }
        }
        Ok(())
    }

    /// A GPU that answers and is not among those that were measured came just now; one that was measured and is gone
    /// went. Both are offered as they are without waiting for the next measuring.
    fn measure_what_changed(&mut self, now: Millis) {
        let gpus = self.standing.machine.as_ref().map(|machine| &machine.gpus);
        let is_measured = |gpu: &ResourceName| {
            gpus.is_some_and(|gpus| gpus.iter().any(|known| known.uuid == *gpu))
        };
        let health = &self.care.health;
        let has_changed =
            health.answering().any(|gpu| !is_measured(gpu)) || health.gone().any(is_measured);
        if has_changed && now >= self.care.next_measure {
            self.care.next_measure = now.plus(MEASURE_PAUSE);
            self.measure_soon();
        }
    }

    /// The machine is measured again with the next look.
    pub(super) const fn measure_soon(&mut self) {
        self.standing.measured_at = None;
        self.engine.check_soon();
    }

    /// Something was heard: it is decided, written down and done.
    pub(super) async fn heard(&mut self, input: Input) -> Result<(), AgentError> {
        // A benchmark of this host's own is neither a lease nor how the GPU is at rest.
        if matches!(&input, Input::News(GpuNews::Sample(_))) && self.benches.is_running() {
            return Ok(());
        }
        if let Input::Line(Line::Amd {
            event: AmdEvent::PostReset,
            ..
        }) = &input
        {
            self.measure_soon();
        }
        self.gauges.hear(&input);
        let now = self.now().monotonic;
        let Decision { next, acts } = self.care.health.decide(&input, now);
        let mut kept = None;
        let mut faults = Vec::new();
        let mut others = Vec::new();
        for act in acts {
            if let Act::Keep(health) = act {
                kept = Some(health);
            } else if let Act::EndLease { lease, fault } = act {
                faults.push((lease, fault));
            } else {
                others.push(act);
            }
        }
        self.write_down(kept, &faults).await?;
        self.care.health = next;
        for act in others {
            self.act(act);
        }
        Ok(())
    }

    /// That a GPU gets no lease and that its leases are over is on disk together, or not at all.
    async fn write_down(
        &mut self,
        kept: Option<Kept>,
        faults: &[(LeaseId, GpuFault)],
    ) -> Result<(), AgentError> {
        for (lease, fault) in faults {
            let (lease, fault) = (lease.short(), fault.in_words());
            tracing::warn!(%lease, fault, "a lease ends for a fault of its GPU");
        }
        let decision = self.leases.decide_faults(faults, self.now());
        match kept {
            Some(kept) => self.journal.keep_health(kept, &decision.changes).await?,
            None => self.journal.commit(&decision.changes).await?,
        }
        self.recorded(&decision);
        Ok(())
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Withdraw { resource, why } => {
                tracing::warn!(%resource, why, "not leased for now");
                self.announce_soon();
            }
            Act::Restore { resource } => {
                tracing::info!(%resource, "may be leased again");
                self.freed = true;
                self.announce_soon();
            }
            Act::Together { gpu, allowed } => {
                tracing::warn!(%gpu, allowed, "whether it is leased together with others");
                self.freed |= allowed;
            }
            Act::Grade { gpu, lowered } => {
                tracing::warn!(%gpu, lowered, "how fast it is");
                self.derive_offers();
                self.announce_soon();
            }
            Act::Freeze(leases) => {
                tracing::warn!(?leases, "no time is counted: their GPUs are being reset");
                self.care.frozen.extend(leases);
            }
            Act::LetGoOn(leases) => {
                tracing::info!(?leases, "their GPUs were reset");
                self.care.frozen.retain(|lease| !leases.contains(lease));
            }
            Act::Reset { gpu, .. } => self.begin_reset(gpu),
            Act::Scrub { place } => self.begin_scrub(place),
            Act::Repair { gpu, settings } => {
                tracing::error!(%gpu, ?settings, "its settings are to be set back to these");
            }
            Act::DrainHost { why } => {
                tracing::error!(why, "the host takes no lease until it was booted anew");
                self.announce_soon();
            }
            Act::Alarm { gpu, text } => {
                let gpu = gpu.as_ref().map(|gpu| gpu.as_str());
                tracing::error!(gpu, "{text}");
            }
            Act::Note { gpu, text } => {
                let gpu = gpu.as_ref().map(|gpu| gpu.as_str());
                tracing::info!(gpu, "{text}");
            }
            Act::Cleaned { resource, took } => {
                tracing::info!(
                    %resource,
                    emptying_ms = took.emptying.0,
                    scrubbing_ms = took.scrubbing.0,
                    all_ms = took.all.0,
                    "cleaned after its lease"
                );
                self.care.took.insert(resource, took);
            }
            // They were written down before.
            Act::Keep(_) | Act::EndLease { .. } => {}
        }
    }

    fn begin_reset(&mut self, gpu: ResourceName) {
        let hardware = Arc::clone(&self.hardware);
        self.tasks.spawn(async move {
            let result = hardware.reset_gpu(&gpu).await;
            Done::Care(Box::new(Input::Reset { gpu, result }))
        });
    }

    fn begin_scrub(&mut self, place: Place) {
        let hardware = Arc::clone(&self.hardware);
        let devices = self.slicing.devices_at(&place.resource);
        self.tasks.spawn(async move {
            let result = match devices {
                Some(devices) if !devices.is_empty() => hardware.scrub(&devices).await,
                Some(_) => Err(Dirty::Scrub("it is divided, and nothing is cut".to_owned())),
                None => Err(Dirty::Scrub("the slice is not cut any more".to_owned())),
            };
            let resource = place.resource;
            Done::Care(Box::new(Input::Scrubbed { resource, result }))
        });
    }

    /// What cannot be leased for its health.
    pub(super) fn unhealthy(&self) -> impl Iterator<Item = ResourceName> {
        self.care.health.withheld().into_keys()
    }
}

fn device(gpu: &Gpu, cleans: bool) -> Device {
    Device {
        gpu: gpu.uuid.clone(),
        vendor: gpu.vendor,
        // Without its place, no line of the kernel's log is of it.
        slot: slot(&gpu.pci_address).unwrap_or_default(),
        link_group: gpu.link_group,
        switch: None,
        coherent: COHERENT.iter().any(|name| gpu.model.contains(name)),
        clock_max_mhz: gpu.clock_max_mhz,
        memory: gpu.vram.0,
        cleanable: cleans && gpu.vendor == Vendor::Nvidia,
    }
}

/// The driver's number of a slice.
fn instance(resource: &ResourceName, divisibles: &Divisibles) -> Option<u32> {
    let name = SliceName::parse(resource).ok()?;
    let standing = &divisibles.get(name.gpu())?.standing;
    let is_it =
        |one: &&crate::core::slices::Standing| one.start == name.start() && one.size == name.size();
    standing.iter().find(is_it).map(|one| one.number)
}
