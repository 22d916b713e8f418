//! The book as hosts and renters see it: lists that replace each other, bounds, searches.

mod again;
mod bids;
mod by_job;
mod hardware;
mod indexed;
mod offers;

use super::*;
use crate::core::available::Available;
use offers::{BROKER, NOW, gpu, host, offer, signed, text};
use protocol::filter::{Filter, parse_sort};
use protocol::machine::Gpu;
use protocol::message::{Found, FoundOffer, Rejection, Search};
use protocol::offer::{Offer, offer_id};
use protocol::signed::Verified;
use protocol::terms::ContractKind;
use protocol::units::{Bytes, MicroUsd, PricePerGbMonth};

fn book() -> Book {
    Book::new(BROKER, BookLimits::default())
}

/// A book in which host `n` asks the `n`-th price for one GPU.
fn priced(prices: &[u64]) -> Book {
    let mut book = book();
    for (number, price) in (0..).zip(prices) {
        let list = vec![signed(number, offer(number, "GPU-1", *price))];
        assert_eq!(
            book.announce(NOW, host(number), list, List::default()),
            Ok(Announced::Replaced)
        );
    }
    book
}

fn search(expression: &str) -> Search {
    let filter: Filter = expression.parse().unwrap();
    Search {
        filter,
        sort: List::default(),
        need: Need::default(),
        kind: ContractKind::OnDemand,
        limit: 64,
        job: None,
    }
}

/// Everything can be had, at what its host asks.
fn at_ask(listing: &Listing, _: u16) -> Option<Available> {
    Some(Available {
        price: listing.offer().prices.compute,
        pushes_out: false,
    })
}

fn prices(found: &Found) -> Vec<u64> {
    let price = |found: &FoundOffer| found.price.0;
    found.offers.iter().map(price).collect()
}

#[test]
fn the_cheapest_comes_first_and_the_count_is_exact() {
    let book = priced(&[400_000, 200_000, 300_000]);
    let found = book.search(&search("gpu=rtx4090"), NOW, at_ask);
    assert_eq!(prices(&found), [200_000, 300_000, 400_000]);
    assert_eq!((found.matching, found.of, found.nearest), (3, 3, None));
    let two = Search {
        limit: 2,
        ..search("")
    };
    let found = book.search(&two, NOW, at_ask);
    assert_eq!(
        (prices(&found), found.matching),
        (vec![200_000, 300_000], 3)
    );
    let dearest = Search {
        limit: 1,
        sort: parse_sort("price-").unwrap(),
        ..search("")
    };
    assert_eq!(prices(&book.search(&dearest, NOW, at_ask)), [400_000]);
    assert_eq!(
        book.search(
            &Search {
                limit: 0,
                ..search("")
            },
            NOW,
            at_ask
        )
        .matching,
        3
    );
}

#[test]
fn the_disk_decides_between_two_prices() {
    // 100 GB at $0.072 a GB-month are $0.01 an hour; the second host's disk costs ten times that.
    let mut book = priced(&[200_000]);
    let mut dear_disk = offer(1, "GPU-1", 199_000);
    dear_disk.prices.storage = PricePerGbMonth(720_000);
    book.announce(NOW, host(1), vec![signed(1, dear_disk)], List::default())
        .unwrap();
    assert_eq!(
        prices(&book.search(&search(""), NOW, at_ask)),
        [199_000, 200_000]
    );
    let with_disk = Search {
        need: Need::disk(Bytes::from_gb(100)),
        ..search("price<0.22")
    };
    assert_eq!(prices(&book.search(&with_disk, NOW, at_ask)), [200_000]);
}

// peers 3.1 #14: of equal ones the order is always the same.
#[test]
fn equal_prices_go_by_age_then_by_id() {
    let mut book = priced(&[100, 100]);
    let mut older = offer(2, "GPU-1", 100);
    older.listed_at = Timestamp(4);
    book.announce(
        NOW,
        host(2),
        vec![signed(2, older.clone())],
        List::default(),
    )
    .unwrap();
    let found = book.search(&search(""), NOW, at_ask);
    let ids: Vec<OfferId> = found
        .offers
        .iter()
        .map(|found| found.offer.verify().unwrap().body().id)
        .collect();
    let mut others = [offer(0, "GPU-1", 100).id, offer(1, "GPU-1", 100).id];
    others.sort();
    assert_eq!(ids, [older.id, others[0], others[1]]);
}

