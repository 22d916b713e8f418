//! `feira end`: ends leases and deletes their disks. Every name is checked before the first is ended.

use crate::args::EndArgs;
use crate::ask;
use crate::context::{Context, lease_of};
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::follow::{Until, follow};
use crate::names::{self, Match};
use crate::view::{Held, cancelled, lease_listing, lease_object};
use protocol::lease::{LeaseView, Phase};
use protocol::message::{BrokerRequest, LeaseScope};
use protocol::order::{LeaseAction, LeaseCommand};
use protocol::units::{MicroUsd, Timestamp};
use std::time::Duration;

/// How long the host may take to say that all is gone; afterwards the lease is still closing.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// What takes longer than this is said to be under way.
pub(crate) const SOON: Duration = Duration::from_millis(100);

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &EndArgs) -> Result<Exit, Failure> {
    let may_go_on = arguments.yes || arguments.dry_run || context.settings.may_ask;
    if !may_go_on {
        let names = arguments.names.join(" ");
        let what =
            format!("ending {names} deletes its disk and needs a yes, and there is no terminal");
        return Err(Failure::new(Code::NeedsYes, what).help(format!("feira end {names} --yes")));
    }
    let leases = all_of(context, &arguments.names).await?;
    if arguments.dry_run {
        let held: Vec<Held> = leases.into_iter().map(|(held, _)| held).collect();
        context
            .printer
            .list(&lease_listing(&held, context.now(), false))?;
        return Ok(Exit::Done);
    }
    agree(context, arguments, &leases)?;
    let mut closing = Vec::new();
    for (held, _) in &leases {
        if matches!(held.view.phase, Phase::Closed(_)) {
            context
                .printer
                .say(&format!("{} is over already", held.view.name));
        } else {
            closing.push(command(context, held, LeaseAction::End).await?);
        }
    }
    for held in &closing {
        see_gone(context, held).await?;
    }
    Ok(Exit::Done)
}

/// All leases that were named; none is touched when one of the names is wrong.
pub(crate) async fn all_of(
    context: &Context,
    names: &[String],
) -> Result<Vec<(Held, Match)>, Failure> {
    let open = context.leases(LeaseScope::Open).await?;
    let mut found: Vec<(Held, Match)> = Vec::new();
    for typed in names {
        let (held, how) = match names::resolve(typed, &open) {
            Ok((held, how)) => (held.clone(), how),
            Err(failure) if failure.code() == Code::NoSuchLease => {
                context.lease_and_match(typed).await?
            }
            Err(failure) => return Err(failure),
        };
        if !found.iter().any(|(known, _)| known.view.id == held.view.id) {
            found.push((held, how));
        }
    }
    Ok(found)
}

/// Gets a yes. `--yes` is one for whole names and ids only: a beginning could mean another lease tomorrow.
fn agree(context: &Context, arguments: &EndArgs, leases: &[(Held, Match)]) -> Result<(), Failure> {
    let begun = leases.iter().find(|(_, how)| *how == Match::Beginning);
    if arguments.yes {
        for (held, _) in leases {
            if let Some(line) = given_back(&held.view, context.now()) {
                context.printer.say(&format!("{}: {line}", held.view.name));
            }
        }
        return match begun {
            None => Ok(()),
            Some((held, _)) => {
                let what = "--yes wants the whole name or id of what it deletes";
                Err(Failure::new(Code::NeedsYes, what)
                    .help(format!("feira end {} --yes", held.view.name)))
            }
        };
    }
    let held: Vec<Held> = leases.iter().map(|(held, _)| held.clone()).collect();
    for held in &held {
        context.printer.say(&format!(
            "{} ({}): {}, {}",
            held.view.name,
            held.view.id.short(),
            held.view.phase.word(),
            what_it_means(&held.view)
        ));
        if let Some(line) = given_back(&held.view, context.now()) {
            context.printer.say(&format!("  {line}"));
        }
    }
    let question = match held.as_slice() {
        [only] if only.view.phase == Phase::Resting => {
            format!("Withdraw the bid {}?", only.view.name)
        }
        [only] => format!("End {} and delete its disk?", only.view.name),
        several => format!("End {} leases and delete their disks?", several.len()),
    };
    if ask::confirm(context, &question)? {
        Ok(())
    } else {
        Err(ask::declined())
    }
}

