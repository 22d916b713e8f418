//! `feira convert`: a lease goes on where it is, as a contract of another kind.

use crate::args::{ConvertArgs, ConvertTo};
use crate::ask;
use crate::commands::end::command;
use crate::commands::rent::{Claim, waited};
use crate::commands::search;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::printer::Object;
use crate::view::{Held, hourly, kind_word, lease_object, unit};
use protocol::lease::Phase;
use protocol::offer::Offer;
use protocol::order::LeaseAction;
use protocol::terms::{ContractKind, Need, Prices, reserved};
use protocol::units::{BasisPoints, MicroUsd, Millis, PricePerHour};
use serde_json::json;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &ConvertArgs) -> Result<Exit, Failure> {
    let claim = wanted(arguments)?;
    let name = &arguments.name;
    if !(arguments.yes || arguments.dry_run || context.settings.may_ask) {
        let what = format!(
            "converting {name} changes what it costs and needs a yes, and there is no terminal"
        );
        return Err(Failure::new(Code::NeedsYes, what).help("pass --yes"));
    }
    let held = context.lease(name).await?;
    if held.view.phase == Phase::Resting {
        let what = format!("{} is a bid that waits: it is no lease yet", held.view.name);
        return Err(Failure::new(Code::CannotConvert, what)
            .help(format!("another price: feira bid set {name} --max-price …"))
            .help(format!("or withdraw it and order anew: feira end {name}")));
    }
    let offer = offer_of(context, &held).await?;
    let change = Change::of(&held, claim, offer.as_ref())?;
    change.check(&held)?;
    let object = change.object(&held);
    if arguments.dry_run {
        context.printer.object(&object)?;
        return Ok(Exit::Done);
    }
    context.printer.preview(&object);
    let question = if change.term.is_some() {
        "Convert and prepay?"
    } else {
        "Convert?"
    };
    if !arguments.yes && !ask::confirm(context, question)? {
        return Err(ask::declined());
    }
    let quoted = change
        .term
        .map_or(MicroUsd::ZERO, |term| term.quote.prepaid);
    let deal = claim.deal(context.now(), quoted);
    let price_max = change.price_max(&held)?;
    let action = LeaseAction::Convert { deal, price_max };
    let now = command(context, &held, action).await?;
    if context.printer.format().is_for_people() {
        context.printer.done(&format!(
            "{} is {} now: {}/h all in",
            now.view.name,
            now.view.kind.word(),
            hourly(&now.view)
        ));
    } else {
        context.printer.object(&lease_object(&now, context.now()))?;
    }
    Ok(Exit::Done)
}

/// What it is to become, from flags that belong to that kind and no other.
fn wanted(arguments: &ConvertArgs) -> Result<Claim, Failure> {
    let bad = |what: &str| Err(Failure::new(Code::BadValue, what));
    let ConvertArgs {
        price,
        fallback,
        days,
        ..
    } = arguments;
    match (arguments.to, price, days) {
        (ConvertTo::OnDemand, None, None) if fallback.is_none() => Ok(Claim::OnDemand),
        (ConvertTo::OnDemand, ..) => bad(
            "on demand is at the host's price: --price, --fallback and --days are of other kinds",
        ),
        (ConvertTo::Interruptible, Some(bid), None) => {
            Claim::interruptible(*bid, *fallback, waited(None)?)
        }
        (ConvertTo::Interruptible, None, _) => {
            bad("an interruptible lease needs your bid: --price")
        }
        (ConvertTo::Interruptible, _, Some(_)) => bad("--days is of a term: reserve --days N"),
        (ConvertTo::Reserve, None, Some(days)) if fallback.is_none() => {
            Ok(Claim::Reserved { days: *days })
        }
        (ConvertTo::Reserve, _, None) => bad("a term needs its length: --days"),
        (ConvertTo::Reserve, ..) => bad(
            "a term is at the host's price: --price and --fallback are of an interruptible lease",
        ),
    }
}

/// The offer that the lease is of, while a part of it is shown.
async fn offer_of(context: &Context, held: &Held) -> Result<Option<Offer>, Failure> {
    let Some((_, offer)) = held.view.place else {
        return Ok(None);
    };
    let session = context.session().await?;
    let kind = ContractKind::OnDemand;
    let found = search::find_offer(session, &offer.to_string(), held.view.disk, kind).await?;
    Ok(found.first().map(|one| one.offer.body().clone()))
}

