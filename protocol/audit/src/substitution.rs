//! The table S that turns a sum of products into a byte.
//!
//! Without it `D` would be bilinear in `A` and `B`, and any combination `α · D · β` could be had from the seed
//! with n² operations instead of n³. S is the inverse in the field of 251 elements, with 0 for 0: a permutation
//! that agrees with any affine map `a·x + b` in at most 3 points, since `1 = a·x² + b·x` has at most two
//! solutions, and 0 may be a third; likewise with a polynomial of degree d in at most d + 2 points.

/// The prime that sums are reduced by: the largest below 256.
pub const MODULUS: i32 = 251;

/// S: `TABLE[x] · x = 1 (mod 251)`, and `TABLE[0] = 0`.
pub const TABLE: [u8; 251] = table();

/// `S[sum mod 251]`, the residue taken from 0 up.
#[must_use]
pub fn substitute(sum: i32) -> u8 {
    usize::try_from(sum.rem_euclid(MODULUS))
        .ok()
        .and_then(|at| TABLE.get(at))
        .copied()
        .unwrap_or(0)
}

const fn table() -> [u8; 251] {
    let mut table = [0; 251];
    // 6 generates the field's units and 42 = 1/6: so 6^i and 42^i are inverses of each other.
    let (mut element, mut inverse, mut step) = (1_usize, 1_u8, 0);
    while step < 250 {
        table[element] = inverse;
        element = element * 6 % 251;
        inverse = times_42(inverse);
        step += 1;
    }
    table
}

/// `42 · x mod 251`, in sums that stay within a byte.
const fn times_42(x: u8) -> u8 {
    let (mut sum, mut added) = (0_u8, 0);
    while added < 42 {
        // x and sum are below 251, so 251 - x is at least 1.
        let room = 251 - x;
        sum = if sum >= room { sum - room } else { sum + x };
        added += 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_inverse_and_a_permutation() {
        assert_eq!(TABLE[0], 0);
        let mut seen = [false; 251];
        for (x, y) in TABLE.iter().enumerate() {
            let y = usize::from(*y);
            assert!(x == 0 || x * y % 251 == 1, "{x}");
            assert!(!std::mem::replace(&mut seen[y], true));
        }
        // 2 · 126 = 252 = 1.
        assert_eq!((TABLE[1], TABLE[2], TABLE[250]), (1, 126, 250));
    }

    #[test]
    fn no_affine_map_agrees_with_it_in_more_than_three_points() {
        for a in 0..251 {
            for b in 0..251 {
                let agrees = |x: &usize| (a * x + b) % 251 == usize::from(TABLE[*x]);
                assert!((0..251).filter(agrees).count() <= 3, "{a} x + {b}");
            }
        }
    }

    #[test]
    fn negative_sums_have_the_residue_of_mathematics() {
        assert_eq!(substitute(-1), TABLE[250]);
        assert_eq!(substitute(-251), 0);
        // 133 144 · 127² = 2 147 479 576 = 251 · 8 555 695 + 131.
        let most = 133_144 * 127 * 127;
        assert_eq!(most - 251 * 8_555_695, 131);
        assert_eq!(substitute(most), TABLE[131]);
        assert_eq!(substitute(-most), TABLE[251 - 131]);
    }
}
