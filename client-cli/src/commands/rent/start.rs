//! Watches a lease start: stages, Ctrl-C, and what is said at the end.

use super::place::Placed;
use crate::commands::bid::to_win;
use crate::commands::end::command;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure, problem_in_words};
use crate::follow::{Until, follow};
use crate::news::News;
use crate::stages::{Stages, in_seconds};
use crate::view::{Held, clock_time, lease_object, phase_in_words};
use protocol::lease::{PauseCause, Phase, Problem};
use protocol::order::LeaseAction;
use protocol::units::Millis;
use std::cell::RefCell;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long a bid may take to win at once.
const SETTLES: Duration = Duration::from_secs(1);
/// A host that has not answered by then is said to be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// Watches the start of a new lease, and shows it.
pub(super) async fn finish(
    context: &Context,
    placed: Placed,
    detach: bool,
) -> Result<Exit, Failure> {
    let Placed { held, pending } = placed;
    context.cache().remember(std::slice::from_ref(&held));
    let held = settled(context, held).await?;
    if held.view.phase == Phase::Resting {
        pending.finish();
        return waits(context, &held);
    }
    if detach {
        show(context, &held, None)?;
        pending.finish();
        return Ok(Exit::Done);
    }
    let outcome = watch_start(context, &held).await;
    // While the broker does not answer the outcome is not known, and the next run goes on from the file.
    let is_known = outcome
        .as_ref()
        .err()
        .is_none_or(|failure| failure.code() != Code::BrokerFailed);
    if is_known {
        pending.finish();
    }
    outcome
}

/// A bid that wins at once does so within a moment: what is shown is how it came out.
async fn settled(context: &Context, held: Held) -> Result<Held, Failure> {
    if held.view.phase != Phase::Resting {
        return Ok(held);
    }
    let settled = follow(context, &held, Until::Settled, |_| ());
    match tokio::time::timeout(SETTLES, settled).await {
        Ok(now) => now,
        Err(_) => Ok(held),
    }
}

/// A bid that was placed and waits.
fn waits(context: &Context, held: &Held) -> Result<Exit, Failure> {
    let (view, printer) = (&held.view, &context.printer);
    if !printer.format().is_for_people() {
        printer.object(&lease_object(held, context.now()))?;
        return Ok(Exit::Done);
    }
    let (name, id) = (&view.name, view.id.short());
    let until = view.rests_until.map_or_else(String::new, |until| {
        format!(", valid until {}", clock_time(until))
    });
    printer.line(&format!("Bid placed: {name} ({id}){until}"))?;
    if let Some(words) = to_win(view) {
        printer.say(&format!("  {words}"));
    }
    printer.hint(&format!(
        "\n  feira wait {name} --for ready      feira bid set {name} --max-price …      feira end {name}"
    ));
    Ok(Exit::Done)
}

/// Watches a lease start, shows its stages and at last itself. The first Ctrl-C says what it means, the
/// second ends the lease, or stops one that ran before.
pub(crate) async fn watch_start(context: &Context, held: &Held) -> Result<Exit, Failure> {
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|error| Failure::new(Code::Bug, format!("no signals: {error}")))?;
    let stages = RefCell::new(Stages::begin(&context.printer, &held.view));
    let (outcome, took) = {
        let mut news = News::since(&held.view);
        let following = follow(context, held, Until::Started, |view| {
            stages.borrow_mut().show(view);
            let heard = news.heard(view, context.now());
            if is_told(&view.phase) {
                let stages = stages.borrow();
                heard.iter().for_each(|line| stages.beside(line));
            }
        });
        tokio::pin!(following);
        let mut pressed = false;
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(patience);
        let mut waited = false;
        let outcome = loop {
            tokio::select! {
                outcome = &mut following => break outcome,
                () = &mut patience, if !waited => {
                    waited = true;
                    let stages = stages.borrow();
                    if stages.is_unanswered() {
                        stages.beside(&unanswered(held));
                    }
                }
                _ = interrupts.recv() => {
                    if pressed {
                        return give_up(context, held).await;
                    }
                    pressed = true;
                    let (name, (_, does)) = (&held.view.name, way_out(held));
                    stages.borrow().beside(&format!(
                        "The host is still at it. Ctrl-C again {does} the lease; or let it go on: feira show {name}"
                    ));
                }
            }
        };
        (outcome, stages.borrow().elapsed())
    };
    stages.borrow_mut().clear();
    let now = outcome?;
    match &now.view.phase {
        Phase::Closing(cause) | Phase::Closed(cause) => return Err(Failure::of_end(cause)),
        Phase::Paused(PauseCause::ResumeFailed(problem)) => return Err(not_resumed(&now, problem)),
        Phase::Paused(_) => context.printer.warn(&format!(
            "{} started and is {}; its disk is kept and billed",
            now.view.name,
            phase_in_words(&now.view.phase)
        )),
        Phase::Resting
        | Phase::Clearing(_)
        | Phase::Offered
        | Phase::Accepted
        | Phase::Preparing
        | Phase::Running
        | Phase::Noticed(..)
        | Phase::Suspect => {}
    }
    show(context, &now, Some(took))?;
    Ok(Exit::Done)
}

