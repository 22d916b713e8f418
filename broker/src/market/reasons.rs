//! Why leases end, stop and fail, in words from closed lists: what the log says and metrics are labelled with.

use protocol::lease::{EndCause, PauseCause, Problem, ProblemKind, RefusalReason, Stage};

/// Why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    /// One word from a closed list.
    pub(super) code: &'static str,
    /// During which stage of the lease, when it is a failure.
    pub(super) failed_in: Option<&'static str>,
    /// What somebody said about it.
    pub(super) detail: Option<String>,
}

impl Reason {
    const fn plain(code: &'static str) -> Self {
        Self {
            code,
            failed_in: None,
            detail: None,
        }
    }

    const fn failure(stage: &'static str, code: &'static str) -> Self {
        Self {
            code,
            failed_in: Some(stage),
            detail: None,
        }
    }

    fn saying(self, detail: &str) -> Self {
        Self {
            detail: Some(detail.to_owned()),
            ..self
        }
    }
}

/// Why a lease ends.
pub(super) fn of_end(cause: &EndCause) -> Reason {
    match cause {
        EndCause::Renter => Reason::plain("renter"),
        EndCause::Budget => Reason::plain("budget"),
        EndCause::Duration => Reason::plain("duration"),
        EndCause::DiskExpired => Reason::plain("disk_expired"),
        EndCause::Operator => Reason::plain("operator"),
        EndCause::Refused(reason) => of_refusal(reason),
        EndCause::NotAccepted => Reason::failure("granting", "not_accepted"),
        EndCause::NotStarted => Reason::failure("starting", "not_started"),
        EndCause::Failed(problem) => of_problem(problem),
        EndCause::HostLost => Reason::failure("running", "host_lost"),
        EndCause::BidExpired => Reason::plain("bid_expired"),
        EndCause::TermOver => Reason::plain("term_over"),
        EndCause::OfferEnded => Reason::plain("offer_ended"),
        EndCause::HostFailed(detail) => Reason::failure("running", "host_failed").saying(detail),
        EndCause::Host(detail) => Reason::failure("running", "host_ended").saying(detail),
    }
}

/// Why a lease is stopped.
pub(super) fn of_pause(cause: &PauseCause) -> Reason {
    match cause {
        PauseCause::Renter => Reason::plain("renter"),
        PauseCause::Exited(code) => Reason::plain("exited").saying(&format!("exit code {code}")),
        PauseCause::OutOfMemory => Reason::plain("out_of_memory"),
        PauseCause::DiskFull => Reason::plain("disk_full"),
        PauseCause::GpuFault(fault) => Reason::plain("gpu_fault").saying(&fault.in_words()),
        PauseCause::Outbid => Reason::plain("outbid"),
        PauseCause::Preempted => Reason::plain("preempted"),
        PauseCause::FundsLow => Reason::plain("funds_low"),
        PauseCause::ResumeFailed(problem) => of_problem(problem),
    }
}

fn of_refusal(reason: &RefusalReason) -> Reason {
    let refused = |code| Reason::failure("granting", code);
    match reason {
        RefusalReason::Taken => refused("taken"),
        RefusalReason::OfferChanged => refused("offer_changed"),
        RefusalReason::UnknownBroker => refused("unknown_broker"),
        RefusalReason::BadOrder(detail) => refused("bad_order").saying(detail),
        RefusalReason::Draining => refused("draining"),
        RefusalReason::EngineDown(detail) => refused("engine_down").saying(detail),
        RefusalReason::DiskFull => refused("disk_full"),
        RefusalReason::GpuUnfit(detail) => refused("gpu_unfit").saying(detail),
    }
}

fn of_problem(problem: &Problem) -> Reason {
    let stage = match problem.stage {
        Stage::Granting => "granting",
        Stage::Pulling => "pulling",
        Stage::Creating => "creating",
        Stage::Starting => "starting",
    };
    let code = match problem.kind {
        ProblemKind::ImageUnknown => "image_unknown",
        ProblemKind::ImageRefused => "image_refused",
        ProblemKind::DigestMismatch => "digest_mismatch",
        ProblemKind::ImageTooBig => "image_too_big",
        ProblemKind::CommandUnknown => "command_unknown",
        ProblemKind::ImageUnusable => "image_unusable",
        ProblemKind::RegistryDown => "registry_down",
        ProblemKind::EngineFailed => "engine_failed",
        ProblemKind::GpuUnavailable => "gpu_unavailable",
        ProblemKind::HostSilent => "host_silent",
        ProblemKind::ImageNeedsOtherGpu => "image_needs_other_gpu",
    };
    Reason::failure(stage, code).saying(&problem.detail)
}
