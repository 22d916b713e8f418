//! `feira wait`: returns when a lease is where one wants it, so that nobody writes loops.

use crate::args::{WaitArgs, WaitFor};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::follow::{Until, follow};
use crate::news::News;
use crate::view::{Held, lease_object, phase_in_words};
use protocol::lease::Phase;
use std::time::Duration;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &WaitArgs) -> Result<Exit, Failure> {
    let held = context.lease(&arguments.name).await?;
    let until = match arguments.until {
        WaitFor::Ready => Until::Started,
        WaitFor::Stopped => Until::Stopped,
        WaitFor::Ended => Until::Gone,
        WaitFor::Noticed => Until::Noticed,
    };
    let mut last = held.view.phase.clone();
    let mut news = News::since(&held.view);
    let following = follow(context, &held, until, |view| {
        last.clone_from(&view.phase);
        for line in news.heard(view, context.now()) {
            context.printer.say(&line);
        }
    });
    let limit = Duration::from_secs(arguments.timeout.0);
    let Ok(now) = tokio::time::timeout(limit, following).await else {
        let name = &held.view.name;
        let what = match (arguments.until, &last) {
            // The broker's word is there; the host's is not.
            (WaitFor::Stopped, Phase::Paused(_)) => format!(
                "the host of {name} has not said within {} that it has stopped; it is not billed for running",
                arguments.timeout
            ),
            _ => format!(
                "{name} is {} after {}",
                phase_in_words(&last),
                arguments.timeout
            ),
        };
        return Err(Failure::new(Code::TimedOut, what).help(format!("feira show {name}")));
    };
    let now = now?;
    if !is_there(arguments.until, &now) {
        let what = format!("{} is {}", now.view.name, phase_in_words(&now.view.phase));
        return Err(
            Failure::new(Code::LeaseEnded, what).help(format!("feira show {}", now.view.name))
        );
    }
    if context.printer.format().is_for_people() {
        let state = phase_in_words(&now.view.phase);
        context
            .printer
            .done(&format!("{} is {state}", now.view.name));
    } else {
        context.printer.object(&lease_object(&now, context.now()))?;
    }
    Ok(Exit::Done)
}

/// Whether the lease is where it was wanted, and not only where waiting has become pointless.
fn is_there(wanted: WaitFor, now: &Held) -> bool {
    match wanted {
        WaitFor::Ready => matches!(now.view.phase, Phase::Running | Phase::Noticed(..)),
        WaitFor::Stopped => matches!(now.view.phase, Phase::Paused(_)),
        WaitFor::Noticed => {
            matches!(now.view.phase, Phase::Noticed(..) | Phase::Paused(_))
        }
        WaitFor::Ended => matches!(now.view.phase, Phase::Closed(_)),
    }
}
