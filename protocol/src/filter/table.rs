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
const ISOLATIONS: Kind = Kind::Choice(&["whole", "hardware", "shared"]);
const LEVELS: Kind = Kind::Choice(&["unverified", "verified", "deverified"]);
const TERAFLOPS: Kind = Kind::Number(Unit::Teraflops);
const SCORE: Kind = Kind::Number(Unit::Score);
const GIGABYTES_A_SECOND: Kind = Kind::Number(Unit::GigabytesPerSecond);
const MEGABITS: Kind = Kind::Number(Unit::Megabits);
const ARCHITECTURES: Kind = Kind::Choice(&["amd64", "arm64", "other"]);

#[rustfmt::skip]
pub(super) static FIELDS: [FieldInfo; 69] = [
    entry(Field::GpuName, ("gpu_name", &["gpu"]), Kind::Model, ("name", "model of the GPUs, like RTX_4090; none on a CPU machine")),
    entry(Field::NumGpus, ("num_gpus", &["gpus"]), COUNT, ("GPUs", "GPUs of the offer")),
    entry(Field::GpuRam, ("gpu_ram", &["vram"]), SOLD, ("GB as sold", "memory of each GPU, 24 for a card sold with 24 GB")),
    entry(Field::GpuTotalRam, ("gpu_total_ram", &["total_vram"]), SOLD, ("GB as sold", "memory of all GPUs of the offer")),
    entry(Field::GpuFrac, ("gpu_frac", &[]), Kind::Number(Unit::Ratio), ("0 to 1", "GPUs of the offer, of those in the machine")),
    entry(Field::GpuArch, ("gpu_arch", &["gpu_vendor", "vendor"]), MAKERS, ("word", "who made the GPUs: nvidia, amd, intel; none on a CPU machine")),
    entry(Field::GpuMaxPower, ("gpu_max_power", &["gpu_power"]), Kind::Number(Unit::Watts), ("W", "power limit of each GPU")),
    entry(Field::ComputeCap, ("compute_cap", &[]), Kind::Capability, ("8.9 or 890", "CUDA compute capability")),
    entry(Field::CudaVersion, ("cuda_max_good", &["cuda_vers", "cuda"]), Kind::Version, ("version", "highest CUDA that the driver supports")),
    entry(Field::DriverVersion, ("driver_version", &["driver", "driver_vers"]), Kind::Version, ("version", "version of the GPU driver")),
    entry(Field::PciGeneration, ("pci_gen", &["pcie_gen"]), COUNT, ("generation", "PCIe generation of each GPU: under load where it was measured, else of card and slot")),
    entry(Field::PciLanes, ("gpu_lanes", &["pcie_lanes"]), COUNT, ("lanes", "PCIe lanes of each GPU: under load where it was measured, else of card and slot")),
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
    entry(Field::Partition, ("partition", &["slice", "mig_profile"]), Kind::Profile, ("profile", "kind of slice, like 3g.40gb; none for whole GPUs, which is meant where it is not named; any for both")),
    entry(Field::Isolation, ("isolation", &[]), ISOLATIONS, ("word", "what keeps it from others on its GPU: whole (nobody else is there), hardware, shared")),
    entry(Field::Verified, ("verified", &[]), Kind::Flag, ("true, false", "whether the broker has proof of the hardware")),
    entry(Field::Verification, ("verification", &[]), LEVELS, ("word", "verified, deverified (proof failed, or not as it was proved), unverified")),
    entry(Field::Score, ("score", &["perf"]), SCORE, ("points", "speed of all GPUs as measured: mean of FP16 and memory bandwidth, 100 for an RTX 3090's data sheet")),
    entry(Field::ScorePerDollar, ("score_per_dollar", &["score_usd", "perf_usd", "perf/usd"]), SCORE, ("points per $/h", "the score for each dollar an hour without disk")),
    entry(Field::TotalFlops, ("total_flops", &["fp32"]), TERAFLOPS, ("TFLOP/s", "FP32 of all GPUs, measured")),
    entry(Field::TotalFlopsHalf, ("total_flops_fp16", &["fp16", "tensor_flops"]), TERAFLOPS, ("TFLOP/s", "FP16 (else BF16) of all GPUs' matrix units, summed in FP32, measured")),
    entry(Field::FlopsPerDollar, ("flops_usd", &["flops_per_dphtotal"]), TERAFLOPS, ("TFLOP/s per $/h", "total_flops for each dollar an hour without disk")),
    entry(Field::GpuMemoryBandwidth, ("gpu_mem_bw", &[]), GIGABYTES_A_SECOND, ("GB/s", "bandwidth of each GPU's memory, measured")),
    entry(Field::PcieBandwidth, ("pcie_bw", &[]), GIGABYTES_A_SECOND, ("GB/s", "from the machine's memory to a GPU's, measured")),
    entry(Field::LinkBandwidth, ("bw_nvlink", &["nvlink"]), GIGABYTES_A_SECOND, ("GB/s", "between its GPUs past PCIe, both ways, by data sheet; 0 where not all are linked")),
    entry(Field::Linked, ("linked", &["link_group"]), Kind::Flag, ("true, false", "whether its GPUs are all linked past PCIe (NVLink, XGMI)")),
    entry(Field::Ecc, ("ecc", &[]), Kind::Flag, ("true, false", "whether the GPUs' memory corrects errors; unknown where it cannot")),
    entry(Field::DisplayActive, ("gpu_display_active", &["display_active"]), Kind::Flag, ("true, false", "whether a display is driven by one of the GPUs")),
    entry(Field::Instructions, ("gpu_isa", &["gfx", "isa"]), Kind::Words, ("word", "instruction set of the GPUs, like gfx942 or sm_90")),
    entry(Field::CpuGhz, ("cpu_ghz", &[]), Kind::Number(Unit::Gigahertz), ("GHz", "highest clock of a core")),
    entry(Field::NumaNodes, ("numa", &["numa_nodes"]), COUNT, ("nodes", "NUMA nodes of the machine")),
    entry(Field::Mainboard, ("mobo_name", &["mainboard"]), Kind::Words, ("words", "words of the mainboard's name")),
    entry(Field::DiskName, ("disk_name", &[]), Kind::Words, ("words", "words of the disk's model")),
    entry(Field::DiskBandwidth, ("disk_bw", &[]), Kind::Number(Unit::MegabytesPerSecond), ("MB/s", "reading the disk in order, measured")),
    entry(Field::UploadSpeed, ("inet_up", &[]), MEGABITS, ("Mbit/s", "from the machine to a broker, measured")),
    entry(Field::DownloadSpeed, ("inet_down", &[]), MEGABITS, ("Mbit/s", "from a broker to the machine, measured")),
    entry(Field::TotalFlopsDouble, ("total_flops_fp64", &["fp64"]), TERAFLOPS, ("TFLOP/s", "FP64 of all GPUs, measured")),
    entry(Field::GpuMaxTemperature, ("gpu_max_temp", &["gpu_temp_max"]), Kind::Number(Unit::Degrees), ("°C", "temperature at which each GPU slows itself down, by its driver")),
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

#[rustfmt::skip]
pub(super) static NOT_KNOWN: [NotKnown; 11] = [
    not_known(&["dlperf"], "it is a score of another market, whose method is not published", Some("score")),
    not_known(&["dlperf_usd", "dlperf_per_dphtotal"], "it is a score of another market, whose method is not published", Some("score_per_dollar")),
    not_known(&["datacenter", "hosting_type"], "no broker looks at buildings and papers", Some("verified")),
    not_known(&["external"], "all offers are of this market", None),
    not_known(&["geolocation", "geolocode", "region", "country"], "offers do not say where a host is yet", None),
    not_known(&["direct_port_count", "static_ip", "public_ipaddr"], "ports are reached through Feira's tunnel, whatever the host's address", Some("network")),
    not_known(&["cluster_id"], "there are no clusters yet", None),
    not_known(&["is_bid"], "the kind of contract is chosen beside the filter (--kind)", Some("min_bid")),
    not_known(&["vms_enabled"], "leases are containers", Some("runtime")),
    not_known(&["logo", "webpage", "gpu_ids", "hostname", "rn"], "offers do not carry it", Some("host_id")),
    not_known(&["vericode"], "a broker signs verdicts, and says the level", Some("verification")),
];
