//! Why nothing matched, condition by condition, in the words in which each was typed.
//!
//! Pure. Must not suggest what was not counted.

use super::conditions::{Condition, FilterArgs};
use super::merge::Finding;
use crate::amounts::in_gigabytes;
use crate::failure::{Code, Failure};
use crate::preview::ceiling_of;
use crate::view::portion_in_words;
use protocol::filter::Elimination;

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
pub(super) fn lines(finding: &Finding, filter: &FilterArgs) -> Vec<String> {
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
        portion_in_words(&offer.offer.body().share.gpus, offer.gpus),
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
mod tests {
    use crate::fixtures::offers;
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
            nearest: Some((offers::candidate(1, 1, 14_800_000), vec![2])),
            ..Finding::default()
        }
    }

    fn again(filter: &FilterArgs) -> String {
        format!("feira rent {}", filter.words().join(" "))
    }

    fn failure(finding: &Finding, filter: &FilterArgs) -> (String, Vec<String>) {
        let failure = nothing_matches(finding, filter, again);
        assert_eq!(failure.code(), Code::NothingMatches);
        (failure.what().to_owned(), failure.help_lines().to_vec())
    }

    #[test]
    fn each_condition_says_what_it_cost() {
        let nearest = offers::verified(1, 1, 1).body().id.short();
        let wanted = [
            "No offer meets the 3 conditions and has 10 GB of disk (of 1,204 offers). Taking one away:"
                .to_owned(),
            "  --gpu h100           → still none (1,190 of 1,204 fail it)".to_owned(),
            "  --gpus 8             → still none (1 of 1,204 fails it)".to_owned(),
            "  --max-price 10       → 4 offers, cheapest $14.80/h".to_owned(),
            format!("Nearest: {nearest} (1x RTX 4090 24 GB) fails --max-price 10"),
        ];
        assert_eq!(lines(&finding(), &typed()), wanted);
    }

    #[test]
    fn the_disk_that_nobody_typed_is_not_counted_as_a_condition() {
        let disk = Some(protocol::units::Bytes::from_gb(60));
        let sentence = |filter: FilterArgs| headline(&filter.conditions().unwrap(), &filter);
        assert_eq!(
            sentence(FilterArgs { disk, ..typed() }),
            "no offer meets all 4 conditions"
        );
        let one = FilterArgs {
            gpus: Some(2),
            ..FilterArgs::default()
        };
        assert_eq!(
            sentence(one),
            "no offer meets the condition and has 10 GB of disk"
        );
        assert_eq!(
            sentence(FilterArgs::default()),
            "no offer has 10 GB of disk"
        );
        // A typed condition that every offer meets is named all the same.
        let met = Finding {
            eliminated: vec![Elimination {
                term: 0,
                eliminated: 0,
                without_it: 0,
                cheapest: None,
            }],
            ..finding()
        };
        assert_eq!(
            lines(&met, &typed())[1],
            "  --gpu h100           → every offer meets it"
        );
    }

    #[test]
    fn a_ceiling_that_is_too_low_is_one_sentence_and_a_command() {
        let filter = FilterArgs {
            max_price: Some(PricePerHour(10_000)),
            ..FilterArgs::default()
        };
        let part = |term, eliminated, without_it, cheapest: Option<i64>| Elimination {
            term,
            eliminated,
            without_it,
            cheapest: cheapest.map(MicroUsd),
        };
        let finding = Finding {
            of: 1,
            eliminated: vec![part(0, 1, 1, Some(361_388)), part(1, 0, 0, None)],
            ..Finding::default()
        };
        let (what, help) = failure(&finding, &filter);
        assert_eq!(
            what,
            "no offer at or under $0.01/h; the cheapest is $0.361388/h"
        );
        assert_eq!(
            help[0],
            "raise the ceiling: feira rent --max-price 0.361388"
        );
        let (what, help) = failure(&super::tests::finding(), &typed());
        assert_eq!(
            what,
            "no such offer at or under $10.00/h; the cheapest is $14.80/h"
        );
        assert_eq!(
            help[0],
            "raise the ceiling: feira rent --gpu h100 --gpus 8 --max-price 14.8"
        );
    }

    #[test]
    fn rent_fails_with_the_same_reasons() {
        let mut hopeless = finding();
        hopeless.eliminated[2] = Elimination {
            without_it: 0,
            ..hopeless.eliminated[2]
        };
        let (what, help) = failure(&hopeless, &typed());
        assert_eq!(
            what,
            "no offer meets the 3 conditions and has 10 GB of disk (of 1,204 offers)"
        );
        assert_eq!(
            help[0],
            "--gpu h100           → still none (1,190 of 1,204 fail it)"
        );
        assert_eq!(help.last().unwrap(), "look wider: feira search");
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
    fn offers_that_somebody_has_are_not_no_offers() {
        let rented = |rented| Finding {
            rented,
            ..Finding::default()
        };
        assert_eq!(
            lines(&rented(1), &typed()),
            ["The only offer of your brokers is rented now."]
        );
        let (what, _) = failure(&rented(1204), &typed());
        assert_eq!(what, "all 1,204 offers of your brokers are rented now");
        let some = Finding {
            rented: 2,
            ..finding()
        };
        assert_eq!(
            lines(&some, &typed()).last().unwrap(),
            "2 more offers are rented now."
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
