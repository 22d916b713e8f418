//! What typed names mean.

use super::*;
use crate::fixtures::lease;
use protocol::lease::{EndCause, Phase};
use std::collections::BTreeSet;

fn found(typed: &str, leases: &[Held]) -> Result<(u8, Match), Code> {
    resolve(typed, leases)
        .map(|(held, how)| (held.view.id.as_bytes()[0], how))
        .map_err(|failure| failure.code())
}

fn over() -> Phase {
    Phase::Closed(EndCause::Renter)
}

#[test]
fn names_at_random_may_name_a_lease() {
    // All 3600 of them, each another.
    let all = (0..60_u8).flat_map(|a| (0..60).map(move |b| of_random([0, 0, 0, a, 0, 0, 0, b])));
    let all: BTreeSet<String> = all.collect();
    assert_eq!(all.len(), 3600);
    assert!(all.iter().all(|name| check(name).is_ok()));
    assert_eq!(of_random([0, 0, 0, 3, 0, 0, 0, 45]), "brave-otter");
    assert_eq!(of_random([0, 0, 0, 63, 0, 0, 0, 105]), "brave-otter");
    assert!(check(&of_random([255; 8])).is_ok());
}

#[test]
fn a_whole_name_a_whole_id_and_beginnings_are_found() {
    let leases = [
        lease(1, "brave-otter", Phase::Running),
        lease(2, "calm-heron", Phase::Running),
    ];
    assert_eq!(found("brave-otter", &leases), Ok((1, Match::Whole)));
    assert_eq!(
        found(&leases[1].view.id.to_string(), &leases),
        Ok((2, Match::Whole))
    );
    assert_eq!(found("brav", &leases), Ok((1, Match::Beginning)));
    // The id of lease 2 begins with the base32 of bytes 2, 2, 2…: 00001 00000 → "0g".
    assert_eq!(
        found(&leases[1].view.id.short(), &leases),
        Ok((2, Match::Beginning))
    );
    assert_eq!(found("bra", &leases), Err(Code::NoSuchLease));
}

#[test]
fn a_whole_id_always_means_the_lease_whose_id_it_is() {
    let mut leases = [
        lease(1, "brave-otter", Phase::Running),
        lease(2, "calm-heron", Phase::Running),
    ];
    // A broker that takes any name: the newest lease is called like the other's id.
    let id = leases[1].view.id.to_string();
    leases[0].view.name = protocol::bounded::Text::new(&id).unwrap();
    assert_eq!(found(&id, &leases), Ok((2, Match::Whole)));
    assert_eq!(found(&id.to_uppercase(), &leases), Ok((2, Match::Whole)));
    let bare = id.strip_prefix("l-").unwrap();
    leases[0].view.name = protocol::bounded::Text::new(bare).unwrap();
    assert_eq!(found(bare, &leases), Ok((2, Match::Whole)));
    // Nor does an id that nobody has mean the lease that is called so.
    leases[1].view.id = protocol::ids::LeaseId::from_bytes([3; 16]);
    assert_eq!(found(&id, &leases), Err(Code::NoSuchLease));
}

#[test]
fn names_that_could_be_ids_or_words_are_refused() {
    let id = lease(1, "brave-otter", Phase::Running).view.id.to_string();
    for wrong in [
        id.as_str(),
        &id[2..],
        "l-abcd",
        "r-1",
        "h-x",
        "o-7k3f",
        "k-a",
        "verify",
    ] {
        assert!(check(wrong).is_err(), "{wrong}");
    }
    assert!(check("la-paz").is_ok() && check("verify-2").is_ok());
}

#[test]
fn several_open_leases_are_ambiguous() {
    let leases = [
        lease(1, "calm-heron", Phase::Running),
        lease(2, "calm-horse", Phase::Running),
    ];
    assert_eq!(found("calm", &leases), Err(Code::Ambiguous));
    assert_eq!(found("calm-ho", &leases), Ok((2, Match::Beginning)));
    let failure = resolve("calm", &leases).unwrap_err();
    assert!(
        failure.help_lines()[1].ends_with("calm-horse"),
        "{failure:?}"
    );
}

#[test]
fn an_open_lease_comes_before_those_that_are_over_and_a_newer_before_an_older() {
    let leases = [
        lease(3, "calm-heron", over()),
        lease(2, "calm-heron", Phase::Running),
        lease(1, "calm-heron", over()),
    ];
    assert_eq!(found("calm-heron", &leases), Ok((2, Match::Whole)));
    let ended = [
        lease(3, "calm-heron", over()),
        lease(1, "calm-heron", over()),
    ];
    assert_eq!(found("calm-heron", &ended), Ok((3, Match::Whole)));
}

#[test]
fn a_similar_name_is_suggested() {
    let leases = [lease(1, "brave-otter", Phase::Running)];
    let failure = resolve("brave-oter", &leases).unwrap_err();
    assert_eq!(failure.what(), "no lease named 'brave-oter'");
    assert_eq!(
        failure.help_lines(),
        ["a lease with a similar name is running: 'brave-otter'"]
    );
    let strange = resolve("zzzz", &leases).unwrap_err();
    assert_eq!(strange.help_lines(), ["see all: feira ls --all"]);
}

#[test]
fn names_are_host_names() {
    for right in ["a", "brave-otter", "job7"] {
        assert!(check(right).is_ok(), "{right}");
    }
    for wrong in [
        "",
        "-a",
        "a-",
        "7up",
        "Brave",
        "a_b",
        "a b",
        "ä",
        &"a".repeat(64),
    ] {
        assert!(check(wrong).is_err(), "{wrong}");
    }
}
