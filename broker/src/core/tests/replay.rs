//! Events and states as bytes.

use super::world::{Ask, World};
use crate::core::event::Event;
use crate::core::market::Market;
use crate::core::state::StateError;
use protocol::codec;
use protocol::lease::ContainerState;
use protocol::order::LeaseAction;
use protocol::units::Seconds;

/// A world in which a little of everything happened.
fn busy() -> World {
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(0, 10_000_000);
    world.offer(0, Ask::default());
    world.offer(1, Ask::default());
    let order = world.order(0);
    let lease = world.running(0, order);
    world.wait(40);
    world
        .report(lease, ContainerState::Running, 40_000)
        .unwrap();
    world.act(lease, LeaseAction::Stop).unwrap();
    let order = world.order(1);
    let other = world.place(0, order).unwrap();
    world.refuse(other).unwrap();
    world.act(lease, LeaseAction::Resume).unwrap();
    world
}

#[test]
fn every_event_is_read_back_as_it_was_written() {
    let world = busy();
    let mut kinds: Vec<_> = world.journal.iter().map(Event::kind).collect();
    for event in &world.journal {
        let bytes = codec::encode(event).unwrap();
        assert_eq!(codec::decode::<Event>(&bytes), Ok(event.clone()));
    }
    kinds.sort_unstable();
    kinds.dedup();
    let wanted = [
        "commanded",
        "deposited",
        "ended",
        "granted",
        "matched",
        "metered",
        "preparing",
        "running",
        "stopped",
    ];
    assert_eq!(kinds, wanted);
}

#[test]
fn a_state_is_read_back_with_its_indexes() {
    let world = busy();
    let bytes = world.desk.market().encode().unwrap();
    assert_eq!(Market::decode(&bytes).as_ref(), Ok(world.desk.market()));
}

#[test]
fn a_state_that_was_cut_or_changed_is_no_state() {
    let bytes = busy().desk.market().encode().unwrap();
    assert_eq!(
        Market::decode(&bytes[..bytes.len() - 1]),
        Err(StateError::Cut)
    );
    assert_eq!(Market::decode(&[]), Err(StateError::Cut));
    assert_eq!(Market::decode(&bytes[..3]), Err(StateError::Cut));
}

#[test]
fn statements_are_forgotten_when_they_could_not_be_fresh_any_more() {
    let mut world = busy();
    let remembered = world.desk.counts().remembered;
    // Two orders, a stop and a resume.
    assert_eq!(remembered, 4);
    world.wait(Seconds(631).0);
    world.deposit(0, 1);
    assert_eq!(world.desk.counts().remembered, 0);
}
