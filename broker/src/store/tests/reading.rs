//! Snapshots, backups, statements: the journal read in other ways says the same.

use super::script::{open, play};
use crate::core::event::{Event, Fact};
use crate::core::ledger::{Account, Transfer};
use crate::core::tests::world::renter_id;
use crate::store::{JOURNAL_FILE, StoreError, backup, check};
use protocol::bounded::Text;
use protocol::ids::DepositId;
use protocol::units::MicroUsd;
use protocol::usage::StatementLine;
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_snapshot_and_its_tail_are_the_whole_journal() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, market) = play(folder.path());
    drop(store);
    let (again, whole) = open(folder.path()).unwrap();
    assert_eq!(again.recovery().snapshot_at, None);
    assert_eq!(again.recovery().replayed, market.events());
    store = again;
    store.snapshot(&whole).unwrap();
    // Two more events after it.
    let mut world = super::script::world();
    world.desk = crate::core::tests::world::open_desk(
        whole,
        world.now,
        crate::core::settings::MarketSettings::default(),
    );
    world.now = world.desk.market().last_at();
    for renter in [0, 1] {
        let id = protocol::ids::DepositId::from_bytes([renter; 16]);
        let deposit = crate::core::command::Command::Deposit {
            id,
            renter: renter_id(renter),
            amount: protocol::units::MicroUsd(7),
            memo: protocol::bounded::Text::default(),
        };
        super::script::handle(&mut world, &mut store, deposit)
            .unwrap()
            .unwrap();
    }
    store.commit().unwrap();
    drop(store);
    let (short, from_snapshot) = open(folder.path()).unwrap();
    assert_eq!(short.recovery().snapshot_at, Some(market.events()));
    assert_eq!(short.recovery().replayed, 2);
    assert!(&from_snapshot == world.desk.market());
    drop(short);
    forget_snapshots(folder.path(), "DELETE FROM snapshots");
    let (long, from_start) = open(folder.path()).unwrap();
    assert_eq!(long.recovery().snapshot_at, None);
    assert_eq!(
        from_start.encode().unwrap(),
        from_snapshot.encode().unwrap()
    );
}

fn forget_snapshots(folder: &std::path::Path, sql: &str) {
    Connection::open(folder.join(JOURNAL_FILE))
        .unwrap()
        .execute_batch(sql)
        .unwrap();
}

#[test]
fn a_bad_snapshot_falls_back_to_the_one_before_and_then_to_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, market) = play(folder.path());
    store.snapshot(&market).unwrap();
    let first_at = store.last_event();
    let mut next = market.clone();
    let deposit = crate::core::event::Event {
        at: market.last_at(),
        fact: crate::core::event::Fact::Held {
            lease: *market_lease(&market),
        },
        entries: Vec::new(),
    };
    store.append(&deposit).unwrap();
    next.apply(deposit);
    store.snapshot(&next).unwrap();
    drop(store);
    let spoil = "UPDATE snapshots SET state = CAST(state || x'00' AS BLOB)
                 WHERE seq = (SELECT max(seq) FROM snapshots)";
    forget_snapshots(folder.path(), spoil);
    let (store, recovered) = open(folder.path()).unwrap();
    assert_eq!(store.recovery().snapshot_at, Some(first_at));
    assert_eq!(store.recovery().notes.len(), 1);
    assert!(recovered == next);
    drop(store);
    forget_snapshots(folder.path(), "UPDATE snapshots SET digest = zeroblob(32)");
    let (store, recovered) = open(folder.path()).unwrap();
    assert_eq!(
        (store.recovery().snapshot_at, store.recovery().notes.len()),
        (None, 2)
    );
    assert!(recovered == next);
}

fn market_lease(market: &crate::core::market::Market) -> &protocol::ids::LeaseId {
    &market.leases().next().unwrap().id
}

#[test]
fn two_snapshots_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, mut market) = play(folder.path());
    for _ in 0..4 {
        let event = crate::core::event::Event {
            at: market.last_at(),
            fact: crate::core::event::Fact::Held {
                lease: *market_lease(&market),
            },
            entries: Vec::new(),
        };
        store.append(&event).unwrap();
        market.apply(event);
        store.snapshot(&market).unwrap();
    }
    store.close().unwrap();
    let connection = Connection::open(folder.path().join(JOURNAL_FILE)).unwrap();
    let kept: i64 = connection
        .query_row("SELECT count(*) FROM snapshots", [], |row| row.get(0))
        .unwrap();
    assert_eq!(kept, 2);
}

#[test]
fn a_backup_is_a_journal_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (store, market) = play(folder.path());
    let target = folder.path().join("copy.db");
    assert!(backup(folder.path(), &target).unwrap() > 0);
    assert!(matches!(
        backup(folder.path(), &target),
        Err(StoreError::Io { .. })
    ));
    let mode = std::fs::metadata(&target).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    drop(store);
    let other = tempfile::tempdir().unwrap();
    std::fs::copy(&target, other.path().join(JOURNAL_FILE)).unwrap();
    assert_eq!(check(other.path()).unwrap().problems, Vec::<String>::new());
    let (_, recovered) = open(other.path()).unwrap();
    assert!(recovered == market);
}

