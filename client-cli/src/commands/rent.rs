//! `feira rent`: choose an offer, show what it means, get a yes, sign, and watch it start.
//!
//! Nothing is signed before everything that can be checked was checked, and the order is on disk before it
//! leaves: see `orders`.

mod place;
mod start;
mod wish;

pub(crate) use start::watch_start;

use crate::args::RentArgs;
use crate::ask;
use crate::commands::search::{self, Candidate};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::image::{self, Resolved};
use crate::orders::{self, Pending};
use crate::preview::Preview;
use crate::session::Broker;
use protocol::bounded::List;
use protocol::ids::OfferId;
use protocol::filter::{Direction, Field, SortKey};
use protocol::message::{BrokerReply, BrokerRequest, LeaseScope, Search};
use protocol::order::Order;
use protocol::terms::{ContractKind, Need};
use protocol::usage::Balance;
use std::collections::BTreeSet;
use wish::Wish;

/// How many offers are kept to fall back on.
const CANDIDATES: u16 = 8;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &RentArgs) -> Result<Exit, Failure> {
    let wish = Wish::of(context, arguments)?;
    context.identity()?;
    context.settings.brokers()?;
    let typed = orders::fingerprint(&wanted(arguments));
    let folder = context.settings.folders.state.join("orders");
    if !arguments.dry_run
        && let Some(pending) = Pending::left_behind(&folder, typed, context.now())?
        && let Some(placed) = place::carry_on(context, pending).await?
    {
        return start::finish(context, placed, arguments.detach).await;
    }
    check_name(context, arguments).await?;
    let (choice, image) =
        futures::try_join!(choose(context, arguments), image::resolve(&wish.image))?;
    if let Some(unchecked) = &image.unchecked {
        context
            .printer
            .warn(&format!("the image could not be checked: {unchecked}"));
    }
    let offered = Offered {
        candidates: choice.0,
        matching: choice.1,
        image,
    };
    let first = offered.order(&wish, 0)?;
    if !agree(context, arguments, &offered, &first).await? {
        return Ok(Exit::Done);
    }
    let placed = place::place(context, &wish, &offered, &folder, typed, arguments.yes).await?;
    start::finish(context, placed, arguments.detach).await
}

/// What makes two command lines the same wish: not how the outcome is waited for or agreed to.
fn wanted(arguments: &RentArgs) -> impl std::fmt::Debug {
    let what = (
        &arguments.filter,
        &arguments.image,
        &arguments.command,
        &arguments.entrypoint,
    );
    let how = (
        arguments.budget,
        arguments.duration_max(),
        &arguments.name,
        &arguments.env,
    );
    (what, how)
}

/// A name that an open lease has is said before anything else: with its machine taken by that very lease, the
/// search would say that there is none.
async fn check_name(context: &Context, arguments: &RentArgs) -> Result<(), Failure> {
    let Some(name) = &arguments.name else {
        return Ok(());
    };
    let open = context.leases(LeaseScope::Open).await?;
    match open.iter().find(|held| held.view.name.as_str() == name) {
        None => Ok(()),
        Some(held) => {
            let what = format!(
                "you have an open lease of that name: {name} ({})",
                held.view.id.short()
            );
            Err(Failure::new(Code::NameTaken, what)
                .help(format!("see it: feira show {name}"))
                .help("or choose another with --name, or leave --name out"))
        }
    }
}

/// What can be rented, best first.
#[derive(Debug)]
struct Offered {
    candidates: Vec<Candidate>,
    matching: u32,
    image: Resolved,
}

impl Offered {
    /// The order of one candidate, with an id of its own.
    fn order(&self, wish: &Wish, index: usize) -> Result<Order, Failure> {
        let candidate = self.candidates.get(index).ok_or_else(gone)?;
        wish.order(candidate, &self.image)
    }
}

/// The offers that are meant, best first, and how many matched.
async fn choose(context: &Context, arguments: &RentArgs) -> Result<(Vec<Candidate>, u32), Failure> {
    let session = context.session().await?;
    let disk = arguments.filter.disk();
    let kind = ContractKind::OnDemand;
    if let Some(typed) = arguments.offer() {
        let found = search::find_offer(session, typed, disk, kind).await?;
        return portion_of(typed, found, arguments.filter.gpus);
    }
    let cheapest = SortKey {
        field: Field::DphTotal,
        direction: Direction::Ascending,
    };
    let search = Search {
        filter: arguments.filter.filter()?,
        sort: List::first([cheapest]),
        need: Need::disk(disk),
        kind,
        limit: CANDIDATES,
    };
    let finding = search::find(session, &search).await?;
    if finding.candidates.is_empty() {
        return Err(search::nothing_matches(
            &finding,
            &arguments.filter,
            |filter| arguments.again(filter),
        ));
    }
    let matching = finding.matching;
    Ok((finding.candidates, matching))
}

