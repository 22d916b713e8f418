//! The record of one lease on this host, and the states its container goes through.
//!
//! ```text
//!    goal: order, award and offer check out; resources taken under new epochs, in one commit
//!      │
//!      ▼
//!  Preparing ──────────── the engine started it ──────────▶ Running
//!   ▲  │  │                                                  │  │
//!   │  │  └─ could not be started ─▶ Failed ─┐   it ended, or │  │
//!   │  └──── asked to stop ─────▶ Stopped ◀──│── was stopped ─┘  │
//!   │                               │        │                  │
//!   └─ resumed: resources free, new epochs ──┘                  │
//!                                   │                           │
//!      asked to end, or the container vanished, from any state ─┴─▶ Gone
//! ```
//!
//! A container that is given notice stays `Running` until it ends or the notice is over. Only `Preparing` and
//! `Running` hold resources. `Gone` is kept as long as the logs are.

use crate::core::capacity::{Held, Holdings};
use crate::core::meter::{Meter, Moment};
use crate::core::notice::Notice;
use crate::core::traffic::Traffic;
use protocol::ids::{BrokerId, Digest, LeaseId, RenterId};
use protocol::lease::{Award, Problem, StopReason, Want};
use protocol::machine::ContainerNetwork;
use protocol::offer::Share;
use protocol::order::Order;
use protocol::signed::Signed;
use protocol::terms::{ContractKind, Limits};
use protocol::units::{Millis, Seconds, Timestamp};
use serde::{Deserialize, Serialize};

/// How much longer than its order says a lease may run while its broker says nothing.
pub const OVERTIME: Seconds = Seconds(60);

/// All that this host knows of one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRecord {
    /// The lease.
    pub lease: LeaseId,
    /// Whose match it is.
    pub broker: BrokerId,
    /// Whose job it is.
    pub renter: RenterId,
    /// The renter's signed order, as it came.
    pub signed_order: Signed<Order>,
    /// What the order says.
    pub order: Order,
    /// The broker's signed match, as it came last.
    pub award: Signed<Award>,
    /// What kind of contract that says it is.
    pub kind: ContractKind,
    /// The part of the machine that was sold.
    pub share: Share,
    /// The limits of that offer.
    pub limits: Limits,
    /// What network its container gets.
    pub network: ContainerNetwork,
    /// When the lease was taken.
    pub taken_at: Timestamp,
    /// What its broker wants of it, last heard. `End` stays.
    pub want: Want,
    /// The notice that its container has, if it has to go.
    pub notice: Option<Notice>,
    /// Where it stands.
    pub state: State,
    /// How long it ran.
    pub meter: Meter,
    /// What crossed its container's network.
    pub traffic: Traffic,
    /// The last report's number.
    pub sequence: u64,
}

/// Where a lease stands on its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// The image is pulled, the container made and started.
    Preparing {
        /// For which run.
        run: u32,
        /// What it holds.
        held: Holdings,
        /// When the container was last started, in an earlier run: one that was started later than this
        /// and has ended is not started twice.
        started_before: Option<Timestamp>,
    },
    /// The container runs.
    Running {
        /// Which run.
        run: u32,
        /// What it holds.
        held: Holdings,
        /// When the engine started it.
        started_at: Timestamp,
    },
    /// The container does not run; its disk is kept.
    Stopped {
        /// Which run ended.
        run: u32,
        /// Why.
        reason: StopReason,
        /// When the container was last started; none when it never was.
        started_before: Option<Timestamp>,
    },
    /// It could not be started.
    Failed {
        /// In which run.
        run: u32,
        /// Why.
        problem: Problem,
        /// When the container was last started; none when it never was.
        started_before: Option<Timestamp>,
    },
    /// The container and its disk are gone.
    Gone {
        /// The last run.
        run: u32,
        /// Since when.
        at: Timestamp,
    },
}

