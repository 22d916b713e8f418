//! `feira-host init`: makes the folder, the key and `host.toml`, and changes nothing that is there but the
//! list of brokers.

use super::Place;
use crate::args::Init;
use crate::config::{self, Config, template};
use protocol::ids::HostId;
use protocol::operator::{Exit, Failure, write_new, write_over};
use std::io;

/// Makes what is missing and says what comes next.
pub(super) fn init(place: &Place, init: &Init) -> Result<Exit, Failure> {
    place.check_owner("init …")?;
    let (key, file) = (place.folder.key(), place.folder.config());
    let (identity, key_made) = place.make_key()?;
    let failed = |error: io::Error| {
        Failure::new(
            Exit::Failed,
            format!("could not write {}: {error}", file.display()),
        )
    };
    let settings_made = write_new(&file, &template::text(&init.brokers)).map_err(failed)?;
    let added = if settings_made {
        init.brokers.len()
    } else {
        add_brokers(place, &init.brokers)?
    };
    let settings = Config::read(&file).map_err(|error| place.settings_failed(&error))?;
    let host = HostId::from(identity.public());
    if place.printer.is_json() {
        place.printer.document(&serde_json::json!({
            "schema": "feira.host-init/1",
            "host": host.to_string(),
            "data": place.folder.path(),
            "key_made": key_made,
            "settings_made": settings_made,
            "brokers": settings.brokers.iter().map(|known| known.broker.to_string()).collect::<Vec<_>>(),
            "brokers_added": added,
        }));
    } else {
        let done = |made: bool| if made { "made" } else { "kept" };
        place.printer.line(&format!("host      {host}"));
        place.printer.line(&format!(
            "key       {} ({}; back it up)",
            key.display(),
            done(key_made)
        ));
        place.printer.line(&format!(
            "settings  {} ({})",
            file.display(),
            done(settings_made)
        ));
        for known in &settings.brokers {
            place.printer.line(&format!("broker    {}", known.broker));
        }
    }
    let next = if settings.brokers.is_empty() {
        "init --broker ADDRESS"
    } else {
        "doctor"
    };
    place
        .printer
        .note(&format!("Next: {}", place.command(next)));
    Ok(Exit::Done)
}

/// Adds brokers that the settings do not have; how many.
fn add_brokers(place: &Place, brokers: &[String]) -> Result<usize, Failure> {
    let file = place.folder.config();
    let settings = place.config()?;
    let known = |typed: &String| {
        config::broker_address(typed).is_ok_and(|(broker, address)| {
            settings
                .brokers
                .iter()
                .any(|known| known.broker == broker && known.addresses.contains(&address))
        })
    };
    let new: Vec<&String> = brokers.iter().filter(|typed| !known(typed)).collect();
    if new.is_empty() {
        return Ok(0);
    }
    let failed = |error: io::Error| {
        Failure::new(
            Exit::Failed,
            format!("could not change {}: {error}", file.display()),
        )
    };
    let mut text = std::fs::read_to_string(&file).map_err(failed)?;
    for broker in &new {
        text = template::with_broker(&text, broker).ok_or_else(|| {
            Failure::new(
                Exit::Failed,
                format!("{} was edited, so it is not changed", file.display()),
            )
            .help(format!("add this to its `brokers`: \"{broker}\""))
        })?;
    }
    Config::parse(&file, &text).map_err(|error| place.settings_failed(&error))?;
    write_over(&file, &text).map_err(failed)?;
    Ok(new.len())
}
