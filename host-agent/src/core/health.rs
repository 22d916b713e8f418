//! Faults of GPUs in the rules about leases: who has which GPU, what a fault stops, and what is not leased. What a
//! fault is and what has to be done about it, the rules of [`gpu_health`] say.

use crate::core::lease::{LeaseRecord, State};
use crate::core::leases::{Change, Decision, Leases};
use crate::core::meter::Moment;
use crate::core::offer::Listed;
use crate::core::reconcile::{Containers, Observed};
use gpu_health::health::{Health, Unfit};
use gpu_health::machine::{Place, Tenancy};
use gpu_health::unit::Kept;
use protocol::bounded::List;
use protocol::ids::{BootId, LeaseId};
use protocol::lease::{GpuFault, StopReason};
use protocol::machine::Quantity;
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

/// The offers without the speed that was measured of GPUs that are slowed down now: they do not reach it. Their score
/// is not known then, and they are found by their other figures.
#[must_use]
pub fn as_fast_as_they_are(mut listed: Vec<Listed>, health: &Health) -> Vec<Listed> {
    for Listed { offer, .. } in &mut listed {
        let mut gpus = offer.share.gpus.iter();
        if gpus.any(|gpu| health.is_slowed(&gpu.uuid)) {
            let rest = offer.measures.iter();
            let rest = rest.filter(|measure| !is_speed_of_gpu(measure.quantity));
            offer.measures = List::first(rest.cloned());
        }
    }
    listed
}

const fn is_speed_of_gpu(quantity: Quantity) -> bool {
    match quantity {
        Quantity::Fp32
        | Quantity::Fp64
        | Quantity::Fp16Matrix
        | Quantity::Bf16Matrix
        | Quantity::GpuMemory => true,
        Quantity::HostToDevice
        | Quantity::DeviceToHost
        | Quantity::CpuSingle
        | Quantity::CpuAll
        | Quantity::Ram
        | Quantity::DiskRead
        | Quantity::DiskWrite
        | Quantity::DiskRandomRead
        | Quantity::Download
        | Quantity::Upload
        | Quantity::PcieGeneration
        | Quantity::PcieLanes
        | Quantity::GpuTemperatureMax => false,
    }
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
