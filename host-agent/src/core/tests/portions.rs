//! Portions of an offer: which are taken, at which prices and in which kinds, and that all together never have
//! more than is sold.

use super::goals::{is_bad, refused};
use super::moves::{exited, follow, record, see, with};
use super::{START, World, at, goal, public};
use crate::core::leases::Note;
use crate::core::reconcile::{Containers, Outcome};
use protocol::ids::{HostId, LeaseId, RenterId};
use protocol::lease::{Award, LeaseGoal, RefusalReason, Want};
use protocol::offer::{Chunks, ResourceName};
use protocol::order::{Order, Target};
use protocol::terms::ContractKind;
use protocol::units::{Bytes, PricePerHour, Seconds, Timestamp};

/// What a match for two GPUs looks like.
pub(super) fn both(world: &World) -> impl FnOnce(&mut Order, &mut Award) {
    let (part, prices) = (world.part(&[0, 1]), world.offer().prices.of_gpus(2));
    move |order, award| {
        order.gpus = 2;
        award.part = part;
        award.prices = prices;
    }
}

/// Why a match is refused in a world that was changed first; nothing when it is taken.
pub(super) fn verdict(
    world: impl FnOnce(&mut World),
    change: impl FnOnce(&mut Order, &mut Award),
) -> Option<RefusalReason> {
    let mut changed = World::new();
    world(&mut changed);
    for listed in &mut changed.offers {
        listed.terms = listed.offer.terms_digest().unwrap();
    }
    let asked = changed.changed_goal(0, 1, 0, change);
    let goal = goal(1, vec![asked.clone()]);
    let decision = changed
        .empty()
        .decide_goal(changed.broker(0), &goal, &changed.standing(), at(1))
        .unwrap();
    let refusal = decision.notes.into_iter().find_map(|note| match note {
        Note::Refused(_, _, reason) => Some(reason),
        Note::Goal(..) | Note::Unknown(..) | Note::Waiting(_) => None,
    });
    assert_eq!(refusal.is_none(), decision.changes.len() == 1);
    refusal
}

#[track_caller]
pub(super) fn check_taken(change: impl FnOnce(&mut Order, &mut Award)) {
    assert_eq!(verdict(|_| (), change), None);
}

#[track_caller]
pub(super) fn check_bad(change: impl FnOnce(&mut Order, &mut Award)) {
    let reason = verdict(|_| (), change);
    assert!(reason.as_ref().is_some_and(is_bad), "{reason:?}");
}

#[test]
fn a_lease_has_the_gpus_and_the_part_of_the_machine_that_its_award_names() {
    let world = World::new();
    let mut leases = world.empty();
    let one = world.lease_goal(0, 1, 1, Want::Run(1));
    follow(&world, &mut leases, 1, std::slice::from_ref(&one));
    let taken = record(&leases, one.lease);
    let gpus: Vec<&str> = taken
        .share
        .gpus
        .iter()
        .map(|gpu| gpu.uuid.as_str())
        .collect();
    assert_eq!(gpus, ["GPU-b"]);
    // Half of 8 cores and of 16 GiB.
    assert_eq!(
        (taken.share.cpu_millicores, taken.share.ram),
        (4_000, Bytes(8 << 30))
    );
    let holder = |name: &str| leases.capacity().holder(&ResourceName::cut(name));
    assert_eq!((holder("GPU-a"), holder("GPU-b")), (None, Some(one.lease)));
    // The other GPU is still free; both together are not, while the one runs on.
    let other = world.lease_goal(0, 2, 0, Want::Run(1));
    let both = world.changed_goal(0, 3, 0, both(&world));
    let wanted = [one.clone(), both.clone()];
    follow(&world, &mut leases, 2, &wanted);
    assert_eq!(leases.refused()[&both.lease].1, RefusalReason::Taken);
    follow(&world, &mut leases, 3, &[one, other.clone()]);
    assert!(leases.record(other.lease).is_some());
}

