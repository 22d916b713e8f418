//! Each rule about goals by itself: what is believed, what is refused and why, what a repeat does.

use super::moves::{follow, record, running};
use super::{START, World, at, goal, public};
use crate::core::award::Standing;
use crate::core::goal::Overtaken;
use crate::core::leases::{Change, Decision, Note};
use crate::core::report::grant;
use ed25519_dalek::SigningKey;
use protocol::ids::{Digest, HostId, LeaseId};
use protocol::lease::{Award, Detail, RefusalReason, Want};
use protocol::order::{Order, Target};
use protocol::units::{Bytes, PricePerHour};

#[test]
fn a_good_match_is_taken_once_under_a_new_epoch_and_granted() {
    let world = World::new();
    let mut leases = world.empty();
    let wanted = vec![world.lease_goal(0, 1, 0, Want::Run(1))];
    let first = follow(&world, &mut leases, 1, &wanted);
    assert_eq!(first.changes.len(), 1);
    let taken = record(&leases, wanted[0].lease);
    assert_eq!(taken.state.held()[0].resource.as_str(), "GPU-a");
    assert_eq!(taken.state.held()[0].epoch, START + 1_000);
    let grant = grant(taken).unwrap();
    assert_eq!(
        (grant.order, grant.award),
        (wanted[0].order.digest(), wanted[0].award.digest())
    );
    assert_eq!(grant.resources[0].1, START + 1_000);
    // The same goal again, and the same lease in a later goal, change nothing.
    assert!(follow(&world, &mut leases, 1, &wanted).changes.is_empty());
    assert!(follow(&world, &mut leases, 2, &wanted).changes.is_empty());
}

#[test]
fn an_older_goal_is_not_followed() {
    let world = World::new();
    let mut leases = world.empty();
    let wanted = vec![world.lease_goal(0, 1, 0, Want::Run(1))];
    follow(&world, &mut leases, 2, &wanted);
    let old = goal(1, Vec::new());
    let decided = leases.decide_goal(world.broker(0), &old, &world.standing(), at(2));
    assert_eq!(decided, Err(Overtaken));
    // A broker whose clock was set back is heard again after a minute.
    let decided = leases.decide_goal(world.broker(0), &old, &world.standing(), at(62));
    assert!(decided.is_ok());
}

#[test]
fn two_brokers_race_for_one_gpu_and_the_first_has_it() {
    let world = World::new();
    let mut leases = world.empty();
    follow(
        &world,
        &mut leases,
        1,
        &[world.lease_goal(0, 1, 0, Want::Run(1))],
    );
    let second = world.lease_goal(1, 2, 0, Want::Run(1));
    let asked = goal(1, vec![second.clone()]);
    let decision = leases
        .decide_goal(world.broker(1), &asked, &world.standing(), at(1))
        .unwrap();
    assert!(decision.changes.is_empty());
    let refusal = Note::Refused(world.broker(1), second.lease, RefusalReason::Taken);
    assert!(decision.notes.contains(&refusal));
}

#[test]
fn in_one_goal_the_earlier_receipt_has_it() {
    let world = World::new();
    let mut leases = world.empty();
    let (early, late) = (
        world.lease_goal(0, 1, 0, Want::Run(1)),
        world.lease_goal(0, 2, 0, Want::Run(1)),
    );
    follow(&world, &mut leases, 1, &[late.clone(), early.clone()]);
    assert!(leases.record(early.lease).is_some());
    assert_eq!(leases.refused()[&late.lease].1, RefusalReason::Taken);
}

