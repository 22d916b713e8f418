//! `feira-host doctor`: what is right, what is doubtful, what is wrong, and how to mend it. It changes nothing,
//! and nothing needs to be listed for it.

mod brokers;
mod engine;
mod gpus;
mod machine;
mod versions;

use super::{Place, block_on};
use crate::config::Config;
use protocol::ids::HostId;
use protocol::net::Identity;
use protocol::operator::doctor::{Check, key, report, settings};
use protocol::operator::{Exit, Failure};
use std::os::unix::fs::PermissionsExt;

/// Looks at everything; fails when something is wrong.
pub(super) fn doctor(place: &Place) -> Result<Exit, Failure> {
    let checks = block_on(all(place))?;
    Ok(report(&place.printer, &checks, ": not ready to list"))
}

/// All checks, in the order in which things depend on each other; one that fails hides no other.
async fn all(place: &Place) -> Vec<Check> {
    let config = Config::read(&place.folder.config());
    let identity = Identity::load(&place.folder.key());
    let mut checks = vec![
        settings(place, &config),
        key(place, &identity, HostId::from),
        data(place),
    ];
    let host = identity
        .as_ref()
        .map_or(NOBODY, |identity| HostId::from(identity.public()));
    // Engine and machine can be looked at before there are settings: with the defaults.
    let defaults = || Config::parse(&place.folder.config(), "");
    let used = config.or_else(|_| defaults());
    if let Ok(used) = used {
        checks.extend(engine::checks(&used, host).await);
        checks.extend(machine::checks(place, &used, host).await);
        checks.extend(super::health::checks(place));
        checks.extend(brokers::checks(place, &used).await);
    }
    checks.push(listing(place));
    checks
}

/// Stands for a host that has no key yet: it has no containers.
const NOBODY: HostId = HostId::from_bytes([0; 32]);

fn data(place: &Place) -> Check {
    let path = place.folder.path();
    match std::fs::metadata(path) {
        Ok(found) => {
            let mode = found.permissions().mode() & 0o7777;
            if mode & 0o077 == 0 {
                return Check::ok("data", format!("{}, mode {mode:04o}", path.display()));
            }
            let fix = format!("chmod 0700 {}", path.display());
            Check::fail(
                "data",
                format!("others may reach {}: mode {mode:04o}", path.display()),
                fix,
            )
        }
        Err(error) => Check::fail(
            "data",
            format!("{}: {error}", path.display()),
            place.command("init"),
        ),
    }
}

fn listing(place: &Place) -> Check {
    match place.listing() {
        Ok(Some(listing)) => {
            let price = listing.prices.compute;
            Check::ok(
                "listing",
                format!("{} resources at {price} each", listing.resources.len()),
            )
        }
        Ok(None) => Check::warn(
            "listing",
            "not listed yet",
            place.command("list --price 0.35"),
        ),
        Err(failure) => Check::failed("listing", failure),
    }
}