#[test]
fn all_gpus_together_are_one_lease_under_one_epoch_each() {
    let world = World::new();
    let mut leases = world.empty();
    let wanted = world.changed_goal(0, 1, 0, both(&world));
    follow(&world, &mut leases, 1, std::slice::from_ref(&wanted));
    let held = record(&leases, wanted.lease).state.held();
    let held: Vec<(&str, u64)> = held
        .iter()
        .map(|held| (held.resource.as_str(), held.epoch))
        .collect();
    assert_eq!(held, [("GPU-a", START + 1_000), ("GPU-b", START + 1_000)]);
}

#[test]
fn a_portion_that_is_not_sold_is_refused() {
    check_bad(|order, _| order.gpus = 2);
    check_bad(|order, _| order.gpus = 0);
    let whole = verdict(
        |world| world.offers[0].offer.chunks = Chunks::Whole,
        |_, _| (),
    );
    assert!(whole.as_ref().is_some_and(is_bad), "{whole:?}");
    let least = verdict(|world| world.offers[0].offer.gpus_min = 2, |_, _| ());
    assert!(least.as_ref().is_some_and(is_bad), "{least:?}");
    let world = World::new();
    let part = world.part(&[1, 0]);
    let prices = world.offer().prices.of_gpus(2);
    check_bad(|order, award| {
        order.gpus = 2;
        award.part = part;
        award.prices = prices;
    });
    let part = world.part(&[0, 0]);
    check_bad(|order, award| {
        order.gpus = 2;
        award.part = part;
        award.prices = prices;
    });
    check_bad(|_, award| {
        award.part.resources = [ResourceName::cut("GPU-x")].into_iter().collect_list();
    });
    check_bad(|_, award| award.part.cpu_millicores = 8_001);
    check_bad(|_, award| award.part.cpu_millicores = 0);
    check_bad(|_, award| award.part.ram = Bytes(17 << 30));
    check_bad(|_, award| award.part.shared_memory = Bytes(9 << 30));
}

/// A list of few.
trait CollectList<T> {
    fn collect_list<const N: usize>(self) -> protocol::bounded::List<T, N>;
}

impl<T, I: Iterator<Item = T>> CollectList<T> for I {
    fn collect_list<const N: usize>(self) -> protocol::bounded::List<T, N> {
        protocol::bounded::List::first(self)
    }
}

#[test]
fn cpu_and_ram_of_all_leases_are_never_more_than_the_offer_sells() {
    let world = World::new();
    let mut leases = world.empty();
    // Three quarters of the machine with one GPU; then half of it does not fit beside, and a quarter does.
    let large = |order: &mut Order, award: &mut Award| {
        order.cpu_millicores = Some(6_000);
        award.part.cpu_millicores = 6_000;
    };
    let first = world.changed_goal(0, 1, 0, large);
    let second = world.lease_goal(0, 2, 1, Want::Run(1));
    follow(&world, &mut leases, 1, &[first.clone(), second.clone()]);
    assert!(leases.record(first.lease).is_some());
    assert_eq!(leases.refused()[&second.lease].1, RefusalReason::Taken);
    let small = |_: &mut Order, award: &mut Award| award.part.cpu_millicores = 2_000;
    let third = world.changed_goal(0, 3, 1, small);
    follow(&world, &mut leases, 2, &[first, third.clone()]);
    assert!(leases.record(third.lease).is_some());
    let ram = |_: &mut Order, award: &mut Award| award.part.ram = Bytes(9 << 30);
    let (one, other) = (
        world.changed_goal(0, 4, 0, ram),
        world.changed_goal(0, 5, 1, ram),
    );
    let mut leases = world.empty();
    follow(&world, &mut leases, 1, &[one, other.clone()]);
    assert_eq!(leases.refused()[&other.lease].1, RefusalReason::Taken);
}

