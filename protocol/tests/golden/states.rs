//! Every variant of the enums inside messages: what a lease, a start, an end and a search can be.

use crate::sample::{list, text};
use crate::samples::{OFFER, digest, search};
use crate::{Samples, samples};
use protocol::cost::Precision;
use protocol::filter::{Comparison, Direction, Field, Test, Value, fields};
use protocol::lease::{
    ContainerState, EndCause, FaultClass, GpuFault, PauseCause, Phase, Problem, ProblemKind,
    RefusalReason, Stage, StopReason, Vacate, Want,
};
use protocol::machine::ContainerNetwork;
use protocol::message::LeaseScope;
use protocol::offer::Chunks;
use protocol::order::{LeaseAction, Target};
use protocol::terms::{ContractKind, Deal};
use protocol::units::{MicroUsd, PricePerHour, Timestamp};

fn problem() -> Problem {
    Problem {
        stage: Stage::Pulling,
        kind: ProblemKind::RegistryDown,
        detail: text("no route"),
    }
}

pub(crate) fn phases() -> Samples<Phase> {
    samples!(Phase {
        Resting => Phase::Resting,
        Clearing => Phase::Clearing(Timestamp(1)),
        Offered => Phase::Offered,
        Accepted => Phase::Accepted,
        Preparing => Phase::Preparing,
        Running => Phase::Running,
        Noticed => Phase::Noticed(PauseCause::Outbid, Timestamp(1)),
        Suspect => Phase::Suspect,
        Paused => Phase::Paused(PauseCause::Renter),
        Closing => Phase::Closing(EndCause::Renter),
        Closed => Phase::Closed(EndCause::Budget),
    })
}

fn fault() -> GpuFault {
    GpuFault {
        resource: text("GPU-a"),
        xid: 79,
        class: FaultClass::Link,
        detail: text("fallen off the bus"),
    }
}

pub(crate) fn pause_causes() -> Samples<PauseCause> {
    samples!(PauseCause {
        Renter => PauseCause::Renter,
        Exited => PauseCause::Exited(137),
        OutOfMemory => PauseCause::OutOfMemory,
        FundsLow => PauseCause::FundsLow,
        ResumeFailed => PauseCause::ResumeFailed(problem()),
        DiskFull => PauseCause::DiskFull,
        Outbid => PauseCause::Outbid,
        Preempted => PauseCause::Preempted,
        GpuFault => PauseCause::GpuFault(fault()),
    })
}

pub(crate) fn end_causes() -> Samples<EndCause> {
    samples!(EndCause {
        Renter => EndCause::Renter,
        Budget => EndCause::Budget,
        Duration => EndCause::Duration,
        DiskExpired => EndCause::DiskExpired,
        Refused => EndCause::Refused(RefusalReason::Taken),
        NotAccepted => EndCause::NotAccepted,
        NotStarted => EndCause::NotStarted,
        Failed => EndCause::Failed(problem()),
        HostLost => EndCause::HostLost,
        Host => EndCause::Host(text("vanished")),
        Operator => EndCause::Operator,
        BidExpired => EndCause::BidExpired,
        TermOver => EndCause::TermOver,
        OfferEnded => EndCause::OfferEnded,
        HostFailed => EndCause::HostFailed(text("withdrawn")),
    })
}

pub(crate) fn refusal_reasons() -> Samples<RefusalReason> {
    samples!(RefusalReason {
        Taken => RefusalReason::Taken,
        OfferChanged => RefusalReason::OfferChanged,
        UnknownBroker => RefusalReason::UnknownBroker,
        BadOrder => RefusalReason::BadOrder(text("too old")),
        Draining => RefusalReason::Draining,
        EngineDown => RefusalReason::EngineDown(text("refused")),
        DiskFull => RefusalReason::DiskFull,
        GpuUnfit => RefusalReason::GpuUnfit(text("quarantined")),
    })
}

pub(crate) fn problem_kinds() -> Samples<ProblemKind> {
    samples!(ProblemKind {
        ImageUnknown => ProblemKind::ImageUnknown,
        ImageRefused => ProblemKind::ImageRefused,
        DigestMismatch => ProblemKind::DigestMismatch,
        ImageTooBig => ProblemKind::ImageTooBig,
        CommandUnknown => ProblemKind::CommandUnknown,
        ImageUnusable => ProblemKind::ImageUnusable,
        RegistryDown => ProblemKind::RegistryDown,
        EngineFailed => ProblemKind::EngineFailed,
        GpuUnavailable => ProblemKind::GpuUnavailable,
        HostSilent => ProblemKind::HostSilent,
        ImageNeedsOtherGpu => ProblemKind::ImageNeedsOtherGpu,
    })
}

