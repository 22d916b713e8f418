//! What the agent hears of its GPUs, in the order in which it happened to each.

use crate::event::GpuEvent;
use crate::sample::GpuSample;
use protocol::bounded::Text;
use protocol::units::Timestamp;
use serde::{Deserialize, Serialize};

/// One piece of news. Samples may be left out when the listener is slow; all else is never dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuNews {
    /// How a GPU is.
    Sample(GpuSample),
    /// What happened to one.
    Event(GpuEvent),
    /// A GPU answers, does not answer, or is gone.
    State {
        /// Its UUID.
        gpu: Text<64>,
        /// What it is from now on.
        state: GpuState,
        /// Since when, by the agent's clock.
        at: Timestamp,
    },
    /// Events of this GPU may have been missed: the wait for them broke and began anew. A sample taken
    /// after the break follows at once.
    EventsBroke {
        /// Its UUID.
        gpu: Text<64>,
        /// When, by the agent's clock.
        at: Timestamp,
    },
}

/// Whether a GPU can be spoken with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GpuState {
    /// It answers.
    Ready,
    /// It does not answer, and it is asked again after a while.
    Unknown {
        /// Why.
        reason: String,
    },
    /// It was here and the driver lists it no more.
    Gone,
}
