//! Provers that do not hold all rows are caught as often as the formula says.

use crate::play::{EIGHTY_ROWS, HONEST, plan, prove};
use audit::hash::RowKey;
use audit::message::{Node, Nonce, Seed};
use audit::processor::Processor;
use audit::prover::{Device, Unable};
use audit::tree;
use protocol_pure::verify::{Finding, Flaw, Parameters};

const SEEDS: u64 = 10_000;

/// What a cheat shows where it held nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// What it hashed, which is wrong.
    WhatItHashed,
    /// The right row, computed when it was asked for, which is not what it hashed.
    WhatIsRight,
}

/// A device that made every row and kept only some: the rows whose number (counted through, then shuffled) is
/// below `missing` are zeros when they are hashed.
struct Forgetful {
    whole: Processor,
    parameters: Parameters,
    missing: Vec<bool>,
    shows: Shows,
}

impl Forgetful {
    fn new(parameters: Parameters, missing: usize, number: u64, shows: Shows) -> Self {
        let rows = usize::try_from(parameters.tiles * parameters.tile_side).unwrap();
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_by_key(|row| *blake3::hash(format!("{number} {row}").as_bytes()).as_bytes());
        let mut is_missing = vec![false; rows];
        for row in &order[..missing] {
            is_missing[*row] = true;
        }
        Self {
            whole: Processor::new(),
            parameters,
            missing: is_missing,
            shows,
        }
    }

    fn is_missing(&self, tile: u32, row: u32) -> bool {
        self.missing[usize::try_from(tile * self.parameters.tile_side + row).unwrap()]
    }
}

impl Device for Forgetful {
    fn fill(&mut self, seed: &Seed, parameters: &Parameters) -> Result<(), Unable> {
        self.whole.fill(seed, parameters)
    }

    fn pass(&mut self, nonce: &Nonce) -> Result<Vec<Node>, Unable> {
        (0..self.parameters.tiles)
            .map(|tile| Ok(tree::root(&self.leaves(nonce, tile)?)))
            .collect()
    }

    fn leaves(&mut self, nonce: &Nonce, tile: u32) -> Result<Vec<Node>, Unable> {
        let key = RowKey::new(nonce, 16);
        let mut leaves = self.whole.leaves(nonce, tile)?;
        for (row, leaf) in (0..).zip(&mut leaves) {
            if self.is_missing(tile, row) {
                *leaf = key.leaf(tile, row, &[0; 16]);
            }
        }
        Ok(leaves)
    }

    fn row(&mut self, tile: u32, row: u32) -> Result<Vec<u8>, Unable> {
        if self.is_missing(tile, row) && self.shows == Shows::WhatItHashed {
            return Ok(vec![0; 16]);
        }
        self.whole.row(tile, row)
    }
}

/// How many of the seeds are accepted with so many of the eighty rows missing; half of the seeds show one
/// thing, half the other.
fn accepted(parameters: Parameters, missing: usize, seeds: u64) -> u64 {
    let mut accepted = 0;
    for number in 0..seeds {
        let shows = match number % 2 {
            0 => Shows::WhatItHashed,
            _ => Shows::WhatIsRight,
        };
        let device = Forgetful::new(parameters, missing, number, shows);
        match (prove(plan(parameters, number), device, HONEST), shows) {
            (Finding::Accepted { .. }, _) => accepted += 1,
            (Finding::Rejected(Flaw::WrongRow { .. }), Shows::WhatItHashed)
            | (Finding::Rejected(Flaw::NotHeld { .. }), Shows::WhatIsRight) => {}
            (Finding::Rejected(flaw), shows) => panic!("{flaw} where it shows {shows:?}"),
        }
    }
    accepted
}

/// Within four standard deviations of the binomial distribution of (1 − μ)^8.
#[track_caller]
fn check_share(missing: u32) {
    let kept = 1.0 - f64::from(missing) / 80.0;
    let (seeds, chance) = (10_000.0, kept.powi(8));
    let accepted = accepted(EIGHTY_ROWS, usize::try_from(missing).unwrap(), SEEDS);
    let off = f64::from(u32::try_from(accepted).unwrap()) - seeds * chance;
    let deviation = (seeds * chance * (1.0 - chance)).sqrt();
    assert!(
        off.abs() <= 4.0 * deviation,
        "{accepted} of 10 000 accepted; {:.0} expected",
        seeds * chance
    );
}

#[test]
fn an_honest_prover_is_always_accepted() {
    assert_eq!(accepted(EIGHTY_ROWS, 0, 500), 500);
}

#[test]
fn with_a_tenth_of_the_rows_missing() {
    check_share(8);
}

#[test]
fn with_three_tenths_of_the_rows_missing() {
    check_share(24);
}

#[test]
fn with_half_of_the_rows_missing() {
    check_share(40);
}

/// Threat 2: claims 80 GB and has 48. 0.6^64 is 6 · 10⁻¹⁵.
#[test]
fn four_tenths_missing_never_pass_a_whole_audit() {
    let parameters = Parameters {
        audits: 64,
        ..EIGHTY_ROWS
    };
    assert_eq!(accepted(parameters, 32, SEEDS), 0);
}

/// One row that is wrong in a single byte is found when it is shown: 400 of 160 cells, so surely.
#[test]
fn a_single_wrong_byte_is_seen() {
    struct OneOff(Processor);
    impl Device for OneOff {
        fn fill(&mut self, seed: &Seed, parameters: &Parameters) -> Result<(), Unable> {
            self.0.fill(seed, parameters)
        }
        fn pass(&mut self, nonce: &Nonce) -> Result<Vec<Node>, Unable> {
            (0..5)
                .map(|tile| Ok(tree::root(&self.leaves(nonce, tile)?)))
                .collect()
        }
        fn leaves(&mut self, nonce: &Nonce, tile: u32) -> Result<Vec<Node>, Unable> {
            let key = RowKey::new(nonce, 16);
            (0..16)
                .map(|row| Ok(key.leaf(tile, row, &self.row(tile, row)?)))
                .collect()
        }
        fn row(&mut self, tile: u32, row: u32) -> Result<Vec<u8>, Unable> {
            let mut bytes = self.0.row(tile, row)?;
            bytes[7] ^= 1;
            Ok(bytes)
        }
    }
    let found = prove(plan(EIGHTY_ROWS, 1), OneOff(Processor::new()), HONEST);
    assert!(
        matches!(found, Finding::Rejected(Flaw::WrongRow { .. })),
        "{found:?}"
    );
}
