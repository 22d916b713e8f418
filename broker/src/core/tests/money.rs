//! Any sequence of commands, in any order, with repeats, silence and jumps of the clock: the money stays
//! the money, nobody pays too much, and nothing is rented twice.

use super::play::{Play, RENTERS, Step};
use super::world::{host_id, renter_id};
use crate::core::command::Command;
use proptest::prelude::*;
use protocol::order::LeaseAction;
use protocol::units::MicroUsd;

fn action() -> impl Strategy<Value = LeaseAction> {
    prop_oneof![
        Just(LeaseAction::Stop),
        Just(LeaseAction::Resume),
        Just(LeaseAction::End)
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let duration = prop::option::of(1_u64..5000);
    prop_oneof![
        2 => (0..RENTERS, 1_i64..3_000_000).prop_map(|(renter, amount)| Step::Deposit { renter, amount }),
        4 => (0..RENTERS, 0..4_usize, 1_i64..2_000_000, duration, 0_u64..600)
            .prop_map(|(renter, offer, budget, duration, disk)| Step::Order { renter, offer, budget, duration, disk }),
        5 => any::<usize>().prop_map(Step::Grant),
        1 => any::<usize>().prop_map(Step::Refuse),
        12 => (any::<usize>(), 0..12_u8, 0..200_000_u64, 0..u64::MAX / 2)
            .prop_map(|(lease, state, run_ahead, uploaded)| Step::Report { lease, state, run_ahead, uploaded }),
        16 => (any::<usize>(), 1_u64..80).prop_map(|(lease, seconds)| Step::Live { lease, seconds }),
        4 => (any::<usize>(), action()).prop_map(|(lease, action)| Step::Act { lease, action }),
        1 => any::<usize>().prop_map(Step::Operator),
        2 => any::<usize>().prop_map(Step::Again),
        2 => (any::<usize>(), 0..12_u8).prop_map(|(lease, state)| Step::Delay { lease, state }),
        8 => (1_u64..40).prop_map(Step::Wait),
        2 => (40_u64..1000).prop_map(Step::Wait),
        1 => (1000_u64..100_000).prop_map(Step::Jump),
        1 => (1_u64..5000).prop_map(Step::Back),
        6 => Just(Step::Tick),
        2 => Just(Step::Announce),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, max_shrink_iters: 4096, ..ProptestConfig::default() })]

    #[test]
    fn money_is_constant_and_nobody_pays_too_much(steps in prop::collection::vec(step(), 1..160)) {
        let mut play = Play::new();
        for renter in 0..RENTERS {
            play.take(Step::Deposit { renter, amount: 2_000_000 });
        }
        for step in steps {
            play.take(step);
            play.check()?;
        }
        play.check_replay()?;
        // Everybody goes home: after enough time every lease that is not kept ends, and holds nothing.
        for lease in play.leases.clone() {
            play.send(Command::Operator { lease });
        }
        play.check()?;
        play.clock = play.world.now;
        play.pass(2000);
        play.world.tick();
        play.check()?;
        let held = play.world.desk.balance(renter_id(0)).held;
        prop_assert_eq!(held, MicroUsd::ZERO);
        prop_assert!(play.world.desk.goal(host_id(0)).leases.is_empty());
        play.check_replay()?;
    }
}
