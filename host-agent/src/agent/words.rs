//! What the log calls things: words for people, where the types only have names for programs. It decides nothing.

use super::events::What;
use crate::core::work::Work;
use protocol::lease::{RefusalReason, StopReason, Want};
use protocol::units::{Millis, Timestamp};

/// `run 2`, `stop`, `end`.
pub(super) fn want(want: Want) -> String {
    match want {
        Want::Run(run) => format!("run {run}"),
        Want::Stop => "stop".to_owned(),
        Want::End => "end".to_owned(),
        Want::Vacate(vacate) if vacate.outbid => format!("leave run {}, outbid", vacate.run),
        Want::Vacate(vacate) => format!("leave run {}, for a firm lease", vacate.run),
    }
}

pub(super) fn stopped(reason: &StopReason) -> String {
    match reason {
        StopReason::Asked => "it was asked to stop".to_owned(),
        StopReason::Exited(code) => format!("its program ended with {code}"),
        StopReason::OutOfMemory => "its program used up its memory".to_owned(),
        StopReason::DiskFull => "it wrote more than its disk".to_owned(),
        StopReason::GpuFault(fault) => fault.in_words(),
        StopReason::Vacated => "it was given notice, which is over".to_owned(),
        StopReason::ResourceTaken => "what it ran on is another lease's now".to_owned(),
    }
}

pub(super) fn refused(reason: &RefusalReason) -> String {
    match reason {
        RefusalReason::Taken => "another lease has what it wants".to_owned(),
        RefusalReason::OfferChanged => "this is not offered, or not on these terms".to_owned(),
        RefusalReason::UnknownBroker => "it is another broker's lease".to_owned(),
        RefusalReason::BadOrder(detail) => format!("the order is not good: {detail}"),
        RefusalReason::Draining => "this host is stopping".to_owned(),
        RefusalReason::EngineDown(detail) => format!("the engine does not answer: {detail}"),
        RefusalReason::GpuUnfit(detail) => format!("a GPU of it is not fit now: {detail}"),
        RefusalReason::DiskFull => "there is not so much disk that is not promised".to_owned(),
    }
}

pub(super) const fn work(work: Work) -> &'static str {
    match work {
        Work::Prepare => "start",
        Work::Notify => "give notice to",
        Work::Recall => "take back the notice of",
        Work::Stop { .. } => "stop",
        Work::Remove { .. } => "remove",
    }
}

/// `the offers`, `the grant of l-7k3f7k3f`.
pub(super) fn message(what: What) -> String {
    match what {
        What::Offers => "the offers".to_owned(),
        What::Grant(lease) => format!("the grant of {}", lease.short()),
        What::Refusal(lease) => format!("the refusal of {}", lease.short()),
        What::Report(lease) => format!("the report on {}", lease.short()),
        What::Unknown(lease) => format!("that {} is not here", lease.short()),
        What::Progress(lease) => format!("the progress of {}", lease.short()),
    }
}

/// How far this clock is from a broker's, when it is further than a message's way explains.
pub(super) fn clocks(here: Timestamp, there: Timestamp) -> String {
    let (apart, side) = if here >= there {
        (here.since(there), "ahead of")
    } else {
        (there.since(here), "behind")
    };
    // To the next second: two readings of one hour are never exactly an hour apart.
    let apart = Millis(apart.0.saturating_add(500)).seconds();
    format!(
        "this machine's clock is {apart} {side} the broker's, so nothing it says is believed: timedatectl set-ntp true"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_is_said_with_its_side_and_remedy() {
        let (one, other) = (Timestamp(10_000_000_200), Timestamp(10_003_600_000));
        assert_eq!(
            clocks(other, one),
            "this machine's clock is 1h 00m ahead of the broker's, so nothing it says is believed: \
             timedatectl set-ntp true"
        );
        assert!(
            clocks(one, other).starts_with("this machine's clock is 1h 00m behind the broker's")
        );
    }
}
