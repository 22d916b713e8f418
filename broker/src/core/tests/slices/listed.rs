//! Slices in the book: what is taken into it, and what searches show.

use super::super::world::{START, World, broker_id, host_id, host_key, offer};
use super::{FOUR, PROFILES, firm, slices, world};
use crate::core::book::{Book, BookLimits};
use protocol::bounded::List;
use protocol::ids::MessageId;
use protocol::message::Search;
use protocol::offer::{Offer, Partition, ResourceName, offer_id};
use protocol::signed::{ANYONE, Envelope, Signed};
use protocol::terms::{ContractKind, Need};
use protocol::units::Seconds;

#[test]
fn a_search_shows_one_row_for_each_profile_that_can_be_had() {
    let mut world = world(2);
    let rows = |world: &mut World| -> Vec<(String, u16)> {
        let search = Search {
            filter: "partition=any".parse().unwrap(),
            sort: List::default(),
            need: Need::default(),
            kind: ContractKind::OnDemand,
            limit: 64,
            job: None,
        };
        let found = world.desk.search(world.now, &search);
        let rows = found.offers.iter().map(|found| {
            let offer = found.offer.verify().unwrap().into_body();
            let profile = offer.partition.map(|it| it.profile.as_str().to_owned());
            (profile.unwrap_or_default(), found.gpus)
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort();
        rows
    };
    let mut all: Vec<(String, u16)> = PROFILES.map(|name| (name.to_owned(), 1)).to_vec();
    all.insert(0, (String::new(), 1));
    all.insert(1, (String::new(), 2));
    assert_eq!(rows(&mut world), all);
    firm(&mut world, FOUR).unwrap();
    firm(&mut world, FOUR).unwrap();
    // Half of each GPU is left.
    let left = ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb"];
    let left: Vec<(String, u16)> = left.map(|name| (name.to_owned(), 1)).to_vec();
    assert_eq!(rows(&mut world), left);
}

#[test]
fn a_slice_that_cannot_be_is_not_taken_into_the_book() {
    let announce = |change: &dyn Fn(&mut Offer)| {
        let mut book = Book::new(broker_id(), BookLimits::default());
        let name = ResourceName::new("GPU-h").unwrap();
        let mut offer = offer(0, &name, &slices(2, "3g.40gb", None), START);
        change(&mut offer);
        offer.id = offer_id(host_id(0), &offer.share.resources);
        let envelope = Envelope {
            audience: ANYONE,
            message_id: MessageId::from_bytes([0; 16]),
            issued: START,
            validity: Seconds(90),
        };
        let signed = Signed::sign(offer, &host_key(0), envelope).unwrap();
        let taken = book.announce(START, host_id(0), vec![signed], List::default());
        taken.map(drop).map_err(|refusal| refusal.to_string())
    };
    assert_eq!(announce(&|_| ()), Ok(()));
    let refused = |change: &dyn Fn(&mut Offer), words: &str| {
        let refusal = announce(change).unwrap_err();
        assert!(refusal.contains(words), "{refusal}");
    };
    let only = |name: &str| List::first([ResourceName::new(name).unwrap()]);
    let named = |name: &'static str| {
        move |offer: &mut Offer| {
            offer.share.resources = only(name);
            offer.share.gpus = List::first(offer.share.gpus.iter().take(1).cloned());
        }
    };
    assert_eq!(announce(&named("GPU-h-00/3g.40gb@4+4")), Ok(()));
    refused(&named("GPU-h-00/3g.40gb@2+4"), "3g.40gb starts at");
    refused(
        &named("GPU-h-00/3g.40gb@0+2"),
        "another profile, size or GPU",
    );
    refused(
        &named("GPU-h-00/2g.20gb@0+4"),
        "another profile, size or GPU",
    );
    refused(&named("GPU-x/3g.40gb@0+4"), "another profile, size or GPU");
    refused(&named("GPU-h-00"), "is not the name of one");
    refused(&|offer| offer.partition = None, "does not say which");
    let partition = |change: fn(&mut Partition)| {
        move |offer: &mut Offer| change(offer.partition.as_mut().unwrap())
    };
    refused(&partition(|it| it.memory_slices.1 = 16), "3g.40gb has");
    // A twelfth more memory than a driver prints; drivers differ by 8 %.
    refused(&partition(|it| it.vram.0 += it.vram.0 / 12), "within 8 %");
    assert_eq!(
        announce(&partition(|it| it.vram.0 += it.vram.0 / 13)),
        Ok(())
    );
    refused(
        &partition(|it| it.multiprocessors.0 = 133),
        "more multiprocessors",
    );
}
