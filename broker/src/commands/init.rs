//! `feira-broker init`: makes the folder, the key and `broker.toml`, and changes nothing that is there.

use super::Place;
use crate::args::Init;
use crate::config::{Config, difference, template};
use crate::store::Store;
use protocol::ids::BrokerId;
use protocol::net::{Identity, Multiaddr, parse_address};
use protocol::operator::{Exit, Failure, write_new};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// Makes what is missing and says what to give to hosts and renters.
pub(super) fn init(place: &Place, init: &Init) -> Result<Exit, Failure> {
    let (key, config) = (place.folder.key(), place.folder.config());
    if init.if_missing && key.exists() && config.exists() {
        return Ok(Exit::Done);
    }
    let text = template(init);
    Config::parse(&config, &text).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let (identity, key_made) = place.make_key()?;
    let books_made = make_books(place, &identity, key_made || init.empty_books)?;
    let config_made = write_new(&config, &text).map_err(|error| {
        Failure::new(
            Exit::Failed,
            format!("could not write {}: {error}", config.display()),
        )
    })?;
    let settings = Config::read(&config).map_err(|error| place.settings_failed(&error))?;
    let addresses = shown_addresses(&settings, &identity);
    let broker = BrokerId::from(identity.public());
    if place.printer.is_json() {
        place.printer.document(&serde_json::json!({
            "schema": "feira.broker-init/1",
            "broker": broker.to_string(),
            "data": place.folder.path(),
            "key_made": key_made,
            "config_made": config_made,
            "books_made": books_made,
            "addresses": addresses,
        }));
    } else {
        let done = |made: bool| if made { "made" } else { "kept" };
        place.printer.line(&format!("broker    {broker}"));
        place.printer.line(&format!(
            "key       {} ({}; back it up)",
            key.display(),
            done(key_made)
        ));
        place.printer.line(&format!(
            "settings  {} ({})",
            config.display(),
            done(config_made)
        ));
        if books_made {
            let journal = place.folder.journal();
            place
                .printer
                .line(&format!("books     {} (made)", journal.display()));
        }
        for address in &addresses {
            place.printer.line(&format!("address   {address}"));
        }
    }
    if let Some(flag) = difference(&settings, init) {
        let said = format!(
            "{} was there already and says otherwise than {flag}: edit it",
            config.display()
        );
        place.printer.note(&said);
    }
    let give = if addresses.is_empty() {
        "Its addresses are known once it runs"
    } else {
        "Give an address to hosts (feira-host init --broker …) and renters (feira init --broker …)"
    };
    place
        .printer
        .note(&format!("{give}. Next: {}", place.command("run")));
    Ok(Exit::Done)
}

/// Begins the journal with the key. Later it is never begun again: an empty one would be a broker that
/// forgot whose money it has.
fn make_books(place: &Place, identity: &Identity, may_begin: bool) -> Result<bool, Failure> {
    if !may_begin || place.has_books() {
        return Ok(false);
    }
    Store::create(place.folder.path(), BrokerId::from(identity.public()))
        .and_then(|(store, _)| store.close())
        .map(|()| true)
        .map_err(|error| place.store_failed(&error))
}

/// The announced addresses, or those listened at, with this machine's address where all are listened at.
/// A port that is chosen at the start is not known yet.
fn shown_addresses(settings: &Config, identity: &Identity) -> Vec<String> {
    let from = if settings.announce.is_empty() {
        &settings.listen
    } else {
        &settings.announce
    };
    let fixed = from.iter().filter(|address| !has_free_port(address));
    fixed
        .map(|address| format!("{}/p2p/{}", of_this_machine(address), identity.peer_id()))
        .collect()
}

fn has_free_port(address: &Multiaddr) -> bool {
    let text = format!("{address}/");
    text.contains("/tcp/0/") || text.contains("/udp/0/")
}

fn of_this_machine(address: &Multiaddr) -> Multiaddr {
    let text = address.to_string();
    let Some(rest) = text.strip_prefix("/ip4/0.0.0.0/") else {
        return address.clone();
    };
    let local = outward_address().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    parse_address(&format!("/ip4/{local}/{rest}")).unwrap_or_else(|_| address.clone())
}

/// The address from which this machine would speak to another network. Nothing is sent: connecting a
/// datagram socket only chooses a route.
fn outward_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(203, 0, 113, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}
