//! Slices of GPUs beside whole ones: what keeps what out, where a slice goes, and who goes for one.

mod allocator;
mod listed;

use super::parties::Slices;
use super::world::{Ask, World, host_id};
use protocol::ids::LeaseId;
use protocol::lease::{PauseCause, Phase};
use protocol::message::Rejection;
use protocol::offer::ResourceName;
use protocol::order::LeaseAction;
use protocol::terms::{ContractKind, Deal};
use protocol::units::{BasisPoints, Bytes, MicroUsd, PricePerHour};

const PROFILES: [&str; 6] = [
    "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb",
];

/// An offer of slices at 100 000 for each unit of memory, interruptible from 10 000.
fn slices(gpus: u16, profile: &'static str, only: Option<(u16, u8)>) -> Ask {
    let units = match profile {
        "1g.10gb" => 1,
        "1g.20gb" | "2g.20gb" => 2,
        "3g.40gb" | "4g.40gb" => 4,
        _ => 8,
    };
    let mut ask = Ask::gpus(gpus, 100_000 * units, Some(10_000));
    ask.slices = Some(Slices { profile, only });
    ask.sales.discount_max = Some(BasisPoints(4000));
    ask
}

/// A host of so many H100 that are offered whole (0) and in all profiles (1 to 6, as in [`PROFILES`]).
fn world(gpus: u16) -> World {
    let mut world = empty();
    world.asks = asks(gpus);
    world.announce();
    world
}

fn asks(gpus: u16) -> Vec<(u8, ResourceName, Ask)> {
    let whole = Ask::gpus(gpus, 800_000, Some(10_000));
    let kinds = PROFILES.map(|profile| slices(gpus, profile, None));
    let all = [whole].into_iter().chain(kinds);
    all.map(|ask| (0, ResourceName::cut("GPU-h"), ask))
        .collect()
}

/// Rich renters, and no host.
fn empty() -> World {
    let mut world = World::with_a_fee_of_ten_percent();
    for renter in 0..9 {
        world.deposit(renter, 1_000_000_000);
    }
    world
}

const WHOLE: usize = 0;
const ONE: usize = 1;
const TWO: usize = 3;
const THREE: usize = 4;
const FOUR: usize = 5;
const SEVEN: usize = 6;

fn place(world: &mut World, renter: u8, offered: usize, deal: Deal) -> Result<LeaseId, Rejection> {
    let order = world.deal(offered, deal, 1);
    let lease = world.place(renter, order)?;
    world.follow();
    Ok(lease)
}

fn firm(world: &mut World, offered: usize) -> Result<LeaseId, Rejection> {
    place(world, 0, offered, Deal::OnDemand)
}

fn bid(world: &mut World, renter: u8, offered: usize, bid: u64) -> LeaseId {
    let deal = world.interruptible(bid);
    place(world, renter, offered, deal).unwrap()
}

/// What a lease has, without the GPU's own name before it: `00/3g.40gb@4+4`.
fn has(world: &World, lease: LeaseId) -> Vec<String> {
    let lease = world.desk.market().lease(lease).unwrap();
    let names = lease.contract.share.resources.iter();
    names
        .map(|name| name.strip_prefix("GPU-h-").unwrap().to_owned())
        .collect()
}

#[test]
fn a_slice_keeps_the_whole_out_and_the_whole_every_slice() {
    let mut world = world(1);
    let three = firm(&mut world, THREE).unwrap();
    assert_eq!(has(&world, three), ["00/3g.40gb@4+4"]);
    assert_eq!(firm(&mut world, WHOLE), Err(Rejection::OfferTaken));
    assert_eq!(firm(&mut world, SEVEN), Err(Rejection::OfferTaken));
    let four = firm(&mut world, FOUR).unwrap();
    assert_eq!(has(&world, four), ["00/4g.40gb@0+4"]);
    assert_eq!(firm(&mut world, ONE), Err(Rejection::OfferTaken));
    for lease in [three, four] {
        assert_eq!(firm(&mut world, WHOLE), Err(Rejection::OfferTaken));
        world.act(lease, LeaseAction::End).unwrap();
        world.follow();
    }
    let whole = firm(&mut world, WHOLE).unwrap();
    assert_eq!(has(&world, whole), ["00"]);
    for slice in [ONE, TWO, THREE, FOUR, SEVEN] {
        assert_eq!(firm(&mut world, slice), Err(Rejection::OfferTaken));
    }
}

