//! The fields that offers are searched and sorted by: Vast's names where it has one, our own beside them,
//! each with its unit; and the names that people will try and that nobody can answer yet.
//!
//! Must not hold values: what an offer has in a field is `evaluate`'s to say.

use super::distance;
use super::table::{FIELDS, NOT_KNOWN};
use serde::{Deserialize, Serialize};

/// A field that an offer can be searched and sorted by. New ones join at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "the table below says what each means, for people too"
)]
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
    MinBid,
    DiscountMax,
    DurationMin,
    EndDate,
    Notice,
    Reliability,
    Partition,
    Isolation,
    Verified,
    Verification,
    Score,
    ScorePerDollar,
    TotalFlops,
    TotalFlopsHalf,
    FlopsPerDollar,
    GpuMemoryBandwidth,
    PcieBandwidth,
    LinkBandwidth,
    Linked,
    Ecc,
    DisplayActive,
    Instructions,
    CpuGhz,
    NumaNodes,
    Mainboard,
    DiskName,
    DiskBandwidth,
    UploadSpeed,
    DownloadSpeed,
    TotalFlopsDouble,
    GpuMaxTemperature,
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
    /// A kind of slice like `3g.40gb`, `none` for whole GPUs, `any` for both.
    Profile,
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
            Self::Flag
            | Self::Choice(_)
            | Self::Profile
            | Self::Model
            | Self::Words
            | Self::Id(_) => false,
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
    /// Gigahertz, to the megahertz.
    Gigahertz,
    /// Gigabytes of 10⁹ bytes a second, to the thousandth.
    GigabytesPerSecond,
    /// Megabytes of 10⁶ bytes a second.
    MegabytesPerSecond,
    /// Megabits a second, to the thousandth.
    Megabits,
    /// 10¹² operations a second (or for a dollar an hour), to the thousandth.
    Teraflops,
    /// Degrees Celsius.
    Degrees,
    /// The score of an RTX 3090 is 100 (or for a dollar an hour), to the hundredth.
    Score,
}

impl Unit {
    /// How many base units make one.
    #[must_use]
    pub const fn scale(self) -> u64 {
        match self {
            Self::Count | Self::Seconds | Self::MegabytesPerSecond | Self::Degrees => 1,
            Self::Score => 100,
            Self::Cores
            | Self::SoldGigabytes
            | Self::Watts
            | Self::Gigahertz
            | Self::GigabytesPerSecond
            | Self::Megabits
            | Self::Teraflops => 1000,
            Self::Dollars | Self::Ratio => 1_000_000,
            Self::Gigabytes => 1_000_000_000,
            Self::Days => 86_400,
        }
    }

    /// What may stand behind a number, with how many base units it stands for.
    pub(super) const fn suffixes(self) -> &'static [(&'static str, u64)] {
        const GIB: u64 = 1 << 30;
        match self {
            Self::Count | Self::Cores | Self::Dollars | Self::Score => &[],
            Self::Degrees => &[("c", 1), ("°c", 1)],
            Self::Gigahertz => &[("ghz", 1000), ("mhz", 1)],
            Self::GigabytesPerSecond => &[("gb", 1000), ("gbs", 1000), ("mb", 1), ("mbs", 1)],
            Self::MegabytesPerSecond => &[("mb", 1), ("mbs", 1), ("gb", 1000), ("gbs", 1000)],
            Self::Megabits => &[("mbps", 1000), ("gbps", 1_000_000), ("kbps", 1)],
            Self::Teraflops => &[("tflops", 1000), ("gflops", 1)],
            Self::SoldGigabytes => &[("gb", 1000), ("g", 1000), ("gib", 1000), ("mb", 1)],
            Self::Gigabytes => &[
                ("gb", 1_000_000_000),
                ("g", 1_000_000_000),
                ("tb", 1_000_000_000_000),
                ("mb", 1_000_000),
                ("gib", GIB),
                ("b", 1),
            ],
            Self::Days => &[
                ("d", 86_400),
                ("h", 3600),
                ("m", 60),
                ("s", 1),
                ("w", 604_800),
            ],
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
    if let Some(known) = NOT_KNOWN
        .iter()
        .find(|known| known.names.contains(&lower.as_str()))
    {
        return Err(Unfound::NotKnown(known));
    }
    let names = FIELDS
        .iter()
        .flat_map(|info| std::iter::once(&info.name).chain(info.aliases));
    Err(Unfound::Unknown(distance::nearest(name, names.copied())))
}

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
        let known = FIELDS
            .iter()
            .flat_map(|info| std::iter::once(&info.name).chain(info.aliases));
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
            assert!(
                !matches!(found, Err(Unfound::Unknown(_))),
                "{name}: {found:?}"
            );
        }
        for alias in [
            "dph_total",
            "cuda_max_good",
            "dlperf_per_dphtotal",
            "flops_per_dphtotal",
        ] {
            assert!(
                !matches!(find_field(alias), Err(Unfound::Unknown(_))),
                "{alias}"
            );
        }
    }

    #[test]
    fn what_is_suggested_instead_exists() {
        for known in &NOT_KNOWN {
            assert!(
                known.instead.is_none_or(|name| find_field(name).is_ok()),
                "{:?}",
                known.names
            );
        }
    }

    #[test]
    fn a_typo_finds_the_field_that_was_meant() {
        assert_eq!(
            find_field("dph_totl"),
            Err(Unfound::Unknown(Some("dph_total")))
        );
        assert_eq!(find_field("GPU"), Ok(Field::GpuName));
        assert_eq!(find_field("flavour"), Err(Unfound::Unknown(None)));
    }
}
