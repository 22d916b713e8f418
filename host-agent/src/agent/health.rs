//! The health of the GPUs at work: what is heard of them goes to the rules of [`gpu_health`], and what those want is
//! done: written down first, then leases stopped, offers withheld, GPUs scrubbed and reset. It decides nothing.

use super::AgentError;
use super::desk::Desk;
use super::events::Done;
use crate::core::slices::Divisibles;
use crate::hardware::Hardware;
use crate::runtime::Runtime;
use gpu_health::between::Dirty;
use gpu_health::health::{Decision, Health};
use gpu_health::input::{Act, Input};
use gpu_health::log::slot;
use gpu_health::machine::{Device, Place, Tenancy};
use mig::name::SliceName;
use protocol::machine::{Gpu, Vendor};
use protocol::offer::ResourceName;
use protocol::units::Millis;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What waits long enough is looked for this often.
const TICK: Millis = Millis(1_000);

/// What is known of the GPUs' health, and what the rules were told last.
#[derive(Debug)]
pub(super) struct Care {
    pub(super) health: Health,
    devices: Vec<Device>,
    tenants: Option<Vec<Tenancy>>,
    next_tick: Millis,
}

impl Care {
    pub(super) const fn new(health: Health) -> Self {
        Self {
            health,
            devices: Vec::new(),
            tenants: None,
            next_tick: Millis(0),
        }
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
    /// Tells the rules which GPUs there are and who has them, when that is another, and that time goes by.
    pub(super) async fn care(&mut self) -> Result<(), AgentError> {
        let Some(machine) = &self.standing.machine else {
            return Ok(());
        };
        let cleanable = self.hardware.cleans();
        let devices: Vec<Device> = machine
            .gpus
            .iter()
            .map(|gpu| device(gpu, cleanable))
            .collect();
        // One that does not answer now is still there: its absence is told by itself.
        let is_new = devices
            .iter()
            .any(|device| !self.care.devices.contains(device));
        if is_new {
            let known = std::mem::take(&mut self.care.devices).into_iter();
            let gone = known.filter(|known| !devices.iter().any(|device| device.gpu == known.gpu));
            self.care.devices = gone.chain(devices.iter().cloned()).collect();
            self.heard(Input::Machine(self.care.devices.clone()))
                .await?;
        }
        let divisibles = self.slicing.divisibles();
        let tenants = self.leases.tenancies(|name| instance(name, divisibles));
        if self.care.tenants.as_ref() != Some(&tenants) {
            self.care.tenants = Some(tenants.clone());
            self.heard(Input::Tenants(tenants)).await?;
        }
        let now = self.now().monotonic;
        if now >= self.care.next_tick {
            self.care.next_tick = now.plus(TICK);
            self.heard(Input::Tick).await?;
        }
        Ok(())
    }

    /// Something was heard: it is decided, written down and done.
    pub(super) async fn heard(&mut self, input: Input) -> Result<(), AgentError> {
        let now = self.now().monotonic;
        let Decision { next, acts } = self.care.health.decide(&input, now);
        self.care.health = next;
        for act in acts {
            self.act(act).await?;
        }
        Ok(())
    }

    async fn act(&mut self, act: Act) -> Result<(), AgentError> {
        match act {
            Act::Keep(kept) => self.journal.keep_health(kept).await?,
            Act::EndLease { lease, fault } => {
                tracing::warn!(lease = %lease.short(), fault = fault.in_words(), "a lease ends for a fault of its GPU");
                let decision = self.leases.decide_fault(lease, &fault, self.now());
                self.record(&decision).await?;
            }
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
            }
            Act::Grade { gpu, lowered } => tracing::warn!(%gpu, lowered, "how fast it is"),
            Act::Freeze(leases) => tracing::warn!(?leases, "their GPUs are being reset"),
            Act::LetGoOn(leases) => tracing::info!(?leases, "their GPUs were reset"),
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
            Act::Cleaned { resource, took } => tracing::info!(
                %resource,
                emptying_ms = took.emptying.0,
                scrubbing_ms = took.scrubbing.0,
                all_ms = took.all.0,
                "cleaned after its lease"
            ),
        }
        Ok(())
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
                Some(devices) => hardware.scrub(&devices).await,
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
        coherent: ["GH200", "GB200", "GB300"]
            .iter()
            .any(|name| gpu.model.contains(name)),
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
