//! GPUs that are linked. AMD's driver resets a GPU by itself, and inside a hive that may reset every GPU of it: from before the
//! reset until each was looked at again, no time of a lease there is counted and none of them is leased. A switch of NVIDIA's that fails costs
//! leases of more than one GPU.

use crate::health::Frozen;
use crate::input::AmdEvent;
use crate::machine::Tenancy;
use crate::turn::{Cause, Turn};
use crate::unit::Until;
use protocol::lease::FaultClass;
use protocol::offer::ResourceName;
use std::collections::BTreeSet;

impl Turn {
    pub(crate) fn amd(&mut self, gpu: &ResourceName, event: AmdEvent) {
        match event {
            AmdEvent::VmFault => self.note(Some(gpu), "a page fault of GPU memory".to_owned()),
            AmdEvent::Throttled => {
                self.note(Some(gpu), "it is slowed down for its heat".to_owned())
            }
            AmdEvent::RingHang => self.note(Some(gpu), "a queue of commands hangs".to_owned()),
            AmdEvent::PreReset => self.hive_resets(gpu),
            AmdEvent::PostReset => {
                for hive in self
                    .health
                    .frozen
                    .iter_mut()
                    .filter(|hive| hive.gpu == *gpu)
                {
                    hive.over = true;
                }
                self.note(
                    Some(gpu),
                    "its reset is over: its hive is looked at".to_owned(),
                );
            }
            AmdEvent::Healthy => self.hive_looked_at(gpu),
            AmdEvent::Poison => {
                let text = "a program used memory that was lost";
                let cause = Cause {
                    xid: 0,
                    class: FaultClass::Hardware,
                    text: text.to_owned(),
                };
                let struck = self.struck(gpu, None);
                self.end(gpu, &struck, &cause);
                self.alarm(Some(gpu), text.to_owned());
            }
            AmdEvent::EccThreshold => {
                let text = "more memory errors than it may have";
                self.raise(gpu, 0, Until::Checked, text);
                self.alarm(Some(gpu), text.to_owned());
            }
        }
    }

    fn hive_resets(&mut self, gpu: &ResourceName) {
        let unchecked = self.health.machine.reset_domain(gpu);
        self.health.frozen.retain(|hive| hive.gpu != *gpu);
        self.health.frozen.push(Frozen {
            gpu: gpu.clone(),
            over: false,
            unchecked,
        });
        let text = "it is reset by its driver: no time is counted for the leases of its hive";
        self.alarm(Some(gpu), text.to_owned());
    }

    /// A GPU was looked at and answers: what was looked at before the reset was over says nothing.
    pub(crate) fn hive_looked_at(&mut self, gpu: &ResourceName) {
        for hive in self.health.frozen.iter_mut().filter(|hive| hive.over) {
            hive.unchecked.remove(gpu);
        }
        self.health.frozen.retain(|hive| !hive.unchecked.is_empty());
    }

    /// An NVSwitch told of an error: links do not work, and no GPU failed.
    pub(crate) fn switch(&mut self, sxid: u32, fatal: bool) {
        let text = format!("an error of an NVSwitch (SXid {sxid})");
        if !fatal {
            return self.note(None, text);
        }
        self.alarm(None, text.clone());
        self.health.fabric.get_or_insert_with(|| text.clone());
        let cause = Cause {
            xid: 0,
            class: FaultClass::Link,
            text,
        };
        let linked: BTreeSet<ResourceName> = self
            .health
            .machine
            .devices()
            .filter(|device| device.link_group != 0)
            .map(|device| device.gpu.clone())
            .collect();
        let mut struck: Vec<Tenancy> = self.health.tenants.within(&linked).cloned().collect();
        struck.retain(Tenancy::is_together);
        for tenancy in &struck {
            let mut on = tenancy.places.iter().map(|place| &place.gpu);
            if let Some(gpu) = on.find(|gpu| linked.contains(*gpu)) {
                self.end(gpu, std::slice::from_ref(tenancy), &cause);
            }
        }
    }
}