#[test]
fn a_lease_of_a_slice_says_which_it_has() {
    let mut world = world(2);
    let lease = firm(&mut world, THREE).unwrap();
    let view = world.view(lease);
    assert_eq!(view.partition.unwrap().profile.as_str(), "3g.40gb");
    assert_eq!((view.gpus.len(), view.gpu_count), (1, 1));
    // Half of the 4 cores and of the 16 GB of a GPU.
    assert_eq!((view.cpu_millicores, view.ram), (2000, Bytes::from_gb(8)));
    assert_eq!(view.prices.compute, PricePerHour(400_000));
}

#[test]
fn slices_go_where_least_is_lost_and_fill_a_gpu_before_the_next() {
    let mut world = world(2);
    // On an empty chip 1g loses 15 at 6, 17 at 4 and 5, 21 at 0 to 3; beside it, on the GPU that is cut already, less.
    let mut places = Vec::new();
    for offered in [ONE, ONE, TWO, THREE, ONE] {
        let lease = firm(&mut world, offered).unwrap();
        places.extend(has(&world, lease));
    }
    let wanted = [
        "00/1g.10gb@6+1",
        "00/1g.10gb@4+1",
        "00/2g.20gb@0+2",
        "01/3g.40gb@4+4",
        "00/1g.10gb@5+1",
    ];
    assert_eq!(places, wanted);
}

/// Whole GPUs are taken of those that are not offered in slices, as long as there are any.
#[test]
fn whole_gpus_are_let_first_where_no_slices_are_sold() {
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(0, 1_000_000_000);
    world.offer_resource(0, "GPU-h", Ask::gpus(2, 800_000, None));
    world.offer_resource(0, "GPU-h", slices(2, "3g.40gb", Some((0, 0))));
    let lease = firm(&mut world, 0).unwrap();
    assert_eq!(has(&world, lease), ["01"]);
}

/// Example E1 of the market rules: GPU0 {1g@0 (5), 2g@4 (9)}, GPU1 {1g@1 (3), 1g@4 (4, pinned)}, GPU2 {3g@0 pinned,
/// 1g@5, 1g@6 (2 each)}, in units of 100 000.
fn e1() -> (World, Vec<LeaseId>) {
    let mut world = empty();
    let standing: [(&str, (u16, u8), Option<u64>); 7] = [
        ("1g.10gb", (0, 0), Some(5)),
        ("2g.20gb", (0, 4), Some(9)),
        ("1g.10gb", (1, 1), Some(3)),
        ("1g.10gb", (1, 4), None),
        ("3g.40gb", (2, 0), None),
        ("1g.10gb", (2, 5), Some(2)),
        ("1g.10gb", (2, 6), Some(2)),
    ];
    let mut leases = Vec::new();
    for (profile, only, value) in standing {
        world.offer_resource(0, "GPU-h", slices(3, profile, Some(only)));
        let offered = world.asks.len() - 1;
        let deal = value.map_or(Deal::OnDemand, |value| world.interruptible(value * 100_000));
        leases.push(place(&mut world, 1, offered, deal).unwrap());
    }
    world.asks = asks(3);
    world.announce();
    (world, leases)
}

#[test]
fn e1_the_window_of_least_bids_is_cleared() {
    for (wanted, place, go) in [
        (THREE, "01/3g.40gb@0+4", vec![2]),
        (FOUR, "01/4g.40gb@0+4", vec![2]),
        (SEVEN, "00/7g.80gb@0+8", vec![0, 1]),
        (WHOLE, "00", vec![0, 1]),
    ] {
        let (mut world, standing) = e1();
        let lease = firm(&mut world, wanted).unwrap();
        assert_eq!(has(&world, lease), [place]);
        assert!(matches!(world.phase(lease), Phase::Clearing(_)));
        for (n, other) in standing.iter().enumerate() {
            let is_gone = matches!(
                world.phase(*other),
                Phase::Noticed(PauseCause::Preempted, _)
            );
            assert_eq!(is_gone, go.contains(&n), "{place}: {n}");
        }
        world.pass(120);
        assert_eq!(world.phase(lease), Phase::Running);
    }
}

