//! Processors and memory, from `/proc/cpuinfo` and `/proc/meminfo`.

use protocol::units::Bytes;

/// The machine's processors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processor {
    /// Model name.
    pub model: String,
    /// Logical CPUs.
    pub cores: u16,
    /// Whether it has AVX.
    pub has_avx: bool,
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
    })
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
    }
}
