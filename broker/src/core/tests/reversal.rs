//! A deposit that went wrong is taken back: once for each id, and never what its renter has spent or has held.

use super::world::{Ask, World, host_id, renter_id};
use crate::core::command::{Answer, Command};
use crate::core::ledger::Account;
use crate::core::payment::{MoneyOrder, Note, PaymentKind, Reversal};
use crate::core::settings::MarketSettings;
use protocol::bounded::Text;
use protocol::ids::{DepositId, PaymentId, PublicKey};
use protocol::message::Rejection;
use protocol::terms::Deal;
use protocol::units::MicroUsd;

const DEPOSIT: DepositId = DepositId::from_bytes([9; 16]);

/// A renter with a deposit of ten dollars.
fn world() -> World {
    let mut world = World::new(MarketSettings::default());
    let deposit = Command::Deposit {
        id: DEPOSIT,
        renter: renter_id(0),
        amount: MicroUsd(10_000_000),
        memo: Text::default(),
    };
    world.handle(deposit).unwrap();
    world
}

fn reverse(world: &mut World, number: u8, amount: Option<i64>) -> Result<MicroUsd, String> {
    let reversal = Reversal {
        id: PaymentId::from_bytes([number; 16]),
        deposit: DEPOSIT,
        amount: amount.map(MicroUsd),
        note: Note::cut("a letter was wrong"),
    };
    match world.handle(Command::Money(MoneyOrder::Reverse(reversal))) {
        Ok(Answer::Payment {
            payment, before, ..
        }) => {
            assert_eq!(payment.what, PaymentKind::DepositReversed(DEPOSIT));
            let moved = if before { 0 } else { payment.amount.0 };
            Ok(MicroUsd(moved))
        }
        Ok(other) => panic!("{other:?}"),
        Err(rejection) => Err(rejection.to_string()),
    }
}

#[track_caller]
fn check_balance(world: &World, available: i64) {
    assert_eq!(
        world.desk.balance(renter_id(0)).available,
        MicroUsd(available)
    );
    let cash = world.desk.market().ledger().balance(&Account::Cash);
    assert_eq!(cash, MicroUsd(available));
    assert_eq!(&world.replayed(), world.desk.market());
}

#[test]
fn a_deposit_goes_back_in_parts_and_once_for_each_id() {
    let mut world = world();
    assert_eq!(
        reverse(&mut world, 1, Some(4_000_000)),
        Ok(MicroUsd(4_000_000))
    );
    assert_eq!(reverse(&mut world, 1, Some(4_000_000)), Ok(MicroUsd(0)));
    assert_eq!(reverse(&mut world, 1, None), Ok(MicroUsd(0)));
    check_balance(&world, 6_000_000);
    let other = reverse(&mut world, 1, Some(5_000_000)).unwrap_err();
    assert_eq!(other, Rejection::IdReused.to_string());
    let more = reverse(&mut world, 2, Some(6_000_001)).unwrap_err();
    assert!(
        more.contains("$6.00 of the deposit can be reversed"),
        "{more}"
    );
    for nothing in [0, -1] {
        let none = reverse(&mut world, 2, Some(nothing)).unwrap_err();
        assert!(none.contains("more than nothing"), "{none}");
    }
    assert_eq!(reverse(&mut world, 2, None), Ok(MicroUsd(6_000_000)));
    check_balance(&world, 0);
    let again = reverse(&mut world, 3, None).unwrap_err();
    assert!(again.contains("all of it was reversed before"), "{again}");
    // The deposit's own id stays used: a repeat of it credits nothing.
    let deposit = Command::Deposit {
        id: DEPOSIT,
        renter: renter_id(0),
        amount: MicroUsd(10_000_000),
        memo: Text::default(),
    };
    let repeated = world.handle(deposit).unwrap();
    assert!(
        matches!(repeated, Answer::DepositedBefore(_)),
        "{repeated:?}"
    );
    check_balance(&world, 0);
}

#[test]
fn what_is_held_for_a_lease_does_not_go_back() {
    let mut world = world();
    // A GPU at $1 an hour: an hour of it is held.
    world.offer(0, Ask::gpus(1, 1_000_000, None));
    let order = world.deal(0, Deal::OnDemand, 1);
    world.place(0, order).unwrap();
    let free = world.desk.balance(renter_id(0)).available;
    assert!(free < MicroUsd(10_000_000) && free > MicroUsd::ZERO);
    let all = reverse(&mut world, 1, None).unwrap_err();
    assert!(
        all.contains(&format!("{free} of the renter's money are free")),
        "{all}"
    );
    let over = free.0 + 1;
    assert!(reverse(&mut world, 1, Some(over)).is_err());
    assert_eq!(reverse(&mut world, 1, Some(free.0)), Ok(free));
    assert_eq!(world.desk.balance(renter_id(0)).available, MicroUsd::ZERO);
    assert_eq!(&world.replayed(), world.desk.market());
}

#[test]
fn a_deposit_that_there_is_not_is_not_taken_back() {
    let mut world = World::new(MarketSettings::default());
    let none = reverse(&mut world, 1, None).unwrap_err();
    assert_eq!(none, "deposit: there is none of that id");
}

#[test]
fn who_has_money_an_offer_or_greeted_is_known() {
    let mut world = world();
    let key = |party: u8| PublicKey::from_bytes([party; 32]);
    assert!(world.desk.knows(renter_id(0).into()));
    assert!(!world.desk.knows(renter_id(1).into()));
    assert!(!world.desk.knows(host_id(0).into()));
    world.offer(0, Ask::gpus(1, 1_000_000, None));
    assert!(world.desk.knows(host_id(0).into()));
    assert!(!world.desk.knows(key(77)));
    world.desk.greet(key(77));
    assert!(world.desk.knows(key(77)) && !world.desk.knows(key(78)));
    // A host that was suspended before it came, and one whose bond was all that there is of it.
    let suspend = MoneyOrder::Suspend {
        host: host_id(1),
        why: Some(Note::cut("of the operator's")),
    };
    world.handle(Command::Money(suspend)).unwrap();
    assert!(world.desk.knows(host_id(1).into()));
    let bond = MoneyOrder::Bond {
        id: PaymentId::from_bytes([5; 16]),
        host: host_id(2),
        amount: MicroUsd(1),
        note: Note::default(),
    };
    world.handle(Command::Money(bond)).unwrap();
    assert!(world.desk.knows(host_id(2).into()));
    let rows = world.desk.hosts(world.now);
    let suspended: Vec<_> = rows.iter().filter(|row| row.suspended.is_some()).collect();
    assert_eq!(suspended.len(), 1);
    assert_eq!(
        (
            suspended[0].host,
            suspended[0].suspended.as_ref().map(|why| why.as_str())
        ),
        (host_id(1), Some("of the operator's"))
    );
}
