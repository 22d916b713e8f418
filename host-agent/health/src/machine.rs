//! What fails together: a slice, a GPU, the GPUs that a link joins, those behind one PCIe switch, the host. Every
//! action names the smallest of these; what is not in it goes on.

use crate::log::Slot;
use protocol::bounded::Text;
use protocol::ids::{LeaseId, RenterId};
use protocol::machine::Vendor;
use protocol::offer::ResourceName;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A GPU of the machine, as far as its faults depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its UUID.
    pub gpu: ResourceName,
    /// Who made it.
    pub vendor: Vendor,
    /// Where on the bus.
    pub slot: Slot,
    /// GPUs of one number reach each other over NVLink or XGMI; 0 for one that reaches none.
    pub link_group: u8,
    /// The PCIe switch that it is behind, where one is known.
    pub switch: Option<Text<32>>,
    /// Whether it shares its memory with the processor (GH200 and its like).
    pub coherent: bool,
    /// Highest clock of its multiprocessors in MHz; 0 when not known.
    pub clock_max_mhz: u32,
    /// Its memory in bytes.
    pub memory: u64,
    /// Whether this host can look at it and clean it between two leases.
    pub cleanable: bool,
}

/// A part of the machine that fails as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Domain {
    /// One GPU instance of a GPU.
    Slice(ResourceName, u32),
    /// A GPU with all its slices.
    Gpu(ResourceName),
    /// All that this GPU is linked to, and itself.
    Linked(ResourceName),
    /// All behind the PCIe switch of this GPU, and itself.
    Switch(ResourceName),
    /// All.
    Host,
}

/// The GPUs of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    devices: BTreeMap<ResourceName, Device>,
}

impl Machine {
    /// The machine with these.
    #[must_use]
    pub fn new(devices: impl IntoIterator<Item = Device>) -> Self {
        let devices = devices.into_iter();
        Self {
            devices: devices.map(|device| (device.gpu.clone(), device)).collect(),
        }
    }

    /// Its GPUs.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.values()
    }

    /// One of them.
    #[must_use]
    pub fn device(&self, gpu: &str) -> Option<&Device> {
        self.devices.get(gpu)
    }

    /// The GPU at that place on the bus.
    #[must_use]
    pub fn at(&self, slot: &Slot) -> Option<&Device> {
        self.devices.values().find(|device| device.slot == *slot)
    }

    /// The GPUs of a domain; a slice's is the GPU that it is a part of.
    #[must_use]
    pub fn members(&self, domain: &Domain) -> BTreeSet<ResourceName> {
        let with = |gpu: &ResourceName, is_joined: &dyn Fn(&Device, &Device) -> bool| {
            let Some(this) = self.devices.get(gpu) else {
                return BTreeSet::from([gpu.clone()]);
            };
            let joined = self.devices.values().filter(|other| is_joined(this, other));
            joined
                .map(|other| other.gpu.clone())
                .chain([gpu.clone()])
                .collect()
        };
        match domain {
            Domain::Slice(gpu, _) | Domain::Gpu(gpu) => BTreeSet::from([gpu.clone()]),
            Domain::Linked(gpu) => with(gpu, &|this, other| {
                this.link_group != 0
                    && this.link_group == other.link_group
                    && this.vendor == other.vendor
            }),
            Domain::Switch(gpu) => with(gpu, &|this, other| {
                this.switch.is_some() && this.switch == other.switch
            }),
            Domain::Host => self.devices.keys().cloned().collect(),
        }
    }

    /// What a reset of this GPU touches: the GPUs that it is linked to lose their links, and inside a hive of AMD's
    /// the driver may reset them all.
    #[must_use]
    pub fn reset_domain(&self, gpu: &ResourceName) -> BTreeSet<ResourceName> {
        self.members(&Domain::Linked(gpu.clone()))
    }
}

/// A GPU or slice that a lease has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// What it is called: the GPU's UUID, or the slice's name.
    pub resource: ResourceName,
    /// The GPU, or the one that the slice is a part of.
    pub gpu: ResourceName,
    /// The driver's number of the slice, while it is cut.
    pub instance: Option<u32>,
}

impl Place {
    /// A GPU as a whole.
    #[must_use]
    pub fn whole(gpu: &ResourceName) -> Self {
        Self {
            resource: gpu.clone(),
            gpu: gpu.clone(),
            instance: None,
        }
    }

    /// Whether it is a GPU as a whole.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.resource == self.gpu
    }
}

/// A lease and what it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenancy {
    /// The lease.
    pub lease: LeaseId,
    /// Whose.
    pub renter: RenterId,
    /// Its GPUs, or its slice.
    pub places: Vec<Place>,
}

impl Tenancy {
    /// Its place on that GPU.
    #[must_use]
    pub fn on(&self, gpu: &str) -> Option<&Place> {
        self.places.iter().find(|place| place.gpu.as_str() == gpu)
    }

    /// Whether it has more than one GPU.
    #[must_use]
    pub fn is_together(&self) -> bool {
        let gpus: BTreeSet<&ResourceName> = self.places.iter().map(|place| &place.gpu).collect();
        gpus.len() > 1
    }

    /// Whether something that happened to `gpu`, in the GPU instance that the driver attributes it to, happened to
    /// this lease. What is attributed to none happened to all.
    fn is_struck(&self, gpu: &str, instance: Option<u32>) -> bool {
        self.places
            .iter()
            .filter(|place| place.gpu.as_str() == gpu)
            .any(|place| match instance {
                None => true,
                Some(_) => place.is_whole() || place.instance == instance,
            })
    }
}

/// Who has what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tenants(BTreeMap<LeaseId, Tenancy>);

impl Tenants {
    /// These.
    #[must_use]
    pub fn new(tenancies: impl IntoIterator<Item = Tenancy>) -> Self {
        let tenancies = tenancies.into_iter();
        Self(tenancies.map(|tenancy| (tenancy.lease, tenancy)).collect())
    }

    /// All.
    pub fn all(&self) -> impl Iterator<Item = &Tenancy> {
        self.0.values()
    }

    /// One.
    #[must_use]
    pub fn of(&self, lease: LeaseId) -> Option<&Tenancy> {
        self.0.get(&lease)
    }

    /// Those that something on `gpu` happened to.
    pub fn struck(&self, gpu: &str, instance: Option<u32>) -> impl Iterator<Item = &Tenancy> {
        self.0
            .values()
            .filter(move |tenancy| tenancy.is_struck(gpu, instance))
    }

    /// Those that have any of these GPUs or a slice of one.
    pub fn within<'a>(
        &'a self,
        gpus: &'a BTreeSet<ResourceName>,
    ) -> impl Iterator<Item = &'a Tenancy> {
        self.0
            .values()
            .filter(|tenancy| tenancy.places.iter().any(|place| gpus.contains(&place.gpu)))
    }
}

#[cfg(test)]
mod tests;