/// What a conversion means.
#[derive(Debug, Clone, Copy)]
struct Change {
    claim: Claim,
    /// What the host asks for all its GPUs together, as far as it is known.
    ask: Option<PricePerHour>,
    term: Option<TermChange>,
}

/// What a prepaid term means.
#[derive(Debug, Clone, Copy)]
struct TermChange {
    days: u16,
    rate: PricePerHour,
    quote: reserved::Quote,
    /// Whether the host's discount is known; else it is at most this.
    is_exact: bool,
}

impl Change {
    fn of(held: &Held, claim: Claim, offer: Option<&Offer>) -> Result<Self, Failure> {
        let view = &held.view;
        let shown = offer.map(|offer| offer.prices.of_gpus(view.gpu_count).compute);
        // The terms of a firm lease are frozen, its price too.
        let ask = if view.kind.is_firm() {
            Some(view.prices.compute)
        } else {
            shown
        };
        let term = match claim {
            Claim::Reserved { days } => {
                let Some(rate) = ask else {
                    let what =
                        "what its host asks is not known now, so nobody can say what a term costs";
                    return Err(Failure::new(Code::CannotConvert, what).help(format!(
                        "make it one on demand first: feira convert {} on-demand",
                        view.name
                    )));
                };
                let most = offer.map(|offer| offer.sales.discount_max.unwrap_or_default());
                Some(TermChange {
                    days,
                    rate,
                    quote: reserved::quote(rate, days, most.unwrap_or(BasisPoints(0))),
                    is_exact: most.is_some(),
                })
            }
            Claim::OnDemand | Claim::Bid { .. } | Claim::Interruptible { .. } => None,
        };
        Ok(Self { claim, ask, term })
    }

    /// A term is paid out of the budget that its lease was rented with.
    fn check(&self, held: &Held) -> Result<(), Failure> {
        let Some(term) = &self.term else {
            return Ok(());
        };
        // Of a discount that is not known, the largest there is.
        let least = if term.is_exact {
            term.quote.prepaid
        } else {
            reserved::quote(term.rate, term.days, BasisPoints::WHOLE).prepaid
        };
        let view = &held.view;
        let left = view.budget.saturating_sub(view.charged.total());
        if least <= left {
            return Ok(());
        }
        let what = format!(
            "{least} would be prepaid for {} days; {left} is left of the budget of {}",
            term.days, view.name
        );
        Err(Failure::new(Code::BudgetTooSmall, what)
            .help("a budget stays what it was at the order: take a shorter term (--days)")
            .help("or rent anew with one that covers it: feira rent … --reserve DAYS --budget USD"))
    }

    /// What an hour costs all in at the price that was shown: a host that asks more by now is not paid it.
    fn price_max(&self, held: &Held) -> Result<PricePerHour, Failure> {
        let view = &held.view;
        let gpus = u64::from(view.gpu_count.max(1));
        let bid = match self.claim {
            Claim::Interruptible { bid, .. } => Some(PricePerHour(bid.0.saturating_mul(gpus))),
            Claim::OnDemand | Claim::Bid { .. } | Claim::Reserved { .. } => None,
        };
        let Some(compute) = bid.or(self.ask) else {
            let what = "what its host asks is not known now, so nobody can say what it would cost";
            return Err(Failure::new(Code::CannotConvert, what)
                .help("try again when its host shows offers: feira search"));
        };
        let prices = Prices {
            compute,
            ..view.prices
        };
        let hour = prices.all_in_hour(Need::disk(view.disk));
        Ok(PricePerHour(u64::try_from(hour.0).unwrap_or(0)))
    }

    fn object(&self, held: &Held) -> Object {
        let view = &held.view;
        let mut lines = Vec::new();
        let mut line = |label: &str, value: String| lines.push((label.to_owned(), value));
        line("Lease", format!("{} ({})", view.name, view.id.short()));
        let kind = self.claim.kind();
        line("Kind", format!("{} → {}", view.kind.word(), kind.word()));
        line("Price", self.price_in_words(unit(view.gpu_count)));
        if let Some(term) = &self.term {
            let [now, half, end] = term.refunds();
            let most = if term.is_exact { "" } else { "at most " };
            line(
                "Prepaid",
                format!(
                    "{most}{} = {} on demand less {}",
                    term.quote.prepaid, term.quote.on_demand, term.quote.discount
                ),
            );
            line(
                "Cancelled",
                format!("gives back {now} now, {half} at half of the term, {end} at its end"),
            );
        }
        if let Claim::Interruptible { .. } = self.claim {
            let stop = "notice, SIGTERM, then stopped; disk kept, resumes by itself";
            line("If outbid", stop.to_owned());
        }
        Object {
            id: view.id.to_string(),
            lines,
            json: self.json(held),
        }
    }

