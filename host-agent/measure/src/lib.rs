//! How fast a machine's processors, memory and disk are: kernels that are defined here to the last operation, each
//! with a name and a version, and comparable with a tool that everybody can run. It knows no market, no network and
//! no file but the one it measures a disk with.
//!
//! * [`cpu`]: primes found by trial division, as `sysbench cpu` finds them.
//! * [`ram`]: the triad of STREAM.
//! * [`disk`]: blocks that pass the page cache by, as `fio --direct=1` moves them.
//! * [`control`]: how far a measurement is, and how it is told to stop.

pub mod control;
pub mod cpu;
pub mod disk;
pub mod ram;

mod clock;
mod pattern;

use std::path::PathBuf;
use std::time::Duration;

/// What was done, and which version of it: figures of different versions do not compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// A short name, like `prime-10000`; at most 32 bytes.
    pub name: &'static str,
    /// The same in words.
    pub about: &'static str,
    /// Rises whenever the same machine would give another figure.
    pub version: u16,
}

/// So much in such a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Events, bytes or operations.
    pub count: u64,
    /// In how long.
    pub elapsed: Duration,
}

impl Rate {
    /// How many a second, rounded down; 0 in no time at all.
    #[must_use]
    pub fn per_second(&self) -> u64 {
        self.scaled(1)
    }

    /// How many thousandths of one a second, rounded down; 0 in no time at all.
    #[must_use]
    pub fn thousandths_per_second(&self) -> u64 {
        self.scaled(1000)
    }

    fn scaled(&self, by: u128) -> u64 {
        const NANOS: u128 = 1_000_000_000;
        let nanos = self.elapsed.as_nanos();
        (u128::from(self.count) * by * NANOS)
            .checked_div(nanos)
            .map_or(0, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// It was told to stop.
    #[error("stopped before its end")]
    Cancelled,
    /// The file would leave less room than has to stay.
    #[error(
        "{path} has {free} bytes free; the test file needs {needed}, and {reserve} have to stay free"
    )]
    NoSpace {
        /// The folder.
        path: PathBuf,
        /// What is free there.
        free: u64,
        /// What the file needs.
        needed: u64,
        /// What has to stay free beside it.
        reserve: u64,
    },
    /// The folder may not be written in.
    #[error("may not write in {path}")]
    Denied {
        /// The folder.
        path: PathBuf,
    },
    /// The file system cannot pass the page cache by, so that it would be memory that is measured.
    #[error(
        "the file system of {path} has no direct reads and writes, so its disk cannot be measured"
    )]
    NoDirect {
        /// The folder.
        path: PathBuf,
    },
    /// The file failed.
    #[error("could not {doing} in {path}")]
    File {
        /// What was tried.
        doing: &'static str,
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// There is not memory enough to pass the processor's caches by.
    #[error(
        "{free} bytes of memory are free, and {needed} are needed to pass the processor's caches by"
    )]
    NoMemory {
        /// What is free.
        free: u64,
        /// What the arrays take at the least.
        needed: u64,
    },
    /// A thread could not be started.
    #[error("could not start a thread")]
    Thread(#[source] std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_by_the_second_and_rounded_down() {
        let rate = |count, millis| Rate {
            count,
            elapsed: Duration::from_millis(millis),
        };
        assert_eq!(rate(10, 4_000).per_second(), 2);
        assert_eq!(rate(10, 4_000).thousandths_per_second(), 2_500);
        assert_eq!(rate(3, 2_000).thousandths_per_second(), 1_500);
        assert_eq!(rate(7, 0).per_second(), 0);
        // More than 2^64 / 10^9: a product of 64 bits would wrap.
        assert_eq!(rate(1 << 50, 1_000).per_second(), 1 << 50);
    }
}
