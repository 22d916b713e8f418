//! One decision while it is made: what is heard goes to the rules that it concerns, and then whatever can go on does.

use crate::counters::Counters;
use crate::health::Health;
use crate::input::{Act, AmdEvent, Input};
use crate::log::{Line, Slot};
use crate::machine::{Machine, Place, Tenancy};
use crate::strike::{Source, Strike};
use crate::unit::{Presence, Settings, Unit, Until, Wait, is_within};
use host_nvml::event::{EventKind, GpuEvent};
use host_nvml::news::{GpuNews, GpuState};
use host_nvml::sample::Reading;
use protocol::bounded::Text;
use protocol::lease::{FaultClass, GpuFault};
use protocol::machine::Vendor;
use protocol::offer::ResourceName;
use protocol::units::Millis;

/// A decision while it is made.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) health: Health,
    pub(crate) acts: Vec<Act>,
    pub(crate) now: Millis,
}

/// Why a lease is ended.
#[derive(Debug, Clone)]
pub(crate) struct Cause {
    pub(crate) xid: u32,
    pub(crate) class: FaultClass,
    pub(crate) text: String,
}

impl Turn {
    pub(crate) const fn new(health: Health, now: Millis) -> Self {
        Self {
            health,
            acts: Vec::new(),
            now,
        }
    }

    pub(crate) fn hear(&mut self, input: &Input) {
        match input {
            Input::Machine(devices) => {
                self.health.machine = Machine::new(devices.iter().cloned());
                for device in devices {
                    self.health.units.entry(device.gpu.clone()).or_default();
                }
            }
            Input::Tenants(tenancies) => self.tenants(tenancies),
            Input::News(GpuNews::Sample(sample)) => {
                self.sampled(&sample.gpu, &sample.reading);
            }
            Input::News(GpuNews::Event(event)) => self.event(event),
            Input::News(GpuNews::State { gpu, state, .. }) => self.state(gpu, state),
            Input::News(GpuNews::EventsBroke { gpu, .. }) => {
                let text = "its events may have been missed: its counters are read again";
                self.alarm(Some(gpu), text.to_owned());
            }
            Input::Line(line) => self.line(line),
            Input::Amd { gpu, event } => self.amd(gpu, *event),
            Input::FabricUp => self.health.fabric = None,
            Input::Settings { gpu, settings } => self.settings(gpu, settings),
            Input::Reset { gpu, result } => self.was_reset(gpu, result),
            Input::Scrubbed { resource, result } => self.was_scrubbed(resource, result),
            Input::Checked(gpu) => self.was_checked(gpu),
            Input::Tick => {}
        }
    }

    /// What can go on by what was heard, or by time alone.
    pub(crate) fn go_on(&mut self) {
        self.settle_waiting();
        self.begin_tests();
        self.begin_resets();
        self.clean();
        self.drain_if_lost();
    }

    pub(crate) fn unit(&mut self, gpu: &ResourceName) -> &mut Unit {
        self.health.units.entry(gpu.clone()).or_default()
    }

    pub(crate) fn note(&mut self, gpu: Option<&ResourceName>, text: String) {
        let gpu = gpu.cloned();
        self.acts.push(Act::Note { gpu, text });
    }

    pub(crate) fn alarm(&mut self, gpu: Option<&ResourceName>, text: String) {
        let gpu = gpu.cloned();
        self.acts.push(Act::Alarm { gpu, text });
    }

    /// The GPU gets no lease until then; what it waits for already, it waits for still.
    pub(crate) fn raise(&mut self, gpu: &ResourceName, xid: u32, until: Until, why: &str) {
        let unit = self.unit(gpu);
        if unit.wait.as_ref().is_some_and(|wait| wait.until >= until) {
            return;
        }
        unit.wait = Some(Wait {
            why: why.to_owned(),
            xid,
            until,
        });
        self.note(
            Some(gpu),
            format!("{why}: it gets no lease, and waits {}", until.in_words()),
        );
    }

    /// These leases end for what happened to `gpu`. A renter answers for its program alone: what ends others beside
    /// it is put down to the driver.
    pub(crate) fn end(&mut self, gpu: &ResourceName, struck: &[Tenancy], cause: &Cause) {
        let is_anothers = cause.class == FaultClass::Program && struck.len() > 1;
        let class = if is_anothers {
            FaultClass::Driver
        } else {
            cause.class
        };
        for tenancy in struck {
            if !self.health.ending.insert(tenancy.lease) {
                continue;
            }
            let place = tenancy.on(gpu).or(tenancy.places.first());
            let resource = place.map_or_else(|| gpu.clone(), |place| place.resource.clone());
            for place in &tenancy.places {
                self.unit(&place.gpu).killed_at = Some(self.now);
            }
            self.acts.push(Act::EndLease {
                lease: tenancy.lease,
                fault: GpuFault {
                    resource,
                    xid: u16::try_from(cause.xid).unwrap_or(u16::MAX),
                    class,
                    detail: Text::cut(&cause.text),
                },
            });
        }
    }

