//! Offers that are announced again as they were, and almost as they were.

use super::offers::{NOW, host, offer, signed};
use super::{at_ask, priced, prices, search};
use crate::core::book::{Announced, BookRefusal};
use protocol::bounded::List;
use protocol::offer::Offer;
use protocol::reliability::Score;
use protocol::units::Timestamp;

/// The same offer, signed with a higher sequence.
fn again(sequence: u64) -> Offer {
    Offer {
        sequence,
        ..offer(0, "GPU-1", 100)
    }
}

#[test]
fn an_offer_that_is_signed_anew_keeps_its_row_and_shows_the_new_signature() {
    let mut book = priced(&[100, 300]);
    let score = Score {
        ppm: 870_000,
        ..Score::unknown()
    };
    book.rate(host(0), &score);
    let answer = book.announce(NOW, host(0), vec![signed(0, again(2))], List::default());
    assert_eq!(answer, Ok(Announced::Replaced));
    let found = book.search(&search(""), NOW, at_ask);
    assert_eq!(prices(&found), [100, 300]);
    let first = found.offers.first().unwrap();
    let shown = first.offer.clone().reopen().unwrap().into_body();
    assert_eq!((shown.sequence, first.reliability), (2, 870_000));
    let overtaken = book.announce(NOW, host(0), vec![signed(0, again(1))], List::default());
    assert_eq!(overtaken, Ok(Announced::Stale));
}

#[test]
fn it_stands_as_long_as_its_last_signature() {
    let mut book = priced(&[100]);
    let first = book.get(again(1).id, NOW).unwrap().expires();
    let longer = super::offers::signed_at(0, again(2), Timestamp(NOW.0 + 60_000));
    let answer = book.announce(NOW, host(0), vec![longer], List::default());
    assert_eq!(answer, Ok(Announced::Replaced));
    assert_eq!((book.expire(first), book.offer_count()), (0, 1));
    assert_eq!(
        (book.expire(Timestamp(first.0 + 60_000)), book.offer_count()),
        (1, 0)
    );
}

#[test]
fn another_s_signature_under_the_same_words_is_refused() {
    let mut book = priced(&[100]);
    let stolen = book.announce(NOW, host(0), vec![signed(1, again(2))], List::default());
    assert_eq!(stolen, Err(BookRefusal::NotTheSigner(again(2).id)));
}

#[test]
fn whatever_differs_is_another_offer() {
    let mut other = again(2);
    assert!(again(1).is_again(&other));
    other.prices.download.0 += 1;
    assert!(!again(1).is_again(&other));
    let mut other = again(2);
    other.machine.disk_free.0 += 1;
    assert!(!again(1).is_again(&other));
    let mut book = priced(&[100]);
    let dearer = Offer {
        sequence: 2,
        ..offer(0, "GPU-1", 200)
    };
    let answer = book.announce(NOW, host(0), vec![signed(0, dearer)], List::default());
    assert_eq!(answer, Ok(Announced::Replaced));
    assert_eq!(prices(&book.search(&search(""), NOW, at_ask)), [200]);
}
