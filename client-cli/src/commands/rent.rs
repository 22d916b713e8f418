//! `feira rent`: choose an offer, show what it means, get a yes, sign, and watch it start.
//!
//! Nothing is signed before everything that can be checked was checked, and the order is on disk before it
//! leaves: see `orders`.

mod choice;
mod claim;
mod place;
mod start;
mod wish;

pub(crate) use claim::{Claim, waited};
pub(crate) use start::watch_start;

use crate::args::RentArgs;
use crate::ask;
use crate::commands::search::Candidate;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::image::{self, Resolved};
use crate::orders::{self, Pending};
use crate::preview::Preview;
use crate::session::{Broker, Session};
use choice::Aim;
use protocol::ids::BrokerId;
use protocol::message::{BrokerReply, BrokerRequest, LeaseScope};
use protocol::order::Order;
use protocol::terms::Deal;
use protocol::units::PricePerHour;
use protocol::usage::Balance;
use wish::Wish;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &RentArgs) -> Result<Exit, Failure> {
    let wish = Wish::of(context, arguments)?;
    context.identity()?;
    context.settings.brokers()?;
    let typed = orders::fingerprint(&wanted(arguments));
    let folder = context.settings.folders.state.join("orders");
    if !arguments.work.dry_run
        && let Some(pending) = Pending::left_behind(&folder, typed, context.now())?
        && let Some(placed) = place::carry_on(context, pending).await?
    {
        return start::finish(context, placed, arguments.work.detach).await;
    }
    check_name(context, arguments).await?;
    let (choice, image) = futures::try_join!(
        choice::choose(context, arguments, &wish.claim),
        image::resolve(&wish.image)
    )?;
    if let Some(unchecked) = &image.unchecked {
        context
            .printer
            .warn(&format!("the image could not be checked: {unchecked}"));
    }
    let offered = choice.with(image);
    let first = wish.order(&offered, 0, context.now())?;
    if !agree(context, arguments, &offered, &first).await? {
        return Ok(Exit::Done);
    }
    let placed = place::place(context, &wish, &offered, &folder, typed, arguments.work.yes).await?;
    start::finish(context, placed, arguments.work.detach).await
}

/// What makes two command lines the same wish: not how the outcome is waited for or agreed to.
fn wanted(arguments: &RentArgs) -> impl std::fmt::Debug {
    let (deal, work) = (&arguments.deal, &arguments.work);
    let what = (&arguments.filter, &work.offer, work.cpus, work.ram);
    let job = (&work.image, &work.command, &work.entrypoint, &work.env);
    let kind = (deal.bid, deal.interruptible, deal.fallback, deal.reserve);
    let how = (work.budget, work.duration, work.max_hours, &work.name);
    (what, job, kind, how)
}

/// A name that an open lease has is said before anything else: with its machine taken by that very lease, the
/// search would say that there is none.
async fn check_name(context: &Context, arguments: &RentArgs) -> Result<(), Failure> {
    let Some(name) = &arguments.work.name else {
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

/// What can be rented, best first, and what is to run there.
#[derive(Debug)]
struct Offered {
    candidates: Vec<Candidate>,
    matching: u32,
    aim: Aim,
    /// How many GPUs, where the order names no offer.
    gpus: u16,
    image: Resolved,
}

impl Offered {
    /// How many orders can be tried one after another.
    fn tries(&self) -> usize {
        match self.aim {
            Aim::Offers => self.candidates.len(),
            Aim::Any(_) => 1,
        }
    }

    /// Through whom the order at `index` can be placed, best first: every broker that shows the offer. A bid
    /// waits with one broker, since two could both be met.
    fn brokers(&self, index: usize, session: &Session) -> Vec<BrokerId> {
        let shown = self.candidates.get(index).map(|one| one.brokers.as_slice());
        let all: Vec<BrokerId> = match shown {
            Some(brokers) => brokers.to_vec(),
            None => session.brokers().iter().map(|one| one.id).collect(),
        };
        match self.aim {
            Aim::Offers => all,
            Aim::Any(_) => all.into_iter().take(1).collect(),
        }
    }

    /// The lowest bid that any of the offers takes, if all that match are known.
    fn floor(&self) -> Option<PricePerHour> {
        let known = u32::try_from(self.candidates.len()).unwrap_or(u32::MAX);
        let floors = self
            .candidates
            .iter()
            .map(|one| one.offer.body().sales.floor);
        floors.flatten().min().filter(|_| known >= self.matching)
    }
}

fn gone() -> Failure {
    Failure::new(Code::OfferGone, "no offer is left").help("see what there is: feira search")
}

/// Shows what the order means and gets a yes; false when showing it was all that was asked.
async fn agree(
    context: &Context,
    arguments: &RentArgs,
    offered: &Offered,
    order: &Order,
) -> Result<bool, Failure> {
    let session = context.session().await?;
    let brokers = offered.brokers(0, session);
    let broker = brokers
        .iter()
        .find_map(|id| session.broker(*id))
        .ok_or_else(gone)?;
    let preview = Preview {
        order,
        known: offered.candidates.first(),
        broker,
        image: &offered.image,
        balance: balance(context, broker).await,
        matching: offered.matching,
        now: context.now(),
    };
    preview.check(offered.floor())?;
    if arguments.work.dry_run {
        context.printer.object(&preview.object())?;
        return Ok(false);
    }
    preview.check_money()?;
    if arguments.work.yes {
        if let Some(doubt) = preview.doubt() {
            context.printer.warn(&doubt);
        }
        context.printer.say(&preview.sentence());
        return Ok(true);
    }
    context.printer.preview(&preview.object());
    context.printer.say("");
    if ask::confirm(context, question(&order.deal))? {
        Ok(true)
    } else {
        Err(ask::declined())
    }
}

const fn question(deal: &Deal) -> &'static str {
    match deal {
        Deal::OnDemand => "Sign and rent?",
        Deal::Bid { .. } | Deal::Interruptible { .. } => "Place the bid?",
        Deal::Reserved { .. } => "Sign and prepay?",
    }
}

/// The money there, if the broker says: the order is what decides.
async fn balance(context: &Context, broker: &Broker) -> Option<Balance> {
    let session = context.session().await.ok()?;
    match session.ask(broker.id, &BrokerRequest::Balance).await {
        Ok(BrokerReply::Balance(balance)) => Some(balance),
        Ok(_) | Err(_) => None,
    }
}