    /// Those that something on `gpu` happened to.
    pub(crate) fn struck(&self, gpu: &str, instance: Option<u32>) -> Vec<Tenancy> {
        self.health.tenants.struck(gpu, instance).cloned().collect()
    }

    fn event(&mut self, event: &GpuEvent) {
        let xid = match event.kind {
            EventKind::Xid(xid) => xid,
            EventKind::DoubleBitEcc => 48,
            EventKind::DramRetirement => 63,
            EventKind::DramRetirementFailed => 64,
            EventKind::ContainedPoison => 94,
            EventKind::FatalPoison => 95,
            EventKind::Unavailable => 46,
            EventKind::RecoveryActionChanged => 154,
            EventKind::MigChanged => {
                return self.note(Some(&event.gpu), "how it is divided changed".to_owned());
            }
            EventKind::Other { bit, .. } => {
                return self.note(Some(&event.gpu), format!("an event of kind {bit:#x}"));
            }
        };
        let source = match event.kind {
            EventKind::Xid(_) => Source::Xid,
            EventKind::DoubleBitEcc
            | EventKind::DramRetirement
            | EventKind::DramRetirementFailed
            | EventKind::ContainedPoison
            | EventKind::FatalPoison
            | EventKind::Unavailable
            | EventKind::RecoveryActionChanged
            | EventKind::MigChanged
            | EventKind::Other { .. } => Source::Other,
        };
        self.strike(Strike {
            gpu: event.gpu.clone(),
            xid,
            instance: event.gpu_instance,
            source,
            fatal: None,
        });
    }

    fn line(&mut self, line: &Line) {
        let (slot, xid, instance, fatal) = match line {
            Line::Xid {
                slot,
                instance,
                xid,
                fatal,
            } => (slot, *xid, *instance, *fatal),
            Line::FellOff { slot } => (slot, 79, None, None),
            Line::Switch { sxid, fatal } => return self.switch(*sxid, *fatal),
            Line::Amd { slot, event } => return self.amd_line(slot, *event),
        };
        let Some(device) = self.health.machine.at(slot) else {
            return self.note(
                None,
                format!("Xid {xid} of a GPU at {slot} that is not known"),
            );
        };
        let gpu = device.gpu.clone();
        self.strike(Strike {
            gpu,
            xid,
            instance,
            source: Source::Other,
            fatal,
        });
    }

    fn amd_line(&mut self, slot: &Slot, event: AmdEvent) {
        let device = self.health.machine.at(slot);
        let known = device.filter(|device| device.vendor == Vendor::Amd);
        match known.map(|device| device.gpu.clone()) {
            Some(gpu) => self.amd(&gpu, event),
            None => self.note(
                None,
                format!("{event:?} of an AMD GPU at {slot}, which is not known"),
            ),
        }
    }

    fn state(&mut self, gpu: &ResourceName, state: &GpuState) {
        let now = self.now;
        let unit = self.unit(gpu);
        let was = unit.presence.clone();
        match state {
            GpuState::Ready => {
                unit.presence = Presence::Answers;
                if was == Presence::Gone {
                    self.note(Some(gpu), "it is back".to_owned());
                }
                self.hive_looked_at(gpu);
            }
            GpuState::Unknown { reason } => {
                let since = match was {
                    Presence::Unknown { since, .. } => since,
                    Presence::Unheard | Presence::Answers | Presence::Gone => now,
                };
                let why = reason.clone();
                unit.presence = Presence::Unknown { why, since };
                if since == now {
                    self.alarm(
                        Some(gpu),
                        format!("it does not answer: {reason}; what runs on it goes on"),
                    );
                }
            }
            GpuState::Gone => {
                unit.presence = Presence::Gone;
                if was != Presence::Gone {
                    self.vanished(gpu);
                }
            }
        }
    }

    /// The driver lists it no more, and need not have said a word.
    fn vanished(&mut self, gpu: &ResourceName) {
        let text = "the driver lists it no more";
        self.alarm(Some(gpu), text.to_owned());
        let cause = self.recent_cause(gpu).unwrap_or(Cause {
            xid: 0,
            class: FaultClass::Hardware,
            text: "the GPU vanished: the driver lists it no more".to_owned(),
        });
        let struck = self.struck(gpu, None);
        self.end(gpu, &struck, &cause);
        self.raise(gpu, 0, Until::Tested, text);
    }

