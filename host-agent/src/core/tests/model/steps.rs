//! What can happen in the model, and how often each of it does.

use proptest::prelude::*;
use protocol::ids::LeaseId;
use protocol::lease::{Goal, LeaseGoal};
use std::collections::BTreeMap;

/// What can happen. Numbers choose among what there is.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Order { broker: usize, offer: usize },
    Want { lease: usize, change: WantChange },
    Deliver { broker: usize },
    DeliverOld { broker: usize, goal: usize },
    BeginWork,
    EndWork { lease: usize, how: WorkEnd },
    BeginSight,
    EndSight,
    Exit { lease: usize },
    Cross { lease: usize, bytes: u64 },
    Vanish { lease: usize },
    Kill { effects: bool },
    Wait { seconds: u64 },
}

#[derive(Debug, Clone, Copy)]
pub(super) enum WantChange {
    Stop,
    Resume,
    Vacate,
    End,
    Drop,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum WorkEnd {
    Well,
    Broken { halfway: bool },
    Problem,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let number = 0_usize..8;
    let want = prop_oneof![
        Just(WantChange::Stop),
        Just(WantChange::Resume),
        Just(WantChange::Vacate),
        Just(WantChange::End),
        Just(WantChange::Drop)
    ];
    let end = prop_oneof![
        4 => Just(WorkEnd::Well),
        1 => any::<bool>().prop_map(|halfway| WorkEnd::Broken { halfway }),
        1 => Just(WorkEnd::Problem)
    ];
    prop_oneof![
        2 => (0_usize..2, 0_usize..2).prop_map(|(broker, offer)| Step::Order { broker, offer }),
        3 => (number.clone(), want).prop_map(|(lease, change)| Step::Want { lease, change }),
        6 => (0_usize..2).prop_map(|broker| Step::Deliver { broker }),
        1 => (0_usize..2, number.clone()).prop_map(|(broker, goal)| Step::DeliverOld { broker, goal }),
        6 => Just(Step::BeginWork),
        6 => (number.clone(), end).prop_map(|(lease, how)| Step::EndWork { lease, how }),
        4 => Just(Step::BeginSight),
        4 => Just(Step::EndSight),
        2 => number.clone().prop_map(|lease| Step::Exit { lease }),
        1 => number.clone().prop_map(|lease| Step::Vanish { lease }),
        2 => (number, 1_u64..1000).prop_map(|(lease, bytes)| Step::Cross { lease, bytes }),
        1 => any::<bool>().prop_map(|effects| Step::Kill { effects }),
        1 => (1_u64..90).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

/// A broker as far as its goals go.
pub(super) struct BrokerModel {
    pub(super) sequence: u64,
    pub(super) wanted: BTreeMap<LeaseId, LeaseGoal>,
    pub(super) said: Vec<Goal>,
}

/// One of `items`, chosen by a number of any size.
pub(super) fn nth<T: Copy>(items: impl Iterator<Item = T>, number: usize) -> Option<T> {
    let items: Vec<T> = items.collect();
    if items.is_empty() {
        None
    } else {
        Some(items[number % items.len()])
    }
}
