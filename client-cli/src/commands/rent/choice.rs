//! Which offers are meant: one by its id, or those that meet the conditions, best first.

use super::Offered;
use super::claim::Claim;
use crate::args::RentArgs;
use crate::commands::search::{self, Candidate, Finding};
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::image::Resolved;
use protocol::bounded::List;
use protocol::filter::{Comparison, Direction, Field, Filter, SortKey, Term, Test, Value};
use protocol::ids::OfferId;
use protocol::message::Search;
use protocol::terms::{ContractKind, Need};
use std::collections::BTreeSet;

/// How many offers are kept to fall back on.
const CANDIDATES: u16 = 8;

/// What an order is for.
#[derive(Debug, Clone)]
pub(super) enum Aim {
    /// The offers that were found, one after another.
    Offers,
    /// Whichever comes to meet this.
    Any(Filter),
}

/// What can be rented.
#[derive(Debug)]
pub(super) struct Choice {
    /// Best first; none where a bid waits for something that is not there yet.
    candidates: Vec<Candidate>,
    /// How many matched.
    matching: u32,
    /// What the order is for.
    aim: Aim,
    /// How many GPUs.
    gpus: u16,
}

impl Choice {
    /// Together with what is to run there.
    pub(super) fn with(self, image: Resolved) -> Offered {
        Offered {
            candidates: self.candidates,
            matching: self.matching,
            aim: self.aim,
            gpus: self.gpus,
            image,
        }
    }
}

/// Finds what is meant.
pub(super) async fn choose(
    context: &Context,
    arguments: &RentArgs,
    claim: &Claim,
) -> Result<Choice, Failure> {
    match arguments.offer() {
        Some(typed) => named(context, arguments, claim, typed).await,
        None => best(context, arguments, claim).await,
    }
}

/// The offer that was named. Who names all of its id can bid for one that nobody can have now.
async fn named(
    context: &Context,
    arguments: &RentArgs,
    claim: &Claim,
    typed: &str,
) -> Result<Choice, Failure> {
    let session = context.session().await?;
    let disk = arguments.filter.disk();
    let wanted = arguments.filter.gpus;
    let found = search::find_offer(session, typed, disk, claim.searched()).await?;
    if found.is_empty() && claim.searched() != ContractKind::OnDemand {
        let others = search::find_offer(session, typed, disk, ContractKind::OnDemand).await?;
        if let Some(other) = others.first() {
            return Err(not_sold_so(other, claim.kind()));
        }
    }
    if found.is_empty()
        && claim.waits()
        && let Ok(id) = typed.parse::<OfferId>()
    {
        return Ok(Choice {
            candidates: Vec::new(),
            matching: 0,
            aim: Aim::Any(search::offer_filter(&id.to_string())?),
            gpus: wanted.unwrap_or(1),
        });
    }
    let candidate = portion_of(typed, found, wanted)?;
    Ok(Choice {
        gpus: candidate.gpus,
        candidates: vec![candidate],
        matching: 1,
        aim: Aim::Offers,
    })
}

/// The best of those that meet the conditions.
async fn best(context: &Context, arguments: &RentArgs, claim: &Claim) -> Result<Choice, Failure> {
    let cheapest = SortKey {
        field: Field::DphTotal,
        direction: Direction::Ascending,
    };
    // The ceiling of a bid bounds what it comes to, not what hosts ask now.
    let asked = if claim.waits() {
        arguments.filter.without_ceiling()
    } else {
        arguments.filter.clone()
    };
    let filter = asked.filter()?;
    let gpus = gpus_of(&filter);
    let filter = if claim.waits() {
        with_gpus(filter, gpus)?
    } else {
        filter
    };
    let search = Search {
        filter: filter.clone(),
        sort: List::first([cheapest]),
        need: Need::disk(asked.disk()),
        kind: claim.searched(),
        limit: CANDIDATES,
        job: None,
    };
    let finding = search::find(context.session().await?, &search).await?;
    if claim.waits() {
        return Ok(Choice {
            matching: finding.matching,
            gpus: gpus
                .or_else(|| finding.candidates.first().map(|one| one.gpus))
                .unwrap_or(1),
            candidates: finding.candidates,
            aim: Aim::Any(filter),
        });
    }
    let Finding {
        candidates,
        matching,
        ..
    } = &finding;
    let Some(first) = candidates.first() else {
        return Err(search::nothing_matches(&finding, &asked, |filter| {
            arguments.again(filter)
        }));
    };
    Ok(Choice {
        gpus: first.gpus,
        matching: *matching,
        candidates: candidates.clone(),
        aim: Aim::Offers,
    })
}

/// The number of GPUs that a filter asks for, if it asks for one: none of a CPU machine.
fn gpus_of(filter: &Filter) -> Option<u16> {
    filter.terms.iter().find_map(|term| {
        let Test::Compare(Comparison::Equal, value) = term.test() else {
            return None;
        };
        match (term.field(), value) {
            (Field::NumGpus, Value::Number(number)) => u16::try_from(*number).ok(),
            (Field::GpuName, Value::Text(name)) if name.eq_ignore_ascii_case("none") => Some(0),
            _ => None,
        }
    })
}

/// The same with one GPU where no number is asked for.
fn with_gpus(filter: Filter, gpus: Option<u16>) -> Result<Filter, Failure> {
    let is_there = |term: &Term| term.field() == Field::NumGpus;
    if filter.terms.iter().any(is_there) {
        return Ok(filter);
    }
    let number = gpus.unwrap_or(1).to_string();
    let term = Term::compare(Field::NumGpus, Comparison::Equal, &number)
        .map_err(|problem| Failure::new(Code::BadValue, problem.to_string()))?;
    let mut terms = filter.terms.into_vec();
    terms.push(term);
    Filter::of(terms).map_err(|problem| Failure::new(Code::BadExpression, problem.to_string()))
}

/// The portion that is meant of the only offer called so: with as many GPUs as were asked for, or the fewest.
fn portion_of(
    typed: &str,
    mut found: Vec<Candidate>,
    gpus: Option<u16>,
) -> Result<Candidate, Failure> {
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
        Some(one) => Ok(one.clone()),
        None => Err(not_that_portion(first, wanted)),
    }
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
    let sold = match counts.as_slice() {
        [none] if none == "0" => "it is a machine without a GPU (--gpus 0)".to_owned(),
        counts => format!("it is with {}", counts.join(", ")),
    };
    let what = format!("{id} is not sold with {wanted} GPUs; {sold}");
    Failure::new(Code::NotSold, what).help("choose one of them: --gpus N")
}

fn not_sold_so(candidate: &Candidate, kind: ContractKind) -> Failure {
    let id = candidate.offer.body().id.short();
    let word = kind.word();
    Failure::new(Code::NotSold, format!("{id} is not sold {word}"))
        .help(format!("see what is: feira search --kind {word}"))
        .help(format!("or take it on demand: feira rent {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_gpus_is_read_from_the_conditions() {
        let of = |text: &str| gpus_of(&text.parse().unwrap());
        assert_eq!(of("gpu=h100 num_gpus=8"), Some(8));
        assert_eq!(of("gpu=none"), Some(0));
        assert_eq!(of("gpu=h100 num_gpus>=2"), None);
        let one = with_gpus("gpu=h100".parse().unwrap(), None).unwrap();
        assert_eq!(one.to_string(), "gpu_name=H100 num_gpus=1");
        let some = with_gpus("num_gpus>=2".parse().unwrap(), None).unwrap();
        assert_eq!(some.to_string(), "num_gpus>=2");
    }
}
