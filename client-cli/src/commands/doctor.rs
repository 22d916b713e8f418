//! `feira doctor`: what has to be right, each with what was found and how to mend it.

mod check;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::session::{Broker, Session};
use crate::settings::BrokerAddresses;
use crate::tunnel;
use crate::view::Held;
use check::{Check, Finding};
use protocol::ids::RenterId;
use protocol::lease::Phase;
use protocol::message::LeaseScope;
use protocol::net::frames::MessageReader;
use protocol::signed::CLOCK_SKEW_MAX;
use protocol::tunnel::{Downward, Logs, Purpose};
use protocol::units::{Millis, Seconds};

/// Runs the command.
pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let mut checks = vec![config(context), key(context)];
    if checks.iter().all(|check| check.finding != Finding::Fail) {
        checks.extend(network(context).await);
    }
    check::show(&context.printer, &checks)
}

fn config(context: &Context) -> Check {
    let path = context.settings.config_path.display();
    if context.settings.config_path.exists() {
        return Check::ok("config", format!("{path}"));
    }
    Check::warn("config", format!("there is no {path}"), "feira init")
}

fn key(context: &Context) -> Check {
    match context.identity() {
        Ok(identity) => {
            let renter = RenterId::from(identity.public());
            Check::ok(
                "key",
                format!(
                    "{}, closed to others; you are {renter}",
                    context.settings.key.display()
                ),
            )
        }
        Err(failure) => of_failure("key", &failure),
    }
}

fn of_failure(what: &'static str, failure: &Failure) -> Check {
    let fix = failure.help_lines().first().cloned().unwrap_or_default();
    Check::fail(what, failure.what().to_owned(), &fix)
}

async fn network(context: &Context) -> Vec<Check> {
    let brokers = match context.settings.brokers() {
        Ok(brokers) => brokers,
        Err(failure) => return vec![of_failure("brokers", &failure)],
    };
    let mut checks = reach(context, brokers).await;
    if checks
        .iter()
        .any(|check| check.what == "broker" && check.finding == Finding::Ok)
    {
        checks.extend(leases(context).await);
    }
    checks
}

/// Each broker: whether it answers, how fast, its version, its clock.
async fn reach(context: &Context, brokers: &[BrokerAddresses]) -> Vec<Check> {
    let session = match context.identity() {
        Ok(identity) => Session::try_all(identity, brokers).await,
        Err(failure) => Err(failure),
    };
    let session = match session {
        Ok(session) => session,
        Err(failure) => return vec![of_failure("brokers", &failure)],
    };
    let mut checks = Vec::new();
    for broker in session.brokers() {
        let (latency, info) = (broker.latency.as_millis(), &broker.info);
        let found = format!(
            "{} in {latency} ms, version {}, {} offers, fee {}",
            broker.title(),
            info.version,
            info.offers,
            info.fee
        );
        checks.push(Check::ok("broker", found));
        checks.push(clock(broker));
    }
    for silent in session.silent() {
        let found = format!(
            "{} ({}): {}",
            silent.address,
            silent.id.short(),
            silent.reason
        );
        // One that answers is enough to work with.
        checks.push(if session.brokers().is_empty() {
            Check::fail("broker", found, "check the address and the network")
        } else {
            Check::warn(
                "broker",
                found,
                "check its address, or take it out of the configuration",
            )
        });
    }
    if session.brokers().is_empty() {
        session.close().await;
    } else {
        // The leases are looked at through those that answered, without waiting for the others again.
        context.keep(session).await;
    }
    checks
}

/// What is signed may be ahead of the broker's clock by half a minute and two minutes old.
fn clock(broker: &Broker) -> Check {
    let apart = broker.clock_ahead_ms();
    let side = if apart >= 0 { "behind" } else { "ahead of" };
    // A network answers in milliseconds; a clock that is wrong is so by minutes and hours.
    let length = match Millis(apart.unsigned_abs()) {
        Millis(near @ ..10_000) => format!("{near} ms"),
        far => far.seconds().to_string(),
    };
    let found = format!("{length} {side} the clock of {}", broker.id.short());
    let limit = CLOCK_SKEW_MAX.millis().0;
    let fix = "set this machine's clock: timedatectl set-ntp true";
    match apart.unsigned_abs() {
        far if far > limit => Check::fail("clock", found, fix),
        near if near > limit / 10 => Check::warn("clock", found, fix),
        _ => Check::ok("clock", found),
    }
}

/// The way to each running lease's host, tried with a request for none of its logs.
async fn leases(context: &Context) -> Vec<Check> {
    let open = match context.leases(LeaseScope::Open).await {
        Ok(open) => open,
        Err(failure) => return vec![of_failure("leases", &failure)],
    };
    let mut checks = Vec::new();
    for held in open.iter().filter(|held| held.view.phase == Phase::Running) {
        checks.push(match way_to(context, held).await {
            Ok(way) => Check::ok("lease", format!("{} is reached {way}", held.view.name)),
            Err(failure) => of_failure("lease", &failure),
        });
    }
    if checks.is_empty() {
        checks.push(Check::ok(
            "leases",
            format!("{} open, none running", open.len()),
        ));
    }
    checks
}

async fn way_to(context: &Context, held: &Held) -> Result<&'static str, Failure> {
    let nothing = Logs {
        follow: false,
        since: None,
        tail: Some(0),
        timestamps: false,
    };
    let mut open = tunnel::open(context, held, Purpose::Logs(nothing)).await?;
    let wait = std::time::Duration::from_secs(Seconds(10).0);
    let ended = tokio::time::timeout(wait, end_of(&mut open.from_host, held)).await;
    ended.map_err(|_| Failure::new(Code::TimedOut, "the host did not answer within 10 s"))??;
    Ok(if open.relayed {
        "through the broker's relay"
    } else {
        "directly"
    })
}

async fn end_of<S: tokio::io::AsyncRead + Unpin>(
    from_host: &mut MessageReader<S>,
    held: &Held,
) -> Result<(), Failure> {
    loop {
        let message = from_host.next::<Downward>().await;
        match message.map_err(|error| tunnel::broken(held, &error))? {
            Some(Downward::Output(_) | Downward::Errors(_)) => {}
            Some(Downward::Exit(_)) => return Ok(()),
            Some(Downward::Broken(detail)) => {
                return Err(Failure::new(Code::TunnelBroken, detail.to_string()));
            }
            None => {
                return Err(Failure::new(
                    Code::TunnelBroken,
                    "the host closed the connection",
                ));
            }
        }
    }
}
