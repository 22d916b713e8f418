//! What a refusal of a broker, a host or a registry means to the person who typed the command.

use super::{Code, Failure};
use crate::view::clock_time;
use protocol::lease::{EndCause, Problem, ProblemKind, RefusalReason, Stage};
use protocol::message::Rejection;
use protocol::net::IdentityError;
use protocol::tunnel::TunnelRefusal;
use protocol::units::Timestamp;

impl Failure {
    /// A broker said no. `now` is this machine's clock, for refusals that are about time.
    pub(crate) fn of_rejection(rejection: &Rejection, now: Timestamp) -> Self {
        let what = rejection.to_string();
        match rejection {
            Rejection::NotNow {
                now: theirs,
                detail,
            } => clocks_differ(detail, now, *theirs),
            Rejection::Malformed(_) => {
                Self::new(Code::BadReply, what).help("compare the versions: feira doctor")
            }
            Rejection::BadSignature(_) | Rejection::WrongAudience | Rejection::NotTheSigner => {
                Self::new(Code::SignatureRefused, what)
            }
            Rejection::OfferGone => {
                Self::new(Code::OfferGone, what).help("see what there is: feira search")
            }
            Rejection::OfferChanged => {
                Self::new(Code::OfferChanged, what).help("see it again: feira search")
            }
            Rejection::OfferTaken => Self::new(Code::OfferTaken, what)
                .help("see what there is: feira search")
                .help("or let feira choose: feira rent --max-price … --image …"),
            Rejection::HostGone => {
                Self::new(Code::HostGone, what).help("take another: feira search")
            }
            Rejection::PriceAboveLimit { price, .. } => Self::new(Code::PriceAboveLimit, what)
                .help(format!(
                    "raise the ceiling: --max-price {}",
                    dollars(*price)
                )),
            Rejection::PrepayAboveLimit { .. } => Self::new(Code::PriceAboveLimit, what)
                .help("its host raised the price: see what it costs now, and agree anew"),
            Rejection::NotEnoughMoney { .. } => Self::new(Code::NotEnoughMoney, what)
                .help("see what there is, and how to top up: feira balance")
                .help("or lower what is held: --budget"),
            Rejection::DiskTooLarge { allowed, .. } => Self::new(Code::BeyondOffer, what)
                .help(format!("ask for less: --disk {}", allowed.gb())),
            Rejection::TooLong { allowed, .. } => Self::new(Code::BeyondOffer, what)
                .help(format!("ask for less: --for {}h", allowed.0 / 3600)),
            Rejection::NameTaken(_) => Self::new(Code::NameTaken, what)
                .help("choose another with --name, or leave --name out"),
            Rejection::UnknownLease => {
                Self::new(Code::NoSuchLease, what).help("see all: feira ls --all")
            }
            Rejection::WrongPhase(_) => Self::new(Code::WrongPhase, what),
            Rejection::ResourceTaken => Self::new(Code::ResourceTaken, what)
                .help("try again later, or end it and rent elsewhere: feira search"),
            Rejection::BadValue { .. } | Rejection::IdReused | Rejection::Replayed => {
                Self::new(Code::OrderRefused, what)
            }
            Rejection::NothingMatches => Self::new(Code::NothingMatches, what)
                .help("see what there is: feira search")
                .help("or wait for one at your price: feira rent … --bid PRICE"),
            Rejection::BidTooLow { needed, .. } => Self::new(Code::BidTooLow, what)
                .help(format!("bid at least {}", dollars(needed.amount()))),
            Rejection::NotSold(_) => Self::new(Code::NotSold, what)
                .help("see what is sold, and how: feira search --kind …"),
            Rejection::CannotConvert { .. } => Self::new(Code::CannotConvert, what)
                .help("end it and rent anew: feira end, feira rent"),
            Rejection::OwnMachine => Self::new(Code::OwnMachine, what)
                .help("rent with another key (--key), or from another host"),
            Rejection::HostSuspended(_) => {
                Self::new(Code::HostSuspended, what).help("take another: feira search")
            }
            Rejection::TooMany(_) | Rejection::ShuttingDown | Rejection::Busy => {
                Self::new(Code::Busy, what)
            }
        }
    }

    /// A host refused a tunnel.
    pub(crate) fn of_tunnel_refusal(refusal: &TunnelRefusal, name: &str) -> Self {
        let what = refusal.to_string();
        match refusal {
            TunnelRefusal::NotRunning => Self::new(Code::NotRunning, what).help(format!(
                "see why: feira show {name}      start it: feira resume {name}"
            )),
            TunnelRefusal::CommandUnknown(said) => {
                Self::new(Code::CommandUnknown, what).ending_as_in_a_shell(code_of_a_shell(said))
            }
            TunnelRefusal::NoShell => Self::new(Code::CommandUnknown, what),
            TunnelRefusal::BadRequest(_)
            | TunnelRefusal::UnknownLease
            | TunnelRefusal::EngineFailed(_)
            | TunnelRefusal::LogsGone(_)
            | TunnelRefusal::TooMany => Self::new(Code::TunnelRefused, what),
        }
    }

