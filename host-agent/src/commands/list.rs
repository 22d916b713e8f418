//! `feira-host list` and `unlist`: what is sold and for how much, told to the agent that runs or written for
//! the next one.

use super::measuring::Seen;
use super::{Place, block_on, offers};
use crate::admin::wire::{AdminReply, AdminRequest, LeaseRow, OfferRow};
use crate::agent::{Use, lease_row, offer_row};
use crate::args::Unlist;
use crate::clock;
use crate::config::Config;
use crate::core::offer::Listing;
use crate::journal::{self, Journal};
use crate::wishes::{GpuChoice, Wishes, partition, resolve};
use protocol::ids::HostId;
use protocol::machine::ContainerNetwork;
use protocol::operator::{Exit, Failure, counted};
use protocol::terms::ContractKind;
use protocol::units::PricePerHour;

/// Lists the machine.
pub(super) fn list(place: &Place, typed: Wishes) -> Result<Exit, Failure> {
    let config = place.config()?;
    let before = place.listing()?;
    let wishes = typed.or(config.offer.clone());
    check_price(place, &wishes, before.as_ref())?;
    let identity = place.identity()?;
    let host = HostId::from(identity.public());
    let network = wishes.network.map(ContainerNetwork::from);
    let network = network.or(before.as_ref().map(|listed| listed.network));
    let network = network.unwrap_or(ContainerNetwork::None);
    let seen = block_on(place.look(&config, host, network))??;
    let ground = resolve::Ground {
        machine: &seen.machine,
        divisibles: &seen.divisibles,
        disk_reserve: config.disk_reserve,
        data_root: &seen.facts.data_root,
        before: before.as_ref(),
        now: clock::wall(),
    };
    let listing =
        resolve::listing(&wishes, ground).map_err(|problem| Failure::new(Exit::Usage, problem))?;
    warn(place, &wishes, &listing, &config, &seen);
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
fn check_price(place: &Place, wishes: &Wishes, before: Option<&Listing>) -> Result<(), Failure> {
    match (wishes.price, wishes.free) {
        (None, _) if before.is_none() => {
            let what = "what does an hour cost? No --price was given, and host.toml sets none under [offer]";
            Err(Failure::new(Exit::Usage, what).help(place.command("list --price 0.35")))
        }
        (Some(PricePerHour(0)), false) => {
            let what = "--price 0 gives the machine away: renters would pay nothing for computing";
            let free = place.command("list --price 0 --free");
            let help = format!(
                "if that is meant: {free}\nif not, name a price: {}",
                place.command("list --price 0.35")
            );
            Err(Failure::new(Exit::Usage, what).help(help))
        }
        (Some(price), true) if price.0 > 0 => {
            let what = format!(
                "--free means --price 0, and --price {} was given",
                price.amount()
            );
            Err(Failure::new(Exit::Usage, what).help("leave one of them out"))
        }
        (_, _) => Ok(()),
    }
}

/// Takes the machine off the market.
pub(super) fn unlist(place: &Place, typed: &Unlist) -> Result<Exit, Failure> {
    if place.listing()?.is_none() {
        return Err(place.not_listed());
    }
    let promised = promised(place)?;
    if !promised.is_empty() && !typed.yes {
        return Err(too_early(place, &promised));
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
        place.printer.document(&serde_json::json!({
            "schema": "feira.host-unlist/1",
            "listed": false,
            "promised": promised,
        }));
    } else {
        place
            .printer
            .line("not listed any more; leases that run go on");
    }
    if !promised.is_empty() {
        place
            .printer
            .note(&format!("warning: {}", consequences(&promised)));
    }
    place
        .printer
        .note(&format!("Which are there? {}", place.command("leases")));
    Ok(Exit::Done)
}

/// The prepaid leases that are here.
fn promised(place: &Place) -> Result<Vec<LeaseRow>, Failure> {
    let rows = match place.ask_if_running(&AdminRequest::Leases)? {
        Some(AdminReply::Leases(rows)) => rows,
        Some(
            AdminReply::Status(_)
            | AdminReply::Offers(_)
            | AdminReply::Earnings(_)
            | AdminReply::Done
            | AdminReply::Refused(_),
        ) => return Err(place.unexpected()),
        None => {
            let recovered =
                journal::peek(place.folder.path()).map_err(|error| place.journal_failed(&error))?;
            let records = recovered.map(|recovered| recovered.records);
            records.unwrap_or_default().iter().map(lease_row).collect()
        }
    };
    Ok(only_promised(rows))
}

/// Those of `rows` that were prepaid and are not over.
fn only_promised(rows: Vec<LeaseRow>) -> Vec<LeaseRow> {
    let is_promised =
        |row: &LeaseRow| row.kind == ContractKind::Reserved.word() && row.state != "gone";
    rows.into_iter().filter(is_promised).collect()
}

fn too_early(place: &Place, promised: &[LeaseRow]) -> Failure {
    let help = format!(
        "stay until then, or go all the same: {}\nto keep new leases out without going, promise an end: {}",
        place.command("unlist --yes"),
        place.command("list --until DATE")
    );
    Failure::new(Exit::Usage, consequences(promised)).help(help)
}

/// What leaving early costs.
fn consequences(promised: &[LeaseRow]) -> String {
    let until = promised
        .iter()
        .filter_map(|row| row.promised_until.as_deref())
        .max();
    let until = until.map_or(String::new(), |until| format!(" until {until}"));
    let count = u64::try_from(promised.len()).unwrap_or(u64::MAX);
    format!(
        "{} promised here{until}: a host that withdraws early refunds what is unused of each, and a tenth of \
         that more from its bond; its reliability falls",
        counted(count, "prepaid lease")
    )
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
    let listed = place.offers_of(host, seen, &listing, config)?;
    journal
        .set_listing(Some(&listing))
        .map_err(|error| place.journal_failed(&error))?;
    place.printer.note(&format!(
        "No agent runs yet. Start it: {}",
        place.command("run")
    ));
    Ok(listed
        .iter()
        .map(|listed| offer_row(listed, Use::default()))
        .collect())
}

/// What an owner should know before strangers' programs run here.
fn warn(place: &Place, wishes: &Wishes, listing: &Listing, config: &Config, seen: &Seen) {
    match listing.network {
        ContainerNetwork::Bridge => place.printer.note(
            "warning: containers on the bridge can reach this machine's own network: no fence between them \
             exists yet. Use --network none unless nothing there would mind.",
        ),
        ContainerNetwork::None => {}
    }
    for warning in partition::warnings(listing) {
        place.printer.note(&format!("warning: {warning}."));
    }
    if listing.prices.compute == PricePerHour(0) {
        place.printer.note(&format!(
            "warning: computing is given away; disk still costs renters {}.",
            listing.prices.storage
        ));
    }
    let gpus = seen.machine.gpus.iter();
    let left_out = gpus
        .filter(|gpu| !listing.resources.contains(&gpu.uuid))
        .count();
    if left_out > 0 && !matches!(wishes.gpus, Some(GpuChoice::None)) {
        let count = u64::try_from(left_out).unwrap_or(u64::MAX);
        place.printer.note(&format!(
            "{} left out; with every one: {}",
            counted(count, "GPU"),
            place.command("list --gpus all")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: ContractKind, state: &str, until: Option<&str>) -> LeaseRow {
        LeaseRow {
            lease: "l-x".to_owned(),
            name: "brave-otter".to_owned(),
            broker: String::new(),
            renter: String::new(),
            image: String::new(),
            state: state.to_owned(),
            want: "run".to_owned(),
            kind: kind.word().to_owned(),
            promised_until: until.map(str::to_owned),
            stops_at: None,
            resources: Vec::new(),
            running_s: 0,
            uploaded_bytes: 0,
            downloaded_bytes: 0,
            taken_at: String::new(),
            price_usd_per_hour: String::new(),
        }
    }

    #[test]
    fn only_prepaid_leases_that_are_not_over_keep_a_host() {
        let rows = vec![
            row(ContractKind::OnDemand, "running", None),
            row(ContractKind::Interruptible, "running", None),
            row(ContractKind::Reserved, "gone", Some("2027-05-01T00:00:00Z")),
            row(
                ContractKind::Reserved,
                "stopped",
                Some("2027-03-01T00:00:00Z"),
            ),
            row(
                ContractKind::Reserved,
                "running",
                Some("2027-04-01T00:00:00Z"),
            ),
        ];
        let promised = only_promised(rows);
        assert_eq!(promised.len(), 2);
        let said = consequences(&promised);
        assert!(
            said.starts_with("2 prepaid leases promised here until 2027-04-01T00:00:00Z: "),
            "{said}"
        );
        assert!(
            said.contains("a tenth of that more from its bond"),
            "{said}"
        );
        assert!(only_promised(vec![row(ContractKind::Bid, "running", None)]).is_empty());
    }
}
