//! Processors and memory, from `/proc/cpuinfo`, `/proc/meminfo`, and the kernel's files about clocks and nodes.

use super::pci::{names, number, text};
use protocol::units::Bytes;
use std::path::Path;

/// The machine's processors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processor {
    /// Model name.
    pub model: String,
    /// Logical CPUs.
    pub cores: u16,
    /// Whether it has AVX.
    pub has_avx: bool,
    /// Highest clock of a core in MHz: what [`clock_max`] finds, else the fastest one now. 0 when unknown.
    pub mhz: u32,
}

/// The processors that the text of `/proc/cpuinfo` lists; none when it lists none.
#[must_use]
pub fn parse_cpuinfo(text: &str) -> Option<Processor> {
    let cores = text
        .lines()
        .filter(|line| key(line) == Some("processor"))
        .count();
    let cores = u16::try_from(cores).unwrap_or(u16::MAX);
    if cores == 0 {
        return None;
    }
    // Arm's kernel gives numbers for a name; what implements the part is better than nothing.
    let model = value(text, "model name")
        .or_else(|| value(text, "Hardware"))
        .or_else(|| value(text, "CPU implementer"))
        .unwrap_or("unknown")
        .to_owned();
    let has_avx =
        value(text, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "avx"));
    Some(Processor {
        model,
        cores,
        has_avx,
        mhz: fastest_now(text),
    })
}

/// The clock of the core that is the fastest now, in MHz: machines that are made up for guests show no other.
fn fastest_now(cpuinfo: &str) -> u32 {
    let clocks = cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(key, _)| key.trim() == "cpu MHz")
        .filter_map(|(_, value)| value.trim().split('.').next()?.parse().ok());
    clocks.max().unwrap_or(0)
}

/// The highest clock that a core may reach, boost and all, in MHz, by the files under `root`, which is `/sys`; nothing
/// where the kernel does not scale clocks.
#[must_use]
pub fn clock_max(root: &Path) -> Option<u32> {
    let cpus = root.join("devices/system/cpu");
    let is_cpu = |name: &String| {
        name.strip_prefix("cpu")
            .is_some_and(|rest| rest.parse::<u32>().is_ok())
    };
    let kilohertz = names(&cpus)
        .filter(is_cpu)
        .filter_map(|cpu| number(&cpus.join(cpu).join("cpufreq/cpuinfo_max_freq")))
        .max()?;
    u32::try_from(kilohertz / 1000).ok().filter(|mhz| *mhz > 0)
}

/// NUMA nodes that are in use, by the files under `root`, which is `/sys`; 1 where there is no such thing.
#[must_use]
pub fn numa_nodes(root: &Path) -> u8 {
    let nodes = root.join("devices/system/node");
    let online = text(&nodes.join("online"));
    let count = online.map_or(0, |list| in_list(&list));
    u8::try_from(count).unwrap_or(u8::MAX).max(1)
}

/// How many numbers are in one of the kernel's lists, like `0-3,8`; 0 when it is none.
fn in_list(list: &str) -> u32 {
    let one = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    let mut counts = list.split(',').map(one);
    counts
        .try_fold(0_u32, |sum, count| sum.checked_add(count?))
        .unwrap_or(0)
}

/// `MemTotal` of the text of `/proc/meminfo`.
#[must_use]
pub fn parse_meminfo(text: &str) -> Option<Bytes> {
    let kibibytes: u64 = value(text, "MemTotal")?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    Some(Bytes(kibibytes.checked_mul(1024)?))
}

fn key(line: &str) -> Option<&str> {
    line.split_once(':').map(|(key, _)| key.trim())
}

fn value<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == wanted)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::super::pci::tree;
    use super::*;

    #[test]
    fn cpuinfo_is_read() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nflags\t\t: fpu sse avx avx2\n\n\
                    processor\t: 1\nmodel name\t: AMD EPYC 7B13\nflags\t\t: fpu sse avx avx2\n";
        let processor = parse_cpuinfo(text).unwrap();
        assert_eq!(processor.model, "AMD EPYC 7B13");
        assert_eq!((processor.cores, processor.has_avx), (2, true));
    }

    #[test]
    fn a_flag_that_only_begins_like_avx_is_not_avx() {
        let text = "processor : 0\nflags : avx512f\n";
        assert!(!parse_cpuinfo(text).unwrap().has_avx);
        assert_eq!(parse_cpuinfo("nothing"), None);
    }

    #[test]
    fn the_highest_clock_is_the_kernels_or_the_fastest_now() {
        let text = "processor : 0\ncpu MHz\t\t: 2445.406\n\nprocessor : 1\ncpu MHz\t\t: 3012.998\n";
        assert_eq!(parse_cpuinfo(text).unwrap().mhz, 3012);
        // Arm's kernel says nothing here.
        assert_eq!(parse_cpuinfo("processor : 0\n").unwrap().mhz, 0);
        let root = tempfile::TempDir::new().unwrap();
        assert_eq!(clock_max(root.path()), None);
        tree::plant(
            &root.path().join("devices/system/cpu"),
            &[
                ("cpu0/cpufreq/cpuinfo_max_freq", "3675000\n"),
                ("cpu1/cpufreq/cpuinfo_max_freq", "3725290\n"),
                // A folder of something else.
                ("cpufreq/cpuinfo_max_freq", "9999999\n"),
            ],
        );
        assert_eq!(clock_max(root.path()), Some(3725));
    }

    #[test]
    fn nodes_are_counted_in_the_kernels_list() {
        let root = tempfile::TempDir::new().unwrap();
        assert_eq!(numa_nodes(root.path()), 1);
        for (list, wanted) in [
            ("0\n", 1),
            ("0-1\n", 2),
            ("0-3,8\n", 5),
            ("many\n", 1),
            ("3-0\n", 1),
        ] {
            tree::plant(root.path(), &[("devices/system/node/online", list)]);
            assert_eq!(numa_nodes(root.path()), wanted, "{list}");
        }
    }

    #[test]
    fn meminfo_is_in_kibibytes() {
        let text = "MemTotal:       16384000 kB\nMemFree:          812 kB\n";
        assert_eq!(parse_meminfo(text), Some(Bytes(16_777_216_000)));
        assert_eq!(parse_meminfo("MemTotal: many"), None);
    }

    #[test]
    fn this_machine_is_read_as_the_kernel_shows_it() {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let processor = parse_cpuinfo(&text).unwrap();
        let online = std::fs::read_to_string("/proc/stat").unwrap();
        let counted = online
            .lines()
            .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "))
            .count();
        assert_eq!(usize::from(processor.cores), counted);
        let sys = Path::new("/sys");
        assert!(numa_nodes(sys) >= 1);
        if std::env::consts::ARCH == "x86_64" {
            assert!(clock_max(sys).unwrap_or(processor.mhz) > 100);
        }
    }
}