#[test]
fn a_resume_takes_cpu_that_is_there_and_no_more() {
    let world = World::new();
    let mut leases = world.empty();
    let large = |_: &mut Order, award: &mut Award| award.part.cpu_millicores = 6_000;
    let first = world.changed_goal(0, 1, 0, large);
    follow(&world, &mut leases, 1, std::slice::from_ref(&first));
    leases.apply(&leases.decide_outcome(first.lease, &Outcome::Started(at(2).wall), at(2)));
    let over = Containers::from([(first.lease, exited(0, 2, 5))]);
    see(&mut leases, &over, 6);
    // Stopped, it has no CPU: the other one fits.
    let other = world.changed_goal(0, 2, 1, large);
    let stopped = with(Want::Stop, &first).remove(0);
    follow(&world, &mut leases, 2, &[stopped, other.clone()]);
    assert!(leases.record(other.lease).is_some());
    let again = with(Want::Run(2), &first).remove(0);
    follow(&world, &mut leases, 3, &[again, other]);
    assert!(record(&leases, first.lease).state.held().is_empty());
}

#[test]
fn disks_of_all_leases_are_never_more_than_the_offer_allows() {
    let world = World::new();
    let mut leases = world.empty();
    let first = world.changed_goal(0, 1, 0, |order, _| order.disk = Bytes::from_gb(95));
    let second = world.lease_goal(0, 2, 1, Want::Run(1));
    // 95 and 10 are more than 100, though 400 are free.
    follow(&world, &mut leases, 1, &[first.clone(), second.clone()]);
    assert_eq!(leases.refused()[&second.lease].1, RefusalReason::DiskFull);
    let third = world.changed_goal(0, 3, 1, |order, _| order.disk = Bytes::from_gb(5));
    follow(&world, &mut leases, 2, &[first, third.clone()]);
    assert!(leases.record(third.lease).is_some());
}

#[test]
fn leases_are_neither_shorter_nor_longer_nor_later_than_the_offer_allows() {
    check_bad(|order, _| order.duration_max = Some(Seconds(59)));
    check_taken(|order, _| order.duration_max = Some(Seconds(60)));
    let hour = |world: &mut World| {
        world.offers[0].offer.limits.duration_max = Some(Seconds(3600));
    };
    let long = |order: &mut Order, _: &mut Award| order.duration_max = Some(Seconds(3601));
    assert!(verdict(hour, long).as_ref().is_some_and(is_bad));
    // One that names no end has the offer's.
    assert_eq!(verdict(hour, |_, _| ()), None);
    let over = |world: &mut World| world.offers[0].offer.limits.until = Some(at(1).wall);
    assert!(verdict(over, |_, _| ()).as_ref().is_some_and(is_bad));
}

#[test]
fn an_order_for_whichever_is_best_is_taken_where_its_filter_finds_the_offer() {
    let any = |filter: &str| {
        let filter = filter.parse().unwrap();
        move |order: &mut Order, _: &mut Award| order.target = Target::Any(filter)
    };
    // $0.35 and 10 GB at $0.10 a GB-month: 350 000 + 1 388 µ$ an hour.
    check_taken(any("num_gpus=1 price<=0.351388"));
    check_bad(any("num_gpus=1 price<=0.351387"));
    check_bad(any("num_gpus=2"));
    // Whatever its broker matched it with must still be what is offered.
    let old = refused(
        |order, award| {
            order.target = Target::Any("num_gpus=1".parse().unwrap());
            award.offer.1 = protocol::ids::Digest::of(b"old");
        },
        |_| (),
    );
    assert_eq!(old, RefusalReason::OfferChanged);
}

#[test]
fn a_host_does_not_rent_its_own_machine() {
    let mut world = World::new();
    // The host's own key orders.
    world.host = HostId::from(public(&world.renter));
    let wanted = world.lease_goal(0, 1, 0, Want::Run(1));
    let asked = goal(1, vec![wanted.clone()]);
    let decision = world
        .empty()
        .decide_goal(world.broker(0), &asked, &world.standing(), at(1))
        .unwrap();
    let refusal = decision.notes.iter().any(|note| match note {
        Note::Refused(_, lease, reason) => *lease == wanted.lease && is_bad(reason),
        Note::Goal(..) | Note::Unknown(..) | Note::Waiting(_) => false,
    });
    assert!(refusal && decision.changes.is_empty());
    assert_eq!(
        RenterId::from(public(&world.renter)).as_bytes(),
        world.host.as_bytes()
    );
}

