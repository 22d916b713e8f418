//! `feira-host list` and `unlist`: what is sold and for how much, told to the agent that runs or written for
//! the next one.

use super::measuring::Seen;
use super::{Place, block_on, offers};
use crate::admin::wire::{AdminReply, AdminRequest, OfferRow};
use crate::agent::offer_row;
use crate::args::List;
use crate::clock;
use crate::config::Config;
use crate::core::offer::{Listing, resources_of};
use crate::journal::Journal;
use protocol::ids::HostId;
use protocol::machine::ContainerNetwork;
use protocol::operator::{Exit, Failure};
use protocol::terms::{Limits, Prices};
use protocol::units::{Bytes, Seconds, Timestamp};

/// RAM that is left to the system unless the owner says otherwise.
const RAM_KEPT: u64 = 16;
/// Offered RAM is a multiple of this, so that it stays the same when the kernel takes a page more.
const RAM_STEP: u64 = 64 << 20;

/// Lists the machine.
pub(super) fn list(place: &Place, list: &List) -> Result<Exit, Failure> {
    check_price(place, list)?;
    let (config, identity) = (place.config()?, place.identity()?);
    let host = HostId::from(identity.public());
    let network = ContainerNetwork::from(list.network);
    let seen = block_on(place.look(&config, host, network))??;
    let listed_before = place.listing()?.map(|listing| listing.listed_at);
    let listing = listing(
        list,
        &config,
        &seen,
        listed_before.unwrap_or_else(clock::wall),
    )?;
    warn(place, list, &config, &seen);
    let request = AdminRequest::List(Box::new(listing.clone()));
    let rows = match place.ask_if_running(&request)? {
        Some(AdminReply::Offers(rows)) => rows,
        Some(
            AdminReply::Status(_)
            | AdminReply::Leases(_)
            | AdminReply::Earnings(_)
            | AdminReply::Done
            | AdminReply::Refused(_),
        ) => return Err(place.unexpected()),
        None => {
            place.check_owner("list …")?;
            write(place, &config, host, &seen, listing)?
        }
    };
    offers::print(place, &rows, offers::Depth::Said);
    Ok(Exit::Done)
}

/// Nobody gives a machine away by a slip of the finger.
fn check_price(place: &Place, list: &List) -> Result<(), Failure> {
    match (list.price.0, list.free) {
        (0, false) => {
            let what = "--price 0 gives the machine away: renters would pay nothing for computing";
            let free = place.command("list --price 0 --free");
            let help = format!(
                "if that is meant: {free}\nif not, name a price: {}",
                place.command("list --price 0.35")
            );
            Err(Failure::new(Exit::Usage, what).help(help))
        }
        (price, true) if price > 0 => {
            let what = format!(
                "--free means --price 0, and --price {} was given",
                list.price.amount()
            );
            Err(Failure::new(Exit::Usage, what).help("leave one of them out"))
        }
        (_, _) => Ok(()),
    }
}

/// Takes the machine off the market.
pub(super) fn unlist(place: &Place) -> Result<Exit, Failure> {
    if place.listing()?.is_none() {
        return Err(place.not_listed());
    }
    let asked: Option<AdminReply> = place.ask_if_running(&AdminRequest::Unlist)?;
    if asked.is_none() {
        place.check_owner("unlist")?;
        let (mut journal, _) =
            Journal::open(place.folder.path()).map_err(|error| place.journal_failed(&error))?;
        journal
            .set_listing(None)
            .map_err(|error| place.journal_failed(&error))?;
    }
    if place.printer.is_json() {
        place
            .printer
            .document(&serde_json::json!({ "schema": "feira.host-unlist/1", "listed": false }));
    } else {
        place
            .printer
            .line("not listed any more; leases that run go on");
    }
    place
        .printer
        .note(&format!("Which are there? {}", place.command("leases")));
    Ok(Exit::Done)
}