    fn sampled(&mut self, gpu: &ResourceName, reading: &Reading) {
        let (now, boot) = (self.now, self.health.boot);
        let clock_max = self
            .health
            .machine
            .device(gpu)
            .map_or(0, |device| device.clock_max_mhz);
        let is_idle = self.is_idle(gpu);
        let counters = Counters::of(reading, boot);
        let unit = self.unit(gpu);
        unit.presence = Presence::Answers;
        let pace = unit.pace.after(reading, clock_max, now);
        let before = std::mem::replace(&mut unit.pace, pace);
        let slowed = pace.lowered().filter(|_| before.lowered().is_none());
        let before = unit.counters.replace(counters);
        unit.reading = Some(reading.clone());
        let is_booted = std::mem::replace(&mut unit.is_booted, false);
        if is_idle || is_booted {
            unit.idle = unit.idle.after(reading);
        }
        if let Some(slowed) = slowed {
            self.alarm(Some(gpu), slowed.in_words());
        }
        self.counted(gpu, before, counters);
        self.obey_verdict(gpu);
        self.hive_looked_at(gpu);
        self.cleaning_read(gpu);
    }

    /// Nobody has it, it is clean and waits for nothing.
    fn is_idle(&self, gpu: &ResourceName) -> bool {
        let is_fit = self.health.fitness(gpu, gpu).is_fit();
        is_fit
            && self.health.tenants.struck(gpu, None).next().is_none()
            && !self
                .health
                .parts
                .values()
                .any(|part| part.place.gpu == *gpu)
    }

    /// Counters that moved without a word of the driver's: nothing is ended for them.
    fn counted(&mut self, gpu: &ResourceName, before: Option<Counters>, after: Counters) {
        let Some(before) = before else { return };
        let added = before.added_until(&after);
        if added.failed {
            let why = "a row of its memory could not be replaced";
            self.raise(gpu, 64, Until::Checked, why);
        }
        let waits = |unit: &mut Unit, why: &str| {
            if unit.reset_wanted.is_none() && unit.wait.is_none() {
                unit.reset_wanted = Some(why.to_owned());
            }
        };
        if added.pending {
            waits(
                self.unit(gpu),
                "rows of its memory are replaced at its next reset",
            );
        }
        let now = self.now;
        let unit = self.unit(gpu);
        let is_told = unit
            .past
            .iter()
            .any(|past| MEMORY_XIDS.contains(&past.xid) && is_within(past.at, Millis(10_000), now));
        if added.uncorrected > 0 && !is_told {
            waits(unit, "memory errors that could not be corrected");
            let text = format!(
                "{} memory errors that could not be corrected, and no event told of them",
                added.uncorrected
            );
            self.alarm(Some(gpu), text);
        }
    }

    fn settings(&mut self, gpu: &ResourceName, settings: &Settings) {
        let is_idle = self.is_idle(gpu);
        let unit = self.unit(gpu);
        let Some(before) = unit.settings.clone().filter(|_| !is_idle) else {
            unit.settings = Some(settings.clone());
            return;
        };
        if before != *settings {
            let text =
                format!("its settings changed while it was leased: {before:?} became {settings:?}");
            self.alarm(Some(gpu), text);
            self.acts.push(Act::Repair {
                gpu: gpu.clone(),
                settings: before,
            });
        }
    }

    /// One GPU off the bus is that GPU's; when another fails beside it, or the driver hangs, it is the machine.
    fn drain_if_lost(&mut self) {
        if self.health.drain.is_some() {
            return;
        }
        let fell = |unit: &Unit| unit.wait.as_ref().is_some_and(|wait| wait.xid == 79);
        let fails = |unit: &Unit| {
            fell(unit) || matches!(unit.presence, Presence::Gone | Presence::Unknown { .. })
        };
        let units = &self.health.units;
        let Some((lost, _)) = units.iter().find(|(_, unit)| fell(unit)) else {
            return;
        };
        let other = units.iter().find(|(gpu, unit)| *gpu != lost && fails(unit));
        if let Some((other, _)) = other {
            let why = format!(
                "{lost} fell off the bus and {other} fails too: the machine has to be booted anew when it is empty"
            );
            self.health.drain = Some(why.clone());
            self.alarm(None, why);
        }
    }

    /// A place as the machine has it.
    pub(crate) fn whole(gpu: &ResourceName) -> Place {
        Place::whole(gpu)
    }
}

/// Errors of memory.
const MEMORY_XIDS: [u32; 8] = [48, 63, 64, 94, 95, 140, 171, 172];
