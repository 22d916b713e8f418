//! Why nothing matched, condition by condition, in the words in which each was typed.
//!
//! Pure. Must not suggest what was not counted.

use super::conditions::{Condition, FilterArgs};
use super::merge::Finding;
use crate::failure::{Code, Failure};
use crate::view::gpus_in_words;

/// What `rent` fails with when no offer matches.
pub(crate) fn nothing_matches(finding: &Finding, filter: &FilterArgs) -> Failure {
    let mut lines = lines(finding, filter).into_iter();
    let what = lines
        .next()
        .unwrap_or_else(|| "no offer matches".to_owned());
    let what = what.trim_end_matches(['.', ':']);
    let failure = Failure::new(Code::NothingMatches, what);
    lines.fold(failure, |failure, line| failure.help(line.trim_start()))
}

/// The explanation, a sentence and then a line for each condition.
pub(super) fn lines(finding: &Finding, filter: &FilterArgs) -> Vec<String> {
    if finding.of == 0 {
        return vec!["Your brokers have no offer at all now.".to_owned()];
    }
    let conditions = filter.conditions().unwrap_or_default();
    let mut lines = vec![headline(finding.of, conditions.len())];
    let width = conditions
        .iter()
        .map(|one| one.label.chars().count())
        .max()
        .unwrap_or(0);
    for (index, condition) in conditions.iter().enumerate() {
        let label = format!("{:<width$}", condition.label);
        lines.extend(reason(finding, index).map(|reason| format!("  {label}  → {reason}")));
    }
    lines.extend(nearest(finding, &conditions));
    lines
}

fn headline(of: u32, conditions: usize) -> String {
    let of = counted(of, "offer");
    if conditions == 1 {
        return format!("No offer meets the condition (of {of}):");
    }
    format!("No offer meets all {conditions} conditions (of {of}). Taking one away:")
}

/// What the condition at `index` did; nothing when every offer meets it.
fn reason(finding: &Finding, index: usize) -> Option<String> {
    let one = finding
        .eliminated
        .iter()
        .find(|one| usize::from(one.term) == index)?;
    let fail = if one.eliminated == 1 { "fails" } else { "fail" };
    let failing = format!(
        "{} of {} {fail} it",
        grouped(one.eliminated),
        grouped(finding.of)
    );
    match (one.eliminated, one.without_it, one.cheapest) {
        (0, _, _) => None,
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
    let offer = offer.body();
    let gpus = gpus_in_words(&offer.share.gpus);
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
mod tests {
    use super::super::table::offers;
    use super::*;
    use protocol::filter::Elimination;
    use protocol::units::{MicroUsd, PricePerHour};

    fn typed() -> FilterArgs {
        FilterArgs {
            gpu: vec!["h100".to_owned()],
            gpus: Some(8),
            max_price: Some(PricePerHour(10_000_000)),
            ..FilterArgs::default()
        }
    }

    fn finding() -> Finding {
        let part = |term, eliminated, without_it, cheapest: Option<i64>| Elimination {
            term,
            eliminated,
            without_it,
            cheapest: cheapest.map(MicroUsd),
        };
        Finding {
            of: 1204,
            eliminated: vec![
                part(0, 1190, 0, None),
                part(1, 1, 0, None),
                part(2, 9, 4, Some(14_800_000)),
                part(3, 0, 0, None),
            ],
            nearest: Some((offers::verified(1, 1, 14_800_000), vec![2])),
            ..Finding::default()
        }
    }

    #[test]
    fn each_condition_says_what_it_cost() {
        let nearest = offers::verified(1, 1, 1).body().id.short();
        let wanted = [
            "No offer meets all 4 conditions (of 1,204 offers). Taking one away:".to_owned(),
            "  --gpu h100           → still none (1,190 of 1,204 fail it)".to_owned(),
            "  --gpus 8             → still none (1 of 1,204 fails it)".to_owned(),
            "  --max-price 10       → 4 offers, cheapest $14.80/h".to_owned(),
            format!("Nearest: {nearest} (1x RTX 4090 24 GB) fails --max-price 10"),
        ];
        assert_eq!(lines(&finding(), &typed()), wanted);
    }

    #[test]
    fn rent_fails_with_the_same_reasons() {
        let failure = nothing_matches(&finding(), &typed());
        assert_eq!(failure.code(), Code::NothingMatches);
        assert_eq!(
            failure.what(),
            "No offer meets all 4 conditions (of 1,204 offers). Taking one away"
        );
        assert_eq!(
            failure.help_lines()[2],
            "--max-price 10       → 4 offers, cheapest $14.80/h"
        );
    }

    #[test]
    fn an_empty_market_says_so() {
        let nothing = Finding::default();
        assert_eq!(
            lines(&nothing, &typed()),
            ["Your brokers have no offer at all now."]
        );
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
