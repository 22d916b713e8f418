//! The fields that offers are searched and sorted by: Vast's names where it has one, our own beside them,
//! each with its unit; and the names that people will try and that nobody can answer yet.
//!
//! Must not hold values: what an offer has in a field is `evaluate`'s to say.

use super::distance;
use serde::{Deserialize, Serialize};

/// A field that an offer can be searched and sorted by. New ones join at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table below says what each means, for people too")]
pub enum Field {
    GpuName,
    NumGpus,
    GpuRam,
    GpuTotalRam,
    GpuFrac,
    GpuArch,
    GpuMaxPower,
    ComputeCap,
    CudaVersion,
    DriverVersion,
    PciGeneration,
    PciLanes,
    DphTotal,
    DphBase,
    StorageCost,
    UploadCost,
    DownloadCost,
    DiskSpace,
    DiskEnforced,
    CpuName,
    CpuCores,
    CpuCoresEffective,
    CpuRam,
    CpuArch,
    HasAvx,
    SharedMemory,
    Duration,
    StartWithin,
    Network,
    Os,
    UbuntuVersion,
    Kernel,
    Engine,
    Runtime,
    Id,
    HostId,
    Rentable,
    Rented,
}

/// What kind of values a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A decimal number of this unit.
    Number(Unit),
    /// `true` or `false`.
    Flag,
    /// Up to four numbers with points between.
    Version,
    /// CUDA's compute capability: `8.9`, or Vast's `890`.
    Capability,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A GPU's name: see [`super::ModelName`].
    Model,
    /// Words that occur in a row.
    Words,
    /// A prefix of an id: four characters or more.
    Id(&'static str),
}

impl Kind {
    /// Whether `<` and its like mean something.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        match self {
            Self::Number(_) | Self::Version | Self::Capability => true,
            Self::Flag | Self::Choice(_) | Self::Model | Self::Words | Self::Id(_) => false,
        }
    }
}

/// What a field's numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// CPUs, to the thousandth.
    Cores,
    /// US dollars, to the millionth.
    Dollars,
    /// Gigabytes of GPU memory as sold, to the thousandth: see [`super::gigabytes_as_sold`].
    SoldGigabytes,
    /// Gigabytes of 10⁹ bytes, to the byte.
    Gigabytes,
    /// Days, to the second.
    Days,
    /// Seconds.
    Seconds,
    /// Watts, to the thousandth.
    Watts,
    /// A part of one, to the millionth.
    Ratio,
}

impl Unit {
    /// How many base units make one.
    #[must_use]
    pub const fn scale(self) -> u64 {
        match self {
            Self::Count | Self::Seconds => 1,
            Self::Cores | Self::SoldGigabytes | Self::Watts => 1000,
            Self::Dollars | Self::Ratio => 1_000_000,
            Self::Gigabytes => 1_000_000_000,
            Self::Days => 86_400,
        }
    }

    /// What may stand behind a number, with how many base units it stands for.
    pub(super) const fn suffixes(self) -> &'static [(&'static str, u64)] {
        const GIB: u64 = 1 << 30;
        match self {
            Self::Count | Self::Cores | Self::Dollars => &[],
            Self::SoldGigabytes => &[("gb", 1000), ("g", 1000), ("gib", 1000), ("mb", 1)],
            Self::Gigabytes => &[
                ("gb", 1_000_000_000),
                ("g", 1_000_000_000),
                ("tb", 1_000_000_000_000),
                ("mb", 1_000_000),
                ("gib", GIB),
                ("b", 1),
            ],
            Self::Days => &[("d", 86_400), ("h", 3600), ("m", 60), ("s", 1), ("w", 604_800)],
            Self::Seconds => &[("s", 1), ("m", 60), ("h", 3600)],
            Self::Watts => &[("w", 1000), ("kw", 1_000_000)],
            Self::Ratio => &[("%", 10_000)],
        }
    }
}

/// What is to know of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldInfo {
    /// The field.
    pub field: Field,
    /// Its name, Vast's where Vast has it.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What kind of values it has.
    pub kind: Kind,
    /// The unit that its values are written in.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// A name that other markets know and that no offer here can answer yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotKnown {
    /// Its names.
    pub names: &'static [&'static str],
    /// Why it is not known.
    pub why: &'static str,
    /// What to write instead, if something comes near.
    pub instead: Option<&'static str>,
}

