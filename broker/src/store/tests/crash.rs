//! A broker that stops at any moment: what was acknowledged is there, what was not may be missing, and
//! nothing is half there.

use super::script::{RENTAL, events_of, first, handle, open, play, world};
use crate::core::command::Command;
use crate::core::settings::MarketSettings;
use crate::core::tests::world::{Ask, World, broker_id, renter_id};
use crate::store::StoreError;
use protocol::ids::{LeaseId, OrderId};
use protocol::units::{MicroUsd, Timestamp};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

/// Rounds of the broker that is killed.
const KILLS: u64 = 12;

#[test]
fn a_broker_that_ends_at_any_commit_finds_all_of_it_and_no_more() {
    for boundary in 0..=RENTAL.len() {
        for half_done in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let (mut store, recovered) = open(folder.path()).unwrap();
            let mut world = world();
            assert_eq!(&recovered, world.desk.market());
            for step in &RENTAL[..boundary] {
                for event in events_of(&mut world, *step) {
                    store.append(&event).unwrap();
                }
                store.commit().unwrap();
            }
            let committed = world.desk.market().clone();
            if half_done && boundary < RENTAL.len() {
                // Written, and never committed.
                for event in events_of(&mut world, RENTAL[boundary]) {
                    store.append(&event).unwrap();
                }
            }
            drop(store);
            let (mut store, recovered) = open(folder.path()).unwrap();
            assert!(
                recovered == committed,
                "boundary {boundary}, half done {half_done}"
            );
            assert_eq!(recovered.encode().unwrap(), committed.encode().unwrap());
            assert_eq!(
                store.ledger(&recovered).unwrap().problems,
                Vec::<String>::new()
            );
        }
    }
}

#[test]
fn each_step_that_is_done_twice_is_done_once() {
    // The same commands again, after a restart at each step: idempotency is in the journal.
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = open(folder.path()).unwrap();
    let mut world = world();
    let deposit = world.deposit_command(0, 10_000_000);
    let order = world.order(0);
    let order = world.sign(order, &crate::core::tests::world::renter_key(0));
    let commands = [deposit, Command::Order(Box::new(order))];
    for command in &commands {
        handle(&mut world, &mut store, command.clone())
            .unwrap()
            .unwrap();
        store.commit().unwrap();
        drop(store);
        let (again, market) = open(folder.path()).unwrap();
        store = again;
        world.desk =
            crate::core::tests::world::open_desk(market, world.now, MarketSettings::default());
        world.announce();
        let before = store.last_event();
        handle(&mut world, &mut store, command.clone())
            .unwrap()
            .unwrap();
        assert_eq!(store.last_event(), before);
    }
    assert_eq!(world.desk.market().leases().count(), 1);
    assert_eq!(world.view(first(&world)).held, MicroUsd(406_944));
}

#[test]
fn a_second_writer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = play(folder.path());
    assert!(matches!(open(folder.path()), Err(StoreError::InUse { .. })));
    drop(store);
    assert!(open(folder.path()).is_ok());
}

/// A broker killed without a warning, again and again, on one folder.
#[test]
fn what_was_acknowledged_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged: Vec<u64> = Vec::new();
    for round in 0..KILLS {
        let mut child = Process::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "store::tests::crash::child",
                "--ignored",
                "--nocapture",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let start = acknowledged.last().map_or(0, |last| last + 1_000_000);
        let asked = format!("{}\n{start}\n", folder.path().display());
        child
            .stdin
            .take()
            .unwrap()
            .write_all(asked.as_bytes())
            .unwrap();
        let output = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || read_numbers(BufReader::new(output)));
        // Somewhere in the middle, another place each time.
        std::thread::sleep(Duration::from_millis(120 + round * 37));
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(reader.join().unwrap());
        let (mut store, market) = open(folder.path()).unwrap();
        for number in &acknowledged {
            let lease = lease_of(*number);
            assert!(
                market.lease(lease).is_some(),
                "round {round}: order {number} is lost"
            );
        }
        let report = store.ledger(&market).unwrap();
        assert_eq!((report.sum, report.problems), (0, Vec::new()));
    }
    assert!(
        acknowledged.len() > 10,
        "only {} orders were acknowledged",
        acknowledged.len()
    );
}

fn read_numbers(lines: impl BufRead) -> Vec<u64> {
    let lines = lines.lines().map_while(Result::ok);
    lines
        .filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
        .collect()
}

fn order_id(number: u64) -> OrderId {
    let mut id = [4; 16];
    id[..8].copy_from_slice(&number.to_le_bytes());
    OrderId::from_bytes(id)
}

fn lease_of(number: u64) -> LeaseId {
    LeaseId::of_order(broker_id(), renter_id(0), order_id(number))
}

#[test]
#[ignore = "the test above runs it in a process of its own and kills it"]
fn child() {
    let mut asked = String::new();
    let mut input = BufReader::new(std::io::stdin());
    input.read_line(&mut asked).unwrap();
    let folder = asked.trim().to_owned();
    asked.clear();
    input.read_line(&mut asked).unwrap();
    let mut number: u64 = asked.trim().parse().unwrap();
    let (mut store, market) = open(Path::new(&folder)).unwrap();
    let mut world = World::new(MarketSettings::default());
    // Message ids that no earlier round used.
    world.now = Timestamp(world.now.0 + number);
    world.desk = crate::core::tests::world::open_desk(market, world.now, MarketSettings::default());
    world.offer(0, Ask::default());
    let deposit = world.deposit_command(0, 1_000_000_000);
    handle(&mut world, &mut store, deposit).unwrap().unwrap();
    let mut output = std::io::stdout();
    loop {
        // A batch of orders, each for a resource that the refusal of the one before freed.
        for _ in 0..3 {
            number += 1;
            let mut order = world.order(0);
            order.id = order_id(number);
            order.name = protocol::order::LeaseName::new(format!("order-{number}")).unwrap();
            let order = fresh(number, order);
            let placed = handle(&mut world, &mut store, Command::Order(Box::new(order))).unwrap();
            placed.unwrap();
            let refusal = protocol::lease::Refusal {
                lease: lease_of(number),
                reason: protocol::lease::RefusalReason::Taken,
            };
            let refusal = world.sign(refusal, &crate::core::tests::world::host_key(0));
            handle(&mut world, &mut store, Command::Refuse(refusal))
                .unwrap()
                .unwrap();
        }
        store.commit().unwrap();
        for acknowledged in number - 2..=number {
            writeln!(output, "acknowledged {acknowledged}").unwrap();
        }
        output.flush().unwrap();
        if number.is_multiple_of(9) {
            store.snapshot(world.desk.market()).unwrap();
        }
    }
}

fn fresh(
    number: u64,
    order: protocol::order::Order,
) -> protocol::signed::Verified<protocol::order::Order> {
    let mut id = [6; 16];
    id[..8].copy_from_slice(&number.to_le_bytes());
    let envelope = protocol::signed::Envelope {
        audience: broker_id().into(),
        message_id: protocol::ids::MessageId::from_bytes(id),
        issued: crate::core::tests::world::START,
        validity: protocol::units::Seconds(60),
    };
    let key = crate::core::tests::world::renter_key(0);
    protocol::signed::Signed::sign(order, &key, envelope).unwrap()
}
