//! The levels of a column's rows, bit by bit: a plane holds the same bit of all rows.
//!
//! "At least level k" then takes one word operation for 64 rows and each bit of k from its lowest one up. Must not
//! know what a level means.

use super::scale::LevelSet;
use super::shelf::GROUPS_MAX;

/// Words of 64 rows that are worked on together.
const LANES: usize = 4;

/// A bit of 256 rows in a row.
pub(super) type Group = [u64; LANES];

/// Rows of a group.
pub(super) const GROUP_ROWS: usize = 64 * LANES;

/// No row of a group, and all of them.
pub(super) const NONE: Group = [0; LANES];
const ALL: Group = [u64::MAX; LANES];

/// Where a row's bit is: its group, the lane in it, and the bit alone.
pub(super) const fn place(row: usize) -> (usize, usize, u64) {
    let (group, rest) = (row / GROUP_ROWS, row % GROUP_ROWS);
    (group, rest / 64, 1 << (rest % 64))
}

/// Sets or clears a row's bit.
pub(super) fn set(masks: &mut [Group], row: usize, is_set: bool) {
    let (group, lane, bit) = place(row);
    if let Some(word) = masks.get_mut(group).and_then(|group| group.get_mut(lane)) {
        *word = if is_set { *word | bit } else { *word & !bit };
    }
}

/// Whether a row's bit is set.
pub(super) fn has(masks: &[Group], row: usize) -> bool {
    let (group, lane, bit) = place(row);
    let word = masks.get(group).and_then(|group| group.get(lane));
    word.is_some_and(|word| word & bit != 0)
}

/// How many bits are set.
pub(super) fn count(masks: &[Group]) -> usize {
    let ones: u32 = masks.iter().flatten().map(|word| word.count_ones()).sum();
    usize::try_from(ones).unwrap_or(usize::MAX)
}

/// Calls `each` with every row whose bit is set, lowest first.
pub(super) fn for_each(masks: &[Group], mut each: impl FnMut(usize)) {
    for (index, word) in masks.iter().flatten().enumerate() {
        let mut left = *word;
        while left != 0 {
            each(index * 64 + usize::try_from(left.trailing_zeros()).unwrap_or(0));
            left &= left - 1;
        }
    }
}

/// The levels of rows.
#[derive(Debug, Clone)]
pub(super) struct Slices {
    /// Bits of a level.
    bits: usize,
    /// Groups of rows.
    groups: usize,
    /// For each bit, the lowest first, that of all groups.
    planes: Vec<Group>,
}

impl Slices {
    /// Levels of `bits` bits, room for `rows` rows of level 0.
    pub(super) fn new(bits: usize, rows: usize) -> Self {
        let groups = rows.div_ceil(GROUP_ROWS);
        Self {
            bits,
            groups,
            planes: vec![NONE; bits * groups],
        }
    }

    /// Makes room for `rows` rows.
    pub(super) fn grow(&mut self, rows: usize) {
        let groups = rows.div_ceil(GROUP_ROWS);
        if groups <= self.groups {
            return;
        }
        let mut planes = Vec::with_capacity(self.bits * groups);
        for bit in 0..self.bits {
            planes.extend_from_slice(self.plane(bit));
            planes.resize((bit + 1) * groups, NONE);
        }
        self.groups = groups;
        self.planes = planes;
    }

    /// Writes a row's level.
    pub(super) fn set(&mut self, row: usize, level: usize) {
        let (group, lane, bit) = place(row);
        let groups = self
            .planes
            .iter_mut()
            .skip(group)
            .step_by(self.groups.max(1));
        for (index, slice) in groups.enumerate() {
            if let Some(word) = slice.get_mut(lane) {
                *word = if level >> index & 1 == 1 {
                    *word | bit
                } else {
                    *word & !bit
                };
            }
        }
    }

    /// Turns bits of a row's level: those that are set in `turned`.
    pub(super) fn turn(&mut self, row: usize, turned: usize) {
        let (group, lane, bit) = place(row);
        let mut left = turned;
        while left != 0 {
            let index = usize::try_from(left.trailing_zeros()).unwrap_or(0);
            let slice = self.planes.get_mut(index * self.groups + group);
            if let Some(word) = slice.and_then(|slice| slice.get_mut(lane)) {
                *word ^= bit;
            }
            left &= left - 1;
        }
    }

    /// A row's level.
    pub(super) fn get(&self, row: usize) -> usize {
        let (group, lane, bit) = place(row);
        let groups = self.planes.iter().skip(group).step_by(self.groups.max(1));
        groups.enumerate().fold(0, |level, (index, slice)| {
            let is_set = slice.get(lane).is_some_and(|word| word & bit != 0);
            level | usize::from(is_set) << index
        })
    }

    /// The rows whose level is in `set`.
    pub(super) fn find(&self, set: LevelSet, found: &mut [Group]) {
        self.find_below(self.bits, set, found);
    }

