//! One small value of everything that is said of the proof of a host's hardware.

use crate::sample::{host, list, text};
use crate::samples::{ISSUED, digest};
use crate::{Samples, samples};
use protocol::units::Millis;
use protocol::verify::{Finding, Flaw, Parameters, Verdict, VerificationLevel, Withdrawal};

const ACCEPTED: Finding = Finding::Accepted {
    fill: Millis(6_000),
    pass: Millis(1_500),
};

pub(crate) fn verdict() -> Verdict {
    Verdict {
        host: host(),
        device: text("GPU-1"),
        resources: list(vec![text("GPU-1")]),
        hardware: digest(0x7b),
        class: text("RTX 4090"),
        parameters: Parameters {
            tile_side: 8192,
            inner: 53_760,
            tiles: 329,
            rounds: 40,
            audits: 64,
            fill_max: Millis(14_000),
            pass_max: Millis(3_200),
        },
        finding: ACCEPTED,
        transcript: digest(0x7a),
        at: ISSUED,
    }
}

pub(crate) fn findings() -> Samples<Finding> {
    samples!(Finding {
        Accepted => ACCEPTED,
        Rejected => Finding::Rejected(Flaw::Silent),
    })
}

pub(crate) fn flaws() -> Samples<Flaw> {
    let (took, bound) = (Millis(9), Millis(5));
    samples!(Flaw {
        Unable => Flaw::Unable(text("no device")),
        Silent => Flaw::Silent,
        OutOfTurn => Flaw::OutOfTurn,
        FillTooSlow => Flaw::FillTooSlow { took, bound },
        PassTooSlow => Flaw::PassTooSlow { took, bound },
        WrongRow => Flaw::WrongRow { tile: 3, row: 4 },
        NotHeld => Flaw::NotHeld { round: 2, tile: 3, row: 4 },
    })
}

pub(crate) fn levels() -> Samples<VerificationLevel> {
    samples!(VerificationLevel {
        Unverified => VerificationLevel::Unverified,
        Verified => VerificationLevel::Verified { at: ISSUED, verdict: digest(0x7e) },
        Withdrawn => VerificationLevel::Withdrawn { reason: Withdrawal::Stale, at: ISSUED },
    })
}

pub(crate) fn withdrawals() -> Samples<Withdrawal> {
    samples!(Withdrawal {
        Failed => Withdrawal::Failed(Flaw::Silent),
        Changed => Withdrawal::Changed,
        Fault => Withdrawal::Fault(text("Xid 79")),
        Stale => Withdrawal::Stale,
    })
}