    /// A lease ended instead of running.
    pub(crate) fn of_end(cause: &EndCause) -> Self {
        let what = end_in_words(cause);
        match cause {
            EndCause::Refused(RefusalReason::Taken) => Self::new(Code::OfferTaken, what)
                .help("nothing was billed; see what there is: feira search"),
            EndCause::Refused(RefusalReason::OfferChanged) => Self::new(Code::OfferChanged, what)
                .help("nothing was billed; see it again: feira search"),
            EndCause::Refused(_) => Self::new(Code::HostRefused, what)
                .help("nothing was billed; take another: feira search"),
            EndCause::NotAccepted | EndCause::NotStarted => Self::new(Code::NotStarted, what)
                .help("nothing was billed; take another: feira search"),
            EndCause::Failed(problem) => Self::new(Code::StartFailed, what).help(advice(problem)),
            EndCause::Renter
            | EndCause::Budget
            | EndCause::Duration
            | EndCause::DiskExpired
            | EndCause::HostLost
            | EndCause::Host(_)
            | EndCause::Operator
            | EndCause::TermOver
            | EndCause::OfferEnded
            | EndCause::HostFailed(_) => Self::new(Code::LeaseEnded, what),
            EndCause::BidExpired => Self::new(Code::BidExpired, what)
                .help("nothing was billed; bid more, or wait longer: --for"),
        }
    }
}

impl From<IdentityError> for Failure {
    fn from(error: IdentityError) -> Self {
        let what = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        match error {
            IdentityError::Missing { path } => Self::new(
                Code::NoKey,
                format!("there is no key at {}", path.display()),
            )
            .help("make one: feira init"),
            IdentityError::TooWide { path, allowed, .. } => Self::new(Code::KeyUnsafe, what)
                .help(format!("chmod {allowed:04o} {}", path.display())),
            IdentityError::Exists { .. }
            | IdentityError::WrongOwner { .. }
            | IdentityError::Encrypted { .. }
            | IdentityError::WrongKind { .. }
            | IdentityError::NotAKey { .. }
            | IdentityError::Io { .. } => Self::new(Code::KeyUnsafe, what),
        }
    }
}

/// What shells, docker and ssh return for a program that could not be run: 126 when it is there but is no
/// program or not allowed, 127 when it is not there. The engine says which at the end of its sentence; what
/// stands before may be the program's own name.
fn code_of_a_shell(said: &str) -> u8 {
    const THERE: [&str; 4] = [
        "permission denied",
        "is a directory",
        "exec format error",
        "not a directory",
    ];
    let reason = said.rsplit(": ").next().unwrap_or(said).trim();
    if THERE.contains(&reason) { 126 } else { 127 }
}

fn clocks_differ(detail: &str, ours: Timestamp, theirs: Timestamp) -> Failure {
    let apart = ours.since(theirs).0.max(theirs.since(ours).0);
    let side = if ours > theirs { "ahead" } else { "behind" };
    let what = format!(
        "this machine's clock says {}, the broker's says {}: {} {side} ({detail})",
        clock_time(ours),
        clock_time(theirs),
        protocol::units::Millis(apart).seconds(),
    );
    Failure::new(Code::ClockOff, what)
        .help("set this machine's clock: timedatectl set-ntp true      check: feira doctor")
}

fn dollars(amount: protocol::units::MicroUsd) -> String {
    amount.to_string().trim_start_matches('$').to_owned()
}

/// Why a lease ended, as a sentence.
pub(crate) fn end_in_words(cause: &EndCause) -> String {
    match cause {
        EndCause::Renter => "you ended it".to_owned(),
        EndCause::Budget => "it reached its budget".to_owned(),
        EndCause::Duration => "it reached its longest duration".to_owned(),
        EndCause::DiskExpired => "its disk was kept as long as it could be".to_owned(),
        EndCause::Refused(reason) => format!("the host refused it: {}", refusal_in_words(reason)),
        EndCause::NotAccepted => "the host did not accept it in time".to_owned(),
        EndCause::NotStarted => "the host did not start it in time".to_owned(),
        EndCause::Failed(problem) => problem_in_words(problem),
        EndCause::HostLost => "the host was not heard for too long".to_owned(),
        EndCause::Host(detail) => format!("the host ended it: {detail}"),
        EndCause::Operator => "the broker's operator ended it".to_owned(),
        EndCause::BidExpired => "the bid was not met in time".to_owned(),
        EndCause::TermOver => "its prepaid term was over".to_owned(),
        EndCause::OfferEnded => "the host's promised end date came".to_owned(),
        EndCause::HostFailed(detail) => format!("the host failed the prepaid term: {detail}"),
    }
}