#[test]
fn a_bid_for_a_slice_must_exceed_all_that_it_takes() {
    let (mut world, standing) = e1();
    world.pass(600);
    // Cheapest for a 3g: 300 000 on GPU1, and a hundredth more.
    let waits = bid(&mut world, 2, THREE, 302_999);
    assert_eq!(world.phase(waits), Phase::Resting);
    assert_eq!(world.view(waits).to_win, Some(PricePerHour(303_000)));
    let wins = bid(&mut world, 3, THREE, 303_000);
    assert_eq!(has(&world, wins), ["01/3g.40gb@0+4"]);
    let outbid = |phase| matches!(phase, Phase::Noticed(PauseCause::Outbid, _));
    assert!(outbid(world.phase(standing[2])));
    world.pass(120);
    assert_eq!(world.phase(wins), Phase::Running);
    // What was pushed out comes back to its own place, when that is free.
    world.act(wins, LeaseAction::End).unwrap();
    world.act(waits, LeaseAction::End).unwrap();
    world.follow();
    assert_eq!(world.phase(standing[2]), Phase::Running);
    assert_eq!(has(&world, standing[2]), ["01/1g.10gb@1+1"]);
}

#[test]
fn a_bid_for_a_whole_gpu_must_exceed_its_slices_together() {
    let (mut world, standing) = e1();
    world.pass(600);
    // GPU0: 500 000 and 900 000 together; the others have leases that stay.
    let waits = bid(&mut world, 2, WHOLE, 1_413_999);
    assert_eq!(world.view(waits).to_win, Some(PricePerHour(1_414_000)));
    let wins = bid(&mut world, 3, WHOLE, 1_414_000);
    assert_eq!(has(&world, wins), ["00"]);
    world.pass(120);
    assert_eq!(world.phase(wins), Phase::Running);
    for pushed in [0, 1] {
        let phase = world.phase(standing[pushed]);
        assert_eq!(phase, Phase::Paused(PauseCause::Outbid), "{pushed}");
    }
    // A slice of what the whole one has would have to pay for all of it.
    let slice = bid(&mut world, 4, SEVEN, 1_000_000);
    assert_eq!(world.phase(slice), Phase::Resting);
}

/// While one comes for a part of what another leaves, the rest of it is nobody's yet, and then free.
#[test]
fn what_a_large_slice_leaves_is_let_when_it_has_gone() {
    let mut world = world(1);
    let four = bid(&mut world, 1, FOUR, 50_000);
    let three = firm(&mut world, THREE).unwrap();
    let one = firm(&mut world, ONE).unwrap();
    assert!(matches!(world.phase(one), Phase::Clearing(_)));
    assert!(matches!(world.phase(four), Phase::Noticed(..)));
    assert_eq!(firm(&mut world, ONE), Err(Rejection::OfferTaken));
    let bids = bid(&mut world, 2, TWO, 20_000);
    assert_eq!(world.phase(bids), Phase::Resting);
    world.pass(120);
    assert_eq!(world.phase(one), Phase::Running);
    assert_eq!(world.phase(bids), Phase::Running);
    assert_eq!(world.phase(three), Phase::Running);
    assert!(!has(&world, bids).is_empty());
}

#[test]
fn a_claim_on_a_part_keeps_out_who_would_have_it_too() {
    let mut world = world(1);
    let whole = bid(&mut world, 1, WHOLE, 20_000);
    world.pass(600);
    let one = firm(&mut world, ONE).unwrap();
    assert_eq!(has(&world, one), ["00/1g.10gb@6+1"]);
    // The whole GPU goes for it; a 7g would need its place too.
    assert_eq!(firm(&mut world, SEVEN), Err(Rejection::OfferTaken));
    assert_eq!(firm(&mut world, WHOLE), Err(Rejection::OfferTaken));
    world.pass(120);
    assert_eq!(world.phase(one), Phase::Running);
    assert_eq!(world.phase(whole), Phase::Paused(PauseCause::Preempted));
    // It does not come back beside a slice.
    world.pass(120);
    assert_eq!(world.phase(whole), Phase::Paused(PauseCause::Preempted));
    world.act(one, LeaseAction::End).unwrap();
    world.pass(60);
    assert_eq!(world.phase(whole), Phase::Running);
}

