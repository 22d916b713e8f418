//! What an estimate had to assume because nobody measured it.
//!
//! Nothing is assumed silently: each default that a sum made use of is in its [`Assumptions`].

use std::fmt;

/// One thing that is not known of an offer or a job, and what was taken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assumption {
    /// See [`BOOT_SECONDS`].
    Boot,
    /// See [`NETWORK_BYTES_PER_SECOND`].
    Download,
    /// See [`NETWORK_BYTES_PER_SECOND`].
    Upload,
    /// See [`DISK_BYTES_PER_SECOND`].
    Disk,
    /// See [`UNPACK_BYTES_PER_SECOND`].
    Unpack,
    /// That the host does not have the image yet.
    ImageAbsent,
    /// That the GPU has its data sheet's speed.
    DataSheet,
    /// That numbers of a precision that the GPU does not have, or whose speed is not published, are computed
    /// in the next longer one.
    LongerNumbers,
    /// See [`COMPUTE_EFFICIENCY`].
    ComputeEfficiency,
    /// See [`MEMORY_EFFICIENCY`].
    MemoryEfficiency,
    /// That several GPUs lose nothing by being several.
    Scaling,
    /// See [`HAZARD_PER_HOUR`].
    Hazard,
    /// See [`INTERRUPTIONS_PER_HOUR`].
    Interruptions,
}

/// From the broker's match to the container running, the image aside.
pub const BOOT_SECONDS: f64 = 20.0;
/// 1 Gb/s, each way.
pub const NETWORK_BYTES_PER_SECOND: f64 = 125e6;
/// What a drive of a host reads and writes.
pub const DISK_BYTES_PER_SECOND: f64 = 2e9;
/// How fast the engine unpacks what was pulled, in bytes as pulled.
pub const UNPACK_BYTES_PER_SECOND: f64 = 200e6;
/// End-to-end training reaches this much of the published peak; matrix products alone reach 0.6 to 0.86.
pub const COMPUTE_EFFICIENCY: f64 = 0.45;
/// Decoding reaches 0.6 to 0.7 of the published bandwidth.
pub const MEMORY_EFFICIENCY: f64 = 0.65;
/// What is expected of a host that nobody knows anything of: one failure in 36 hours.
pub const HAZARD_PER_HOUR: f64 = 1.0 / 36.0;
/// Four a day.
pub const INTERRUPTIONS_PER_HOUR: f64 = 4.0 / 24.0;

impl Assumption {
    /// All, in order.
    pub const ALL: [Self; 13] = [
        Self::Boot,
        Self::Download,
        Self::Upload,
        Self::Disk,
        Self::Unpack,
        Self::ImageAbsent,
        Self::DataSheet,
        Self::LongerNumbers,
        Self::ComputeEfficiency,
        Self::MemoryEfficiency,
        Self::Scaling,
        Self::Hazard,
        Self::Interruptions,
    ];

    /// One word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Boot => "boot",
            Self::Download => "download",
            Self::Upload => "upload",
            Self::Disk => "disk",
            Self::Unpack => "unpack",
            Self::ImageAbsent => "image",
            Self::DataSheet => "data_sheet",
            Self::LongerNumbers => "precision",
            Self::ComputeEfficiency => "compute_efficiency",
            Self::MemoryEfficiency => "memory_efficiency",
            Self::Scaling => "scaling",
            Self::Hazard => "hazard",
            Self::Interruptions => "interruptions",
        }
    }

    /// What is assumed, for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Boot => "a container starts in 20 s",
            Self::Download => "downloads run at 1 Gb/s",
            Self::Upload => "uploads run at 1 Gb/s",
            Self::Disk => "the disk reads and writes 2 GB/s",
            Self::Unpack => "an image is unpacked at 200 MB/s",
            Self::ImageAbsent => "the host does not have the image yet",
            Self::DataSheet => "the GPU is as fast as its data sheet says",
            Self::LongerNumbers => {
                "numbers shorter than the GPU is known to have are computed in the next longer ones"
            }
            Self::ComputeEfficiency => "45 % of the GPU's peak is reached",
            Self::MemoryEfficiency => "65 % of the memory's bandwidth is reached",
            Self::Scaling => "several GPUs lose nothing by being several",
            Self::Hazard => "the host fails once in 36 h, like one that nobody knows",
            Self::Interruptions => "an interruptible lease is interrupted 4 times a day",
        }
    }

    /// Its place in a set.
    const fn bit(self) -> u16 {
        match self {
            Self::Boot => 1,
            Self::Download => 1 << 1,
            Self::Upload => 1 << 2,
            Self::Disk => 1 << 3,
            Self::Unpack => 1 << 4,
            Self::ImageAbsent => 1 << 5,
            Self::DataSheet => 1 << 6,
            Self::LongerNumbers => 1 << 7,
            Self::ComputeEfficiency => 1 << 8,
            Self::MemoryEfficiency => 1 << 9,
            Self::Scaling => 1 << 10,
            Self::Hazard => 1 << 11,
            Self::Interruptions => 1 << 12,
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

/// All that one estimate assumed: a set that costs no memory, since a search makes one for every offer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Assumptions(u16);

impl Assumptions {
    /// Whether this was assumed.
    #[must_use]
    pub const fn has(self, one: Assumption) -> bool {
        self.0 & one.bit() != 0
    }

    /// All that was assumed, in order.
    pub fn iter(self) -> impl Iterator<Item = Assumption> {
        Assumption::ALL
            .into_iter()
            .filter(move |one| self.has(*one))
    }

    /// What is in either.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// `known`, or `otherwise` and a note that it was assumed.
    pub(super) fn or(&mut self, known: Option<f64>, one: Assumption, otherwise: f64) -> f64 {
        known.unwrap_or_else(|| {
            self.note(one);
            otherwise
        })
    }

    pub(super) const fn note(&mut self, one: Assumption) {
        self.0 |= one.bit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_assumption_is_one_of_its_own() {
        let mut all = Assumptions::default();
        for one in Assumption::ALL {
            assert!(!all.has(one), "{one:?} shares its place");
            all.note(one);
        }
        assert_eq!(all.iter().collect::<Vec<_>>(), Assumption::ALL);
        let mut words: Vec<_> = Assumption::ALL.map(Assumption::word).to_vec();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Assumption::ALL.len());
    }
}
