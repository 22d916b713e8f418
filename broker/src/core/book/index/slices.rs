//! The levels of a column's rows, bit by bit: a plane holds the same bit of all rows.
//!
//! "At least level k" then takes one word operation for 64 rows and each bit of k from its lowest one up. Must not
//! know what a level means.

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

    /// A row's level.
    pub(super) fn get(&self, row: usize) -> usize {
        let (group, lane, bit) = place(row);
        let groups = self.planes.iter().skip(group).step_by(self.groups.max(1));
        groups.enumerate().fold(0, |level, (index, slice)| {
            let is_set = slice.get(lane).is_some_and(|word| word & bit != 0);
            level | usize::from(is_set) << index
        })
    }

    /// Adds to `rows` those whose level is from `first` to `last`.
    pub(super) fn add_within(&self, (first, last): (usize, usize), rows: &mut [Group]) {
        let mut within = [NONE; GROUPS_MAX];
        let within = within.get_mut(..rows.len()).unwrap_or_default();
        within.fill(ALL);
        self.keep_within((first, last), within);
        each(rows, within, |row, within| *row |= within);
    }

    /// Keeps of `rows` those whose level is from `first` to `last`.
    pub(super) fn keep_within(&self, (first, last): (usize, usize), rows: &mut [Group]) {
        let mut reached = [NONE; GROUPS_MAX];
        let reached = reached.get_mut(..rows.len()).unwrap_or_default();
        if first > 0 {
            self.reach(first, reached);
            each(rows, reached, |row, reached| *row &= reached);
        }
        if last + 1 < 1 << self.bits {
            self.reach(last + 1, reached);
            each(rows, reached, |row, reached| *row &= !reached);
        }
    }

    /// The rows whose level is at least `level`, which is not 0. From the lowest bit up: where the level has a one,
    /// a row needs a one and the rest met; where it has a nought, a one is enough. Below the level's lowest one
    /// all is met, and no bit is looked at.
    fn reach(&self, level: usize, reached: &mut [Group]) {
        reached.fill(if level >> self.bits == 0 { ALL } else { NONE });
        let lowest = usize::try_from(level.trailing_zeros()).unwrap_or(0);
        for bit in lowest..self.bits {
            let plane = self.plane(bit);
            if level >> bit & 1 == 1 {
                each(reached, plane, |reached, word| *reached &= word);
            } else {
                each(reached, plane, |reached, word| *reached |= word);
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
    fn ranges_of_levels_are_those_of_each_row() {
        let level_of = |row: usize| row * 7 % 13;
        let mut slices = Slices::new(4, 200);
        slices.grow(500);
        for row in 0..500 {
            slices.set(row, 15);
            slices.set(row, level_of(row));
        }
        for first in 0..16 {
            for last in first..16 {
                let mut rows = vec![ALL; 2];
                slices.keep_within((first, last), &mut rows);
                let mut added = vec![NONE; 2];
                slices.add_within((first, last), &mut added);
                assert_eq!(rows, added);
                for row in 0..500 {
                    assert_eq!(slices.get(row), level_of(row));
                    let wanted = (first..=last).contains(&level_of(row));
                    assert_eq!(has(&rows, row), wanted, "{row} in {first}..={last}");
                }
            }
        }
    }

    #[test]
    fn a_column_of_one_value_takes_no_bits() {
        let slices = Slices::new(0, 300);
        assert_eq!(slices.bytes(), 0);
        let mut rows = vec![ALL; 2];
        slices.keep_within((0, 0), &mut rows);
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