impl State {
    /// The run that this state is of.
    #[must_use]
    pub const fn run(&self) -> u32 {
        match self {
            Self::Preparing { run, .. }
            | Self::Running { run, .. }
            | Self::Stopped { run, .. }
            | Self::Failed { run, .. }
            | Self::Gone { run, .. } => *run,
        }
    }

    /// What the lease holds in this state.
    #[must_use]
    pub fn held(&self) -> &[Held] {
        match self {
            Self::Preparing { held, .. } | Self::Running { held, .. } => held,
            Self::Stopped { .. } | Self::Failed { .. } | Self::Gone { .. } => &[],
        }
    }

    /// When the container was last started, as far as this state knows.
    #[must_use]
    pub const fn started_before(&self) -> Option<Timestamp> {
        match self {
            Self::Running { started_at, .. } => Some(*started_at),
            Self::Preparing { started_before, .. }
            | Self::Stopped { started_before, .. }
            | Self::Failed { started_before, .. } => *started_before,
            Self::Gone { .. } => None,
        }
    }

    /// The state in one word, for people and for the journal's own column.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Preparing { .. } => "preparing",
            Self::Running { .. } => "running",
            Self::Stopped { .. } => "stopped",
            Self::Failed { .. } => "failed",
            Self::Gone { .. } => "gone",
        }
    }
}

impl LeaseRecord {
    /// Digest of the renter's signed order.
    #[must_use]
    pub fn order_digest(&self) -> Digest {
        self.signed_order.digest()
    }

    /// Whether the lease ran longer than its order allows and [`OVERTIME`] besides. Its broker ends it
    /// before that; the host does when the broker cannot be heard.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        let longest = match self.kind {
            // As long as was paid for, whatever was ordered first.
            ContractKind::Reserved => None,
            ContractKind::OnDemand | ContractKind::Bid | ContractKind::Interruptible => {
                self.order.duration_max.or(self.limits.duration_max)
            }
        };
        longest.is_some_and(|longest| {
            let allowed = longest.millis().plus(OVERTIME.millis());
            self.meter.running() >= allowed
        })
    }

    /// The notice that it has after this wish: it begins when it is first heard, and one that is withdrawn stays
    /// until the container knows.
    pub(crate) fn notice_after(&self, want: Want, now: Moment) -> Option<Notice> {
        let run = match self.state {
            State::Preparing { run, .. } | State::Running { run, .. } => run,
            State::Stopped { .. } | State::Failed { .. } | State::Gone { .. } => return None,
        };
        match (want, self.want) {
            (Want::Vacate(vacate), _) if vacate.run > run => None,
            (Want::Vacate(_), Want::Vacate(_)) if self.notice.is_some() => self.notice,
            (Want::Vacate(vacate), _) => Some(Notice::heard(vacate.outbid, now)),
            (Want::Run(_) | Want::Stop | Want::End, _) => self.notice,
        }
    }

    /// The same lease in another state.
    #[must_use]
    pub(crate) fn in_state(&self, state: State) -> Self {
        Self {
            state,
            ..self.clone()
        }
    }

    /// The same lease when its run `run` ended by `reason`.
    pub(crate) fn stopped(&self, reason: StopReason) -> Self {
        let stopped = self.in_state(State::Stopped {
            run: self.state.run(),
            reason,
            started_before: self.state.started_before(),
        });
        Self {
            notice: None,
            ..stopped
        }
    }

    /// The same lease when a later run of it did not begin.
    pub(crate) fn not_resumed(&self, run: u32, reason: StopReason) -> Self {
        self.in_state(State::Stopped {
            run,
            reason,
            started_before: self.state.started_before(),
        })
    }

    /// The same lease when its container and disk are gone.
    pub(crate) fn gone(&self, now: Moment) -> Self {
        self.in_state(State::Gone {
            run: self.state.run(),
            at: now.wall,
        })
    }

    /// How long it ran.
    #[must_use]
    pub const fn running(&self) -> Millis {
        self.meter.running()
    }
}
