//! `feira-host mig plan`: how the GPUs are cut today, how the demand of the last day would have them cut, and why.
//!
//! It looks at the driver and the journal, beside an agent that runs or without one, and changes nothing.

use super::{Place, block_on};
use crate::agent::demands_of;
use crate::clock;
use crate::core::lease::LeaseRecord;
use crate::core::slices::policy::SlicePolicy;
use crate::core::slices::replan::{GpuProposal, Ground, Proposal, propose};
use crate::core::slices::{Divisibles, Mode};
use crate::hardware::Hardware;
use crate::hardware::this::ThisMachine;
use crate::journal;
use ::mig::plan::worth::DWELL_SECONDS_MIN;
use protocol::offer::ResourceName;
use protocol::operator::{Exit, Failure};
use protocol::units::{PricePerHour, Seconds};
use std::collections::BTreeSet;

/// Prints the plan.
pub(super) fn plan(place: &Place) -> Result<Exit, Failure> {
    let config = place.config()?;
    let recovered =
        journal::peek(place.folder.path()).map_err(|error| place.journal_failed(&error))?;
    let recovered = recovered.unwrap_or_default();
    let divisibles = block_on(async {
        let (here, _news) = ThisMachine::start(config.nvml.clone());
        here.divisibles().await
    })?;
    let listing = recovered.listing.as_ref();
    let none = SlicePolicy::default();
    let records = recovered.records.iter();
    let proposal = propose(Ground {
        policy: listing.map_or(&none, |listing| &listing.slices),
        divisibles: &divisibles,
        held: &held(&recovered.records),
        demands: &demands_of(records, clock::wall()),
        price: listing.map_or(PricePerHour(0), |listing| listing.prices.compute),
        // The agent knows; here it is taken to have stood for long enough.
        stood: Seconds(DWELL_SECONDS_MIN),
    });
    match proposal {
        Some(proposal) => print(place, &proposal),
        None => Err(nothing_to_plan(place, &divisibles)),
    }
}

fn held(records: &[LeaseRecord]) -> BTreeSet<ResourceName> {
    let all = records.iter().flat_map(|record| record.state.held());
    all.map(|held| held.resource.clone()).collect()
}

fn print(place: &Place, proposal: &Proposal) -> Result<Exit, Failure> {
    if place.printer.is_json() {
        place.printer.document(&serde_json::json!({
            "schema": "feira.host-mig-plan/1",
            "gpus": proposal.gpus,
            "saving_usd_per_hour": PricePerHour(proposal.saving_per_hour).amount().decimal(),
            "is_worth": proposal.is_worth,
            "reason": proposal.reason,
            "unserved": proposal.unserved,
        }));
        return Ok(Exit::Done);
    }
    for gpu in &proposal.gpus {
        place.printer.line(gpu.gpu.as_str());
        let today = GpuProposal::bar(&gpu.today, gpu.axis);
        place.printer.line(&format!("  today     {today}"));
        let wanted = if gpu.is_whole {
            "left whole".to_owned()
        } else {
            GpuProposal::bar(&gpu.proposed, gpu.axis)
        };
        place.printer.line(&format!("  proposed  {wanted}"));
    }
    let verdict = if proposal.is_worth {
        "worth it"
    } else {
        "left as it is"
    };
    place
        .printer
        .line(&format!("{verdict}: {}", proposal.reason));
    for (profile, count) in &proposal.unserved {
        place
            .printer
            .line(&format!("no room for {count} more {profile}"));
    }
    place.printer.note("* is leased");
    Ok(Exit::Done)
}

fn nothing_to_plan(place: &Place, divisibles: &Divisibles) -> Failure {
    let divided = divisibles.values().filter(|gpu| gpu.mode == Mode::Divided);
    let what = if divisibles.is_empty() {
        "no GPU of this machine can be divided, or no driver says so"
    } else if divided.count() == 0 {
        "no GPU of this machine is divided"
    } else {
        "no GPU of this machine has a dynamic layout"
    };
    let failure = Failure::new(Exit::NotFound, what);
    // Where no GPU can be cut, no layout of `list` is taken.
    if divisibles.is_empty() {
        return failure.help(format!(
            "there is nothing to plan here; which GPUs are seen: {}",
            place.command("doctor")
        ));
    }
    failure.help(place.command("list --partition-layout dynamic"))
}