#[track_caller]
pub(super) fn refused(
    change: impl FnOnce(&mut Order, &mut Award),
    standing: impl FnOnce(&mut Standing<'_>),
) -> RefusalReason {
    let world = World::new();
    let mut known = world.standing();
    standing(&mut known);
    let asked = world.changed_goal(0, 1, 0, change);
    let goal = goal(1, vec![asked.clone()]);
    let decision = world
        .empty()
        .decide_goal(world.broker(0), &goal, &known, at(1))
        .unwrap();
    assert!(decision.changes.is_empty(), "it was taken");
    let refusal = decision.notes.into_iter().find_map(|note| match note {
        Note::Refused(_, lease, reason) if lease == asked.lease => Some(reason),
        Note::Refused(..) | Note::Goal(..) | Note::Unknown(..) | Note::Waiting(_) => None,
    });
    refusal.expect("no refusal")
}

fn set_terms(order: &mut Order, agreed: Digest) {
    if let Target::Offer { terms, .. } = &mut order.target {
        *terms = agreed;
    }
}

pub(super) fn is_bad(reason: &RefusalReason) -> bool {
    matches!(reason, RefusalReason::BadOrder(_))
}

#[test]
fn each_thing_that_does_not_fit_is_refused_with_its_reason() {
    let nothing = |_: &mut Standing<'_>| ();
    assert_eq!(
        refused(|order, _| set_terms(order, Digest::of(b"old")), nothing),
        RefusalReason::BadOrder(Detail::cut("the broker's match is not of this order"))
    );
    let other_terms = |order: &mut Order, award: &mut Award| {
        let old = Digest::of(b"old");
        set_terms(order, old);
        award.offer.1 = old;
    };
    assert_eq!(refused(other_terms, nothing), RefusalReason::OfferChanged);
    assert!(is_bad(&refused(
        |_, award| award.host = HostId::from_bytes([5; 32]),
        nothing
    )));
    assert!(is_bad(&refused(
        |_, award| award.prices.compute = PricePerHour(1),
        nothing
    )));
    assert!(is_bad(&refused(
        |_, award| award.lease = LeaseId::from_bytes([5; 16]),
        nothing
    )));
    assert!(is_bad(&refused(
        |order, _| order.disk = Bytes::from_gb(101),
        nothing
    )));
    let same = |_: &mut Order, _: &mut Award| ();
    assert_eq!(
        refused(same, |known| known.draining = true),
        RefusalReason::Draining
    );
    assert_eq!(
        refused(same, |known| known.disk_free = Bytes::from_gb(9)),
        RefusalReason::DiskFull
    );
    assert_eq!(
        refused(same, |known| known.engine = Err("gone".to_owned())),
        RefusalReason::EngineDown(Detail::cut("gone"))
    );
}

/// Whether a second lease of 10 GB is taken beside a first one, with so much disk free and, of the first, so much
/// known to be left to write.
fn takes_a_second(free_gb: u64, left_gb: Option<u64>) -> bool {
    let mut world = World::new();
    let mut leases = world.empty();
    let first = world.lease_goal(0, 1, 0, Want::Run(1));
    follow(&world, &mut leases, 1, std::slice::from_ref(&first));
    if let Some(left) = left_gb {
        world.disk_left.insert(first.lease, Bytes::from_gb(left));
    }
    let second = world.lease_goal(0, 2, 1, Want::Run(1));
    let asked = goal(2, vec![first, second.clone()]);
    let mut known = world.standing();
    known.disk_free = Bytes::from_gb(free_gb);
    let decision = leases
        .decide_goal(world.broker(0), &asked, &known, at(2))
        .unwrap();
    let full = Note::Refused(world.broker(0), second.lease, RefusalReason::DiskFull);
    let is_refused = decision.notes.contains(&full);
    assert_eq!(is_refused, decision.changes.is_empty());
    !is_refused
}

#[test]
fn disk_that_another_lease_was_promised_is_not_promised_again() {
    // 10 GB each: 20 fit, 19 do not.
    assert!(takes_a_second(20, None));
    assert!(!takes_a_second(19, None));
    // The first wrote 7 GB, which are not free any more: 3 of its 10 are still to come.
    assert!(takes_a_second(13, Some(3)));
    assert!(!takes_a_second(12, Some(3)));
    // Nobody has more left than was ordered.
    assert!(takes_a_second(20, Some(1000)));
}

#[test]
fn two_leases_of_one_goal_share_the_disk_that_is_free() {
    let world = World::new();
    let (first, second) = (
        world.lease_goal(0, 1, 0, Want::Run(1)),
        world.lease_goal(0, 2, 1, Want::Run(1)),
    );
    let asked = goal(1, vec![first.clone(), second.clone()]);
    let mut known = world.standing();
    known.disk_free = Bytes::from_gb(15);
    let decision = world
        .empty()
        .decide_goal(world.broker(0), &asked, &known, at(1))
        .unwrap();
    assert_eq!(decision.changes.len(), 1);
    let full = Note::Refused(world.broker(0), second.lease, RefusalReason::DiskFull);
    assert!(decision.notes.contains(&full));
}

#[test]
fn a_lease_that_is_gone_has_no_disk() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    let nothing = std::collections::BTreeMap::new();
    assert_eq!(leases.promised_disk(&nothing), Bytes::from_gb(10));
    let record = record(&leases, wanted.lease).gone(at(9));
    leases.apply(&Decision {
        changes: vec![Change::Lease(Box::new(record))],
        notes: Vec::new(),
    });
    assert_eq!(leases.promised_disk(&nothing), Bytes(0));
}

#[test]
fn an_award_of_another_broker_and_a_stale_order_are_refused() {
    let mut world = World::new();
    let honest = world.lease_goal(0, 1, 0, Want::Run(1));
    let asked = goal(1, vec![honest.clone()]);
    // Two minutes after it was signed the order asks for nothing any more.
    let decision = world
        .empty()
        .decide_goal(world.broker(0), &asked, &world.standing(), at(120))
        .unwrap();
    assert!(decision.changes.is_empty());
    // The same order and lease, awarded by a key that is not the sender's.
    let sender = world.broker(0);
    world.brokers[0] = SigningKey::from_bytes(&[8; 32]);
    assert_ne!(public(&world.brokers[0]), sender.into());
    let forged = world.changed_goal(0, 1, 0, |_, award| award.lease = honest.lease);
    let asked = goal(1, vec![forged]);
    let decision = world
        .empty()
        .decide_goal(sender, &asked, &world.standing(), at(1))
        .unwrap();
    assert!(decision.changes.is_empty());
}

#[test]
fn a_known_lease_outlives_its_orders_validity() {
    let world = World::new();
    let (leases, wanted) = running(&world);
    let again = goal(9, vec![wanted.clone()]);
    let decision = leases
        .decide_goal(world.broker(0), &again, &world.standing(), at(5_000))
        .unwrap();
    assert!(decision.changes.is_empty() && decision.notes.len() == 1);
}
