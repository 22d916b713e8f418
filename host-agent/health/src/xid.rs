//! NVIDIA's numbers of errors ("Xid"), and what each does to leases and to the GPU: data, and how to look it up.
//! Meanings are those of NVIDIA's catalogue of Xid errors. Where the driver itself says what is to be done with a
//! GPU, that goes before what is written here: see `crate::verdict`.

mod table;

pub use table::ROWS;

use crate::unit::Until;
use protocol::lease::FaultClass;

/// What a fault does to the leases of the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLease {
    /// They go on.
    GoesOn,
    /// These end.
    Ends(Reach),
}

/// How far a fault reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The lease of the slice that it is attributed to; every lease of the GPU where it is attributed to none.
    Struck,
    /// Every lease of the GPU, whatever it is attributed to.
    Gpu,
    /// Those of them that have more than one GPU: what links GPUs failed, and no GPU did.
    Together,
}

/// What a fault does to the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnGpu {
    /// Nothing.
    Nothing,
    /// It is sold on, and reset as soon as nobody has it.
    ResetWhenIdle,
    /// It gets no new lease until this was done.
    Waits(Until),
}

/// What happens when it is not the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The same again.
    Same,
    /// So many within an hour, and the GPU gets no new lease until this was done.
    WithinAnHour(usize, Until),
    /// Under two different leases within a day: it is not the program. One renter alone cannot bring it about.
    AcrossLeases(Until),
    /// A second time within a day.
    WithinADay(Until),
    /// A second time within a day, and so for the GPUs linked to it that had it too.
    Pair(Until),
    /// A second time within a day, on a GPU that shares its memory with the processor.
    IfCoherent,
    /// Only the second within a day is what the row says; the first is noted.
    FirstIsNoted,
}

/// What is special about a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// Nothing.
    No,
    /// Another error, or our own kill, made it happen: it is noted with that, and counts for nothing.
    Collateral,
    /// What follows it within moments says what it is.
    Followed,
    /// The driver changed its verdict: read it, and obey.
    Verdict,
    /// Fatal or not stands in the log line, right after the number.
    Severity,
    /// People are told.
    Alarm(&'static str),
    /// People are told where GPUs that are linked have different leases.
    AlarmIfShared(&'static str),
}

/// One row: what these numbers mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Ranges of numbers, first and last.
    pub xids: &'static [(u32, u32)],
    /// In words.
    pub meaning: &'static str,
    /// What it can be put down to, likeliest first; nothing where it is a message and no error.
    pub classes: &'static [FaultClass],
    /// What it does to leases.
    pub lease: OnLease,
    /// What it does to the GPU.
    pub gpu: OnGpu,
    /// What happens when it repeats.
    pub repeat: Repeat,
    /// What else.
    pub special: Special,
}

/// The row of a number; nothing for one that is not known.
#[must_use]
pub fn row(xid: u32) -> Option<&'static Row> {
    let has = |row: &&Row| {
        row.xids
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&xid))
    };
    ROWS.iter().find(has)
}

impl Row {
    /// What an end is put down to: the likeliest.
    #[must_use]
    pub fn class(&self) -> FaultClass {
        self.classes.first().copied().unwrap_or(FaultClass::Driver)
    }
}

#[cfg(test)]
mod tests;
