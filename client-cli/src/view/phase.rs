//! Phases and their reasons, in words.

use super::clock_time;
use crate::failure::{end_in_words, problem_in_words};
use protocol::lease::{PauseCause, Phase};

/// The phase with its reason, in words.
pub(crate) fn phase_in_words(phase: &Phase) -> String {
    match reason_in_words(phase) {
        Some(reason) => format!("{}: {reason}", phase.word()),
        None => phase.word().to_owned(),
    }
}

/// Why it is in its phase, where there is a reason.
pub(super) fn reason_in_words(phase: &Phase) -> Option<String> {
    match phase {
        Phase::Resting => Some("the bid waits for its price, or for a free resource".to_owned()),
        Phase::Clearing(by) => Some(format!(
            "those who are there are told to go, by {} at the latest",
            clock_time(*by)
        )),
        Phase::Noticed(cause, by) => Some(format!(
            "it has to go, by {} at the latest: {}",
            clock_time(*by),
            pause_in_words(cause)
        )),
        Phase::Offered | Phase::Accepted | Phase::Preparing | Phase::Running => None,
        Phase::Suspect => Some("the host is not heard; nothing is billed".to_owned()),
        Phase::Paused(cause) => Some(pause_in_words(cause)),
        Phase::Closing(cause) | Phase::Closed(cause) => Some(end_in_words(cause)),
    }
}

/// Why a lease does not run, in words.
pub(crate) fn pause_in_words(cause: &PauseCause) -> String {
    match cause {
        PauseCause::Renter => "you stopped it".to_owned(),
        PauseCause::Exited(code) => format!("its main process ended with code {code}"),
        PauseCause::OutOfMemory => "its main process was killed for memory".to_owned(),
        PauseCause::Outbid => {
            "somebody bid more; it resumes by itself when its bid wins".to_owned()
        }
        PauseCause::Preempted => {
            "a lease on demand took its place; it resumes by itself when its bid wins".to_owned()
        }
        PauseCause::DiskFull => "it wrote more than its disk and was stopped".to_owned(),
        PauseCause::GpuFault(fault) => fault.in_words(),
        PauseCause::FundsLow => "the money would not last another five minutes".to_owned(),
        PauseCause::ResumeFailed(problem) => {
            format!(
                "it could not be started again: {}",
                problem_in_words(problem)
            )
        }
    }
}
