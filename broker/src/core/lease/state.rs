//! Where a lease stands, and what that means for everybody.
//!
//! Must not say what may follow what: that is decided where events are.

use crate::core::meter::Counting;
use protocol::lease::{EndCause, GpuFault, Party, PauseCause, Phase};
use protocol::units::Timestamp;
use serde::{Deserialize, Serialize};

/// Where a lease stands, with the facts that are true there alone.
///
/// ```text
///   Clearing ─▶ Offered: those in its way have gone
///
///            host grants      host prepares      host runs it
///   Offered ────────────▶ Accepted ────────▶ Preparing ────────▶ Running ◀──────▶ Suspect
///      │ refused,             │ not in time,     │ ▲  │  exited,      │  silence,      │ silent
///      │ not in time          │ failed           │ │  │  resume       │  heard again   │ for longer
///      │                      │                  │ │  ▼  failed       │ stopped,       │
///      │                      │           resume │ └─ Paused ◀────────┘ exited,        │
///      │                      │                  │      │ expired       no money       │
///      ▼                      ▼                  ▼      ▼                              ▼
///    Closed ◀── gone, or given up ───────────── Closing ◀── ended, budget, duration   Closed
/// ```
///
/// An interruptible lease that has to go is `Noticed` between `Running` and `Paused`. "Gone" from the host closes every state but `Offered`'s refusal paths with what was billed to there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It has its resources as soon as those who are there have gone.
    Clearing {
        /// By then at the latest.
        until: Timestamp,
    },
    /// Matched; the host has not answered.
    Offered {
        /// After this, the host lost it.
        accept_by: Timestamp,
        /// After this, if it was accepted, the host lost it.
        start_by: Timestamp,
    },
    /// The host signed the grant.
    Accepted {
        /// After this, the host lost it.
        start_by: Timestamp,
    },
    /// The host prepares the run.
    Preparing {
        /// After this, a first run is lost, a later one goes back to `Paused`.
        start_by: Timestamp,
    },
    /// The container runs.
    Running,
    /// The container runs, and was told to go.
    Noticed {
        /// Why.
        cause: PauseCause,
        /// When it is stopped.
        by: Timestamp,
    },
    /// The host is not heard.
    Suspect {
        /// After this, the lease is lost.
        lost_at: Timestamp,
    },
    /// The container does not run, its disk is kept.
    Paused {
        /// Why.
        cause: PauseCause,
        /// After this, the disk is deleted.
        disk_until: Timestamp,
    },
    /// Ended; the host has still to say that the container is gone and what its last meter was.
    Closing {
        /// Why.
        cause: EndCause,
        /// After this, the host is not waited for.
        give_up_at: Timestamp,
        /// Whether the container may still run, so that it has its resources until it is gone.
        may_run: bool,
    },
    /// Over.
    Closed {
        /// Why.
        cause: EndCause,
    },
}

impl State {
    /// Whether only a container that started gets into this state.
    #[must_use]
    pub const fn has_run(&self) -> bool {
        match self {
            Self::Running | Self::Noticed { .. } => true,
            Self::Paused { cause, .. } => matches!(
                cause,
                PauseCause::Exited(_)
                    | PauseCause::OutOfMemory
                    | PauseCause::DiskFull
                    | PauseCause::GpuFault(_)
            ),
            Self::Clearing { .. }
            | Self::Offered { .. }
            | Self::Accepted { .. }
            | Self::Preparing { .. }
            | Self::Suspect { .. }
            | Self::Closing { .. }
            | Self::Closed { .. } => false,
        }
    }

    /// The fault that a lease is stopped for, where it is put down to the host: its hardware, its driver, a link.
    #[must_use]
    pub fn host_fault(&self) -> Option<&GpuFault> {
        match self {
            Self::Paused {
                cause: PauseCause::GpuFault(fault),
                ..
            } => Some(fault).filter(|fault| fault.class.party() == Party::Host),
            Self::Clearing { .. }
            | Self::Offered { .. }
            | Self::Accepted { .. }
            | Self::Preparing { .. }
            | Self::Running
            | Self::Noticed { .. }
            | Self::Suspect { .. }
            | Self::Paused { .. }
            | Self::Closing { .. }
            | Self::Closed { .. } => None,
        }
    }

    /// The phase that everybody sees.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self {
            Self::Clearing { until } => Phase::Clearing(*until),
            Self::Offered { .. } => Phase::Offered,
            Self::Accepted { .. } => Phase::Accepted,
            Self::Preparing { .. } => Phase::Preparing,
            Self::Running => Phase::Running,
            Self::Noticed { cause, by } => Phase::Noticed(cause.clone(), *by),
            Self::Suspect { .. } => Phase::Suspect,
            Self::Paused { cause, .. } => Phase::Paused(cause.clone()),
            Self::Closing { cause, .. } => Phase::Closing(cause.clone()),
            Self::Closed { cause } => Phase::Closed(cause.clone()),
        }
    }

    /// The phase in one word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Clearing { .. } => "clearing",
            Self::Offered { .. } => "offered",
            Self::Accepted { .. } => "accepted",
            Self::Preparing { .. } => "preparing",
            Self::Running => "running",
            Self::Noticed { .. } => "noticed",
            Self::Suspect { .. } => "unreachable",
            Self::Paused { .. } => "stopped",
            Self::Closing { .. } => "closing",
            Self::Closed { .. } => "ended",
        }
    }

    /// What is billed here.
    #[must_use]
    pub const fn counting(&self) -> Counting {
        match self {
            Self::Running | Self::Noticed { .. } => Counting::Running,
            Self::Paused { .. } => Counting::Storage,
            Self::Clearing { .. }
            | Self::Offered { .. }
            | Self::Accepted { .. }
            | Self::Preparing { .. }
            | Self::Suspect { .. }
            | Self::Closing { .. }
            | Self::Closed { .. } => Counting::Nothing,
        }
    }

    /// Whether the container may run here, so that nobody else can have its resources.
    #[must_use]
    pub const fn holds_resources(&self) -> bool {
        !matches!(
            self,
            Self::Clearing { .. }
                | Self::Paused { .. }
                | Self::Closing { may_run: false, .. }
                | Self::Closed { .. }
        )
    }

    /// Whether the renter can still do something with it.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self, Self::Closing { .. } | Self::Closed { .. })
    }

    /// Whether the host is on its way to running it.
    #[must_use]
    pub const fn is_starting(&self) -> bool {
        matches!(
            self,
            Self::Clearing { .. }
                | Self::Offered { .. }
                | Self::Accepted { .. }
                | Self::Preparing { .. }
        )
    }

    /// Whether nothing of it is left anywhere.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }
}