    fn price_in_words(&self, unit: &str) -> String {
        let asked = |price: Option<PricePerHour>| {
            price.map_or_else(
                || "what the host asks now".to_owned(),
                |ask| ask.to_string(),
            )
        };
        match self.claim {
            Claim::OnDemand => format!("{} for running, frozen", asked(self.ask)),
            Claim::Bid { limit, .. } => format!("{limit} for {unit} at most"),
            Claim::Interruptible { bid, fallback, .. } => {
                let fallback = fallback.map_or_else(String::new, |price| {
                    format!(
                        "; on demand instead of being pushed out while {unit} is at most {price}"
                    )
                });
                format!("{bid} for {unit} while it runs{fallback}")
            }
            Claim::Reserved { days } => format!("prepaid for {days} days"),
        }
    }

    fn json(&self, held: &Held) -> serde_json::Value {
        let price = |price: PricePerHour| price.amount().decimal();
        let (bid, fallback) = match self.claim {
            Claim::Interruptible { bid, fallback, .. } => (Some(bid), fallback),
            Claim::OnDemand | Claim::Bid { .. } | Claim::Reserved { .. } => (None, None),
        };
        let refunds = self.term.map(|term| term.refunds().map(MicroUsd::decimal));
        let refund = |at: usize| refunds.as_ref().and_then(|three| three.get(at)).cloned();
        json!({
            "schema": "feira.conversion/1",
            "lease": held.view.id.to_string(),
            "name": held.view.name.as_str(),
            "from": kind_word(held.view.kind),
            "to": kind_word(self.claim.kind()),
            "bid_usd_per_gpu_hour": bid.map(price),
            "fallback_usd_per_gpu_hour": fallback.map(price),
            "ask_usd_per_hour": self.ask.map(price),
            "days": self.term.map(|term| term.days),
            "prepaid_max_usd": self.term.map(|term| term.quote.prepaid.decimal()),
            "discount_basis_points": self.term.map(|term| term.quote.discount.0),
            "refund_now_usd": refund(0),
            "refund_half_usd": refund(1),
            "refund_end_usd": refund(2),
        })
    }
}

impl TermChange {
    fn refunds(&self) -> [MicroUsd; 3] {
        let whole = reserved::length(self.days);
        [Millis(0), Millis(whole.0 / 2), whole]
            .map(|used| reserved::cancel(self.rate, self.quote.prepaid, self.days, used).refund)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{lease, offers};

    fn change(held: &Held, days: u16, offer: Option<&Offer>) -> Change {
        Change::of(held, Claim::Reserved { days }, offer).unwrap()
    }

    /// A lease on demand at $1 for all its GPUs, with this budget.
    fn on_demand(budget: i64) -> Held {
        let mut held = lease(1, "brave-otter", Phase::Running);
        held.view.prices.compute = PricePerHour(1_000_000);
        held.view.budget = MicroUsd(budget);
        held
    }

    /// Market rules, Q: 30 days at $1 are $576 at the host's discount.
    #[test]
    fn a_term_must_fit_into_the_budget_that_is_left() {
        let offer = offers::pool(1, 1, 1_000_000);
        let code = |budget| {
            let held = on_demand(budget);
            let checked = change(&held, 30, Some(&offer)).check(&held);
            checked.err().map(|failure| failure.code())
        };
        assert_eq!(code(576_000_000), None);
        assert_eq!(code(575_999_999), Some(Code::BudgetTooSmall));
    }

    #[test]
    fn a_discount_that_is_not_known_is_none_in_the_price_and_the_largest_in_the_check() {
        let held = on_demand(576_000_000);
        let change = change(&held, 30, None);
        let json = change.object(&held).json;
        assert_eq!(json["prepaid_max_usd"], "720.000000");
        assert_eq!(change.check(&held), Ok(()));
    }

    #[test]
    fn a_term_of_an_interruptible_lease_needs_the_price_that_is_asked() {
        let mut held = on_demand(576_000_000);
        held.view.kind = ContractKind::Interruptible;
        let claim = Claim::Reserved { days: 30 };
        let failure = Change::of(&held, claim, None).unwrap_err();
        assert_eq!(failure.code(), Code::CannotConvert);
    }
}
