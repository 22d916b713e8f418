//! Books that are large enough for shelves to be split, joined and laid out, and for homes to be shared.

use super::*;

/// Numbers that look random and are the same on every run.
fn noise(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

fn noisy(seed: &mut u64) -> Known {
    let mut below = |limit: u64| i64::try_from(noise(seed) % limit).unwrap();
    let values = vec![
        below(2),
        1,
        below(50_000),
        below(3),
        below(100),
        below(1_000_000),
        if below(3) == 0 { UNKNOWN } else { below(900) },
    ];
    Known {
        values,
        tie: u64::try_from(below(3)).unwrap(),
        is_shown: below(10) > 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Enough rows of one home that shelves are split and joined, and back to none.
    #[test]
    fn large_books_answer_like_a_list(
        seed in 1..u64::MAX,
        queries in prop::collection::vec(queries(), 8..9),
    ) {
        let mut seed = seed;
        let mut pair = Pair::new();
        for _ in 0..5000 {
            let known = noisy(&mut seed);
            pair.apply(Change::Insert(known));
        }
        prop_assert!(pair.index.homes.values().map(Vec::len).sum::<usize>() > 4);
        queries.iter().for_each(|query| pair.check(query));
        for _ in 0..30_000 {
            let number = usize::try_from(noise(&mut seed) % 5000).unwrap();
            let slot = Slot::nth(number);
            let known = noisy(&mut seed);
            match noise(&mut seed) % 3 {
                0 => pair.reprice(slot, known.values[2]),
                1 => {
                    pair.index.show(slot, known.is_shown);
                    pair.known.get_mut(&slot).unwrap().is_shown = known.is_shown;
                }
                _ => pair.update(slot, known.values, known.tie),
            }
        }
        queries.iter().for_each(|query| pair.check(query));
        while pair.known.len() > 300 {
            let (slot, _) = pair.known.pop_last().unwrap();
            pair.index.remove(slot);
        }
        queries.iter().for_each(|query| pair.check(query));
        while let Some((slot, _)) = pair.known.pop_first() {
            pair.index.remove(slot);
        }
        prop_assert!(pair.index.homes.is_empty());
        prop_assert_eq!(pair.index.spare_shelves.len(), pair.index.shelves.len());
    }
}

#[test]
fn made_up_models_share_a_home() {
    let mut pair = Pair::new();
    for model in 0..i64::try_from(HOMES_MAX).unwrap() + 500 {
        pair.insert(Known {
            values: vec![model, 1, 1000 - model % 7, 0, 1, 2, 3],
            tie: 0,
            is_shown: true,
        });
    }
    assert_eq!(pair.index.homes.len(), HOMES_MAX + 1);
    for model in [5, i64::try_from(HOMES_MAX).unwrap() + 77] {
        let tests = vec![Test {
            subject: Subject::Column(0),
            ranges: vec![(model, model)],
        }];
        pair.check(&Query {
            scope: Vec::new(),
            sees_all: false,
            tests,
            order: Order::Total,
            wanted: 20,
        });
    }
    let each = pair.index.bytes() / pair.index.rows();
    assert!(each < 4000, "{each} bytes a row");
}
