//! What was asked for, checked before anything is sent: image, money, time, name, and whether somebody can
//! say yes.

use super::choice::Aim;
use super::claim::{Claim, quote_of};
use super::{Offered, gone};
use crate::args::RentArgs;
use crate::ask;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::image::ImageName;
use crate::names;
use protocol::bounded::{List, Text};
use protocol::ids::OrderId;
use protocol::job::{Job, Variable};
use protocol::order::{Order, Target};
use protocol::units::{Bytes, MicroUsd, PricePerHour, Seconds, Timestamp};

/// What was asked for.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    /// The image as it was named.
    pub image: ImageName,
    /// The kind of contract.
    pub claim: Claim,
    /// Most that it may cost in all.
    pub budget: MicroUsd,
    /// Most that an hour may cost; the price shown when absent.
    price_max: Option<PricePerHour>,
    duration_max: Option<Seconds>,
    disk: Bytes,
    cpu_millicores: Option<u32>,
    ram: Option<Bytes>,
    /// The name that was typed.
    name: Option<String>,
    entrypoint: Option<List<Text<4096>, 64>>,
    command: Option<List<Text<4096>, 64>>,
    environment: List<Variable, 64>,
}

impl Wish {
    /// Checks what was typed.
    pub(super) fn of(context: &Context, arguments: &RentArgs) -> Result<Self, Failure> {
        if arguments.offer().is_none() && arguments.filter.is_empty() {
            return Err(
                Failure::new(Code::BadValue, "say what to rent: an offer, or conditions")
                    .help("see what there is: feira search"),
            );
        }
        let work = &arguments.work;
        if work.offer.is_some() && !arguments.filter.expression.is_empty() {
            let what = "--offer names one offer, and conditions look for another";
            return Err(Failure::new(Code::BadValue, what).help("give one of them"));
        }
        let (claim, duration_max) = Claim::of(arguments)?;
        if let Some(name) = &work.name {
            names::check(name)?;
        }
        let image = ImageName::parse(work.image.as_deref().unwrap_or_default())?;
        let command = words("the command", &work.command)?;
        let entrypoint = words("--entrypoint", work.entrypoint.as_slice())?;
        if work
            .entrypoint
            .iter()
            .any(|program| program.contains(char::is_control))
        {
            return Err(bad("--entrypoint", "no program has such a name"));
        }
        let environment =
            List::new(work.env.clone()).map_err(|error| bad("--env", &error.to_string()))?;
        check_consent(context, arguments)?;
        Ok(Self {
            image,
            claim,
            budget: budget(context, arguments)?,
            price_max: arguments.filter.max_price,
            duration_max,
            disk: arguments.filter.disk(),
            cpu_millicores: work.cpus,
            ram: work.ram,
            name: work.name.clone(),
            entrypoint,
            command,
            environment,
        })
    }

    /// Whether the name was chosen by the one who typed.
    pub(super) const fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// The order for one of the offers, or for whichever comes; with a new id, and a new name unless one was
    /// typed.
    pub(super) fn order(
        &self,
        offered: &Offered,
        index: usize,
        now: Timestamp,
    ) -> Result<Order, Failure> {
        let candidate = offered.candidates.get(index);
        let (target, gpus) = match (&offered.aim, candidate) {
            (Aim::Any(filter), _) => (Target::Any(filter.clone()), offered.gpus),
            (Aim::Offers, None) => return Err(gone()),
            (Aim::Offers, Some(candidate)) => {
                let offer = candidate.offer.body();
                let terms = offer.terms_digest()?;
                (
                    Target::Offer {
                        offer: offer.id,
                        terms,
                    },
                    candidate.gpus,
                )
            }
        };
        let is_fixed = matches!(target, Target::Offer { .. });
        let quoted = match (self.claim, candidate) {
            (Claim::Reserved { days }, Some(candidate)) => quote_of(candidate, days).prepaid,
            _ => MicroUsd::ZERO,
        };
        let name = self
            .name
            .clone()
            .unwrap_or_else(|| names::of_random(rand::random()));
        let ceiling = || self.claim.ceiling(gpus, self.disk, candidate, is_fixed);
        Ok(Order {
            id: OrderId::from_bytes(rand::random()),
            target,
            deal: self.claim.deal(now, quoted),
            gpus,
            cpu_millicores: self.cpu_millicores,
            ram: self.ram,
            name: Text::new(name)?,
            job: Job {
                image: offered.image.image.clone(),
                entrypoint: self.entrypoint.clone(),
                command: self.command.clone(),
                environment: self.environment.clone(),
            },
            disk: self.disk,
            price_max: self.price_max.unwrap_or_else(ceiling),
            budget: self.budget,
            duration_max: self.duration_max,
            access: List::default(),
        })
    }
}

fn bad(what: &str, reason: &str) -> Failure {
    Failure::new(Code::BadValue, format!("{what}: {reason}"))
}

/// A list of words as the order has it; absent when there are none.
fn words<T: AsRef<str>>(what: &str, typed: &[T]) -> Result<Option<List<Text<4096>, 64>>, Failure> {
    if typed.is_empty() {
        return Ok(None);
    }
    let texts: Result<Vec<_>, _> = typed.iter().map(|word| Text::new(word.as_ref())).collect();
    let list = texts
        .and_then(List::new)
        .map_err(|error| bad(what, &error.to_string()))?;
    Ok(Some(list))
}

/// Spending is never implied: without somebody to ask, a yes, a ceiling and a budget must have been typed.
fn check_consent(context: &Context, arguments: &RentArgs) -> Result<(), Failure> {
    let work = &arguments.work;
    if work.dry_run || context.settings.may_ask {
        return Ok(());
    }
    if !work.yes {
        let what = "renting spends money and needs a yes, and there is no terminal to ask at";
        return Err(Failure::new(Code::NeedsYes, what)
            .help("pass --yes, with a ceiling (--max-price or an offer) and a --budget"));
    }
    let has_ceiling = arguments
        .deal
        .bid
        .or(arguments.deal.interruptible)
        .is_some()
        || arguments.filter.max_price.is_some();
    if arguments.offer().is_none() && !has_ceiling {
        let what = "renting with --yes and without a terminal needs a price ceiling";
        return Err(
            Failure::new(Code::NeedsCeiling, what).help("pass --max-price USD, or name an offer")
        );
    }
    Ok(())
}

/// The budget that was typed, configured, or is asked for now.
fn budget(context: &Context, arguments: &RentArgs) -> Result<MicroUsd, Failure> {
    let known = arguments.work.budget.or(context.settings.budget_default);
    let budget = match known {
        Some(budget) => budget,
        None if context.settings.may_ask && !arguments.work.yes => {
            let answer = ask::text(context, "Most that this lease may cost in all, in USD?")?;
            answer
                .parse()
                .map_err(|error: protocol::units::AmountError| bad("budget", &error.to_string()))?
        }
        None => {
            return Err(Failure::new(Code::NeedsBudget, "renting needs a budget")
                .help("pass --budget USD, or keep a default: feira init --budget 10"));
        }
    };
    if budget <= MicroUsd::ZERO {
        return Err(bad("--budget", "it must be more than nothing"));
    }
    Ok(budget)
}
