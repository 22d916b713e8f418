//! Why nothing matched, in the words of those who typed it.

use super::*;
use crate::fixtures::offers;
use protocol::filter::Elimination;
use protocol::units::{MicroUsd, PricePerHour};

const KIND: ContractKind = ContractKind::OnDemand;

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
    assert_eq!(lines(&finding(), &typed(), KIND), wanted);
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
        lines(&met, &typed(), KIND)[1],
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
    let (what, help) = failure(&self::finding(), &typed());
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
        lines(&nothing, &typed(), KIND),
        ["Your brokers have no offer at all now."]
    );
    assert_eq!(
        lines(&nothing, &typed(), ContractKind::Reserved)[0],
        "None of the free offers of your brokers is sold reserved now."
    );
}

#[test]
fn offers_that_somebody_has_are_not_no_offers() {
    let rented = |rented| Finding {
        rented,
        ..Finding::default()
    };
    assert_eq!(
        lines(&rented(1), &typed(), KIND),
        ["The only offer of your brokers is rented now."]
    );
    let (what, _) = failure(&rented(1204), &typed());
    assert_eq!(what, "all 1,204 offers of your brokers are rented now");
    let some = Finding {
        rented: 2,
        ..finding()
    };
    assert_eq!(
        lines(&some, &typed(), KIND).last().unwrap(),
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
