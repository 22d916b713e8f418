//! A machine of eight GPUs that does what the rules want of it.

use crate::between::{Dirty, Scrubbed};
use crate::health::Health;
use crate::input::{Act, Input};
use crate::log::{Line, slot};
use crate::machine::{Device, Place, Tenancy};
use crate::unit::{Fitness, Kept, Until};
use host_nvml::event::{EventKind, GpuEvent};
use host_nvml::news::{GpuNews, GpuState};
use host_nvml::sample::{
    ClockReasons, EccCounters, GpuSample, Reading, RecoveryAction, RemappedRows,
};
use protocol::bounded::Text;
use protocol::ids::{BootId, LeaseId, RenterId};
use protocol::lease::{FaultClass, GpuFault};
use protocol::machine::Vendor;
use protocol::offer::ResourceName;
use protocol::units::{Bytes, Millis, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(super) const GIB: u64 = 1 << 30;

/// A machine, its leases, and everything that was wanted of it.
pub(super) struct Stage {
    pub(super) health: Health,
    pub(super) now: Millis,
    pub(super) tenants: Vec<Tenancy>,
    pub(super) readings: BTreeMap<ResourceName, Reading>,
    /// GPUs that do not answer or are gone: they are not sampled.
    pub(super) silent: BTreeSet<ResourceName>,
    pub(super) acts: Vec<(Millis, Act)>,
    pub(super) scrub: Result<Scrubbed, Dirty>,
    pub(super) reset: Result<(), String>,
    /// Whether a reset makes the driver want nothing more.
    pub(super) cures: bool,
    devices: Vec<Device>,
}

pub(super) fn gpu(number: usize) -> ResourceName {
    Text::cut(&format!("GPU-{number}"))
}

pub(super) fn lease(number: u8) -> LeaseId {
    LeaseId::from_bytes([number; 16])
}

pub(super) fn renter(number: u8) -> RenterId {
    RenterId::from_bytes([number; 32])
}

pub(super) fn boot(number: u8) -> BootId {
    BootId::from_bytes([number; 16])
}

pub(super) fn address(number: usize) -> String {
    format!("0000:{number:02x}:00.0")
}

pub(super) fn sound() -> Reading {
    Reading {
        processes: Some(Vec::new()),
        memory_used: Some(Bytes(0)),
        clock_reasons: Some(ClockReasons(0)),
        graphics_clock_mhz: Some(1_900),
        ecc: Some(EccCounters::default()),
        remapped: Some(RemappedRows::default()),
        recovery: None,
        ..Reading::default()
    }
}

/// Eight GPUs, of which the last two are linked.
pub(super) fn devices() -> Vec<Device> {
    let device = |number: usize| Device {
        gpu: gpu(number),
        vendor: Vendor::Nvidia,
        slot: slot(&address(number)).unwrap(),
        link_group: u8::from(number >= 6),
        switch: None,
        coherent: false,
        clock_max_mhz: 2_000,
        memory: 80 * GIB,
        cleanable: true,
    };
    (0..8).map(device).collect()
}

impl Stage {
    /// A machine that has been up for an hour.
    pub(super) fn new() -> Self {
        Self::with(Kept::default(), boot(1), devices())
    }

    pub(super) fn with(kept: Kept, boot: BootId, devices: Vec<Device>) -> Self {
        let readings = devices.iter().map(|device| (device.gpu.clone(), sound()));
        let mut stage = Self {
            health: Health::recovered(kept, boot),
            now: Millis(3_600_000),
            tenants: Vec::new(),
            readings: readings.collect(),
            silent: BTreeSet::new(),
            acts: Vec::new(),
            scrub: Ok(Scrubbed {
                written: Bytes(79 * GIB),
                memory: Bytes(80 * GIB),
                wrong: 0,
            }),
            reset: Ok(()),
            cures: true,
            devices: devices.clone(),
        };
        stage.hear(Input::Machine(devices));
        stage.hear(Input::Tenants(Vec::new()));
        stage.run(4);
        stage
    }

    /// The agent starts anew, in this boot.
    pub(super) fn restart(&self, boot: BootId) -> Self {
        Self::with(self.health.kept(), boot, self.devices.clone())
    }

    /// Hears `input` and does what is wanted, and what that brings about.
    pub(super) fn hear(&mut self, input: Input) -> Vec<Act> {
        let mut waiting = VecDeque::from([input]);
        let mut acts = Vec::new();
        while let Some(input) = waiting.pop_front() {
            let decision = self.health.decide(&input, self.now);
            self.health = decision.next;
            for act in decision.acts {
                waiting.extend(self.act(&act));
                self.acts.push((self.now, act.clone()));
                acts.push(act);
            }
        }
        acts
    }

    fn act(&mut self, act: &Act) -> Option<Input> {
        if let Act::EndLease { lease, .. } = act {
            self.tenants.retain(|tenancy| tenancy.lease != *lease);
            return Some(Input::Tenants(self.tenants.clone()));
        }
        if let Act::Scrub { place } = act {
            return Some(Input::Scrubbed {
                resource: place.resource.clone(),
                result: self.scrub.clone(),
            });
        }
        let Act::Reset { gpu, .. } = act else {
            return None;
        };
        if self.reset.is_ok() && self.cures {
            self.readings.insert(gpu.clone(), sound());
        }
        Some(Input::Reset {
            gpu: gpu.clone(),
            result: self.reset.clone(),
        })
    }

    /// Goes on for so many seconds: a tick each, and a sample of each GPU that answers every other.
    pub(super) fn run(&mut self, seconds: u64) -> Vec<Act> {
        let mut acts = Vec::new();
        for second in 0..seconds {
            self.now = self.now.plus(Millis(1_000));
            acts.extend(self.hear(Input::Tick));
            if second % 2 == 1 {
                for gpu in self.readings.keys().cloned().collect::<Vec<_>>() {
                    if !self.silent.contains(&gpu) {
                        acts.extend(self.sample(&gpu));
                    }
                }
            }
        }
        acts
    }

    pub(super) fn sample(&mut self, gpu: &ResourceName) -> Vec<Act> {
        let sample = GpuSample {
            gpu: gpu.clone(),
            at: Timestamp(self.now.0),
            reading: self.readings[gpu].clone(),
        };
        self.hear(Input::News(GpuNews::Sample(sample)))
    }

    pub(super) fn xid(&mut self, number: usize, xid: u32, instance: Option<u32>) -> Vec<Act> {
        self.event(number, EventKind::Xid(xid), instance)
    }

    pub(super) fn event(
        &mut self,
        number: usize,
        kind: EventKind,
        gpu_instance: Option<u32>,
    ) -> Vec<Act> {
        self.hear(Input::News(GpuNews::Event(GpuEvent {
            gpu: gpu(number),
            kind,
            gpu_instance,
            compute_instance: None,
            at: Timestamp(self.now.0),
        })))
    }

    pub(super) fn line(&mut self, line: &str) -> Vec<Act> {
        let line: Line = crate::log::read(line).unwrap();
        self.hear(Input::Line(line))
    }

    pub(super) fn state(&mut self, number: usize, state: GpuState) -> Vec<Act> {
        if state == GpuState::Ready {
            self.silent.remove(&gpu(number));
        } else {
            self.silent.insert(gpu(number));
        }
        self.hear(Input::News(GpuNews::State {
            gpu: gpu(number),
            state,
            at: Timestamp(self.now.0),
        }))
    }

    /// A lease of whole GPUs.
    pub(super) fn take(&mut self, number: u8, gpus: &[usize]) {
        let places = gpus.iter().map(|number| Place::whole(&gpu(*number)));
        self.take_places(number, places.collect());
    }

    /// A lease of a slice.
    pub(super) fn take_slice(&mut self, number: u8, of: usize, instance: u32) {
        self.take_places(number, vec![slice(of, instance)]);
    }

    fn take_places(&mut self, number: u8, places: Vec<Place>) {
        self.tenants.push(Tenancy {
            lease: lease(number),
            renter: renter(number),
            places,
        });
        self.hear(Input::Tenants(self.tenants.clone()));
    }

    /// A lease that ends by itself.
    pub(super) fn leave(&mut self, number: u8) -> Vec<Act> {
        self.tenants
            .retain(|tenancy| tenancy.lease != lease(number));
        self.hear(Input::Tenants(self.tenants.clone()))
    }

    pub(super) fn reads(&mut self, number: usize, change: impl FnOnce(&mut Reading)) {
        change(self.readings.get_mut(&gpu(number)).unwrap());
    }

    pub(super) fn wants(&mut self, number: usize, verdict: RecoveryAction) {
        self.reads(number, |reading| reading.recovery = Some(verdict));
    }

    pub(super) fn fitness(&self, number: usize) -> Fitness {
        self.health.fitness(&gpu(number), &gpu(number))
    }

    pub(super) fn is_fit(&self, number: usize) -> bool {
        self.fitness(number).is_fit()
    }

    /// What this GPU waits for.
    pub(super) fn until(&self, number: usize) -> Option<Until> {
        let fitness = self.fitness(number);
        if let Fitness::Quarantined { until, .. } | Fitness::Finishing { until, .. } = fitness {
            Some(until)
        } else {
            None
        }
    }

    pub(super) fn has(&self, number: u8) -> bool {
        self.tenants
            .iter()
            .any(|tenancy| tenancy.lease == lease(number))
    }

    /// All GPUs that may be leased as a whole.
    pub(super) fn fit(&self) -> Vec<usize> {
        (0..8).filter(|number| self.is_fit(*number)).collect()
    }
}

pub(super) fn slice(of: usize, instance: u32) -> Place {
    Place {
        resource: Text::cut(&format!("GPU-{of}/3g@{instance}")),
        gpu: gpu(of),
        instance: Some(instance),
    }
}

/// The leases that these acts end, each with what it is put down to.
pub(super) fn ended(acts: &[Act]) -> Vec<(u8, u16, FaultClass)> {
    picked(acts, |act| {
        let Act::EndLease { lease, fault } = act else {
            return None;
        };
        let GpuFault { xid, class, .. } = fault;
        Some((lease.as_bytes()[0], *xid, *class))
    })
}

pub(super) fn alarms(acts: &[Act]) -> Vec<String> {
    picked(acts, |act| {
        let Act::Alarm { text, .. } = act else {
            return None;
        };
        Some(text.clone())
    })
}

pub(super) fn notes(acts: &[Act]) -> Vec<String> {
    picked(acts, |act| {
        let Act::Note { text, .. } = act else {
            return None;
        };
        Some(text.clone())
    })
}

pub(super) fn withdrawn(acts: &[Act]) -> Vec<String> {
    picked(acts, |act| {
        let Act::Withdraw { resource, .. } = act else {
            return None;
        };
        Some(resource.to_string())
    })
}

pub(super) fn restored(acts: &[Act]) -> Vec<String> {
    picked(acts, |act| {
        let Act::Restore { resource } = act else {
            return None;
        };
        Some(resource.to_string())
    })
}

pub(super) fn resets(acts: &[Act]) -> usize {
    let is_reset = |act: &&Act| matches!(act, Act::Reset { .. });
    acts.iter().filter(is_reset).count()
}

fn picked<T>(acts: &[Act], pick: impl Fn(&Act) -> Option<T>) -> Vec<T> {
    acts.iter().filter_map(pick).collect()
}
