//! One small value of everything that is said of a host's reliability.

use crate::sample::{host, list};
use crate::samples::{ISSUED, LEASE, digest, signed};
use crate::{Samples, samples};
use protocol::lease::Party;
use protocol::reliability::{
    Carried, Fault, HostEvidence, Incident, Interval, Outcome, Payer, Standing, Start,
};
use protocol::units::{MicroUsd, Millis, Timestamp};

const PAYER: Payer = Payer::from_bytes([0xba; 16]);
const RUN: Interval = Interval {
    from: Timestamp(1),
    to: Timestamp(2),
};

pub(crate) fn outcome() -> Outcome {
    Outcome {
        host: host(),
        lease: LEASE,
        part: 1,
        payer: PAYER,
        asked_at: ISSUED,
        start: Start::Ran(ISSUED),
        runs: list(vec![RUN]),
        incidents: list(vec![Incident {
            at: ISSUED,
            fault: Fault::Silent,
        }]),
        paid: MicroUsd(400_000),
        ended: Some((ISSUED, Party::Renter)),
        order: digest(0x0d),
        grant: Some(digest(0x64)),
        report: None,
    }
}

pub(crate) fn standing() -> Standing {
    Standing {
        host: host(),
        heard: list(vec![RUN]),
        excluded: list(vec![RUN]),
        incidents: list(vec![]),
        carried: Carried {
            until: Timestamp(1),
            leased: list(vec![(PAYER, Millis(3_600_000))]),
            idle: Millis(7),
            faults_ppm: 500_000,
            starts: 3,
            starts_failed: 1,
        },
        outcomes: 1,
        outcomes_digest: digest(0x05),
    }
}

pub(crate) fn host_evidence() -> HostEvidence {
    HostEvidence {
        standing: signed(standing()),
        as_of: ISSUED,
        ppm: 952_328,
        heard_at: Some(ISSUED),
        outcomes: list(vec![signed(outcome())]),
        next: Some((LEASE, 1)),
    }
}

pub(crate) fn starts() -> Samples<Start> {
    samples!(Start {
        Pending => Start::Pending,
        Ran => Start::Ran(Timestamp(1)),
        Failed => Start::Failed(Party::Host),
    })
}

pub(crate) fn faults() -> Samples<Fault> {
    samples!(Fault {
        Lost => Fault::Lost,
        Silent => Fault::Silent,
        GpuFailed => Fault::GpuFailed,
        HostDiskFull => Fault::HostDiskFull,
        StoppedByHost => Fault::StoppedByHost,
        Withdrawn => Fault::Withdrawn,
        BelowAdvertised => Fault::BelowAdvertised,
        Maintenance => Fault::Maintenance,
        RenterCaused => Fault::RenterCaused,
        AmbiguousCrash => Fault::AmbiguousCrash,
        BrokerOutage => Fault::BrokerOutage,
    })
}
