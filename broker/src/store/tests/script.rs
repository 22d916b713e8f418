//! A desk on a real journal, and a rental to play on it step by step.

use crate::core::command::{Answer, Command};
use crate::core::event::Event;
use crate::core::market::Market;
use crate::core::settings::MarketSettings;
use crate::core::tests::world::{Ask, World, broker_id};
use crate::store::{Store, StoreError};
use protocol::ids::LeaseId;
use protocol::lease::ContainerState;
use protocol::message::Rejection;
use protocol::order::LeaseAction;
use std::path::Path;

/// One step of a rental: what it does to the world gives the events that a broker records.
pub(super) type Step = fn(&mut World);

/// A rental from the deposit to the end, with a second one refused in between.
pub(super) const RENTAL: [Step; 12] = [
    |world| world.deposit(0, 10_000_000),
    |world| {
        let order = world.order(0);
        world.place(0, order).unwrap();
    },
    |world| drop(world.grant(first(world)).unwrap()),
    |world| {
        drop(
            world
                .report(first(world), ContainerState::Running, 0)
                .unwrap(),
        )
    },
    |world| {
        world.wait(40);
        world
            .report(first(world), ContainerState::Running, 40_000)
            .unwrap();
    },
    |world| drop(world.act(first(world), LeaseAction::Stop).unwrap()),
    |world| {
        let order = world.order(1);
        let other = world.place(0, order).unwrap();
        world.refuse(other).unwrap();
    },
    |world| world.deposit(1, 5_000_000),
    |world| drop(world.act(first(world), LeaseAction::Resume).unwrap()),
    |world| {
        drop(
            world
                .report(first(world), ContainerState::Running, 40_000)
                .unwrap(),
        )
    },
    |world| drop(world.act(first(world), LeaseAction::End).unwrap()),
    |world| {
        drop(
            world
                .report(first(world), ContainerState::Gone, 50_000)
                .unwrap(),
        )
    },
];

/// A world with two offers and nothing else.
pub(super) fn world() -> World {
    let mut world = World::new(MarketSettings::default());
    world.offer(0, Ask::default());
    world.offer(1, Ask::default());
    world
}

/// The lease of the first order.
pub(super) fn first(world: &World) -> LeaseId {
    let mut leases: Vec<_> = world.desk.market().leases().collect();
    leases.sort_by_key(|lease| lease.contract.number);
    leases[0].id
}

/// Does a step in memory and returns what has to be recorded.
pub(super) fn events_of(world: &mut World, step: Step) -> Vec<Event> {
    let before = world.journal.len();
    step(world);
    world.journal[before..].to_vec()
}

/// Plays the whole rental on a journal in `folder`, one commit a step.
pub(super) fn play(folder: &Path) -> (Store, Market) {
    let (mut store, _) = open(folder).unwrap();
    let mut world = world();
    for step in RENTAL {
        for event in events_of(&mut world, step) {
            store.append(&event).unwrap();
        }
        store.commit().unwrap();
    }
    (store, world.desk.market().clone())
}

pub(super) fn open(folder: &Path) -> Result<(Store, Market), StoreError> {
    Store::create(folder, broker_id())
}

/// Handles a command on a desk and records what comes of it.
pub(super) fn handle(
    world: &mut World,
    store: &mut Store,
    command: Command,
) -> Result<Result<Answer, Rejection>, StoreError> {
    let World { desk, now, .. } = world;
    desk.handle(*now, command, &mut |event| store.append(event))
}
