//! What tunnels may know of the leases: a view that the loop publishes and tunnels read. No tunnel waits for
//! the loop, and none reaches into it.

use crate::access::{LeaseAccess, LeaseLookup};
use crate::core::lease::{LeaseRecord, State};
use protocol::ids::LeaseId;
use protocol::lease::StopReason;
use protocol::units::Seconds;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// Killed for memory: 128 and SIGKILL.
const OUT_OF_MEMORY_CODE: i32 = 137;

type Entrances = BTreeMap<LeaseId, LeaseAccess>;

/// The loop's end.
pub(super) struct Doors {
    sender: watch::Sender<Arc<Entrances>>,
}

impl Doors {
    pub(super) fn new() -> Self {
        Self {
            sender: watch::Sender::new(Arc::default()),
        }
    }

    pub(super) fn publish(&self, entrances: Entrances) {
        self.sender.send_replace(Arc::new(entrances));
    }

    /// The tunnels' end.
    pub(super) fn lookup(&self) -> Lookup {
        Lookup {
            entrances: self.sender.subscribe(),
        }
    }
}

/// The tunnels' end.
#[derive(Debug, Clone)]
pub(super) struct Lookup {
    entrances: watch::Receiver<Arc<Entrances>>,
}

impl LeaseLookup for Lookup {
    async fn lease(&self, lease: LeaseId) -> Option<LeaseAccess> {
        let entrances = Arc::clone(&self.entrances.borrow());
        entrances.get(&lease).cloned()
    }
}

/// What a tunnel may know of one lease.
pub(super) fn entrance(
    record: &LeaseRecord,
    saved_logs: PathBuf,
    logs_kept: Seconds,
) -> LeaseAccess {
    let exit_code = match &record.state {
        State::Stopped {
            reason: StopReason::Exited(code),
            ..
        } => Some(*code),
        State::Stopped {
            reason: StopReason::OutOfMemory,
            ..
        } => Some(OUT_OF_MEMORY_CODE),
        State::Stopped {
            reason:
                StopReason::Asked
                | StopReason::ResourceTaken
                | StopReason::DiskFull
                | StopReason::Vacated
                | StopReason::GpuFault(_),
            ..
        }
        | State::Preparing { .. }
        | State::Running { .. }
        | State::Failed { .. }
        | State::Gone { .. } => None,
    };
    LeaseAccess {
        renter: record.renter,
        keys: record.order.access.to_vec(),
        running: matches!(record.state, State::Running { .. }),
        saved_logs,
        exit_code,
        logs_kept,
    }
}
