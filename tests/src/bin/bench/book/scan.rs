//! The same answers by looking at every row: what an index has to be better than, and right like.
//!
//! Must not use the index.

use broker::core::book::index::{Cost, Query, Subject, Test};

use super::workload::{Offered, PRICE};

/// How many offers match, and the first of them by price and listing order.
pub(crate) fn search(offers: &[Offered], query: &Query) -> (usize, Vec<usize>) {
    let mut count = 0;
    let mut first: Vec<(i64, usize)> = Vec::with_capacity(query.wanted + 1);
    for (id, offer) in offers.iter().enumerate() {
        if !query.tests.iter().all(|test| meets(test, offer)) {
            continue;
        }
        count += 1;
        let rank = (offer[PRICE], id);
        if first.len() < query.wanted || first.last().is_some_and(|last| rank < *last) {
            let place = first.partition_point(|other| *other < rank);
            first.insert(place, rank);
            first.truncate(query.wanted);
        }
    }
    (count, first.into_iter().map(|(_, id)| id).collect())
}

/// What each test costs, and the offer that fails the fewest.
pub(crate) fn explain(offers: &[Offered], query: &Query) -> (Vec<Cost>, Option<usize>) {
    let mut costs = vec![Cost::default(); query.tests.len()];
    let mut nearest: Option<(u32, i64, usize)> = None;
    for (id, offer) in offers.iter().enumerate() {
        let mut failed: u64 = 0;
        for (index, test) in query.tests.iter().enumerate() {
            failed |= u64::from(!meets(test, offer)) << index;
        }
        for (index, cost) in costs.iter_mut().enumerate() {
            cost.fail += usize::from(failed >> index & 1 == 1);
            if failed == 1 << index {
                cost.fail_alone += 1;
                let cheapest = cost.cheapest.unwrap_or(i64::MAX);
                cost.cheapest = Some(cheapest.min(offer[PRICE]));
            }
        }
        let distance = (failed.count_ones(), offer[PRICE], id);
        if nearest.is_none_or(|nearest| distance < nearest) {
            nearest = Some(distance);
        }
    }
    (costs, nearest.map(|(_, _, id)| id))
}

fn meets(test: &Test, offer: &Offered) -> bool {
    let value = match test.subject {
        Subject::Column(column) => offer[column],
        Subject::Total => offer[PRICE],
        Subject::Outside => return false,
    };
    test.ranges
        .iter()
        .any(|(low, high)| (*low..=*high).contains(&value))
}
