//! The matrices and what the tiles are made of.
//!
//! `A_t[i]` is the first K bytes of the keystream of (seed, `A`, t, i) read as int8, −128 taken for 0; column
//! j of `B_t` likewise of (seed, `B`, t, j). So both are K bytes in a row, and
//! `D_t[i][j] = S[(Σ_k A_t[i][k] · B_t[j][k]) mod 251]`. With K ≤ 133 144 the sum is below 2³¹ in any order of
//! adding, and exact.

use crate::keystream::{Keystream, Purpose};
use crate::message::Seed;
use crate::substitution::substitute;
use multiversion::multiversion;
use protocol_pure::verify::Parameters;

/// So many bytes of a column are made and multiplied before the next: they stay in the first cache.
const STRETCH: usize = 4096;

/// The `rows` of tile `tile`, each n bytes, in the order of `rows`. The right matrix is made once for all of
/// them: K · n bytes of keystream, which is most of the work for few rows.
#[must_use]
pub fn rows(seed: &Seed, parameters: &Parameters, tile: u32, rows: &[u32]) -> Vec<Vec<u8>> {
    let left: Vec<Vec<i8>> = rows
        .iter()
        .map(|row| left_row(seed, parameters, tile, *row))
        .collect();
    let side = usize::try_from(parameters.tile_side).unwrap_or(0);
    let mut made = vec![Vec::with_capacity(side); rows.len()];
    for column in 0..parameters.tile_side {
        let sums = products(seed, parameters, tile, column, &left);
        for (row, sum) in made.iter_mut().zip(sums) {
            row.push(substitute(sum));
        }
    }
    made
}

/// Row `row` of the left matrix of `tile`: K numbers from −127 to 127.
#[must_use]
pub fn left_row(seed: &Seed, parameters: &Parameters, tile: u32, row: u32) -> Vec<i8> {
    let inner = usize::try_from(parameters.inner).unwrap_or(0);
    let mut bytes = vec![0; inner];
    Keystream::new(&seed.0, Purpose::Left, tile, row).read(&mut bytes);
    let mut numbers = vec![0; inner];
    to_numbers(&bytes, &mut numbers);
    numbers
}

/// Column `column` of the right matrix of `tile`: K numbers from −127 to 127.
#[must_use]
pub fn right_column(seed: &Seed, parameters: &Parameters, tile: u32, column: u32) -> Vec<i8> {
    let mut numbers = Vec::new();
    for_stretches(seed, parameters, tile, column, |_, stretch| {
        numbers.extend_from_slice(stretch);
    });
    numbers
}

/// The products of one column of the right matrix with rows of the left one, none of them reduced.
#[must_use]
pub fn products(
    seed: &Seed,
    parameters: &Parameters,
    tile: u32,
    column: u32,
    left: &[Vec<i8>],
) -> Vec<i32> {
    let mut sums = vec![0_i32; left.len()];
    for_stretches(seed, parameters, tile, column, |from, stretch| {
        for (sum, row) in sums.iter_mut().zip(left) {
            let part = row.get(from..from + stretch.len()).unwrap_or(&[]);
            *sum = sum.wrapping_add(dot(part, stretch));
        }
    });
    sums
}

/// Gives a column of the right matrix to `each`, stretch by stretch, with where the stretch begins.
pub(crate) fn for_stretches(
    seed: &Seed,
    parameters: &Parameters,
    tile: u32,
    column: u32,
    mut each: impl FnMut(usize, &[i8]),
) {
    let inner = usize::try_from(parameters.inner).unwrap_or(0);
    let mut stream = Keystream::new(&seed.0, Purpose::Right, tile, column);
    let (mut bytes, mut numbers) = ([0; STRETCH], [0; STRETCH]);
    for from in (0..inner).step_by(STRETCH) {
        let length = STRETCH.min(inner - from);
        let (bytes, numbers) = (&mut bytes[..length], &mut numbers[..length]);
        stream.read(bytes);
        to_numbers(bytes, numbers);
        each(from, numbers);
    }
}

/// Bytes as int8, without −128: then the negative of each number is one too, and sums are symmetric.
#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn to_numbers(bytes: &[u8], numbers: &mut [i8]) {
    for (number, byte) in numbers.iter_mut().zip(bytes) {
        let signed = byte.cast_signed();
        *number = if signed == i8::MIN { 0 } else { signed };
    }
}

/// The sum of products, exact for up to 133 144 of them.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2", "aarch64+neon"))]
fn dot(left: &[i8], right: &[i8]) -> i32 {
    left.iter()
        .zip(right)
        .map(|(a, b)| i32::from(*a) * i32::from(*b))
        .fold(0, i32::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{SEED, SMALL};

    #[test]
    fn rows_are_what_the_definition_says() {
        let tile = 2;
        let numbers = |purpose, at| {
            let mut bytes = vec![0; 128];
            Keystream::new(&SEED.0, purpose, tile, at).read(&mut bytes);
            bytes
                .iter()
                .map(|byte| i64::from(byte.cast_signed()))
                .map(|number| if number == -128 { 0 } else { number })
                .collect::<Vec<_>>()
        };
        let parameters = Parameters {
            inner: 128,
            ..SMALL
        };
        let made = rows(&SEED, &parameters, tile, &[5, 0]);
        for (row, bytes) in [5, 0].into_iter().zip(&made) {
            let left = numbers(Purpose::Left, row);
            let wanted: Vec<u8> = (0..16)
                .map(|column| {
                    let right = numbers(Purpose::Right, column);
                    let sum: i64 = left.iter().zip(right).map(|(a, b)| a * b).sum();
                    substitute(i32::try_from(sum).unwrap())
                })
                .collect();
            assert_eq!(*bytes, wanted);
        }
    }

    #[test]
    fn the_largest_sums_are_exact() {
        let most = [127; 133_144];
        assert_eq!(dot(&most, &most), 2_147_479_576);
        assert_eq!(dot(&most, &[-127; 133_144]), -2_147_479_576);
        let mut numbers = [1; 2];
        to_numbers(&[0x80, 0x81], &mut numbers);
        assert_eq!(numbers, [0, -127]);
    }
}