#[test]
fn a_price_that_changed_touches_new_leases_alone() {
    let mut world = World::new();
    let (mut leases, wanted) = super::moves::running(&world);
    let before = record(&leases, wanted.lease).clone();
    world.offers[0].offer.prices.compute = PricePerHour(900_000);
    world.offers[0].offer.limits.notice = Seconds(30);
    world.offers[0].terms = world.offers[0].offer.terms_digest().unwrap();
    // The lease that runs goes on as it was sold.
    let decision = follow(&world, &mut leases, 2, std::slice::from_ref(&wanted));
    assert!(decision.changes.is_empty());
    assert_eq!(record(&leases, wanted.lease), &before);
    // A match at the old price is refused, one at the new one is taken.
    let old = World::new().lease_goal(0, 2, 1, Want::Run(1));
    let new = world.lease_goal(0, 3, 1, Want::Run(1));
    follow(&world, &mut leases, 3, &[wanted.clone(), old.clone()]);
    assert_eq!(leases.refused()[&old.lease].1, RefusalReason::OfferChanged);
    follow(&world, &mut leases, 4, &[wanted.clone(), new.clone()]);
    let price = |lease: LeaseId| {
        let award = record(&leases, lease).award.verify().unwrap();
        award.body().prices.compute
    };
    assert_eq!(
        (price(wanted.lease), price(new.lease)),
        (PricePerHour(350_000), PricePerHour(900_000))
    );
}

/// The same lease with another match, as after a conversion.
fn rematched(world: &World, goal: &LeaseGoal, change: impl FnOnce(&mut Award)) -> LeaseGoal {
    let again = world.changed_goal(0, 1, 0, |_, award| {
        award.matched_at = Timestamp(START + 1);
        change(award);
    });
    assert_eq!(again.lease, goal.lease);
    again
}

#[test]
fn a_conversion_brings_a_new_match_of_the_same_gpus() {
    let world = World::new();
    let mut leases = world.empty();
    let wanted = world.changed_goal(0, 1, 0, |order, _| order.duration_max = Some(Seconds(100)));
    follow(&world, &mut leases, 1, std::slice::from_ref(&wanted));
    let converted = world.changed_goal(0, 1, 0, |order, award| {
        order.duration_max = Some(Seconds(100));
        award.kind = ContractKind::Reserved;
        award.prices.compute = PricePerHour(280_000);
    });
    follow(&world, &mut leases, 2, std::slice::from_ref(&converted));
    let known = record(&leases, wanted.lease);
    assert_eq!(known.kind, ContractKind::Reserved);
    assert_eq!(known.award.digest(), converted.award.digest());
    // What was paid for a term is not ended by what was ordered before.
    leases.apply(&leases.decide_outcome(wanted.lease, &Outcome::Started(at(2).wall), at(2)));
    let runs = Containers::from([(wanted.lease, super::moves::runs(2))]);
    see(&mut leases, &runs, 1_000);
    assert!(leases.work(&runs, at(1_000)).is_empty());
}

#[test]
fn a_resume_elsewhere_fails_since_the_disk_is_where_it_is() {
    let world = World::new();
    let (mut leases, wanted) = super::moves::running(&world);
    see(
        &mut leases,
        &Containers::from([(wanted.lease, exited(0, 2, 5))]),
        6,
    );
    let part = world.part(&[1]);
    let elsewhere = rematched(&world, &wanted, |award| award.part = part);
    let again = with(Want::Run(2), &elsewhere);
    follow(&world, &mut leases, 2, &again);
    let known = record(&leases, wanted.lease);
    assert_eq!(known.award.digest(), wanted.award.digest());
    assert!(matches!(
        known.state,
        crate::core::lease::State::Stopped {
            run: 2,
            reason: protocol::lease::StopReason::ResourceTaken,
            ..
        }
    ));
}
