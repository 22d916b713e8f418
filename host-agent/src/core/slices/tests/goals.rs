//! Slices that brokers match: what one of them has, no other gets, whole or in part.

use super::{divisibles, dynamic, host, policy};
use crate::core::leases::Leases;
use crate::core::offer::offers;
use crate::core::slices::Mode;
use crate::core::tests::{World, at, goal};
use protocol::lease::{LeaseGoal, RefusalReason, Want};
use protocol::offer::Part;

/// One H100 that is offered whole and in slices.
fn world() -> World {
    let mut world = World::new();
    let slices = super::SlicePolicy {
        also_whole: true,
        ..policy(&[("GPU-a", dynamic(&[]))])
    };
    let (machine, listing) = host(&["GPU-a"], slices);
    let divided = divisibles(&[("GPU-a", Mode::Divided)]);
    world.offers = offers(world.host, &machine, &divided, &listing, &[]).unwrap();
    world
}

/// The goal of a broker that this resource be leased.
fn wanted(world: &World, broker: usize, number: u8, resource: &str) -> LeaseGoal {
    let sells = |offer: &protocol::offer::Offer| {
        offer
            .share
            .resources
            .iter()
            .any(|name| name.as_str() == resource)
    };
    let listed = world
        .offers
        .iter()
        .find(|listed| sells(&listed.offer))
        .unwrap();
    let offer = &listed.offer;
    let (cpu_millicores, ram, shared_memory, _) = offer.proportion(1);
    let part = Part {
        resources: protocol::bounded::List::first([super::name(resource)]),
        cpu_millicores,
        ram,
        shared_memory,
    };
    let goal = world.changed_goal(broker, number, 0, |order, award| {
        order.target = protocol::order::Target::Offer {
            offer: offer.id,
            terms: listed.terms,
        };
        order.disk = protocol::units::Bytes::from_gb(2);
        award.offer = (offer.id, listed.terms);
        award.part = part;
        award.prices = offer.prices.of_gpus(1);
    });
    LeaseGoal {
        want: Want::Run(1),
        ..goal
    }
}

fn follow(world: &World, leases: &mut Leases, broker: usize, sequence: u64, goals: &[LeaseGoal]) {
    let goal = goal(sequence, goals.to_vec());
    let standing = world.standing();
    let decided = leases.decide_goal(world.broker(broker), &goal, &standing, at(sequence));
    leases.apply(&decided.unwrap());
}

// Threats 5 and 6: two brokers want memory of one GPU; one of them gets it.
#[test]
fn two_brokers_that_race_for_overlapping_places_get_one() {
    for (first, second, both) in [
        ("GPU-a/3g.40gb@4+4", "GPU-a/1g.10gb@6+1", false),
        ("GPU-a/1g.10gb@6+1", "GPU-a/3g.40gb@4+4", false),
        ("GPU-a/3g.40gb@4+4", "GPU-a", false),
        ("GPU-a", "GPU-a/1g.10gb@0+1", false),
        ("GPU-a/3g.40gb@4+4", "GPU-a/3g.40gb@4+4", false),
        ("GPU-a/3g.40gb@4+4", "GPU-a/4g.40gb@0+4", true),
        ("GPU-a/1g.10gb@6+1", "GPU-a/1g.10gb@5+1", true),
    ] {
        let world = world();
        let mut leases = world.empty();
        let one = wanted(&world, 0, 1, first);
        let other = wanted(&world, 1, 2, second);
        follow(&world, &mut leases, 0, 1, std::slice::from_ref(&one));
        follow(&world, &mut leases, 1, 2, std::slice::from_ref(&other));
        assert!(leases.record(one.lease).is_some(), "{first}");
        assert_eq!(
            leases.record(other.lease).is_some(),
            both,
            "{second} beside {first}"
        );
        if !both {
            assert_eq!(leases.refused()[&other.lease].1, RefusalReason::Taken);
        }
    }
}

/// A slice has no more than its part, whatever a broker says.
#[test]
fn a_slice_of_more_than_its_part_is_refused() {
    let world = world();
    let mut leases = world.empty();
    let listed = &world.offers[1];
    let (cpu_millicores, ram, shared_memory, _) = listed.offer.proportion(1);
    let goal = world.changed_goal(0, 1, 0, |order, award| {
        order.target = protocol::order::Target::Offer {
            offer: listed.offer.id,
            terms: listed.terms,
        };
        award.offer = (listed.offer.id, listed.terms);
        award.part = Part {
            resources: protocol::bounded::List::first([listed.offer.share.resources[0].clone()]),
            cpu_millicores: cpu_millicores + 1,
            ram,
            shared_memory,
        };
        award.prices = listed.offer.prices.of_gpus(1);
    });
    follow(&world, &mut leases, 0, 1, std::slice::from_ref(&goal));
    assert!(leases.record(goal.lease).is_none());
    let refused = &leases.refused()[&goal.lease].1;
    assert!(matches!(refused, RefusalReason::BadOrder(_)), "{refused:?}");
}

/// A broker that gives up a slice for another on the same GPU waits for it, and is not refused.
#[test]
fn what_is_on_its_way_out_is_waited_for() {
    let world = world();
    let mut leases = world.empty();
    let one = wanted(&world, 0, 1, "GPU-a/3g.40gb@4+4");
    follow(&world, &mut leases, 0, 1, std::slice::from_ref(&one));
    let leaves = LeaseGoal {
        want: Want::End,
        ..one.clone()
    };
    let other = wanted(&world, 0, 2, "GPU-a/1g.10gb@6+1");
    follow(&world, &mut leases, 0, 2, &[leaves, other.clone()]);
    assert!(leases.record(other.lease).is_none());
    assert!(leases.refused().is_empty());
    assert!(leases.waits(world.broker(0)));
}