#[test]
fn a_slice_is_prepaid_and_converted_as_a_gpu_is() {
    let mut world = world(1);
    let days = Deal::Reserved {
        days: 30,
        prepay_max: MicroUsd(1_000_000_000),
    };
    // 400 000 × 24 × 30, less 20 %.
    let mut order = world.deal(THREE, days, 1);
    order.budget = MicroUsd(300_000_000);
    let term = world.place(1, order).unwrap();
    world.follow();
    assert_eq!(
        world.view(term).term.unwrap().prepaid,
        MicroUsd(230_400_000)
    );
    let bids = bid(&mut world, 2, ONE, 50_000);
    world.pass(10);
    let convert = LeaseAction::Convert {
        deal: Deal::OnDemand,
        price_max: PricePerHour(u64::MAX),
    };
    world.act(bids, convert).unwrap();
    let view = world.view(bids);
    assert_eq!(view.kind, ContractKind::OnDemand);
    assert_eq!(view.prices.compute, PricePerHour(100_000));
    assert!(matches!(
        firm(&mut world, WHOLE),
        Err(Rejection::OfferTaken)
    ));
}

/// Two of a slice cannot be had together, whoever asks.
#[test]
fn slices_are_sold_one_by_one() {
    let mut world = world(2);
    let order = world.deal(THREE, Deal::OnDemand, 2);
    let refused = world.place(0, order);
    assert!(matches!(refused, Err(Rejection::NotSold(_))), "{refused:?}");
    let mut order = world.deal(THREE, Deal::OnDemand, 1);
    order.cpu_millicores = Some(2001);
    let refused = world.place(0, order);
    assert!(matches!(refused, Err(Rejection::NotSold(_))), "{refused:?}");
}

/// A lease of a whole GPU may have more than its part of the machine; then a slice of another GPU has to wait.
#[test]
fn slices_and_whole_gpus_share_the_machine() {
    let mut world = world(2);
    let mut order = world.deal(WHOLE, Deal::OnDemand, 1);
    order.cpu_millicores = Some(7000);
    let greedy = world.place(0, order).unwrap();
    world.follow();
    let one = firm(&mut world, ONE).unwrap();
    assert_eq!(world.view(one).cpu_millicores, 500);
    assert_eq!(firm(&mut world, TWO), Err(Rejection::OfferTaken));
    world.act(greedy, LeaseAction::End).unwrap();
    world.follow();
    assert!(firm(&mut world, TWO).is_ok());
    // And the other way round: 500 and 1000 of 8000 are slices'.
    let mut order = world.deal(WHOLE, Deal::OnDemand, 1);
    order.cpu_millicores = Some(6501);
    assert_eq!(world.place(0, order), Err(Rejection::OfferTaken));
}

/// A host withholds what another broker's lease has.
#[test]
fn what_a_host_withholds_is_not_let() {
    let mut world = world(1);
    let name = |name: &str| (0, ResourceName::new(name).unwrap());
    world.withheld = vec![name("GPU-h-00/1g.10gb@6+1")];
    world.announce();
    assert_eq!(firm(&mut world, WHOLE), Err(Rejection::OfferTaken));
    let one = firm(&mut world, ONE).unwrap();
    // The best place beside the one that is withheld.
    assert_eq!(has(&world, one), ["00/1g.10gb@4+1"]);
    world.withheld = vec![name("GPU-h-00")];
    world.announce();
    assert_eq!(firm(&mut world, ONE), Err(Rejection::OfferTaken));
    world.withheld.clear();
    world.announce();
    assert!(firm(&mut world, ONE).is_ok());
}

#[test]
fn the_host_is_told_which_slice() {
    let mut world = world(1);
    let order = world.deal(ONE, Deal::OnDemand, 1);
    let lease = world.place(0, order).unwrap();
    let goal = world.desk.goal(host_id(0));
    let part = &goal.leases[0].award.body().part;
    assert_eq!(part.resources[0].as_str(), "GPU-h-00/1g.10gb@6+1");
    assert_eq!(goal.leases[0].lease, lease);
}