// peers 3.1 #19: an offer that its host does not renew is gone after 90 s.
#[test]
fn taken_and_expired_offers_are_not_found() {
    let mut book = priced(&[100, 200]);
    let taken = offer(0, "GPU-1", 100).id;
    let found = book.search(&search(""), NOW, |listing, gpus| {
        at_ask(listing, gpus).filter(|_| listing.offer().id != taken)
    });
    assert_eq!((prices(&found), found.of), (vec![200], 1));
    let late = Timestamp(NOW.0 + 90_000);
    assert!(book.get(taken, Timestamp(late.0 - 1)).is_some() && book.get(taken, late).is_none());
    assert_eq!(book.search(&search(""), late, at_ask).of, 0);
    assert_eq!(
        (book.expire(Timestamp(late.0 - 1)), book.expire(late)),
        (0, 2)
    );
    assert_eq!((book.offer_count(), book.host_count()), (0, 2));
    book.expire(Timestamp(NOW.0 + 300_000));
    assert_eq!(book.host_count(), 0);
}

#[test]
fn a_list_replaces_the_one_before_and_an_older_one_does_not() {
    let mut book = priced(&[100]);
    let address = List::new(vec![text("/ip4/127.0.0.1/tcp/1")]).unwrap();
    let newer = |uuid: &str, sequence| Offer {
        sequence,
        ..offer(0, uuid, 50)
    };
    let list = vec![signed(0, newer("GPU-2", 3)), signed(0, newer("GPU-3", 3))];
    assert_eq!(
        book.announce(NOW, host(0), list, address.clone()),
        Ok(Announced::Replaced)
    );
    assert_eq!(
        (book.offer_count(), book.addresses(host(0))),
        (2, &*address)
    );
    let overtaken = vec![signed(0, newer("GPU-1", 2))];
    let answer = book.announce(NOW, host(0), overtaken, List::default());
    assert_eq!((answer, book.offer_count()), (Ok(Announced::Stale), 2));
    let empty = book.announce(Timestamp(NOW.0 + 7), host(0), Vec::new(), List::default());
    assert_eq!((empty, book.offer_count()), (Ok(Announced::Replaced), 0));
    assert_eq!(book.heard_at(host(0)), Some(Timestamp(NOW.0 + 7)));
    let again = vec![signed(0, newer("GPU-1", 2))];
    assert_eq!(
        book.announce(NOW, host(0), again, List::default()),
        Ok(Announced::Stale)
    );
    book.withdraw(host(0));
    assert_eq!((book.host_count(), book.by_expiry.len()), (0, 0));
}

#[track_caller]
fn refused(list: Vec<Verified<Offer>>) -> BookRefusal {
    let mut book = priced(&[100]);
    let refusal = book
        .announce(NOW, host(0), list, List::default())
        .unwrap_err();
    // What was there stands.
    assert_eq!(prices(&book.search(&search(""), NOW, at_ask)), [100]);
    refusal
}

#[test]
fn only_a_host_s_own_sound_offers_for_this_broker_are_taken() {
    let mine = offer(0, "GPU-1", 90);
    let id = mine.id;
    assert_eq!(
        refused(vec![signed(1, mine.clone())]),
        BookRefusal::NotTheSigner(id)
    );
    let stranger = offer(1, "GPU-1", 90);
    assert_eq!(
        refused(vec![signed(0, stranger.clone())]),
        BookRefusal::WrongId(stranger.id)
    );
    let twice = vec![signed(0, mine.clone()), signed(0, mine.clone())];
    assert_eq!(refused(twice), BookRefusal::Twice(id));
    let elsewhere = Offer {
        brokers: List::default(),
        ..mine.clone()
    };
    assert_eq!(
        refused(vec![signed(0, elsewhere)]),
        BookRefusal::NotForThisBroker(id)
    );
    let mut dear = mine.clone();
    dear.prices.storage = PricePerGbMonth(protocol::units::PRICE_MAX + 1);
    let refusal = refused(vec![signed(0, dear)]);
    assert_eq!(
        refusal,
        BookRefusal::BadOffer {
            offer: id,
            problem: "a price is above a million dollars"
        }
    );
    assert!(matches!(
        Rejection::from(refusal),
        Rejection::BadValue { .. }
    ));
    let mut borrowed = mine;
    borrowed.machine.gpus = List::default();
    assert!(matches!(
        refused(vec![signed(0, borrowed)]),
        BookRefusal::BadOffer { .. }
    ));
}