/// No agent runs: the listing is written for the next one.
fn write(
    place: &Place,
    config: &Config,
    host: HostId,
    seen: &Seen,
    listing: Listing,
) -> Result<Vec<OfferRow>, Failure> {
    let (mut journal, _) =
        Journal::open(place.folder.path()).map_err(|error| place.journal_failed(&error))?;
    let listed = place.offers_of(host, &seen.machine, &listing, config)?;
    journal
        .set_listing(Some(&listing))
        .map_err(|error| place.journal_failed(&error))?;
    place.printer.note(&format!(
        "No agent runs yet. Start it: {}",
        place.command("run")
    ));
    Ok(listed
        .iter()
        .map(|listed| offer_row(listed, None))
        .collect())
}

fn listing(
    list: &List,
    config: &Config,
    seen: &Seen,
    listed_at: Timestamp,
) -> Result<Listing, Failure> {
    let machine = &seen.machine;
    let resources = resources_of(machine);
    let usage = |what: String| Failure::new(Exit::Usage, what);
    let cores = list.cpus.unwrap_or(machine.cpu_cores);
    if cores > machine.cpu_cores {
        return Err(usage(format!(
            "--cpus {cores}: this machine has {}",
            machine.cpu_cores
        )));
    }
    let kept = machine.ram.0 / RAM_KEPT;
    let ram = list
        .ram
        .map_or(Bytes(machine.ram.0.saturating_sub(kept)), Bytes::from_gb);
    if ram > machine.ram {
        return Err(usage(format!(
            "--ram {}: this machine has {}",
            ram.gb(),
            machine.ram
        )));
    }
    let free = Bytes(machine.disk_free.0.saturating_sub(config.disk_reserve.0));
    let parts = u64::try_from(resources.len()).unwrap_or(1).max(1);
    let disk_max = list.disk_max.unwrap_or(free.gb() * 4 / 5 / parts);
    if disk_max == 0 || Bytes::from_gb(disk_max) > machine.disk_total {
        let free = machine.disk_free;
        return Err(usage(format!(
            "a disk of {disk_max} GB for each lease cannot be promised: {free} are free under {}, and {} are kept",
            seen.facts.data_root, config.disk_reserve
        )));
    }
    Ok(Listing {
        resources,
        chunks: protocol::offer::Chunks::Any,
        gpus_min: 1,
        sales: protocol::terms::Sales::default(),
        prices: Prices {
            compute: list.price,
            storage: list.storage,
            upload: list.upload,
            download: list.download,
        },
        limits: Limits {
            start_within: list.start_within,
            duration_min: Seconds(0),
            until: None,
            notice: Seconds(120),
            duration_max: list.max_hours.map(|hours| Seconds(hours * 3600)),
            stop_grace: list.stop_grace,
            disk_max: Bytes::from_gb(disk_max),
        },
        network: list.network.into(),
        cpu_millicores: u32::from(cores) * 1000,
        ram: Bytes(ram.0 / RAM_STEP * RAM_STEP),
        listed_at,
    })
}

/// What an owner should know before strangers' programs run here.
fn warn(place: &Place, list: &List, config: &Config, seen: &Seen) {
    match ContainerNetwork::from(list.network) {
        ContainerNetwork::Bridge => place.printer.note(
            "warning: containers on the bridge can reach this machine's own network: no fence between them \
             exists yet. Use --network none unless nothing there would mind.",
        ),
        ContainerNetwork::None => {}
    }
    if list.free {
        place.printer.note(&format!(
            "warning: computing is given away; disk still costs renters {}.",
            list.storage
        ));
    }
    if config.brokers.is_empty() {
        place.printer.note(&format!(
            "warning: no broker is set, so nobody will see this. Add one: {}",
            place.command("init --broker ADDRESS")
        ));
    }
    if seen.machine.gpus.is_empty() {
        place.printer.note(
            "This machine has no usable GPU: it is offered as a CPU machine (gpu_name=none).",
        );
    } else if !seen
        .facts
        .runtimes
        .iter()
        .any(|runtime| runtime == "nvidia")
    {
        place.printer.note(
            "warning: the engine has no NVIDIA runtime, so containers cannot get the GPUs. \
             Install the NVIDIA Container Toolkit, then restart Docker.",
        );
    }
}
