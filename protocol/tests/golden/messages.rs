//! Every variant of every message, each with its name.

use crate::hosts::host_evidence;
use crate::proofs::verdict;
use crate::sample::{host, list, text};
use crate::samples::{
    BALANCE, EARNINGS, LEASE, LOGS, account_statement, announcement, broker_info, digest, exec,
    found, goal, grant, lease_command, lease_view, order, progress, receipt, refusal, report,
    search, signed,
};
use crate::{Samples, samples};
use protocol::bounded::Blob;
use protocol::lease::Phase;
use protocol::message::{
    BrokerReply, BrokerRequest, HostReply, HostRequest, LeaseScope, Rejection,
};
use protocol::terms::ContractKind;
use protocol::tunnel::{Downward, OpeningReply, Purpose, TunnelRefusal, Upward, WindowSize};
use protocol::units::{Bytes, MicroUsd, PricePerHour, Seconds, Timestamp};
use protocol::verify::TranscriptPart;

pub(crate) fn broker_requests() -> Samples<BrokerRequest> {
    samples!(BrokerRequest {
        Info => BrokerRequest::Info,
        Search => BrokerRequest::Search(search()),
        Order => BrokerRequest::Order(signed(order())),
        Command => BrokerRequest::Command(signed(lease_command())),
        Leases => BrokerRequest::Leases(LeaseScope::All),
        Lease => BrokerRequest::Lease(LEASE),
        Watch => BrokerRequest::Watch { lease: LEASE, seen: 4, wait: Seconds(20) },
        Balance => BrokerRequest::Balance,
        Statement => BrokerRequest::Statement(7),
        Receipt => BrokerRequest::Receipt(LEASE),
        Announce => BrokerRequest::Announce(announcement()),
        Grant => BrokerRequest::Grant(signed(grant())),
        Refuse => BrokerRequest::Refuse(signed(refusal())),
        Report => BrokerRequest::Report(signed(report())),
        Progress => BrokerRequest::Progress(progress()),
        Earnings => BrokerRequest::Earnings,
        HostEvidence => BrokerRequest::HostEvidence { host: host(), after: Some((LEASE, 1)) },
        Verdicts => BrokerRequest::Verdicts(host()),
        Transcript => BrokerRequest::Transcript { digest: digest(0x7a), from: 131_072 },
    })
}

pub(crate) fn broker_replies() -> Samples<BrokerReply> {
    samples!(BrokerReply {
        Info => BrokerReply::Info(broker_info()),
        Found => BrokerReply::Found(found()),
        Lease => BrokerReply::Lease(Box::new(lease_view())),
        Leases => BrokerReply::Leases(list(vec![lease_view()])),
        Balance => BrokerReply::Balance(BALANCE),
        Statement => BrokerReply::Statement(signed(account_statement())),
        Receipt => BrokerReply::Receipt(signed(receipt())),
        Earnings => BrokerReply::Earnings(EARNINGS),
        Noted => BrokerReply::Noted,
        Refused => BrokerReply::Refused(Rejection::OfferTaken),
        HostEvidence => BrokerReply::HostEvidence(Box::new(host_evidence())),
        Verdicts => BrokerReply::Verdicts(list(vec![signed(verdict())])),
        Transcript => BrokerReply::Transcript(TranscriptPart {
            length: 131_074,
            bytes: Blob::new(vec![7, 8]).unwrap(),
        }),
    })
}

