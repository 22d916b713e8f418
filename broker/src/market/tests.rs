//! The thread: answers after the commit, one effect for many copies, an orderly end and a disorderly one.

use super::{MarketError, MarketHandle, MarketSetup, MarketThread, Notice};
use crate::clock::Clock;
use crate::core::book::BookLimits;
use crate::core::command::{Answer, Command, VerifiedAnnouncement};
use crate::core::goal::Awards;
use crate::core::settings::MarketSettings;
use crate::core::tests::world::{
    Ask, World, broker_id, broker_key, host_id, offer, renter_id, renter_key,
};
use crate::store::{Store, check};
use protocol::bounded::{List, Text};
use protocol::filter::Filter;
use protocol::ids::LeaseId;
use protocol::lease::Phase;
use protocol::message::{LeaseScope, Rejection, Search};
use protocol::order::Order;
use protocol::signed::{ANYONE, Envelope, Signed};
use protocol::units::{MicroUsd, Millis, Seconds};
use std::path::Path;

fn setup(clock: Clock) -> MarketSetup {
    MarketSetup {
        settings: MarketSettings::default(),
        key: broker_key(),
        limits: BookLimits::default(),
        clock,
    }
}

fn start(folder: &Path, clock: &Clock) -> MarketThread {
    let (store, market) = Store::create(folder, broker_id()).unwrap();
    MarketThread::start(store, market, setup(clock.clone())).unwrap()
}

/// A world that signs at the clock's time; its own desk is not used.
fn signers(clock: &Clock) -> World {
    let mut world = World::new(MarketSettings::default());
    world.now = clock.now();
    world
        .asks
        .push((0, Text::new("machine").unwrap(), Ask::default()));
    world
}

async fn announce(handle: &MarketHandle, clock: &Clock) {
    let now = clock.now();
    let body = offer(0, &Text::new("machine").unwrap(), &Ask::default(), now);
    let envelope = Envelope {
        audience: ANYONE,
        message_id: protocol::ids::MessageId::from_bytes([0; 16]),
        issued: now,
        validity: Seconds(90),
    };
    let key = crate::core::tests::world::host_key(0);
    let announcement = VerifiedAnnouncement {
        offers: vec![Signed::sign(body, &key, envelope).unwrap()],
        ..VerifiedAnnouncement::default()
    };
    handle.announce(host_id(0), announcement).await.unwrap();
}

fn lease_of(order: &Order) -> LeaseId {
    LeaseId::of_order(broker_id(), renter_id(0), order.id)
}

#[tokio::test]
async fn a_hundred_copies_at_once_are_one_lease() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::system());
    let mut thread = start(folder.path(), &clock);
    let (handle, mut notices) = (thread.handle(), thread.notices());
    let mut world = signers(&clock);
    handle
        .command(world.deposit_command(0, 5_000_000))
        .await
        .unwrap();
    announce(&handle, &clock).await;
    let order = world.order(0);
    let signed = world.sign(order.clone(), &renter_key(0));
    let mut copies = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (handle, copy) = (handle.clone(), Box::new(signed.clone()));
        copies.spawn(async move { handle.command(Command::Order(copy)).await });
    }
    while let Some(answer) = copies.join_next().await {
        let Ok(Ok(Answer::Lease(view))) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!((view.id, view.phase), (lease_of(&order), Phase::Offered));
    }
    assert_eq!(
        handle
            .leases(renter_id(0).into(), LeaseScope::All)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        handle.balance(renter_id(0)).await.unwrap().held,
        MicroUsd(406_944)
    );
    let Ok(Notice::Lease { lease, host, .. }) = notices.recv().await else {
        panic!("no notice")
    };
    assert_eq!((lease, host), (lease_of(&order), Some(host_id(0))));
    assert_eq!(notices.recv().await, Ok(Notice::Goal { host: host_id(0) }));
    handle.shutdown().await;
    thread.stopped().await.unwrap();
}

#[tokio::test]
async fn an_end_and_a_new_start_lose_nothing() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::system());
    let mut thread = start(folder.path(), &clock);
    let handle = thread.handle();
    let mut world = signers(&clock);
    handle
        .command(world.deposit_command(0, 5_000_000))
        .await
        .unwrap();
    announce(&handle, &clock).await;
    let order = world.order(0);
    let signed = Box::new(world.sign(order.clone(), &renter_key(0)));
    let Ok(Answer::Lease(before)) = handle.command(Command::Order(signed)).await else {
        panic!("no lease")
    };
    handle.shutdown().await;
    thread.stopped().await.unwrap();
    assert_eq!(handle.counts().await, Err(Rejection::ShuttingDown));
    clock.advance(Millis(11_000));
    let (store, market) = Store::open(folder.path(), broker_id()).unwrap();
    assert_eq!(
        (store.recovery().snapshot_at, store.recovery().replayed),
        (Some(2), 0)
    );
    let mut thread = MarketThread::start(store, market, setup(clock.clone())).unwrap();
    let handle = thread.handle();
    // The host had ten seconds to accept, whether the broker was there or not.
    let mut phase = Phase::Offered;
    while phase == Phase::Offered {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let view = handle.lease(renter_id(0).into(), before.id).await.unwrap();
        assert!(view.phase == Phase::Offered || view.revision > before.revision);
        phase = view.phase;
    }
    assert_eq!(phase, Phase::Closed(protocol::lease::EndCause::NotAccepted));
    handle.shutdown().await;
    thread.stopped().await.unwrap();
    assert_eq!(check(folder.path()).unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_full_disk_ends_the_market_and_acknowledges_nothing() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::system());
    let (store, market) = Store::create(folder.path(), broker_id()).unwrap();
    store.fill_the_disk();
    let mut thread = MarketThread::start(store, market, setup(clock.clone())).unwrap();
    let handle = thread.handle();
    let mut world = signers(&clock);
    let mut acknowledged: i64 = 0;
    loop {
        match handle.command(world.deposit_command(0, 1)).await {
            Ok(_) => acknowledged += 1,
            Err(refusal) => {
                assert_eq!(refusal, Rejection::ShuttingDown);
                break;
            }
        }
        assert!(acknowledged < 100_000, "the disk is never full");
    }
    assert!(matches!(thread.stopped().await, Err(MarketError::Store(_))));
    let (_, market) = Store::open(folder.path(), broker_id()).unwrap();
    assert_eq!(market.available(renter_id(0)), MicroUsd(acknowledged));
}

