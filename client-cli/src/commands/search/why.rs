//! Why nothing matched, condition by condition, in the words in which each was typed.
//!
//! Pure. Must not suggest what was not counted.

use super::conditions::{Condition, FilterArgs};
use super::merge::Finding;
use crate::amounts::in_gigabytes;
use crate::failure::{Code, Failure};
use crate::preview::ceiling_of;
use crate::view::offered_in_words;
use protocol::filter::Elimination;
use protocol::terms::ContractKind;

/// What `rent` fails with when no offer matches. `again` is the command with another filter.
pub(crate) fn nothing_matches(
    finding: &Finding,
    filter: &FilterArgs,
    again: impl Fn(&FilterArgs) -> String,
) -> Failure {
    if finding.of == 0 {
        let failure = Failure::new(Code::NothingMatches, none_at_all(finding));
        return failure.help("look again later: feira search");
    }
    if let Some(failure) = too_dear(finding, filter, again) {
        return failure;
    }
    let conditions = filter.conditions().unwrap_or_default();
    let what = headline(&conditions, filter);
    let failure = Failure::new(
        Code::NothingMatches,
        format!("{what} (of {})", counted(finding.of, "offer")),
    );
    reasons(finding, &conditions, filter)
        .into_iter()
        .chain(nearest(finding, &conditions))
        .chain(others_rented(finding))
        .fold(failure, |failure, line| failure.help(line))
        .help("look wider: feira search")
}

/// When the ceiling alone keeps offers out: how high it would have to be, and the command with that.
fn too_dear(
    finding: &Finding,
    filter: &FilterArgs,
    again: impl Fn(&FilterArgs) -> String,
) -> Option<Failure> {
    let ceiling = filter.max_price?;
    let conditions = filter.conditions().unwrap_or_default();
    let index = conditions
        .iter()
        .position(|one| one.label.starts_with("--max-price "))?;
    let cheapest = elimination(finding, index)
        .filter(|one| one.without_it > 0)?
        .cheapest?;
    let others = conditions.len() - 1 - usize::from(filter.disk.is_none());
    let which = if others == 0 { "offer" } else { "such offer" };
    let what = format!("no {which} at or under {ceiling}; the cheapest is {cheapest}/h");
    let raised = FilterArgs {
        max_price: Some(ceiling_of(cheapest)),
        ..filter.clone()
    };
    Some(
        Failure::new(Code::NothingMatches, what)
            .help(format!("raise the ceiling: {}", again(&raised)))
            .help("or look wider: feira search"),
    )
}

/// The explanation, a sentence and then a line for each condition.
pub(super) fn lines(finding: &Finding, filter: &FilterArgs, kind: ContractKind) -> Vec<String> {
    if finding.of == 0 && !matches!(kind, ContractKind::OnDemand) {
        let word = kind.word();
        if finding.rented > 0 {
            return vec![
                format!("Nothing can be had {word} now: {}.", none_at_all(finding)),
                "A bid can wait for it: feira bid …".to_owned(),
            ];
        }
        return vec![
            format!("None of the free offers of your brokers is sold {word} now."),
            "What is sold on demand: feira search".to_owned(),
        ];
    }
    if finding.of == 0 {
        return vec![format!("{}.", capital(&none_at_all(finding)))];
    }
    let conditions = filter.conditions().unwrap_or_default();
    let (what, of) = (headline(&conditions, filter), counted(finding.of, "offer"));
    let mut lines = vec![format!("{} (of {of}).", capital(&what))];
    let reasons = reasons(finding, &conditions, filter);
    if conditions.len() > 1 && !reasons.is_empty() {
        lines[0].push_str(" Taking one away:");
    }
    lines.extend(reasons.into_iter().map(|reason| format!("  {reason}")));
    lines.extend(nearest(finding, &conditions));
    lines.extend(others_rented(finding));
    lines
}

fn capital(sentence: &str) -> String {
    let mut characters = sentence.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

fn none_at_all(finding: &Finding) -> String {
    match finding.rented {
        0 => "your brokers have no offer at all now".to_owned(),
        1 => "the only offer of your brokers is rented now".to_owned(),
        all => format!("all {} offers of your brokers are rented now", grouped(all)),
    }
}

fn others_rented(finding: &Finding) -> Option<String> {
    match finding.rented {
        0 => None,
        1 => Some("One more offer is rented now.".to_owned()),
        more => Some(format!("{} more offers are rented now.", grouped(more))),
    }
}

/// What nobody offers. The disk that nobody typed is no condition of the one who typed.
fn headline(conditions: &[Condition], filter: &FilterArgs) -> String {
    let implied = filter.disk.is_none();
    let typed = conditions.len() - usize::from(implied);
    let disk = format!("{} GB of disk", in_gigabytes(filter.disk()));
    match (typed, implied) {
        (0, _) => format!("no offer has {disk}"),
        (1, true) => format!("no offer meets the condition and has {disk}"),
        (1, false) => "no offer meets the condition".to_owned(),
        (several, true) => format!("no offer meets the {several} conditions and has {disk}"),
        (several, false) => format!("no offer meets all {several} conditions"),
    }
}

/// A line for each condition that was typed, and for the disk if it is what keeps an offer out.
fn reasons(finding: &Finding, conditions: &[Condition], filter: &FilterArgs) -> Vec<String> {
    let width = conditions
        .iter()
        .map(|one| one.label.chars().count())
        .max()
        .unwrap_or(0);
    let typed = conditions.len() - usize::from(filter.disk.is_none());
    let line = |(index, condition): (usize, &Condition)| {
        let reason = reason(finding, index, index < typed)?;
        Some(format!("{:<width$}  → {reason}", condition.label))
    };
    conditions.iter().enumerate().filter_map(line).collect()
}

fn elimination(finding: &Finding, index: usize) -> Option<&Elimination> {
    let mut all = finding.eliminated.iter();
    all.find(|one| usize::from(one.term) == index)
}

/// What the condition at `index` did; nothing when every offer meets it and nobody typed it.
fn reason(finding: &Finding, index: usize, is_typed: bool) -> Option<String> {
    let one = elimination(finding, index)?;
    let fail = if one.eliminated == 1 { "fails" } else { "fail" };
    let failing = format!(
        "{} of {} {fail} it",
        grouped(one.eliminated),
        grouped(finding.of)
    );
    match (one.eliminated, one.without_it, one.cheapest) {
        (0, _, _) => is_typed.then(|| "every offer meets it".to_owned()),
        (_, 0, _) | (_, _, None) => Some(format!("still none ({failing})")),
        (_, more, Some(cheapest)) => {
            Some(format!("{}, cheapest {cheapest}/h", counted(more, "offer")))
        }
    }
}

fn nearest(finding: &Finding, conditions: &[Condition]) -> Option<String> {
    let (offer, fails) = finding.nearest.as_ref()?;
    let labels: Vec<&str> = fails
        .iter()
        .filter_map(|index| conditions.get(*index))
        .map(|condition| condition.label.as_str())
        .collect();
    let (gpus, offer) = (
        offered_in_words(offer.offer.body(), offer.gpus),
        offer.offer.body(),
    );
    let what = if offer.share.gpus.is_empty() {
        "a CPU machine".to_owned()
    } else {
        gpus
    };
    Some(format!(
        "Nearest: {} ({what}) fails {}",
        offer.id.short(),
        labels.join(", ")
    ))
}

fn counted(number: u32, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// `1204` as `1,204`.
pub(super) fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