pub(crate) fn rejections() -> Samples<Rejection> {
    samples!(Rejection {
        Malformed => Rejection::Malformed(text("why")),
        BadSignature => Rejection::BadSignature(text("why")),
        NotNow => Rejection::NotNow { detail: text("expired"), now: Timestamp(1) },
        WrongAudience => Rejection::WrongAudience,
        NotTheSigner => Rejection::NotTheSigner,
        Replayed => Rejection::Replayed,
        IdReused => Rejection::IdReused,
        OfferGone => Rejection::OfferGone,
        OfferChanged => Rejection::OfferChanged,
        OfferTaken => Rejection::OfferTaken,
        HostGone => Rejection::HostGone,
        PriceAboveLimit => Rejection::PriceAboveLimit { price: MicroUsd(2), allowed: MicroUsd(1) },
        PrepayAboveLimit => Rejection::PrepayAboveLimit { price: MicroUsd(2), allowed: MicroUsd(1) },
        NotEnoughMoney => Rejection::NotEnoughMoney { available: MicroUsd(1), needed: MicroUsd(2) },
        DiskTooLarge => Rejection::DiskTooLarge { asked: Bytes(2), allowed: Bytes(1) },
        TooLong => Rejection::TooLong { asked: Seconds(2), allowed: Seconds(1) },
        BadValue => Rejection::BadValue { field: text("budget"), problem: text("zero") },
        NameTaken => Rejection::NameTaken(text("brave-otter")),
        UnknownLease => Rejection::UnknownLease,
        WrongPhase => Rejection::WrongPhase(Phase::Running),
        ResourceTaken => Rejection::ResourceTaken,
        TooMany => Rejection::TooMany(text("leases")),
        NothingMatches => Rejection::NothingMatches,
        BidTooLow => Rejection::BidTooLow { bid: PricePerHour(1), needed: PricePerHour(2), reason: text("floor") },
        NotSold => Rejection::NotSold(text("prepaid")),
        CannotConvert => Rejection::CannotConvert {
            from: ContractKind::Reserved,
            to: ContractKind::Interruptible,
            reason: text("firm"),
        },
        OwnMachine => Rejection::OwnMachine,
        HostSuspended => Rejection::HostSuspended(text("bond")),
        ShuttingDown => Rejection::ShuttingDown,
        Busy => Rejection::Busy,
    })
}

pub(crate) fn host_requests() -> Samples<HostRequest> {
    samples!(HostRequest {
        Goal => HostRequest::Goal(goal()),
    })
}

pub(crate) fn host_replies() -> Samples<HostReply> {
    samples!(HostReply {
        Noted => HostReply::Noted,
        Refused => HostReply::Refused(text("not listed")),
    })
}

pub(crate) fn purposes() -> Samples<Purpose> {
    samples!(Purpose {
        Exec => Purpose::Exec(exec()),
        Logs => Purpose::Logs(LOGS),
    })
}

pub(crate) fn opening_replies() -> Samples<OpeningReply> {
    samples!(OpeningReply {
        Open => OpeningReply::Open,
        Refused => OpeningReply::Refused(TunnelRefusal::NotRunning),
    })
}

pub(crate) fn tunnel_refusals() -> Samples<TunnelRefusal> {
    samples!(TunnelRefusal {
        BadRequest => TunnelRefusal::BadRequest(text("why")),
        UnknownLease => TunnelRefusal::UnknownLease,
        NotRunning => TunnelRefusal::NotRunning,
        CommandUnknown => TunnelRefusal::CommandUnknown(text("no such file")),
        NoShell => TunnelRefusal::NoShell,
        EngineFailed => TunnelRefusal::EngineFailed(text("why")),
        LogsGone => TunnelRefusal::LogsGone(Seconds(604_800)),
        TooMany => TunnelRefusal::TooMany,
    })
}

pub(crate) fn upwards() -> Samples<Upward> {
    samples!(Upward {
        Input => Upward::Input(Blob::new(b"ls\n".to_vec()).unwrap()),
        InputEnd => Upward::InputEnd,
        Resize => Upward::Resize(WindowSize { rows: 24, columns: 80 }),
        Signal => Upward::Signal(text("INT")),
    })
}

pub(crate) fn downwards() -> Samples<Downward> {
    samples!(Downward {
        Output => Downward::Output(Blob::new(b"out".to_vec()).unwrap()),
        Errors => Downward::Errors(Blob::new(b"err".to_vec()).unwrap()),
        Exit => Downward::Exit(-1),
        Broken => Downward::Broken(text("the engine went away")),
    })
}