fn what_it_means(view: &LeaseView) -> String {
    if view.phase == Phase::Resting {
        return format!(
            "the bid will be withdrawn, {} held for it is free again",
            view.held
        );
    }
    let charged = view.charged.total();
    format!(
        "{} of disk will be deleted, {charged} charged so far",
        view.disk
    )
}

/// What ending a prepaid term now gives back.
fn given_back(view: &LeaseView, now: Timestamp) -> Option<String> {
    let (term, cancel) = (view.term?, cancelled(view, now)?);
    let kept = cancel.host.saturating_add(cancel.broker);
    Some(format!(
        "{} was prepaid for {} days: {} comes back, {kept} of what is left is kept as the price of ending early",
        term.prepaid, term.days, cancel.refund
    ))
}

/// Waits for the host to say that all is gone. It settles its last seconds with that; the end itself does not
/// wait for it.
async fn see_gone(context: &Context, closing: &Held) -> Result<(), Failure> {
    let name = &closing.view.name;
    let gone = follow(context, closing, Until::Gone, |_| ());
    tokio::pin!(gone);
    let soon = tokio::time::timeout(SOON, &mut gone).await;
    if soon.is_err() {
        context.printer.say(&format!(
            "Ending {name}: its programs are told to stop, and stopped if they do not"
        ));
    }
    let outcome = match soon {
        Ok(outcome) => Ok(outcome),
        Err(_) => tokio::time::timeout(GONE_WITHIN, &mut gone).await,
    };
    let now = match outcome {
        Ok(now) => now?,
        Err(_) => closing.clone(),
    };
    if !context.printer.format().is_for_people() {
        return context.printer.object(&lease_object(&now, context.now()));
    }
    let charged = now.view.charged.total();
    let refunded = now.view.term.map_or(MicroUsd::ZERO, |term| term.refunded);
    let how = if closing.view.place.is_none() {
        "is withdrawn: nothing was charged, and what was held is free again".to_owned()
    } else if matches!(now.view.phase, Phase::Closed(_)) {
        format!("ended: container and disk are gone, {charged} charged")
    } else {
        format!("ended: {charged} charged so far, the host has still to say that it is gone")
    };
    context.printer.done(&format!("{name} {how}"));
    if refunded > MicroUsd::ZERO {
        context
            .printer
            .done(&format!("{refunded} of the prepaid term came back"));
    }
    if closing.view.place.is_some() {
        context.printer.hint(&format!("  feira receipt {name}"));
    }
    Ok(())
}

/// What to do instead, when a lease is in a phase in which a command cannot be done.
fn way_on(view: &LeaseView, action: LeaseAction) -> String {
    let name = &view.name;
    match (&view.phase, action) {
        (Phase::Resting, LeaseAction::Stop | LeaseAction::Resume) => {
            format!("it has not started; withdraw it: feira end {name}")
        }
        (Phase::Paused(cause), LeaseAction::Resume) if cause.resumes_by_itself() => format!(
            "it resumes by itself when its bid wins; bid more: feira bid set {name} --max-price …"
        ),
        _ => format!("see how it stands: feira show {name}"),
    }
}

/// Signs and sends one command about a lease.
pub(crate) async fn command(
    context: &Context,
    held: &Held,
    action: LeaseAction,
) -> Result<Held, Failure> {
    let signed = context.sign(
        held.broker,
        LeaseCommand {
            lease: held.view.id,
            action,
        },
    )?;
    let request = BrokerRequest::Command(signed.signed().clone());
    let reply = context
        .session_with(held.broker)
        .await?
        .ask(held.broker, &request)
        .await
        .map_err(|failure| {
            if failure.code() == Code::WrongPhase {
                return failure.help(way_on(&held.view, action));
            }
            failure
        })?;
    lease_of(held.broker, reply)
}
