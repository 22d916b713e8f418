//! What is known of each device by proof: the last verdict, and a fault since then. And which renters of the
//! broker's own have its money.
//!
//! Changes by events and in no other way.

use crate::core::event::{Event, Fact, Kept, Move};
use crate::core::lease::{Lease, State};
use protocol::bounded::Text;
use protocol::ids::{HostId, OrderId, RenterId};
use protocol::lease::{EndCause, RefusalReason};
use protocol::offer::{ResourceName, parent};
use protocol::units::{Seconds, Timestamp};
use protocol::verify::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A device of which there was no verdict for so long is forgotten.
const KEPT: Seconds = Seconds(90 * 24 * 3600);

/// What is known of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The last verdict on it.
    pub verdict: Kept<Verdict>,
    /// The first fault that its host reported since then.
    pub fault: Option<(Timestamp, Text<128>)>,
}

/// What is known by proofs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proofs {
    devices: BTreeMap<(HostId, ResourceName), Standing>,
    funded: BTreeMap<OrderId, RenterId>,
}

/// What a device is known by: a GPU and a machine by its own name, a slice by its GPU and its profile. Which place
/// on the GPU a slice has is of no account.
#[must_use]
pub fn device(resource: &str) -> ResourceName {
    Text::cut(
        resource
            .split_once('@')
            .map_or(resource, |(slice, _)| slice),
    )
}

impl Proofs {
    /// What is known of a device.
    #[must_use]
    pub fn get(&self, host: HostId, device: &str) -> Option<&Standing> {
        self.devices.get(&(host, Text::cut(device)))
    }

    /// The devices of a host of which anything is known.
    pub fn of_host(&self, host: HostId) -> impl Iterator<Item = (&ResourceName, &Standing)> {
        let from = (host, ResourceName::default());
        let known = self.devices.range(from..);
        known
            .take_while(move |((of, _), _)| *of == host)
            .map(|((_, device), standing)| (device, standing))
    }

    /// All devices of which anything is known.
    pub fn iter(&self) -> impl Iterator<Item = &Standing> {
        self.devices.values()
    }

    /// The orders that the broker gave money for, and has not taken it back.
    pub fn funded(&self) -> impl Iterator<Item = (OrderId, RenterId)> {
        self.funded.iter().map(|(order, renter)| (*order, *renter))
    }

    /// The renter that the broker gave money for this order.
    #[must_use]
    pub fn renter(&self, order: OrderId) -> Option<RenterId> {
        self.funded.get(&order).copied()
    }

    /// How many records it takes in a snapshot.
    #[must_use]
    pub fn size(&self) -> usize {
        self.devices.len() + self.funded.len()
    }

    /// Takes up a device from a snapshot.
    pub fn restore(&mut self, standing: Standing) {
        let verdict = standing.verdict.body();
        self.devices
            .insert((verdict.host, device(&verdict.device)), standing);
    }

    /// Takes up a renter with the broker's money from a snapshot.
    pub fn restore_funded(&mut self, order: OrderId, renter: RenterId) {
        self.funded.insert(order, renter);
    }

    /// Notes what `event` says of devices. `lease` is the lease that it is about, as it was before.
    pub fn note(&mut self, event: &Event, lease: Option<&Lease>) {
        match &event.fact {
            Fact::Funded { order, renter, .. } => {
                self.funded.insert(*order, *renter);
            }
            Fact::Reclaimed { order, .. } => {
                self.funded.remove(order);
            }
            Fact::Proved(verdict) => self.prove(verdict, event.at),
            Fact::Moved(moved) => {
                if let (Some(lease), Some(fault)) = (lease, fault_of(moved)) {
                    self.fault(lease, &fault, event.at);
                }
            }
            Fact::Deposited { .. }
            | Fact::Matched(_)
            | Fact::Granted { .. }
            | Fact::Metered(_)
            | Fact::Held { .. }
            | Fact::Warned { .. }
            | Fact::Commanded(_)
            | Fact::Rested(_)
            | Fact::Lapsed { .. }
            | Fact::Cleared { .. }
            | Fact::RestRebid { .. }
            | Fact::Changed(_)
            | Fact::Paid { .. }
            | Fact::Matured { .. }
            | Fact::Suspended { .. }
            | Fact::Heard(_)
            | Fact::Away(_) => {}
        }
    }

    fn prove(&mut self, verdict: &Kept<Verdict>, at: Timestamp) {
        let oldest = at.before(KEPT.millis());
        self.devices
            .retain(|_, standing| standing.verdict.body().at > oldest);
        self.restore(Standing {
            verdict: verdict.clone(),
            fault: None,
        });
    }

    fn fault(&mut self, lease: &Lease, fault: &Faulty, at: Timestamp) {
        let contract = &lease.contract;
        let named = fault.resource.iter();
        let all = contract
            .share
            .resources
            .iter()
            .filter(|_| fault.resource.is_none());
        for resource in named.chain(all) {
            let of_gpu = parent(resource);
            for ((host, device), standing) in &mut self.devices {
                if *host == contract.host && parent_of_device(device) == of_gpu {
                    let fault = || (at, fault.detail.clone());
                    standing.fault.get_or_insert_with(fault);
                }
            }
        }
    }
}

/// The GPU of a device: what stands before the profile of a slice.
fn parent_of_device(device: &str) -> &str {
    device.split_once('/').map_or(device, |(gpu, _)| gpu)
}

/// A fault of hardware that a host reported.
struct Faulty {
    /// Of which resource; of all that the lease has when it was not said.
    resource: Option<ResourceName>,
    detail: Text<128>,
}

/// What a step says of a fault that is put down to the host's hardware.
fn fault_of(moved: &Move) -> Option<Faulty> {
    if let Some(fault) = moved.to.host_fault() {
        return Some(Faulty {
            resource: Some(fault.resource.clone()),
            detail: Text::cut(&fault.in_words()),
        });
    }
    let State::Closed {
        cause: EndCause::Refused(RefusalReason::GpuUnfit(detail)),
    } = &moved.to
    else {
        return None;
    };
    Some(Faulty {
        resource: None,
        detail: Text::cut(detail),
    })
}

/// Whether a step says that a host's hardware failed.
pub(super) fn is_fault(moved: &Move) -> bool {
    fault_of(moved).is_some()
}