impl Field {
    /// What is to know of it.
    #[must_use]
    pub fn info(self) -> &'static FieldInfo {
        // The table is in the order of the enum; a test holds it to that.
        &FIELDS[self as usize]
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().name
    }
}

/// All fields, in the order in which a list of them reads well.
#[must_use]
pub const fn fields() -> &'static [FieldInfo] {
    &FIELDS
}

/// Why no field has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfound {
    /// It is known elsewhere, and not here.
    NotKnown(&'static NotKnown),
    /// Nobody knows it; perhaps this was meant.
    Unknown(Option<&'static str>),
}

/// The field called `name`, by its own name or another, in any case.
///
/// # Errors
/// Why there is none.
pub fn find_field(name: &str) -> Result<Field, Unfound> {
    let lower = name.to_ascii_lowercase().replace('-', "_");
    let called = |info: &&FieldInfo| info.name == lower || info.aliases.contains(&lower.as_str());
    if let Some(info) = FIELDS.iter().find(called) {
        return Ok(info.field);
    }
    if let Some(known) = NOT_KNOWN.iter().find(|known| known.names.contains(&lower.as_str())) {
        return Err(Unfound::NotKnown(known));
    }
    let names = FIELDS.iter().flat_map(|info| std::iter::once(&info.name).chain(info.aliases));
    Err(Unfound::Unknown(distance::nearest(name, names.copied())))
}

const fn entry(
    field: Field,
    names: (&'static str, &'static [&'static str]),
    kind: Kind,
    (unit, meaning): (&'static str, &'static str),
) -> FieldInfo {
    FieldInfo { field, name: names.0, aliases: names.1, kind, unit, meaning }
}

const COUNT: Kind = Kind::Number(Unit::Count);
const DOLLARS: Kind = Kind::Number(Unit::Dollars);
const GIGABYTES: Kind = Kind::Number(Unit::Gigabytes);
const SOLD: Kind = Kind::Number(Unit::SoldGigabytes);
const MAKERS: Kind = Kind::Choice(&["nvidia", "amd", "intel", "none"]);
const NETWORKS: Kind = Kind::Choice(&["none", "bridge"]);
const ARCHITECTURES: Kind = Kind::Choice(&["amd64", "arm64", "other"]);

#[rustfmt::skip]
static FIELDS: [FieldInfo; 38] = [
    entry(Field::GpuName, ("gpu_name", &["gpu"]), Kind::Model, ("name", "model of the GPUs, like RTX_4090; none on a CPU machine")),
    entry(Field::NumGpus, ("num_gpus", &["gpus"]), COUNT, ("GPUs", "GPUs of the offer")),
    entry(Field::GpuRam, ("gpu_ram", &["vram"]), SOLD, ("GB as sold", "memory of each GPU: 24 for a card sold with 24 GB, whatever its driver reports")),
    entry(Field::GpuTotalRam, ("gpu_total_ram", &["total_vram"]), SOLD, ("GB as sold", "memory of all GPUs of the offer")),
    entry(Field::GpuFrac, ("gpu_frac", &[]), Kind::Number(Unit::Ratio), ("0 to 1", "GPUs of the offer, of those in the machine")),
    entry(Field::GpuArch, ("gpu_arch", &["gpu_vendor"]), MAKERS, ("nvidia, amd, intel, none", "who made the GPUs")),
    entry(Field::GpuMaxPower, ("gpu_max_power", &["gpu_power"]), Kind::Number(Unit::Watts), ("W", "power limit of each GPU")),
    entry(Field::ComputeCap, ("compute_cap", &[]), Kind::Capability, ("8.9 or 890", "CUDA compute capability")),
    entry(Field::CudaVersion, ("cuda_max_good", &["cuda_vers", "cuda"]), Kind::Version, ("version", "highest CUDA that the driver supports")),
    entry(Field::DriverVersion, ("driver_version", &["driver", "driver_vers"]), Kind::Version, ("version", "version of the GPU driver")),
    entry(Field::PciGeneration, ("pci_gen", &["pcie_gen"]), COUNT, ("generation", "PCIe generation of card and slot")),
    entry(Field::PciLanes, ("gpu_lanes", &["pcie_lanes"]), COUNT, ("lanes", "PCIe lanes of each GPU")),
    entry(Field::DphTotal, ("dph_total", &["dph", "price"]), DOLLARS, ("$/h", "all-in price of an hour, with the disk that is asked for")),
    entry(Field::DphBase, ("dph_base", &["compute_price"]), DOLLARS, ("$/h", "price of an hour without disk")),
    entry(Field::StorageCost, ("storage_cost", &["disk_price"]), DOLLARS, ("$/GB/month", "price of disk")),
    entry(Field::UploadCost, ("inet_up_cost", &["upload_price"]), DOLLARS, ("$/GB", "price of traffic that leaves the container")),
    entry(Field::DownloadCost, ("inet_down_cost", &["download_price"]), DOLLARS, ("$/GB", "price of traffic that reaches the container")),
    entry(Field::DiskSpace, ("disk_space", &["disk"]), GIGABYTES, ("GB", "largest disk that a lease may have")),
    entry(Field::DiskEnforced, ("disk_enforced", &[]), Kind::Flag, ("true, false", "whether a quota keeps each lease to its disk")),
    entry(Field::CpuName, ("cpu_name", &["cpu"]), Kind::Words, ("words", "words of the CPU's model name, like EPYC_7713")),
    entry(Field::CpuCores, ("cpu_cores", &[]), COUNT, ("CPUs", "logical CPUs of the whole machine")),
    entry(Field::CpuCoresEffective, ("cpu_cores_effective", &["cpus", "vcpus"]), Kind::Number(Unit::Cores), ("CPUs", "CPUs of the offer")),
    entry(Field::CpuRam, ("cpu_ram", &["ram", "memory"]), GIGABYTES, ("GB", "system memory of the offer")),
    entry(Field::CpuArch, ("cpu_arch", &["arch"]), ARCHITECTURES, ("amd64, arm64", "architecture of the CPU")),
    entry(Field::HasAvx, ("has_avx", &["avx"]), Kind::Flag, ("true, false", "whether the CPU has AVX")),
    entry(Field::SharedMemory, ("shared_memory", &["shm"]), GIGABYTES, ("GB", "size of /dev/shm")),
    entry(Field::Duration, ("duration", &["max_duration"]), Kind::Number(Unit::Days), ("days", "longest lease that the host allows (3, 12h, 30m)")),
    entry(Field::StartWithin, ("start_within", &[]), Kind::Number(Unit::Seconds), ("seconds", "time in which the host promises that a lease runs")),
    entry(Field::Network, ("network", &[]), NETWORKS, ("none, bridge", "network of the container; none is reached through Feira's tunnel only")),
    entry(Field::Os, ("os", &["os_name", "system"]), Kind::Words, ("words", "words of the host's operating system, like Debian")),
    entry(Field::UbuntuVersion, ("ubuntu_version", &["os_version"]), Kind::Version, ("version", "version of the host's Ubuntu; unknown on other systems (os finds those)")),
    entry(Field::Kernel, ("kernel", &[]), Kind::Version, ("version", "version of the host's kernel")),
    entry(Field::Engine, ("engine", &["docker_version", "docker"]), Kind::Version, ("version", "version of the host's Docker engine")),
    entry(Field::Runtime, ("runtime", &[]), Kind::Words, ("words", "words of the container runtime's name, like runc")),
    entry(Field::Id, ("id", &["offer", "offer_id"]), Kind::Id("o-"), ("id", "id of the offer, or its first characters")),
    entry(Field::HostId, ("host_id", &["host", "machine_id"]), Kind::Id("h-"), ("id", "id of the host (one machine each), or its first characters")),
    entry(Field::Rentable, ("rentable", &[]), Kind::Flag, ("true, false", "true for every offer that is shown: taken ones are not")),
    entry(Field::Rented, ("rented", &[]), Kind::Flag, ("true, false", "false for every offer that is shown: `feira ls` lists what you rent")),
];

const fn not_known(
    names: &'static [&'static str],
    why: &'static str,
    instead: Option<&'static str>,
) -> NotKnown {
    NotKnown { names, why, instead }
}

const UNMEASURED: &str = "hosts do not measure it yet";
const UNSCORED: &str = "nobody measures performance yet";
const UNTRACKED: &str = "brokers do not compute it yet";

#[rustfmt::skip]
static NOT_KNOWN: [NotKnown; 26] = [
    not_known(&["reliability", "reliability2", "rel", "expected_reliability"], UNTRACKED, None),
    not_known(&["score"], UNTRACKED, Some("price")),
    not_known(&["verified", "verification"], "no broker verifies hosts yet", None),
    not_known(&["datacenter", "hosting_type"], "no broker verifies hosts yet", None),
    not_known(&["external"], "all offers are of this market", None),
    not_known(&["dlperf"], UNSCORED, Some("gpu_name")),
    not_known(&["dlperf_usd", "dlperf_per_dphtotal", "perf_usd", "perf/usd"], UNSCORED, Some("price")),
    not_known(&["total_flops"], UNSCORED, Some("gpu_name")),
    not_known(&["flops_usd", "flops_per_dphtotal"], UNSCORED, Some("price")),
    not_known(&["inet_up"], UNMEASURED, Some("inet_up_cost")),
    not_known(&["inet_down"], UNMEASURED, Some("inet_down_cost")),
    not_known(&["disk_bw"], UNMEASURED, Some("disk_space")),
    not_known(&["pcie_bw"], UNMEASURED, Some("pci_gen")),
    not_known(&["gpu_mem_bw"], UNMEASURED, Some("gpu_name")),
    not_known(&["bw_nvlink", "nvlink"], UNMEASURED, Some("gpu_name")),
    not_known(&["cpu_ghz"], UNMEASURED, Some("cpu_name")),
    not_known(&["gpu_max_temp"], UNMEASURED, Some("gpu_max_power")),
    not_known(&["gpu_display_active", "display_active"], UNMEASURED, None),
    not_known(&["mobo_name"], UNMEASURED, Some("cpu_name")),
    not_known(&["disk_name"], UNMEASURED, Some("disk_space")),
    not_known(&["geolocation", "geolocode", "region", "country"], "offers do not say where a host is yet", None),
    not_known(&["direct_port_count", "static_ip", "public_ipaddr"], "ports are reached through Feira's tunnel, whatever the host's address", Some("network")),
    not_known(&["cluster_id"], "there are no clusters yet", None),
    not_known(&["min_bid", "is_bid"], "all offers are on demand for now", Some("price")),
    not_known(&["vms_enabled"], "leases are containers", Some("runtime")),
    not_known(&["logo", "webpage", "gpu_ids", "hostname", "rn", "vericode"], "offers do not carry it", Some("host_id")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, info) in FIELDS.iter().enumerate() {
            assert_eq!(info.field as usize, index, "{}", info.name);
        }
    }

    #[test]
    fn no_name_is_used_twice() {
        let mut seen = BTreeSet::new();
        let known = FIELDS.iter().flat_map(|info| std::iter::once(&info.name).chain(info.aliases));
        for name in known.chain(NOT_KNOWN.iter().flat_map(|known| known.names)) {
            assert!(seen.insert(*name), "{name}");
        }
    }

    /// The 53 names that Vast's own client accepts, from its `query.py`.
    const VAST: &str = "bw_nvlink cluster_id compute_cap cpu_arch cpu_cores cpu_cores_effective cpu_ghz \
        cpu_ram cuda_vers datacenter direct_port_count disk_bw disk_space dlperf dlperf_usd dph \
        driver_version duration external flops_usd geolocation gpu_arch gpu_display_active gpu_frac \
        gpu_max_power gpu_max_temp gpu_mem_bw gpu_name gpu_ram gpu_total_ram has_avx host_id id \
        inet_down inet_down_cost inet_up inet_up_cost machine_id min_bid mobo_name num_gpus pci_gen \
        pcie_bw reliability rentable rented static_ip storage_cost total_flops ubuntu_version \
        verification verified vms_enabled";

    #[test]
    fn every_name_of_vast_is_a_field_or_says_why_not() {
        assert_eq!(VAST.split_whitespace().count(), 53);
        for name in VAST.split_whitespace() {
            let found = find_field(name);
            assert!(!matches!(found, Err(Unfound::Unknown(_))), "{name}: {found:?}");
        }
        for alias in ["dph_total", "cuda_max_good", "dlperf_per_dphtotal", "flops_per_dphtotal"] {
            assert!(!matches!(find_field(alias), Err(Unfound::Unknown(_))), "{alias}");
        }
    }

    #[test]
    fn what_is_suggested_instead_exists() {
        for known in &NOT_KNOWN {
            assert!(known.instead.is_none_or(|name| find_field(name).is_ok()), "{:?}", known.names);
        }
    }

    #[test]
    fn a_typo_finds_the_field_that_was_meant() {
        assert_eq!(find_field("dph_totl"), Err(Unfound::Unknown(Some("dph_total"))));
        assert_eq!(find_field("GPU"), Ok(Field::GpuName));
        assert_eq!(find_field("flavour"), Err(Unfound::Unknown(None)));
    }
}
