//! Faults of GPUs in the rules about leases: who has which GPU, what a fault stops, and what is not leased. What a
//! fault is and what has to be done about it, the rules of [`gpu_health`] say.

use crate::core::lease::{LeaseRecord, State};
use crate::core::leases::{Change, Decision, Leases};
use crate::core::meter::Moment;
use crate::core::reconcile::{Containers, Observed};
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

/// Why `lease` cannot have what is sold by this share now; nothing when it can.
#[must_use]
pub fn unfit(health: &Health, lease: LeaseId, share: &Share) -> Option<Unfit> {
    let places: Vec<Place> = share
        .resources
        .iter()
        .map(|resource| place(resource, None))
        .collect();
    health
        .unfit(&places)
        .or_else(|| health.not_left(lease, &places))
}

/// Whether the container of a lease that holds nothing was seen to run all the same, and may use its GPU.
fn still_runs(lease: LeaseId, containers: &Containers) -> bool {
    matches!(
        containers.get(&lease),
        Some(Observed::Running { .. } | Observed::Paused { .. })
    )
}

impl Leases {
    /// Every lease whose container may use a GPU or a slice now; `instance` says a slice's number, and `containers` are
    /// those that were seen last.
    #[must_use]
    pub fn tenancies(
        &self,
        containers: &Containers,
        instance: impl Fn(&ResourceName) -> Option<u32>,
    ) -> Vec<Tenancy> {
        let has_gpus = |record: &&LeaseRecord| {
            let holds = !record.state.held().is_empty();
            !record.share.gpus.is_empty() && (holds || still_runs(record.lease, containers))
        };
        let tenancy = |record: &LeaseRecord| Tenancy {
            lease: record.lease,
            renter: record.renter,
            places: record
                .share
                .resources
                .iter()
                .map(|name| place(name, instance(name)))
                .collect(),
        };
        let records = self.records().values();
        records.filter(has_gpus).map(tenancy).collect()
    }

    /// What faults of their GPUs change for these leases: they are over from now on, whenever their containers can be
    /// killed, and no more of them is billed.
    #[must_use]
    pub fn decide_faults(&self, faults: &[(LeaseId, GpuFault)], now: Moment) -> Decision {
        let stopped = faults.iter().filter_map(|(lease, fault)| {
            let record = self.record(*lease)?;
            let reason = StopReason::GpuFault(fault.clone());
            match &record.state {
                State::Running { started_at, .. } => {
                    let counted = LeaseRecord {
                        meter: record.meter.still_running(*started_at, now),
                        ..record.clone()
                    };
                    Some(counted.stopped(reason))
                }
                State::Preparing { .. } => Some(record.stopped(reason)),
                State::Stopped { .. } | State::Failed { .. } | State::Gone { .. } => None,
            }
        });
        let changes = stopped.map(|record| Change::Lease(Box::new(record)));
        Decision {
            changes: changes.collect(),
            notes: Vec::new(),
        }
    }
}