pub(crate) fn stages() -> Samples<Stage> {
    samples!(Stage {
        Granting => Stage::Granting,
        Pulling => Stage::Pulling,
        Creating => Stage::Creating,
        Starting => Stage::Starting,
    })
}

pub(crate) fn container_states() -> Samples<ContainerState> {
    samples!(ContainerState {
        Preparing => ContainerState::Preparing(Stage::Creating),
        Running => ContainerState::Running,
        Stopped => ContainerState::Stopped(StopReason::Asked),
        Failed => ContainerState::Failed(problem()),
        Gone => ContainerState::Gone,
    })
}

pub(crate) fn stop_reasons() -> Samples<StopReason> {
    samples!(StopReason {
        Asked => StopReason::Asked,
        Exited => StopReason::Exited(1),
        OutOfMemory => StopReason::OutOfMemory,
        ResourceTaken => StopReason::ResourceTaken,
        DiskFull => StopReason::DiskFull,
        Vacated => StopReason::Vacated,
        GpuFault => StopReason::GpuFault(fault()),
    })
}

pub(crate) fn wants() -> Samples<Want> {
    samples!(Want {
        Run => Want::Run(2),
        Stop => Want::Stop,
        End => Want::End,
        Vacate => Want::Vacate(Vacate { run: 2, by: Timestamp(1), outbid: true }),
    })
}

pub(crate) fn lease_actions() -> Samples<LeaseAction> {
    samples!(LeaseAction {
        Stop => LeaseAction::Stop,
        Resume => LeaseAction::Resume,
        End => LeaseAction::End,
        SetBid => LeaseAction::SetBid(PricePerHour(2)),
        Convert => LeaseAction::Convert {
            deal: Deal::OnDemand,
            price_max: PricePerHour(400_000),
        },
    })
}

pub(crate) fn deals() -> Samples<Deal> {
    let (price, until) = (PricePerHour(2), Timestamp(1));
    samples!(Deal {
        OnDemand => Deal::OnDemand,
        Bid => Deal::Bid { limit: price, until },
        Interruptible => Deal::Interruptible { bid: price, until, fallback: Some(PricePerHour(3)) },
        Reserved => Deal::Reserved { days: 30, prepay_max: MicroUsd(4) },
    })
}

pub(crate) fn targets() -> Samples<Target> {
    samples!(Target {
        Offer => Target::Offer { offer: OFFER, terms: digest(0x7d) },
        Any => Target::Any(search().filter),
    })
}

pub(crate) fn chunks() -> Samples<Chunks> {
    samples!(Chunks {
        Any => Chunks::Any,
        PowersOfTwo => Chunks::PowersOfTwo,
        Whole => Chunks::Whole,
    })
}

pub(crate) fn lease_scopes() -> Samples<LeaseScope> {
    samples!(LeaseScope {
        Open => LeaseScope::Open,
        All => LeaseScope::All,
    })
}

pub(crate) fn contract_kinds() -> Samples<ContractKind> {
    samples!(ContractKind {
        OnDemand => ContractKind::OnDemand,
        Bid => ContractKind::Bid,
        Interruptible => ContractKind::Interruptible,
        Reserved => ContractKind::Reserved,
    })
}

pub(crate) fn container_networks() -> Samples<ContainerNetwork> {
    samples!(ContainerNetwork {
        None => ContainerNetwork::None,
        Bridge => ContainerNetwork::Bridge,
    })
}

pub(crate) fn comparisons() -> Samples<Comparison> {
    samples!(Comparison {
        Less => Comparison::Less,
        AtMost => Comparison::AtMost,
        Equal => Comparison::Equal,
        NotEqual => Comparison::NotEqual,
        AtLeast => Comparison::AtLeast,
        More => Comparison::More,
    })
}

pub(crate) fn values() -> Samples<Value> {
    samples!(Value {
        Number => Value::Number(-2),
        Text => Value::Text(text("RTX_4090")),
        Flag => Value::Flag(true),
        Version => Value::Version([12, 4, 0, 0]),
    })
}

pub(crate) fn tests() -> Samples<Test> {
    samples!(Test {
        Compare => Test::Compare(Comparison::More, Value::Number(1)),
        In => Test::In(list(vec![Value::Flag(false)])),
        NotIn => Test::NotIn(list(vec![Value::Flag(false)])),
    })
}

pub(crate) fn directions() -> Samples<Direction> {
    samples!(Direction {
        Ascending => Direction::Ascending,
        Descending => Direction::Descending,
    })
}

pub(crate) fn precisions() -> Samples<Precision> {
    samples!(Precision {
        Half => Precision::Half,
        Quarter => Precision::Quarter,
        Single => Precision::Single,
    })
}

/// A test of the table holds it to be all fields.
pub(crate) fn search_fields() -> Samples<Field> {
    fields()
        .iter()
        .map(|info| (info.name, info.field))
        .collect()
}
