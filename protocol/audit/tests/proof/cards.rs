//! Cards whose times are modelled: what the two bounds find out (threats 1, 3 and 4).
//!
//! The rows are those of a small proof on the reference device; the times are those that a card would take
//! for the challenge of its claimed class.

use crate::play::{EIGHTY_ROWS, Times, plan, prove};
use audit::class::{self, Class};
use audit::processor::Processor;
use protocol_pure::units::{Bytes, Millis};
use protocol_pure::verify::{Finding, Flaw, Parameters};

/// What a card can do, in operations and bytes a millisecond.
#[derive(Debug, Clone, Copy)]
struct Card {
    operations: f64,
    memory_speed: f64,
    link_speed: f64,
    memory: f64,
}

/// At its peak, behind PCIe 4 with 25 GB/s: the most that a cheat can hope for.
fn at_its_peak(class: &Class) -> Card {
    Card {
        operations: class.giga_ops as f64 * 1e6,
        memory_speed: class.bandwidth_mb as f64 * 1e3,
        link_speed: 25e6,
        memory: class.memory().0 as f64,
    }
}

impl Card {
    fn fill(&self, class: &Class) -> Millis {
        let inner = f64::from(class.parameters().inner);
        millis(2.0 * class.held() as f64 * inner / self.operations)
    }

    /// With a part of the rows behind the link, fetched while the rest is read.
    fn pass(&self, class: &Class, behind_link: f64) -> Millis {
        let all = class.held() as f64 * 40.0;
        let near = all * (1.0 - behind_link) / self.memory_speed;
        millis(near.max(all * behind_link / self.link_speed))
    }
}

fn millis(value: f64) -> Millis {
    let whole = std::time::Duration::from_secs_f64(value.ceil() / 1000.0);
    Millis(u64::try_from(whole.as_millis()).unwrap())
}

fn h100() -> Class {
    class::find("NVIDIA H100 80GB HBM3", Bytes::from_gb(80)).unwrap()
}

fn rtx_4090() -> Class {
    class::find("NVIDIA GeForce RTX 4090", Bytes::from_gb(24)).unwrap()
}

/// What is found of a card with these times that claims to be of `class`.
fn claim(class: &Class, times: Times) -> Finding {
    let claimed = class.parameters();
    let parameters = Parameters {
        fill_max: claimed.fill_max,
        pass_max: claimed.pass_max,
        ..EIGHTY_ROWS
    };
    prove(plan(parameters, 1), Processor::new(), times)
}

fn claim_of(card: &Card, class: &Class, behind_link: f64) -> Finding {
    let (fill, pass) = (card.fill(class), card.pass(class, behind_link));
    claim(class, Times { fill, pass })
}

fn is_accepted(finding: &Finding) -> bool {
    matches!(finding, Finding::Accepted { .. })
}

#[test]
fn an_honest_card_at_sixty_percent_is_accepted() {
    for class in [h100(), rtx_4090()] {
        let (fill, pass) = (class.fill_honest(), class.pass_honest());
        let found = claim(&class, Times { fill, pass });
        assert_eq!(found, Finding::Accepted { fill, pass });
    }
}

/// Threat 1: the driver's library says H100, the arithmetic is a 4090's, which needs three times as long.
#[test]
fn a_card_that_calls_itself_faster_is_too_slow_to_fill() {
    let mut card = at_its_peak(&rtx_4090());
    card.operations *= 0.6;
    card.memory = 80e9;
    let found = claim_of(&card, &h100(), 0.0);
    assert!(
        matches!(found, Finding::Rejected(Flaw::FillTooSlow { .. })),
        "{found:?}"
    );
}

/// Threat 3: rows in the host's memory are seen above the share of the table and not below it.
#[test]
fn rows_behind_a_link_are_seen_above_the_threshold() {
    for class in [h100(), rtx_4090()] {
        let card = at_its_peak(&class);
        let seen = class.spill_seen_permille(25_000);
        assert_eq!(seen, if class.name == "H100-SXM" { 27 } else { 90 });
        let with = |permille: u64| claim_of(&card, &class, permille as f64 / 1000.0);
        assert!(is_accepted(&with(seen - 1)), "{}", class.name);
        let above = with(seen + 1);
        assert!(
            matches!(above, Finding::Rejected(Flaw::PassTooSlow { .. })),
            "{above:?}"
        );
    }
}

/// What is computed again instead of being held comes at a few GB/s: slower than any link.
#[test]
fn computing_rows_again_is_slower_than_fetching_them() {
    for class in [h100(), rtx_4090()] {
        let mut card = at_its_peak(&class);
        card.link_speed = class.recompute_mb() as f64 * 1e3;
        assert!(card.link_speed < 25e6);
        assert!(!is_accepted(&claim_of(&card, &class, 0.1)));
    }
}

/// Threat 4: one card behind two identities that are challenged at the same moment. However its memory is
/// split and its arithmetic shared, at most one passes; and one does if the card is kept for it.
#[test]
fn one_card_does_not_pass_as_two() {
    let class = h100();
    let card = at_its_peak(&class);
    let mut passed = Vec::new();
    for percent in 0..=100 {
        let part = f64::from(percent) / 100.0;
        let passes = |memory: f64| {
            let held = (card.memory * memory / class.held() as f64).min(1.0);
            // The card's whole arithmetic and bandwidth for both, which is more than it has.
            is_accepted(&claim_of(&card, &class, 1.0 - held))
        };
        passed.push(usize::from(passes(part)) + usize::from(passes(1.0 - part)));
    }
    assert_eq!(passed.iter().max(), Some(&1));
    assert_eq!((passed[0], passed[50], passed[100]), (1, 0, 1));
}

/// A silent prover has failed at the deadline and not a millisecond before.
#[test]
fn who_says_nothing_has_failed_when_the_time_is_over() {
    use audit::conversation::Heard;
    use audit::judge::judge;
    use audit::message::{Answer, Ask};
    use audit::verifier::{Next, Verifier};
    let plan = plan(EIGHTY_ROWS, 1);
    let mut verifier = Verifier::begin(plan).unwrap();
    assert_eq!(verifier.deadline(), Millis(60_001));
    let said = verifier.hear(Millis(1_000), Heard::Answer(Answer::Ready));
    assert!(matches!(said, Next::Say(Ask::Challenge(_))));
    assert_eq!(verifier.deadline(), Millis(15_001));
    let said = verifier.hear(Millis(15_000), Heard::Answer(Answer::Filled));
    assert!(matches!(said, Next::Say(Ask::Nonce(_))));
    assert_eq!(verifier.deadline(), Millis(15_000 + 3_201));
    let Next::Over(transcript) = verifier.hear(verifier.deadline(), Heard::Silence) else {
        panic!("not over");
    };
    let (took, bound) = (Millis(3_201), Millis(3_200));
    let flaw = Flaw::PassTooSlow { took, bound };
    assert_eq!(judge(&transcript), Ok(Finding::Rejected(flaw)));
}