#[test]
fn the_book_takes_on_no_more_than_its_limits() {
    let mut book = Book::new(
        BROKER,
        BookLimits {
            hosts: 2,
            offers: 3,
        },
    );
    let list = |number: u32, count: usize| -> Vec<Verified<Offer>> {
        (0..count)
            .map(|at| signed(number, offer(number, &format!("GPU-{at:02}"), 1)))
            .collect()
    };
    let mut announce =
        |number, count| book.announce(NOW, host(number), list(number, count), List::default());
    assert_eq!(
        announce(0, 33),
        Err(BookRefusal::TooManyOffers { count: 33 })
    );
    assert_eq!(announce(0, 2), Ok(Announced::Replaced));
    assert_eq!(announce(1, 2), Err(BookRefusal::Full));
    assert_eq!(announce(1, 1), Ok(Announced::Replaced));
    assert_eq!(announce(2, 0), Err(BookRefusal::Full));
    // One's own list may change within the limit.
    assert_eq!(announce(0, 2), Ok(Announced::Replaced));
    assert_eq!(announce(0, 3), Err(BookRefusal::Full));
}

// peers 3.1 #14: nothing found says which condition took what away.
#[test]
fn nothing_found_is_explained_with_the_nearest() {
    let book = priced(&[400_000, 300_000]);
    let found = book.search(&search("gpu=rtx4090 price<0.25 gpus>=1"), NOW, at_ask);
    let counts: Vec<_> = found
        .eliminated
        .iter()
        .map(|one| (one.eliminated, one.without_it, one.cheapest))
        .collect();
    assert_eq!(
        counts,
        [(0, 0, None), (2, 2, Some(MicroUsd(300_000))), (0, 0, None)]
    );
    let nearest = found.nearest.unwrap().offer.verify().unwrap().into_body();
    assert_eq!(nearest.id, offer(1, "GPU-1", 300_000).id);
    assert_eq!(
        book.search(&search("gpu=h100"), NOW, |_, _| None).nearest,
        None
    );
}

#[test]
fn an_answer_of_the_largest_offers_fits_into_a_message() {
    let mut book = book();
    for number in 0..64 {
        let mut big = offer(number, "GPU-1", 100);
        let uuids: Vec<String> = (10..26)
            .map(|at| format!("GPU-{at}-{}", "x".repeat(50)))
            .collect();
        let gpus: Vec<Gpu> = uuids
            .iter()
            .map(|uuid| gpu(&"m".repeat(64), uuid))
            .collect();
        big.share.resources = List::new(uuids.iter().map(|uuid| text(uuid)).collect()).unwrap();
        big.share.gpus = List::new(gpus.clone()).unwrap();
        big.chunks = protocol::offer::Chunks::Whole;
        big.machine.gpus = List::new(gpus).unwrap();
        big.id = offer_id(host(number), &big.share.resources);
        book.announce(
            NOW,
            host(number),
            vec![signed(number, big)],
            List::default(),
        )
        .unwrap();
    }
    let found = book.search(&search(""), NOW, at_ask);
    assert_eq!(found.matching, 64);
    assert!(
        found.offers.len() < 64 && found.offers.len() > 20,
        "{}",
        found.offers.len()
    );
    let reply = protocol::message::BrokerReply::Found(found);
    assert!(protocol::message::encode(&reply).is_ok());
}

#[test]
fn a_thousand_offers_are_answered_from_in_one_pass() {
    let mut book = book();
    for number in 0..125 {
        let list = (0..8).map(|at| {
            let price = 100_000 + u64::from(number) * 1000 + at;
            signed(number, offer(number, &format!("GPU-{at}"), price))
        });
        book.announce(NOW, host(number), list.collect(), List::default())
            .unwrap();
    }
    let query = Search {
        limit: 20,
        ..search("gpu=rtx4090 num_gpus>=1 dph<0.2 cuda>=12.4 gpu_ram>=24")
    };
    let found = book.search(&query, NOW, at_ask);
    // Hosts 0 to 99 ask less than $0.20.
    assert_eq!(
        (found.matching, found.of, found.offers.len()),
        (800, 1000, 20)
    );
    assert_eq!(prices(&found)[..3], [100_000, 100_001, 100_002]);
}
