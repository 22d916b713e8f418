//! Faults of GPUs in the rules about leases: who has which GPU, what a fault stops, and what is not leased. What a
//! fault is and what has to be done about it, the rules of [`gpu_health`] say.

use crate::core::lease::{LeaseRecord, State};
use crate::core::leases::{Change, Decision, Leases};
use crate::core::meter::Moment;
use gpu_health::health::{Health, Unfit};
use gpu_health::machine::{Place, Tenancy};
use gpu_health::unit::Kept;
use protocol::ids::{BootId, LeaseId};
use protocol::lease::{GpuFault, StopReason};
use protocol::offer::{ResourceName, Share, parent};

/// The health of a machine of whose GPUs nothing was heard: all of them may be leased.
#[must_use]
pub fn unheard() -> Health {
    Health::recovered(Kept::default(), BootId::from_bytes([0; 16]))
}

/// A GPU or slice of that name; `instance` is the driver's number of a slice that is cut.
#[must_use]
pub fn place(resource: &ResourceName, instance: Option<u32>) -> Place {
    Place {
        resource: resource.clone(),
        gpu: ResourceName::cut(parent(resource)),
        instance,
    }
}

/// Why what is sold by this share cannot be leased now; nothing when it can.
#[must_use]
pub fn unfit(health: &Health, share: &Share) -> Option<Unfit> {
    let places: Vec<Place> = share
        .resources
        .iter()
        .map(|resource| place(resource, None))
        .collect();
    health.unfit(&places)
}

impl Leases {
    /// Every lease that has a GPU or a slice now; `instance` says a slice's number.
    #[must_use]
    pub fn tenancies(&self, instance: impl Fn(&ResourceName) -> Option<u32>) -> Vec<Tenancy> {
        let has_gpus = |record: &&LeaseRecord| {
            !record.share.gpus.is_empty() && !record.state.held().is_empty()
        };
        self.records()
            .values()
            .filter(has_gpus)
            .map(|record| {
                let held = record.state.held().iter();
                let places = held.map(|held| place(&held.resource, instance(&held.resource)));
                Tenancy {
                    lease: record.lease,
                    renter: record.renter,
                    places: places.collect(),
                }
            })
            .collect()
    }

    /// What a fault of its GPU changes for `lease`: it is over from now on, whenever its container can be killed, and
    /// no more of it is billed.
    #[must_use]
    pub fn decide_fault(&self, lease: LeaseId, fault: &GpuFault, now: Moment) -> Decision {
        let reason = || StopReason::GpuFault(fault.clone());
        let stopped = self.record(lease).and_then(|record| match &record.state {
            State::Running { started_at, .. } => {
                let counted = LeaseRecord {
                    meter: record.meter.still_running(*started_at, now),
                    ..record.clone()
                };
                Some(counted.stopped(reason()))
            }
            State::Preparing { .. } => Some(record.stopped(reason())),
            State::Stopped { .. } | State::Failed { .. } | State::Gone { .. } => None,
        });
        let changes = stopped.map(|record| Change::Lease(Box::new(record)));
        Decision {
            changes: changes.into_iter().collect(),
            notes: Vec::new(),
        }
    }
}