#[test]
fn a_statement_is_every_movement_with_the_balance_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, market) = play(folder.path());
    let statement = store.statement(&market, renter_id(0), 0).unwrap();
    assert_eq!(statement.next, None);
    let lines = &statement.lines;
    assert_eq!(lines[0].what.as_str(), "deposit");
    assert_eq!(
        (lines[0].amount.0, lines[0].balance.0),
        (10_000_000, 10_000_000)
    );
    assert_eq!(lines[1].what.as_str(), "hold");
    assert_eq!(
        (lines[1].amount.0, lines[1].balance.0),
        (-406_944, 9_593_056)
    );
    let mut balance = 0;
    for line in lines {
        balance += line.amount.0;
        assert_eq!(line.balance.0, balance, "{line:?}");
    }
    assert_eq!(balance, market.available(renter_id(0)).0);
    let rest = store
        .statement(&market, renter_id(0), lines[0].event)
        .unwrap();
    assert_eq!(rest.lines[..], lines[1..]);
    let lease = market
        .leases()
        .find(|lease| lease.contract.number == 1)
        .unwrap()
        .id;
    assert_eq!(lines[1].lease, Some(lease));
}

#[test]
fn a_journal_is_readable_by_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, _) = play(folder.path());
    let metadata = std::fs::metadata(folder.path().join(JOURNAL_FILE)).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
}

/// What each line says, and by how much.
fn said(lines: &[StatementLine]) -> Vec<(&str, i64)> {
    lines
        .iter()
        .map(|line| (line.what.as_str(), line.amount.0))
        .collect()
}

#[test]
fn a_statement_says_what_was_charged() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, market) = play(folder.path());
    let statement = store.statement(&market, renter_id(0), 0).unwrap();
    let lease = market
        .leases()
        .find(|lease| lease.contract.number == 1)
        .unwrap();
    let charges: Vec<_> = statement
        .lines
        .iter()
        .filter(|line| line.what.as_str() == "charge")
        .collect();
    // 40 s of running, at 0.4 $ an hour and 50 GB at 0.1 $ a month: 4444 + floor(50 × 100 000 × 40 / 2 592 000).
    assert_eq!(
        (charges[0].amount.0, charges[0].lease),
        (-4444 - 77, Some(lease.id))
    );
    let sum: i64 = charges.iter().map(|line| line.amount.0).sum();
    assert_eq!(-sum, lease.charged.total().0);
    // A page that begins in the middle says the same.
    for after in statement.lines.iter().map(|line| line.event) {
        let rest = store.statement(&market, renter_id(0), after).unwrap();
        let from = statement
            .lines
            .iter()
            .position(|line| line.event > after)
            .unwrap_or(statement.lines.len());
        assert_eq!(rest.lines[..], statement.lines[from..]);
    }
}

#[test]
fn a_budget_that_was_used_up_is_charged_although_nothing_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = open(folder.path()).unwrap();
    let mut world = super::script::world();
    world.deposit(0, 1_000_000);
    let mut order = world.order(0);
    order.budget = protocol::units::MicroUsd(1_000);
    let lease = world.running(0, order);
    // A thousandth of a dollar lasts for about nine seconds.
    world.wait(20);
    world
        .report(lease, protocol::lease::ContainerState::Running, 20_000)
        .unwrap();
    world.tick();
    world
        .report(lease, protocol::lease::ContainerState::Gone, 20_000)
        .unwrap();
    for event in &world.journal {
        store.append(event).unwrap();
    }
    store.commit().unwrap();
    let market = world.desk.market();
    let statement = store.statement(market, renter_id(0), 0).unwrap();
    assert_eq!(
        said(&statement.lines),
        [
            ("deposit", 1_000_000),
            ("hold", -1_000),
            ("release", 1_000),
            ("charge", -1_000)
        ]
    );
    assert_eq!(statement.lines[3].balance, market.available(renter_id(0)));
}

#[test]
fn a_long_account_comes_in_pages() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = open(folder.path()).unwrap();
    let mut world = super::script::world();
    for _ in 0..1_203 {
        world.deposit(0, 5);
    }
    for event in &world.journal {
        store.append(event).unwrap();
    }
    store.commit().unwrap();
    let (mut after, mut pages) = (Some(0), Vec::new());
    while let Some(from) = after {
        let market = world.desk.market();
        let page = store.statement(market, renter_id(0), from).unwrap();
        pages.push(page.lines.len());
        assert_eq!(page.lines[0].balance.0, (from.cast_signed() + 1) * 5);
        after = page.next;
    }
    assert_eq!(pages, [500, 500, 203]);
}

#[test]
fn a_statement_has_what_is_not_committed_and_is_the_same_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, market) = play(folder.path());
    let played = store.statement(&market, renter_id(0), 0).unwrap();
    drop(store);
    let (mut store, mut market) = open(folder.path()).unwrap();
    let again = store.statement(&market, renter_id(0), 0).unwrap();
    assert_eq!(again, played);
    let deposit = Event {
        at: market.last_at(),
        fact: Fact::Deposited {
            id: DepositId::from_bytes([77; 16]),
            renter: renter_id(0),
            amount: MicroUsd(77),
            memo: Text::default(),
        },
        entries: Transfer::default()
            .moving(
                Account::Cash,
                Account::RenterAvailable(renter_id(0)),
                MicroUsd(77),
            )
            .entries(),
    };
    store.append(&deposit).unwrap();
    market.apply(deposit);
    let more = store.statement(&market, renter_id(0), 0).unwrap();
    assert_eq!(more.lines.len(), played.lines.len() + 1);
    let last = more.lines.last().unwrap();
    assert_eq!((last.amount, last.event), (MicroUsd(77), market.events()));
    assert_eq!(last.balance, market.available(renter_id(0)));
}