/// Whether what happens there is no stage of a start.
const fn is_told(phase: &Phase) -> bool {
    matches!(
        phase,
        Phase::Clearing(_) | Phase::Noticed(..) | Phase::Paused(_) | Phase::Suspect
    )
}

/// A stopped lease that could not be started again; its disk is still there.
fn not_resumed(held: &Held, problem: &Problem) -> Failure {
    let name = &held.view.name;
    Failure::new(
        Code::StartFailed,
        format!("not started again: {}", problem_in_words(problem)),
    )
    .help(format!("its disk is kept; try again: feira resume {name}"))
    .help(format!("or delete it: feira end {name}"))
}

/// How one gets out of a start: a new lease is ended, one that ran before is stopped, since its disk has work.
fn way_out(held: &Held) -> (LeaseAction, &'static str) {
    match held.view.started_at {
        None => (LeaseAction::End, "ends"),
        Some(_) => (LeaseAction::Stop, "stops"),
    }
}

fn unanswered(held: &Held) -> String {
    let name = &held.view.name;
    let word = match held.view.started_at {
        None => "end",
        Some(_) => "stop",
    };
    let seconds = PATIENCE.as_secs();
    format!(
        "The host has not answered for {seconds} s. Nothing is billed; give it up: feira {word} {name}"
    )
}

/// Gets out of a start that was interrupted twice.
async fn give_up(context: &Context, held: &Held) -> Result<Exit, Failure> {
    let (action, _) = way_out(held);
    command(context, held, action).await?;
    let name = &held.view.name;
    let what = match held.view.started_at {
        None => format!("interrupted; {name} was ended, nothing is billed"),
        Some(_) => format!("interrupted; {name} is stopped again, its disk is kept and billed"),
    };
    Err(Failure::new(Code::Interrupted, what))
}

/// The answer: for people a sentence and what to type next, for programs the lease.
fn show(context: &Context, held: &Held, took: Option<Millis>) -> Result<(), Failure> {
    let printer = &context.printer;
    let (name, id) = (&held.view.name, held.view.id.short());
    if !printer.format().is_for_people() {
        return printer.object(&lease_object(held, context.now()));
    }
    match took {
        Some(took) if held.view.phase == Phase::Running => {
            printer.line(&format!("Ready in {}: {name} ({id})", in_seconds(took)))?;
            printer.hint(&format!(
                "\n  feira shell {name}      feira logs -f {name}      feira end {name}"
            ));
        }
        Some(_) => {
            printer.line(&format!("{}: {name} ({id})", held.view.phase.word()))?;
            printer.hint(&format!(
                "\n  feira logs {name}      feira resume {name}      feira end {name}"
            ));
        }
        None => {
            printer.line(&format!("Ordered: {name} ({id})"))?;
            printer.hint(&format!(
                "\n  feira wait {name} --for ready      feira show {name}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::lease;
    use protocol::units::Timestamp;

    #[test]
    fn giving_up_a_resume_does_not_delete_the_disk() {
        let mut held = lease(1, "brave-otter", Phase::Preparing);
        assert_eq!(way_out(&held), (LeaseAction::End, "ends"));
        assert!(unanswered(&held).ends_with("feira end brave-otter"));
        held.view.started_at = Some(Timestamp(1));
        assert_eq!(way_out(&held), (LeaseAction::Stop, "stops"));
        assert!(unanswered(&held).ends_with("feira stop brave-otter"));
    }
}