#[tokio::test]
async fn a_disk_that_fills_while_the_next_are_decided_loses_nothing_acknowledged() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::system());
    let (store, market) = Store::create(folder.path(), broker_id()).unwrap();
    store.fill_the_disk();
    let mut thread = MarketThread::start(store, market, setup(clock.clone())).unwrap();
    let mut world = signers(&clock);
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let deposits: Vec<Command> = (0..500).map(|_| world.deposit_command(0, 1)).collect();
        let handle = thread.handle();
        clients.spawn(async move {
            let mut acknowledged: i64 = 0;
            for deposit in deposits {
                match handle.command(deposit).await {
                    Ok(_) => acknowledged += 1,
                    Err(refusal) => {
                        assert_eq!(refusal, Rejection::ShuttingDown);
                        return acknowledged;
                    }
                }
            }
            panic!("the disk is never full")
        });
    }
    let acknowledged: i64 = clients.join_all().await.iter().sum();
    assert!(matches!(thread.stopped().await, Err(MarketError::Store(_))));
    let (_, market) = Store::open(folder.path(), broker_id()).unwrap();
    assert_eq!(market.available(renter_id(0)), MicroUsd(acknowledged));
}

#[tokio::test]
async fn a_clock_that_goes_back_bills_nothing_and_stops_nothing() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::system());
    let mut thread = start(folder.path(), &clock);
    let handle = thread.handle();
    let mut world = signers(&clock);
    handle.command(world.deposit_command(0, 10)).await.unwrap();
    clock.set_back(Millis(3_600_000));
    handle.command(world.deposit_command(0, 10)).await.unwrap();
    let statement = handle
        .statement(renter_id(0), 0)
        .await
        .unwrap()
        .verify()
        .unwrap()
        .into_body();
    assert_eq!(statement.lines.len(), 2);
    assert!(statement.lines[1].at >= statement.lines[0].at);
    handle.shutdown().await;
    thread.stopped().await.unwrap();
}

#[tokio::test]
async fn a_clock_that_was_ahead_once_hides_no_offer_and_stops_no_deadline() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::system());
    let hour = Millis(3_600_000);
    clock.advance(hour);
    let mut thread = start(folder.path(), &clock);
    let mut world = signers(&clock);
    let deposit = world.deposit_command(0, 5_000_000);
    thread.handle().command(deposit).await.unwrap();
    thread.handle().shutdown().await;
    thread.stopped().await.unwrap();
    clock.set_back(hour);
    let mut thread = start(folder.path(), &clock);
    let handle = thread.handle();
    announce(&handle, &clock).await;
    let found = handle.search(everything()).await.unwrap();
    assert_eq!(found.of, 1);
    let mut world = signers(&clock);
    let order = world.order(0);
    let signed = Box::new(world.sign(order.clone(), &renter_key(0)));
    handle.command(Command::Order(signed)).await.unwrap();
    let goal = handle
        .goal(host_id(0), &mut Awards::default())
        .await
        .unwrap();
    let award = &goal.leases[0].award;
    assert!(award.verify_fresh(host_id(0).into(), clock.now()).is_ok());
    // Ten seconds to accept, by whatever clock.
    clock.advance(Millis(hour.0 + 11_000));
    let mut phase = Phase::Offered;
    while phase == Phase::Offered {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let lease = handle.lease(renter_id(0).into(), lease_of(&order)).await;
        phase = lease.unwrap().phase;
    }
    assert_eq!(phase, Phase::Closed(protocol::lease::EndCause::NotAccepted));
    handle.shutdown().await;
    thread.stopped().await.unwrap();
}

fn everything() -> Search {
    Search {
        filter: Filter::default(),
        sort: List::default(),
        need: protocol::terms::Need::default(),
        kind: protocol::terms::ContractKind::OnDemand,
        limit: 20,
        job: None,
    }
}

#[tokio::test]
async fn readings_come_from_after_the_commands_before_them() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::system());
    let mut thread = start(folder.path(), &clock);
    let handle = thread.handle();
    let mut world = signers(&clock);
    let deposit = handle.command(world.deposit_command(3, 70));
    let (done, balance) = tokio::join!(deposit, handle.balance(renter_id(3)));
    done.unwrap();
    assert_eq!(balance.unwrap().available, MicroUsd(70));
    let accounts = handle.accounts().await.unwrap();
    assert_eq!((accounts.len(), accounts[0].available), (1, MicroUsd(70)));
    assert_eq!(
        handle.ledger().await.unwrap().problems,
        Vec::<String>::new()
    );
    assert_eq!(handle.counts().await.unwrap().events, 1);
    handle.shutdown().await;
    thread.stopped().await.unwrap();
}
