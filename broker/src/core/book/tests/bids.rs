//! Resting bids beside a list of them: whoever waits and whatever is offered, the same are first in line.

use super::offers::{host, offer};
use crate::core::book::bids::{Bids, Rank};
use proptest::prelude::*;
use protocol::bounded::List;
use protocol::filter::{Facts, Filter, Prepared};
use protocol::ids::LeaseId;
use protocol::terms::Need;
use protocol::units::{Bytes, PricePerHour};
use std::collections::BTreeMap;

use super::offers::{gpu, text};

const TERMS: [&str; 19] = [
    "gpu=rtx4090",
    "gpu=4090",
    "gpu in [RTX_4090,H100,4090]",
    "gpu=h100",
    "gpu!=h100",
    "gpu_ram>=24",
    "gpu_ram<=24",
    "cpu_ram>=20",
    "cpu_ram<=30",
    "cpu_ram=16",
    "cpu_ram!=16",
    "kernel>=6.2",
    "kernel>=6.1.99999",
    "ubuntu_version>=22",
    "min_bid>=0.05",
    "min_bid<=0.2",
    "dph<0.3",
    "os=debian",
    "gpu_arch=nvidia",
];

#[derive(Debug, Clone)]
struct Asked {
    limit: u64,
    gpus: u16,
    filter: String,
}

#[derive(Debug, Clone)]
struct Offered {
    is_h100: bool,
    gpus: u16,
    ram: u64,
    floor: Option<u64>,
    kernel: &'static str,
    system: &'static str,
    least: u64,
}

fn asked() -> impl Strategy<Value = Asked> {
    let terms = prop::collection::vec(0..TERMS.len(), 0..4);
    (1..40_u64, 1..3_u16, terms).prop_map(|(limit, gpus, terms)| Asked {
        limit: limit * 10_000,
        gpus,
        filter: terms
            .into_iter()
            .map(|term| TERMS[term])
            .collect::<Vec<_>>()
            .join(" "),
    })
}

fn offered() -> impl Strategy<Value = Offered> {
    let floor = prop::option::of(1..30_u64);
    let kernel = prop::sample::select(vec!["6.1.0", "6.1.99999", "6.3", "none"]);
    let system = prop::sample::select(vec!["Debian 12", "Ubuntu 22.04", "Ubuntu 20.04"]);
    (
        any::<bool>(),
        1..3_u16,
        10..40_u64,
        floor,
        kernel,
        system,
        0..40_u64,
    )
        .prop_map(
            |(is_h100, gpus, ram, floor, kernel, system, least)| Offered {
                is_h100,
                gpus,
                ram,
                floor: floor.map(|floor| floor * 10_000),
                kernel,
                system,
                least: least * 10_000,
            },
        )
}

fn facts(offered: &Offered) -> Facts {
    let mut made = offer(1, "GPU-0", 100_000);
    let model = if offered.is_h100 {
        "NVIDIA H100 80GB HBM3"
    } else {
        "NVIDIA GeForce RTX 4090"
    };
    let cards: Vec<_> = (0..2)
        .map(|card| gpu(model, &format!("GPU-{card}")))
        .collect();
    made.machine.gpus = List::new(cards.clone()).unwrap();
    made.machine.kernel = text(offered.kernel);
    made.machine.system = text(offered.system);
    made.share.gpus = List::new(cards).unwrap();
    made.share.ram = Bytes::from_gb(offered.ram);
    made.sales.floor = offered.floor.map(PricePerHour);
    Facts::of(host(1), &made, offered.gpus)
}

fn rank(number: u64, limit: u64) -> Rank {
    let mut id = [0; 16];
    id[8..].copy_from_slice(&number.to_be_bytes());
    Rank::new(PricePerHour(limit), number, LeaseId::from_bytes(id))
}

/// Bids, and the same as a list in line.
#[derive(Default)]
struct Pair {
    bids: Bids,
    list: BTreeMap<Rank, (u16, Prepared)>,
}

impl Pair {
    fn insert(&mut self, number: u64, asked: &Asked) -> Rank {
        let rank = rank(number, asked.limit);
        let filter: Filter = asked.filter.parse().unwrap();
        let need = Need::disk(Bytes::from_gb(20));
        self.bids.insert(rank, asked.gpus, &filter, need);
        self.list.insert(rank, (asked.gpus, filter.prepare(need)));
        rank
    }

    fn remove(&mut self, rank: Rank) {
        self.bids.remove(rank);
        self.list.remove(&rank);
    }

    fn check(&self, offered: &Offered) -> Result<(), TestCaseError> {
        let (facts, least) = (facts(offered), PricePerHour(offered.least));
        let in_line: Vec<Rank> = self
            .list
            .iter()
            .filter(|(rank, (gpus, filter))| {
                rank.bid.0 >= least && *gpus == offered.gpus && filter.matches(&facts)
            })
            .map(|(rank, _)| *rank)
            .collect();
        for wanted in [1, 3, 20, usize::MAX] {
            let found = self.bids.in_line(&facts, least, wanted);
            let first: Vec<Rank> = in_line.iter().copied().take(wanted).collect();
            prop_assert_eq!(found, first, "{} of {:?}", wanted, offered);
        }
        prop_assert_eq!(self.bids.len(), self.list.len());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_same_bids_are_first_in_line_as_in_a_list(
        asked in prop::collection::vec(asked(), 1..200),
        offered in prop::collection::vec(offered(), 8..9),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..100),
    ) {
        let mut pair = Pair::default();
        let ranks: Vec<Rank> = (1..).zip(&asked).map(|(number, asked)| pair.insert(number, asked)).collect();
        offered.iter().try_for_each(|offered| pair.check(offered))?;
        gone.iter().for_each(|gone| pair.remove(*gone.get(&ranks)));
        offered.iter().try_for_each(|offered| pair.check(offered))?;
        ranks.into_iter().for_each(|rank| pair.remove(rank));
        offered.iter().try_for_each(|offered| pair.check(offered))?;
    }
}

/// Rule R5, the example B1 of the market's rules: an ask of 410 000 serves none, 390 000 the earlier of the two highest.
#[test]
fn the_highest_limit_is_first_and_of_equal_ones_the_earliest() {
    let mut pair = Pair::default();
    let ask = |least| Offered {
        is_h100: false,
        gpus: 1,
        ram: 32,
        floor: None,
        kernel: "6.1.0",
        system: "Debian 12",
        least,
    };
    for (number, limit) in [(1, 380_000), (2, 400_000), (3, 400_000)] {
        let asked = Asked {
            limit,
            gpus: 1,
            filter: "gpu=rtx4090".to_owned(),
        };
        pair.insert(number, &asked);
    }
    let first = |pair: &Pair, least| {
        pair.bids
            .in_line(&facts(&ask(least)), PricePerHour(least), 1)
    };
    assert_eq!(first(&pair, 410_000), []);
    assert_eq!(first(&pair, 390_000), [rank(2, 400_000)]);
    pair.remove(rank(2, 400_000));
    assert_eq!(first(&pair, 390_000), [rank(3, 400_000)]);
    assert_eq!(first(&pair, 380_000), [rank(3, 400_000)]);
    pair.remove(rank(3, 400_000));
    assert_eq!(first(&pair, 380_000), [rank(1, 380_000)]);
}
