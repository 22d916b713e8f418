//! The checks of `doctor`, each by itself, so that one that fails hides no other.

use crate::admin::shown::local;
use crate::admin::wire::{AdminReply, AdminRequest, Status};
use crate::clock::{Clock, behind};
use crate::commands::Place;
use crate::config::Config;
use crate::ports::check_free;
use crate::store;
use protocol::ids::{BrokerId, RenterId};
use protocol::net::{Identity, IdentityError, Multiaddr};
use protocol::operator::doctor::{Check, key, settings};
use protocol::operator::{AskError, MetricsAddress, PageError, ask, counted};
use protocol::units::{Bytes, Timestamp};
use std::net::TcpListener;

/// Below this the journal may not last for long.
const DISK_FREE_MIN: Bytes = Bytes(1_000_000_000);
/// 2025-01-01: a machine whose clock is before it was never set.
const EARLIEST: Timestamp = Timestamp(1_735_689_600_000);

/// All of them, in the order in which things depend on each other.
pub(super) fn all(place: &Place) -> Vec<Check> {
    let config = Config::read(&place.folder.config());
    let running = running(place);
    let identity = Identity::load(&place.folder.key());
    let mut checks = vec![
        settings(place, &config),
        key(place, &identity, BrokerId::from),
    ];
    if place.has_books() {
        checks.extend(journal(place));
    } else if place.folder.key().exists() {
        checks.push(Check::failed("journal", place.books_missing()));
    } else {
        let fix = format!("it is made by: {}", place.command("init"));
        checks.push(Check::warn("journal", "none yet", fix));
    }
    checks.push(disk(place));
    checks.push(clock());
    if let Ok(config) = &config {
        checks.push(reach(config));
        checks.push(proofs(config, &identity));
        checks.extend(ports(config, running.is_ok()));
    }
    checks.push(match running {
        Ok(status) => Check::ok(
            "running",
            format!(
                "process {}, {}, {}",
                status.pid,
                counted(status.hosts, "host"),
                counted(status.offers, "offer")
            ),
        ),
        Err(check) => check,
    });
    checks
}

fn journal(place: &Place) -> Vec<Check> {
    let report = match store::check(place.folder.path()) {
        Ok(report) => report,
        Err(error) => return vec![Check::failed("journal", place.store_failed(&error))],
    };
    let size = std::fs::metadata(place.folder.journal()).map_or(0, |metadata| metadata.len());
    let journal = format!(
        "{}, {}, read from the first to the last",
        counted(report.last_event, "event"),
        Bytes(size)
    );
    let ledger = if report.problems.is_empty() {
        Check::ok(
            "ledger",
            "the sum of all entries is zero, no balance is below it",
        )
    } else {
        let fix =
            "stop the broker, and go back to the last backup: feira-broker restore FILE --replace";
        Check::fail("ledger", report.problems.join("; "), fix)
    };
    let journal = match behind(Clock::system().now(), report.last_at) {
        None => Check::ok("journal", journal),
        Some(ahead) => Check::fail(
            "journal",
            format!(
                "its last event is {ahead} ahead of this machine's clock: the times in the books are wrong by so much"
            ),
            "see that the clock is right: timedatectl; if it was ahead before, a backup from before that helps",
        ),
    };
    vec![journal, ledger]
}

fn disk(place: &Place) -> Check {
    match rustix::fs::statvfs(place.folder.path()) {
        Ok(found) => {
            let free = Bytes(found.f_bavail.saturating_mul(found.f_frsize));
            if free < DISK_FREE_MIN {
                return Check::fail(
                    "disk",
                    format!("{free} free"),
                    "make room: a broker whose disk is full stops",
                );
            }
            Check::ok("disk", format!("{free} free"))
        }
        Err(error) => Check::fail(
            "disk",
            format!("not found out: {error}"),
            place.command("init"),
        ),
    }
}

fn clock() -> Check {
    let now = Clock::system().now();
    if now < EARLIEST {
        return Check::fail(
            "clock",
            local(now),
            "set the clock: timedatectl set-ntp true",
        );
    }
    Check::ok("clock", local(now))
}

/// Whether anybody else can reach the broker.
fn reach(config: &Config) -> Check {
    let own = |address: &Multiaddr| {
        let text = address.to_string();
        text.starts_with("/ip4/127.") || text.starts_with("/ip6/::1/")
    };
    let shown = if config.announce.is_empty() {
        &config.listen
    } else {
        &config.announce
    };
    if shown.iter().all(own) {
        let fix =
            "set `listen` to /ip4/0.0.0.0/tcp/7700, or `announce` to the address that others dial";
        return Check::warn(
            "reach",
            "only programs on this machine can reach the broker",
            fix,
        );
    }
    let list: Vec<String> = shown.iter().map(ToString::to_string).collect();
    Check::ok("reach", list.join(", "))
}

/// Whether hardware is put to the proof, and what pays for it.
fn proofs(config: &Config, identity: &Result<Identity, IdentityError>) -> Check {
    let Some(proofs) = &config.proofs else {
        return Check::ok(
            "proofs",
            "off: `proof_images` names no image with the prover, so every offer is shown as not verified",
        );
    };
    let images = u64::try_from(proofs.images.len()).unwrap_or(u64::MAX);
    let account = identity.as_ref().map_or_else(
        |_| "-".to_owned(),
        |own| RenterId::from(own.public()).to_string(),
    );
    Check::ok(
        "proofs",
        format!(
            "{}, {} classes of your own; paid from the account {account}",
            counted(images, "image"),
            proofs.classes.own.len()
        ),
    )
}

/// Whether the ports are free; a broker that runs has them.
fn ports(config: &Config, is_running: bool) -> Option<Check> {
    if is_running {
        return None;
    }
    let taken = |what: String, port: u16, setting: &str| {
        let fix =
            format!("stop the program that has it (ss -lnp | grep {port}), or change `{setting}`");
        Check::fail("ports", what, fix)
    };
    if let Err(error) = check_free(&config.listen) {
        return Some(taken(error.to_string(), error.port, "listen"));
    }
    // The usual one gives way by itself when it is taken.
    if let MetricsAddress::At(address) = config.metrics
        && let Err(source) = TcpListener::bind(address)
    {
        let error = PageError { address, source };
        return Some(taken(error.to_string(), address.port(), "metrics"));
    }
    Some(Check::ok("ports", "free, that of the metrics page too"))
}

fn running(place: &Place) -> Result<Status, Check> {
    let socket = place
        .socket()
        .map_err(|failure| Check::failed("running", failure))?;
    match ask(place.program, &socket, &AdminRequest::Status) {
        Ok(AdminReply::Status(status)) => Ok(*status),
        Ok(_) => Err(Check::fail(
            "running",
            "another version of the program",
            "start it again",
        )),
        Err(AskError::NotRunning { .. }) => Err(Check::warn(
            "running",
            "no",
            format!("start it: {}", place.command("run")),
        )),
        Err(error) => Err(Check::failed("running", place.ask_failed(&error))),
    }
}
