//! NVIDIA GPUs, as the driver's management library reports them. The library runs code of the driver's and
//! may hang or crash with it, so each GPU is asked by a process of its own that is killed when it does not
//! answer: this program again, as [`process::SUBCOMMAND`].
//!
//! * [`Supervisor`]: all of them; `overseer`: its task. `unit`: one of them. [`process`]: its process. [`reset`]: a reset. [`scrub`]: a scrub.
//!   `known`: what is known, in the words of the market. `divided`: how GPUs are divided, in those of the agent's rules.

pub(super) mod divided;
mod known;
mod overseer;
pub mod process;
pub mod reset;
pub mod scrub;
mod supervisor;
mod unit;

pub use process::{CallError, Launch};
pub use supervisor::Supervisor;

use host_nvml::news::GpuState;
use protocol::machine::Gpu;
use std::time::Duration;

/// How long the library may take for an answer: a healthy driver answers in a fraction of it.
pub const DEADLINE: Duration = Duration::from_secs(2);
/// How long it may take to change how a GPU is divided: Ampere resets the GPU for it.
pub const MIG_DEADLINE: Duration = Duration::from_secs(30);

/// How often GPUs are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Each is sampled.
    pub sample: Duration,
    /// They are counted.
    pub count: Duration,
    /// One that did not answer is asked again: at first, and twice as long each time.
    pub pause: Duration,
    /// And at most.
    pub pause_max: Duration,
}

impl Default for Timing {
    /// A fault is known within a sample and a deadline: less than five seconds.
    fn default() -> Self {
        Self {
            sample: Duration::from_secs(2),
            count: Duration::from_secs(10),
            pause: Duration::from_secs(1),
            pause_max: Duration::from_secs(60),
        }
    }
}

/// The machine's NVIDIA GPUs, or why there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nvidia {
    /// The driver answers.
    Ready {
        /// Driver version.
        driver: String,
        /// The GPUs that answer, in the order of the bus; may be none.
        gpus: Vec<Gpu>,
        /// GPUs that answered before and do not now, or are gone.
        troubled: Vec<Troubled>,
        /// GPUs that the driver counts and that never said which they are.
        unreadable: u32,
    },
    /// The library is not installed: a machine without NVIDIA software.
    LibraryMissing {
        /// What the loader said.
        detail: String,
    },
    /// The library is there and the driver is not loaded, or not yet.
    DriverNotLoaded,
    /// The library answered with an error.
    Failed {
        /// Which.
        detail: String,
    },
    /// The library did not answer within [`DEADLINE`].
    Hangs,
}

/// A GPU that cannot be leased now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Troubled {
    /// As it was last seen.
    pub gpu: Gpu,
    /// Why.
    pub state: GpuState,
}

impl Nvidia {
    /// The GPUs that can be leased.
    #[must_use]
    pub fn gpus(&self) -> &[Gpu] {
        match self {
            Self::Ready { gpus, .. } => gpus,
            Self::LibraryMissing { .. }
            | Self::DriverNotLoaded
            | Self::Failed { .. }
            | Self::Hangs => &[],
        }
    }
}