    /// The same, told by the lowest `bits` bits alone. The highest of these parts the set into halves: where they
    /// are alike it is not looked at, where one is whole or empty a word operation does, and only what is left
    /// is asked further, so that a range takes an operation for each bit, and some points in a row few more.
    fn find_below(&self, bits: usize, set: LevelSet, found: &mut [Group]) {
        let whole = levels_of(bits);
        let set = set & whole;
        let Some(bit) = bits.checked_sub(1).filter(|_| set != 0 && set != whole) else {
            found.fill(if set == 0 { NONE } else { ALL });
            return;
        };
        let half = levels_of(bit);
        let (low, high) = (set & half, (set >> (1_u32 << bit)) & half);
        let plane = self.plane(bit);
        if low == high {
            self.find_below(bit, low, found);
        } else if high == half {
            self.find_below(bit, low, found);
            each(found, plane, |found, is_set| *found |= is_set);
        } else if low == 0 {
            self.find_below(bit, high, found);
            each(found, plane, |found, is_set| *found &= is_set);
        } else if high == 0 {
            self.find_below(bit, low, found);
            each(found, plane, |found, is_set| *found &= !is_set);
        } else if low == half {
            self.find_below(bit, high, found);
            each(found, plane, |found, is_set| *found |= !is_set);
        } else {
            let mut above = [NONE; GROUPS_MAX];
            let above = above.get_mut(..found.len()).unwrap_or_default();
            self.find_below(bit, high, above);
            self.find_below(bit, low, found);
            let halves = above.iter().zip(plane);
            for (found, (above, plane)) in found.iter_mut().zip(halves) {
                let words = found.iter_mut().zip(above.iter().zip(plane));
                for (found, (above, is_set)) in words {
                    *found ^= (*found ^ above) & is_set;
                }
            }
        }
    }

    fn plane(&self, bit: usize) -> &[Group] {
        let start = bit * self.groups;
        self.planes
            .get(start..start + self.groups)
            .unwrap_or_default()
    }

    /// Bytes that it takes beside its own.
    pub(super) const fn bytes(&self) -> usize {
        self.planes.capacity() * size_of::<Group>()
    }
}

/// Keeps of `rows` those of `others`.
pub(super) fn keep(rows: &mut [Group], others: &[Group]) {
    each(rows, others, |row, other| *row &= other);
}

/// All levels that so many bits tell apart.
const fn levels_of(bits: usize) -> LevelSet {
    // Six bits at most.
    match 1_u64.checked_shl(1_u32 << if bits < 6 { bits } else { 6 }) {
        Some(next) => next - 1,
        None => LevelSet::MAX,
    }
}

/// Applies a change to each word of `left` with the word of `right` beside it.
fn each(left: &mut [Group], right: &[Group], apply: impl Fn(&mut u64, u64)) {
    for (left, right) in left.iter_mut().zip(right) {
        for (left, right) in left.iter_mut().zip(right) {
            apply(left, *right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_levels_are_those_of_each_row() {
        let level_of = |row: usize| row * 7 % 13;
        let mut slices = Slices::new(4, 200);
        slices.grow(500);
        for row in 0..500 {
            slices.set(row, 15);
            slices.set(row, level_of(row));
        }
        let sets = (0..16)
            .flat_map(|first| {
                (first..16).map(move |last| (0xffff << first) & (0xffff >> (15 - last)))
            })
            .chain([
                0,
                0b1010_0101_1100_0011,
                0b0000_0100_0010_0000,
                0x5555,
                0xffff,
                0x8001,
            ]);
        for set in sets {
            let mut rows = vec![NONE; 2];
            slices.find(set, &mut rows);
            for row in 0..500 {
                assert_eq!(slices.get(row), level_of(row));
                let wanted = set >> level_of(row) & 1 == 1;
                assert_eq!(has(&rows, row), wanted, "{row} in {set:016b}");
            }
        }
    }

    #[test]
    fn a_column_of_one_value_takes_no_bits() {
        let slices = Slices::new(0, 300);
        assert_eq!(slices.bytes(), 0);
        let mut rows = vec![NONE; 2];
        slices.find(1, &mut rows);
        assert_eq!(count(&rows), 512);
        assert_eq!(slices.get(299), 0);
    }

    #[test]
    fn bits_are_set_found_and_counted() {
        let mut masks = vec![NONE; 2];
        for row in [0, 63, 64, 255, 256, 511] {
            set(&mut masks, row, true);
        }
        set(&mut masks, 64, false);
        let mut rows = Vec::new();
        for_each(&masks, |row| rows.push(row));
        assert_eq!(rows, [0, 63, 255, 256, 511]);
        assert_eq!(count(&masks), 5);
        assert!(has(&masks, 255) && !has(&masks, 64) && !has(&masks, 9999));
    }
}