/// The portion that is meant of the only offer called so: with as many GPUs as were asked for, or the fewest.
fn portion_of(
    typed: &str,
    mut found: Vec<Candidate>,
    gpus: Option<u16>,
) -> Result<(Vec<Candidate>, u32), Failure> {
    found.sort_by_key(|one| (one.offer.body().id, one.gpus));
    let Some(first) = found.first() else {
        return Err(gone_offer(typed));
    };
    let id = first.offer.body().id;
    if found.iter().any(|one| one.offer.body().id != id) {
        return Err(ambiguous_offer(typed, &found));
    }
    let wanted = gpus.unwrap_or(first.gpus);
    match found.iter().find(|one| one.gpus == wanted) {
        Some(one) => Ok((vec![one.clone()], 1)),
        None => Err(not_that_portion(first, wanted)),
    }
}

fn gone() -> Failure {
    Failure::new(Code::OfferGone, "no offer is left").help("see what there is: feira search")
}

fn gone_offer(typed: &str) -> Failure {
    Failure::new(
        Code::OfferGone,
        format!("no broker of yours shows an offer {typed} now"),
    )
    .help("see what there is: feira search")
}

fn ambiguous_offer(typed: &str, several: &[Candidate]) -> Failure {
    let ids: BTreeSet<OfferId> = several.iter().map(|one| one.offer.body().id).collect();
    let what = format!("'{typed}' could be {} offers", ids.len());
    ids.iter()
        .take(8)
        .fold(Failure::new(Code::Ambiguous, what), |failure, id| {
            failure.help(id.to_string())
        })
}

/// In which portions an offer is sold, when it is not sold in the one that was asked for; or that it is, and
/// not free now.
fn not_that_portion(candidate: &Candidate, wanted: u16) -> Failure {
    let offer = candidate.offer.body();
    let id = offer.id.short();
    if offer.is_sold_as(wanted) {
        let what = format!("{wanted} GPUs of {id} are not free now");
        return Failure::new(Code::OfferTaken, what).help("see what there is: feira search");
    }
    let counts: Vec<String> = offer.counts().map(|count| count.to_string()).collect();
    let what = format!("{id} is not sold with {wanted} GPUs; it is with {}", counts.join(", "));
    Failure::new(Code::NotSold, what).help("choose one of them: --gpus N")
}

/// Shows what the order means and gets a yes; false when showing it was all that was asked.
async fn agree(
    context: &Context,
    arguments: &RentArgs,
    offered: &Offered,
    order: &Order,
) -> Result<bool, Failure> {
    let candidate = offered.candidates.first().ok_or_else(gone)?;
    let broker = broker_of(context, candidate).await?;
    let preview = Preview {
        order,
        offer: candidate.offer.body(),
        gpus: candidate.gpus,
        host: candidate.offer.signer().into(),
        broker,
        image: &offered.image,
        balance: balance(context, broker).await,
        matching: offered.matching,
    };
    preview.check()?;
    if arguments.dry_run {
        context.printer.object(&preview.object())?;
        return Ok(false);
    }
    preview.check_money()?;
    if arguments.yes {
        context.printer.say(&format!(
            "Renting {} at {}/h all in, at most {}",
            preview.offer.id.short(),
            preview.hourly(),
            order.budget
        ));
        return Ok(true);
    }
    context.printer.preview(&preview.object());
    context.printer.say("");
    if ask::confirm(context, "Sign and rent?")? {
        Ok(true)
    } else {
        Err(ask::declined())
    }
}

async fn broker_of<'a>(context: &'a Context, candidate: &Candidate) -> Result<&'a Broker, Failure> {
    let session = context.session().await?;
    candidate
        .brokers
        .iter()
        .find_map(|id| session.broker(*id))
        .ok_or_else(gone)
}

/// The money there, if the broker says: the order is what decides.
async fn balance(context: &Context, broker: &Broker) -> Option<Balance> {
    let session = context.session().await.ok()?;
    match session.ask(broker.id, &BrokerRequest::Balance).await {
        Ok(BrokerReply::Balance(balance)) => Some(balance),
        Ok(_) | Err(_) => None,
    }
}
