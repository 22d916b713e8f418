//! Follows a lease until it is where one wants it: asks the broker to answer when something changes, goes on
//! through lost connections, and knows when waiting has become pointless.

use crate::clock::Stopwatch;
use crate::context::{Context, lease_of};
use crate::failure::{Code, Failure};
use crate::view::Held;
use protocol::lease::{ContainerState, LeaseView, Phase};
use protocol::message::BrokerRequest;
use protocol::units::{Millis, Seconds};
use std::time::Duration;

/// How long a broker holds one question.
const HOLD: Seconds = Seconds(15);
/// Between tries when a broker does not answer.
const PAUSE: Duration = Duration::from_secs(2);
/// A broker that has not answered for this long is given up.
const PATIENCE: Millis = Millis(120_000);

/// Where one wants a lease to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Its container runs, or ran, or never will.
    Started,
    /// Its host says that its container does not run, and its disk is kept; or it is over.
    Stopped,
    /// It and its disk are gone.
    Gone,
    /// It was told that it has to go, or does not run any more.
    Noticed,
    /// It does not wait for its price any more.
    Settled,
}

impl Until {
    /// Whether there is nothing more to wait for.
    pub(crate) const fn reached(self, view: &LeaseView) -> bool {
        match (&view.phase, self) {
            (Phase::Closed(_), _) => true,
            (Phase::Closing(_), _) => !matches!(self, Self::Gone),
            (Phase::Running | Phase::Noticed(..), Self::Started) => true,
            (Phase::Noticed(..) | Phase::Paused(_), Self::Noticed) => true,
            (phase, Self::Settled) => !matches!(phase, Phase::Resting),
            (Phase::Paused(cause), Self::Started) => !cause.resumes_by_itself(),
            (Phase::Paused(_), Self::Stopped) => is_at_rest(view.container.as_ref()),
            (
                Phase::Resting
                | Phase::Clearing(_)
                | Phase::Offered
                | Phase::Accepted
                | Phase::Preparing
                | Phase::Running
                | Phase::Noticed(..)
                | Phase::Suspect
                | Phase::Paused(_),
                _,
            ) => false,
        }
    }
}

/// Whether the host has said that nothing runs. A broker pauses a lease on its renter's word; until the host
/// has heard of it, the container goes on.
const fn is_at_rest(container: Option<&ContainerState>) -> bool {
    matches!(
        container,
        Some(ContainerState::Stopped(_) | ContainerState::Failed(_) | ContainerState::Gone)
    )
}

/// Waits until `until` is reached, telling `heard` of everything heard on the way.
pub(crate) async fn follow(
    context: &Context,
    held: &Held,
    until: Until,
    mut heard: impl FnMut(&LeaseView),
) -> Result<Held, Failure> {
    let session = context.session_with(held.broker).await?;
    let mut now = held.clone();
    let mut silent_since: Option<Stopwatch> = None;
    loop {
        heard(&now.view);
        if until.reached(&now.view) {
            return Ok(now);
        }
        let request = BrokerRequest::Watch {
            lease: now.view.id,
            seen: now.view.revision,
            wait: HOLD,
        };
        match session.ask(now.broker, &request).await {
            Ok(reply) => {
                now = lease_of(now.broker, reply)?;
                silent_since = None;
            }
            Err(failure) if is_passing(failure.code()) => {
                let since = *silent_since.get_or_insert_with(|| {
                    context.printer.warn(failure.what());
                    Stopwatch::start()
                });
                if since.elapsed() > PATIENCE {
                    return Err(failure.help(format!(
                        "the lease goes on; see it later: feira show {}",
                        now.view.name
                    )));
                }
                tokio::time::sleep(PAUSE).await;
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn is_passing(code: Code) -> bool {
    matches!(code, Code::BrokerFailed | Code::Busy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::lease;
    use protocol::lease::{EndCause, PauseCause, StopReason};

    fn reached(until: Until, phase: Phase) -> bool {
        until.reached(&lease(1, "brave-otter", phase).view)
    }

    #[test]
    fn a_start_is_over_when_it_runs_or_never_will() {
        for phase in [
            Phase::Offered,
            Phase::Accepted,
            Phase::Preparing,
            Phase::Suspect,
        ] {
            assert!(!reached(Until::Started, phase.clone()), "{phase:?}");
        }
        let over = [
            Phase::Running,
            Phase::Paused(PauseCause::Exited(0)),
            Phase::Closing(EndCause::Budget),
            Phase::Closed(EndCause::NotStarted),
        ];
        for phase in over {
            assert!(reached(Until::Started, phase.clone()), "{phase:?}");
        }
    }

    #[test]
    fn closing_is_not_gone() {
        assert!(!reached(Until::Gone, Phase::Closing(EndCause::Renter)));
        assert!(!reached(Until::Gone, Phase::Paused(PauseCause::Renter)));
        assert!(reached(Until::Gone, Phase::Closed(EndCause::Renter)));
        assert!(!reached(Until::Stopped, Phase::Running));
    }

    #[test]
    fn stopped_is_what_the_host_says_and_not_what_the_broker_wants() {
        let mut view = lease(1, "brave-otter", Phase::Paused(PauseCause::Renter)).view;
        for going_on in [None, Some(ContainerState::Running)] {
            view.container = going_on;
            assert!(!Until::Stopped.reached(&view), "{:?}", view.container);
        }
        view.container = Some(ContainerState::Stopped(StopReason::Asked));
        assert!(Until::Stopped.reached(&view));
    }
}
