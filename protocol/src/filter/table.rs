//! The table of fields, and of the names that cannot be answered yet. Data alone.

use super::field::{Field, FieldInfo, Kind, NotKnown, Unit};

const fn entry(
    field: Field,
    names: (&'static str, &'static [&'static str]),
    kind: Kind,
    (unit, meaning): (&'static str, &'static str),
) -> FieldInfo {
    FieldInfo {
        field,
        name: names.0,
        aliases: names.1,
        kind,
        unit,
        meaning,
    }
}

const COUNT: Kind = Kind::Number(Unit::Count);
const DOLLARS: Kind = Kind::Number(Unit::Dollars);
const GIGABYTES: Kind = Kind::Number(Unit::Gigabytes);
const SOLD: Kind = Kind::Number(Unit::SoldGigabytes);
const MAKERS: Kind = Kind::Choice(&["nvidia", "amd", "intel", "none"]);
const NETWORKS: Kind = Kind::Choice(&["none", "bridge"]);
const ARCHITECTURES: Kind = Kind::Choice(&["amd64", "arm64", "other"]);

#[rustfmt::skip]
pub(super) static FIELDS: [FieldInfo; 44] = [
    entry(Field::GpuName, ("gpu_name", &["gpu"]), Kind::Model, ("name", "model of the GPUs, like RTX_4090; none on a CPU machine")),
    entry(Field::NumGpus, ("num_gpus", &["gpus"]), COUNT, ("GPUs", "GPUs of the offer")),
    entry(Field::GpuRam, ("gpu_ram", &["vram"]), SOLD, ("GB as sold", "memory of each GPU, 24 for a card sold with 24 GB")),
    entry(Field::GpuTotalRam, ("gpu_total_ram", &["total_vram"]), SOLD, ("GB as sold", "memory of all GPUs of the offer")),
    entry(Field::GpuFrac, ("gpu_frac", &[]), Kind::Number(Unit::Ratio), ("0 to 1", "GPUs of the offer, of those in the machine")),
    entry(Field::GpuArch, ("gpu_arch", &["gpu_vendor"]), MAKERS, ("word", "who made the GPUs: nvidia, amd, intel; none on a CPU machine")),
    entry(Field::GpuMaxPower, ("gpu_max_power", &["gpu_power"]), Kind::Number(Unit::Watts), ("W", "power limit of each GPU")),
    entry(Field::ComputeCap, ("compute_cap", &[]), Kind::Capability, ("8.9 or 890", "CUDA compute capability")),
    entry(Field::CudaVersion, ("cuda_max_good", &["cuda_vers", "cuda"]), Kind::Version, ("version", "highest CUDA that the driver supports")),
    entry(Field::DriverVersion, ("driver_version", &["driver", "driver_vers"]), Kind::Version, ("version", "version of the GPU driver")),
    entry(Field::PciGeneration, ("pci_gen", &["pcie_gen"]), COUNT, ("generation", "PCIe generation of card and slot")),
    entry(Field::PciLanes, ("gpu_lanes", &["pcie_lanes"]), COUNT, ("lanes", "PCIe lanes of each GPU")),
    entry(Field::DphTotal, ("dph_total", &["dph", "price"]), DOLLARS, ("$/h", "price of an hour all in, with the asked disk")),
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
    entry(Field::CpuArch, ("cpu_arch", &["arch"]), ARCHITECTURES, ("word", "architecture of the CPU: amd64, arm64")),
    entry(Field::HasAvx, ("has_avx", &["avx"]), Kind::Flag, ("true, false", "whether the CPU has AVX")),
    entry(Field::SharedMemory, ("shared_memory", &["shm"]), GIGABYTES, ("GB", "size of /dev/shm")),
    entry(Field::Duration, ("duration", &["max_duration"]), Kind::Number(Unit::Days), ("days", "longest lease that the host allows (3, 12h, 30m)")),
    entry(Field::StartWithin, ("start_within", &[]), Kind::Number(Unit::Seconds), ("seconds", "time in which the host promises that a lease runs")),
    entry(Field::Network, ("network", &[]), NETWORKS, ("word", "network of the container: bridge, or none beside Feira's tunnel")),
    entry(Field::Os, ("os", &["os_name", "system"]), Kind::Words, ("words", "words of the host's operating system, like Debian")),
    entry(Field::UbuntuVersion, ("ubuntu_version", &["os_version"]), Kind::Version, ("version", "version of the host's Ubuntu; for other systems see os")),
    entry(Field::Kernel, ("kernel", &[]), Kind::Version, ("version", "version of the host's kernel")),
    entry(Field::Engine, ("engine", &["docker_version", "docker"]), Kind::Version, ("version", "version of the host's Docker engine")),
    entry(Field::Runtime, ("runtime", &[]), Kind::Words, ("words", "words of the container runtime's name, like runc")),
    entry(Field::Id, ("id", &["offer", "offer_id"]), Kind::Id("o-"), ("id", "id of the offer, or its first characters")),
    entry(Field::HostId, ("host_id", &["host", "machine_id"]), Kind::Id("h-"), ("id", "id of the host, or its first characters")),
    entry(Field::Rentable, ("rentable", &[]), Kind::Flag, ("true, false", "true for every offer that is shown: taken ones are not")),
    entry(Field::Rented, ("rented", &[]), Kind::Flag, ("true, false", "false for every offer that is shown")),
    entry(Field::MinBid, ("min_bid", &["floor"]), DOLLARS, ("$/h", "lowest interruptible bid for a GPU and hour; unknown where nothing is sold so")),
    entry(Field::DiscountMax, ("discount_max", &["max_discount"]), Kind::Number(Unit::Ratio), ("0 to 1", "largest discount of a prepaid term; unknown where none is sold")),
    entry(Field::DurationMin, ("duration_min", &["min_duration"]), Kind::Number(Unit::Days), ("days", "shortest lease that the host takes")),
    entry(Field::EndDate, ("end_date", &["until"]), Kind::Number(Unit::Seconds), ("seconds since 1970", "until when the host promises to be there")),
    entry(Field::Notice, ("notice", &["grace"]), Kind::Number(Unit::Seconds), ("seconds", "notice that an interruptible lease gets before it is stopped")),
    entry(Field::Reliability, ("reliability", &["rel", "reliability2", "expected_reliability"]), Kind::Number(Unit::Ratio), ("0 to 1", "how likely a lease here is to run in time and for a day, by the host's record; 0.48 of a new host")),
];

const fn not_known(
    names: &'static [&'static str],
    why: &'static str,
    instead: Option<&'static str>,
) -> NotKnown {
    NotKnown {
        names,
        why,
        instead,
    }
}

const UNMEASURED: &str = "hosts do not measure it yet";
const UNSCORED: &str = "nobody measures performance yet";
const UNTRACKED: &str = "brokers do not compute it yet";

#[rustfmt::skip]
pub(super) static NOT_KNOWN: [NotKnown; 25] = [
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
    not_known(&["is_bid"], "the kind of contract is chosen beside the filter (--kind)", Some("min_bid")),
    not_known(&["vms_enabled"], "leases are containers", Some("runtime")),
    not_known(&["logo", "webpage", "gpu_ids", "hostname", "rn", "vericode"], "offers do not carry it", Some("host_id")),
];