fn refusal_in_words(reason: &RefusalReason) -> String {
    match reason {
        RefusalReason::Taken => "it is held by another lease".to_owned(),
        RefusalReason::OfferChanged => "it does not offer this on these terms any more".to_owned(),
        RefusalReason::UnknownBroker => "it does not list with this broker".to_owned(),
        RefusalReason::BadOrder(detail) => format!("the order does not verify: {detail}"),
        RefusalReason::Draining => "it takes no new leases now".to_owned(),
        RefusalReason::EngineDown(detail) => format!("its container engine is down: {detail}"),
        RefusalReason::DiskFull => "it has not enough free disk now".to_owned(),
        RefusalReason::GpuUnfit(detail) => format!("its GPU is not fit now: {detail}"),
    }
}

/// What went wrong at a start, as a sentence.
pub(crate) fn problem_in_words(problem: &Problem) -> String {
    let stage = stage_in_words(problem.stage);
    let kind = match problem.kind {
        ProblemKind::ImageUnknown => "the registry does not know the image",
        ProblemKind::ImageRefused => "the registry wants a login",
        ProblemKind::DigestMismatch => "what came is not what the digest names",
        ProblemKind::ImageTooBig => "the image is too large for the disk",
        ProblemKind::CommandUnknown => "the command is not in the image",
        ProblemKind::ImageUnusable => "these settings cannot be run safely",
        ProblemKind::RegistryDown => "the registry does not answer the host",
        ProblemKind::EngineFailed => "the container engine failed",
        ProblemKind::GpuUnavailable => "the GPU could not be given to the container",
        ProblemKind::HostSilent => "the host is silent",
        ProblemKind::ImageNeedsOtherGpu => "the image needs a newer driver or another GPU",
    };
    if problem.detail.is_empty() {
        return format!("{stage}: {kind}");
    }
    format!("{stage}: {kind}: {}", problem.detail)
}

const fn stage_in_words(stage: Stage) -> &'static str {
    match stage {
        Stage::Granting => "while the host took the lease",
        Stage::Pulling => "while pulling the image",
        Stage::Creating => "while making the container",
        Stage::Starting => "while starting the container",
    }
}

fn advice(problem: &Problem) -> &'static str {
    match problem.kind {
        ProblemKind::ImageUnknown | ProblemKind::ImageRefused => {
            "nothing was billed; check the image's name, and that it can be pulled without a login"
        }
        ProblemKind::DigestMismatch => "nothing was billed; do not use this registry",
        ProblemKind::ImageTooBig => "nothing was billed; ask for more: --disk GB",
        ProblemKind::CommandUnknown => {
            "nothing was billed; give a command that the image has: feira rent … -- COMMAND"
        }
        // The host refuses variables of the order in these words.
        ProblemKind::ImageUnusable if problem.detail.contains("variable") => {
            "nothing was billed; leave that variable out of --env"
        }
        ProblemKind::ImageNeedsOtherGpu => {
            "nothing was billed; choose an offer that has it: feira search 'cuda>=… compute_cap>=…'"
        }
        ProblemKind::ImageUnusable => "nothing was billed; build the image without that setting",
        ProblemKind::RegistryDown
        | ProblemKind::EngineFailed
        | ProblemKind::GpuUnavailable
        | ProblemKind::HostSilent => "nothing was billed; try another offer: feira search",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use protocol::bounded::Text;

    fn exit(refusal: &TunnelRefusal) -> Exit {
        Failure::of_tunnel_refusal(refusal, "brave-otter")
            .not_run()
            .exit()
    }

    #[test]
    fn a_program_that_cannot_run_ends_as_in_a_shell_and_our_own_failures_do_not() {
        let said = |words: &str| exit(&TunnelRefusal::CommandUnknown(Text::new(words).unwrap()));
        let absent = "exec: \"/no/such\": stat /no/such: no such file or directory";
        assert_eq!(said(absent), Exit::Remote(127));
        let not_in_path = "exec: \"nosuch\": executable file not found in $PATH";
        assert_eq!(said(not_in_path), Exit::Remote(127));
        let not_executable = "exec: \"/etc/passwd\": permission denied";
        assert_eq!(said(not_executable), Exit::Remote(126));
        assert_eq!(said("exec: \"/etc\": is a directory"), Exit::Remote(126));
        // A program may be called as one likes.
        let named = "exec: \"permission denied\": executable file not found in $PATH";
        assert_eq!(said(named), Exit::Remote(127));
        for ours in [TunnelRefusal::NoShell, TunnelRefusal::TooMany] {
            assert_eq!(exit(&ours), Exit::NotRun);
        }
    }

    #[test]
    fn a_variable_of_the_order_is_not_blamed_on_the_image() {
        let problem = |detail: &str| Problem {
            stage: Stage::Creating,
            kind: ProblemKind::ImageUnusable,
            detail: Text::new(detail).unwrap(),
        };
        let variable = problem("the variable LD_PRELOAD may not be set: it is the host's");
        assert!(advice(&variable).contains("leave that variable out"));
        assert!(!problem_in_words(&variable).contains("image"));
        assert!(advice(&problem("it mounts /proc")).contains("build the image"));
    }
}
