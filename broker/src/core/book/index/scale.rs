//! How the values of one column of one shelf fall into few levels, so that a level takes few bits.
//!
//! A level holds the values from its step up to the next one. Where a shelf had few values when it was laid out,
//! each is a step. Where it had many, they are halved again and again, each time at the roundest number near the
//! middle: people ask for round numbers, a question that meets a step needs no second look at any row, and one that
//! meets a step of the first halvings needs few of a level's bits. Must not know which rows there are.

/// What stands for a value that is not known: below every value, and in no range. Values are less than the
/// highest number, which stands for no value, too.
pub const UNKNOWN: i64 = i64::MIN;

/// Steps that are looked through at once: a line of the processor's cache.
const STRIDE: usize = 8;

/// Most levels of a column: six bits of each row.
const LEVELS_MAX: usize = STRIDE * STRIDE;

/// A range of values, both ends in it.
pub type Range = (i64, i64);

/// A bit for each level. What is above the last level goes with it: no row is there, and a set that is whole at
/// its upper end is told by fewer bits.
pub(super) type LevelSet = u64;

const _: () = assert!(LEVELS_MAX == 64);

/// The first and the last level of some in a row.
type Levels = (usize, usize);

/// The levels of a column.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    /// Every eighth step, the first aside: what a search for a level looks at first. The place of a step that is
    /// not there has the highest value, which no value of a row is.
    strides: [i64; STRIDE - 1],
    /// The lowest value of each level, rising; that of the next one where a level is empty. The first level takes
    /// all that is lower, too.
    steps: Vec<i64>,
    /// No value is below or above these.
    lowest: i64,
    highest: i64,
    /// Whether every value is the step of its level.
    is_exact: bool,
}

impl Scale {
    /// The scale for these values, which are sorted.
    pub(super) fn learn(sorted: &[i64]) -> Self {
        let mut steps: Vec<i64> = Vec::with_capacity(LEVELS_MAX);
        let mut is_exact = true;
        for value in sorted {
            if steps.last() != Some(value) {
                if steps.len() == LEVELS_MAX {
                    is_exact = false;
                    break;
                }
                steps.push(*value);
            }
        }
        if !is_exact {
            steps = halved(sorted);
        }
        steps.shrink_to_fit();
        let mut strides = [i64::MAX; STRIDE - 1];
        let every = steps.iter().step_by(STRIDE).skip(1);
        for (stride, step) in strides.iter_mut().zip(every) {
            *stride = *step;
        }
        Self {
            strides,
            steps,
            lowest: sorted.first().copied().unwrap_or(i64::MAX),
            highest: sorted.last().copied().unwrap_or(i64::MIN),
            is_exact,
        }
    }

    /// How many bits a level takes.
    pub(super) fn bits(&self) -> usize {
        let highest = self.steps.len().saturating_sub(1);
        usize::try_from(usize::BITS - highest.leading_zeros()).unwrap_or(0)
    }

    /// The level of a value.
    pub(super) fn level(&self, value: i64) -> usize {
        self.below(value.saturating_add(1)).saturating_sub(1)
    }

    /// How many steps are below a value. Two lines of memory are looked at, whatever the value is: a search that
    /// halves would wait for four, one after the other.
    fn below(&self, value: i64) -> usize {
        let is_below = |step: &&i64| **step < value;
        let first = self.strides.iter().filter(is_below).count() * STRIDE;
        let rest = self.steps.get(first..).unwrap_or_default();
        first + rest.iter().take(STRIDE).filter(is_below).count()
    }

    /// The step of a level: the value of all its rows where the scale is exact.
    pub(super) fn step(&self, level: usize) -> i64 {
        self.steps.get(level).copied().unwrap_or(UNKNOWN)
    }

    /// Whether every value is the step of its level.
    pub(super) const fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// No value is below the first or above the second.
    pub(super) const fn bounds(&self) -> Range {
        (self.lowest, self.highest)
    }

    /// Takes a value in. Says whether the scale is exact no longer.
    pub(super) fn admit(&mut self, value: i64) -> bool {
        self.lowest = self.lowest.min(value);
        self.highest = self.highest.max(value);
        let was_exact = self.is_exact;
        self.is_exact = was_exact && self.step(self.level(value)) == value;
        was_exact && !self.is_exact
    }

    /// The levels that may hold a value of this range.
    pub(super) fn possible(&self, range: Range) -> LevelSet {
        self.possible_levels(range)
            .map_or(0, |levels| self.set_of(levels))
    }

    /// The levels that hold values of this range and no others.
    pub(super) fn sure(&self, range: Range) -> LevelSet {
        self.sure_levels(range)
            .map_or(0, |levels| self.set_of(levels))
    }

    fn set_of(&self, (first, last): Levels) -> LevelSet {
        let from = LevelSet::MAX << first.min(LEVELS_MAX - 1);
        if last + 1 >= self.steps.len() {
            return from;
        }
        from & !(LevelSet::MAX << (last + 1).min(LEVELS_MAX - 1))
    }

    fn possible_levels(&self, (low, high): Range) -> Option<Levels> {
        if low > self.highest || high < self.lowest || low > high {
            return None;
        }
        if !self.is_exact {
            let last = if high >= self.highest {
                self.steps.len().saturating_sub(1)
            } else {
                self.level(high)
            };
            return Some((self.level(low), last));
        }
        let first = self.below(low);
        let last = if high >= self.highest {
            self.steps.len().checked_sub(1)?
        } else {
            self.below(high.saturating_add(1)).checked_sub(1)?
        };
        (first <= last).then_some((first, last))
    }

    fn sure_levels(&self, (low, high): Range) -> Option<Levels> {
        let (mut first, mut last) = self.possible_levels((low, high))?;
        if self.is_exact {
            return Some((first, last));
        }
        let lowest = if first == 0 {
            self.lowest
        } else {
            self.step(first)
        };
        first += usize::from(lowest < low);
        let next = self.steps.get(last + 1);
        let highest = next.map_or(self.highest, |next| self.highest.min(next - 1));
        if highest > high {
            last = last.checked_sub(1)?;
        }
        (first <= last).then_some((first, last))
    }

    /// Bytes that it takes beside its own.
    pub(super) const fn bytes(&self) -> usize {
        self.steps.capacity() * size_of::<i64>()
    }
}

/// Steps between which about as many values lie each.
fn halved(sorted: &[i64]) -> Vec<i64> {
    let mut found = [None; LEVELS_MAX];
    halve(sorted, &mut found);
    // What is missing has the step of the next one; no value is above the last.
    let mut next = i64::MAX;
    let mut steps: Vec<i64> = found
        .iter()
        .rev()
        .map(|step| {
            next = step.unwrap_or(next);
            next
        })
        .collect();
    steps.reverse();
    steps
}

/// Sets the steps for these values, as far as they can be told apart.
fn halve(sorted: &[i64], steps: &mut [Option<i64>]) {
    let (Some(lowest), Some(first)) = (sorted.first(), steps.first_mut()) else {
        return;
    };
    *first = first.or(Some(*lowest));
    // The last halvings choose from all that is left: there the roundest is worth more than the middle.
    let aside = match steps.len() {
        0..=2 => 0,
        3..=4 => sorted.len() / 4,
        _ => sorted.len() * 2 / 5,
    };
    let (low, high) = (sorted.get(aside), sorted.get(sorted.len() - 1 - aside));
    let (Some(low), Some(high)) = (low.copied(), high.copied()) else {
        return;
    };
    let mut middle = roundest(low, high);
    if middle == *lowest {
        let above = sorted.partition_point(|value| *value <= middle);
        match sorted.get(above) {
            Some(value) => middle = *value,
            None => return,
        }
    }
    if steps.len() < 2 {
        return;
    }
    let (lower, upper) = steps.split_at_mut(steps.len() / 2);
    let (below, above) = sorted.split_at(sorted.partition_point(|value| *value < middle));
    if let Some(step) = upper.first_mut() {
        *step = Some(middle);
    }
    halve(below, lower);
    halve(above, upper);
}

/// The roundest number that is above `low` and at most `high`: a multiple of the largest power of ten, or of half
/// of one.
fn roundest(low: i64, high: i64) -> i64 {
    let mut unit: i64 = 1_000_000_000_000_000_000;
    while unit > 1 {
        for unit in [unit, unit / 2] {
            let round = high.div_euclid(unit).checked_mul(unit);
            if let Some(round) = round.filter(|round| *round > low) {
                return round;
            }
        }
        unit /= 10;
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_levels_of_their_own() {
        let scale = Scale::learn(&[3, 3, 5, 9]);
        assert!(scale.is_exact());
        assert_eq!(scale.bits(), 2);
        assert_eq!([3, 5, 9].map(|value| scale.level(value)), [0, 1, 2]);
        assert_eq!(scale.possible_levels((4, 9)), Some((1, 2)));
        assert_eq!(scale.sure_levels((4, 9)), Some((1, 2)));
        assert_eq!(scale.possible_levels((6, 8)), None);
        assert_eq!(scale.possible_levels((10, 20)), None);
        assert_eq!(scale.sure_levels((3, 3)), Some((0, 0)));
        assert_eq!(Scale::learn(&[7, 7]).bits(), 0);
    }

    #[test]
    fn a_new_value_between_the_steps_ends_exactness_once() {
        let mut scale = Scale::learn(&[3, 5, 9]);
        assert!(!scale.admit(5));
        assert!(scale.admit(6));
        assert!(!scale.admit(7));
        assert_eq!(scale.possible_levels((6, 6)), Some((1, 1)));
        assert_eq!(scale.sure_levels((6, 6)), None);
        assert_eq!(scale.sure_levels((5, 8)), Some((1, 1)));
        assert_eq!(scale.sure_levels((6, 9)), Some((2, 2)));
    }

    #[test]
    fn an_unknown_value_is_in_no_range() {
        let scale = Scale::learn(&[UNKNOWN, 4, 8]);
        assert_eq!(scale.possible_levels((UNKNOWN + 1, i64::MAX)), Some((1, 2)));
        let mut late = Scale::learn(&[4, 8]);
        assert!(late.admit(UNKNOWN));
        assert_eq!(late.sure_levels((UNKNOWN + 1, i64::MAX)), Some((1, 1)));
        assert_eq!(late.possible_levels((UNKNOWN + 1, i64::MAX)), Some((0, 1)));
    }

    #[test]
    fn steps_of_many_values_are_round_and_rise() {
        let sorted: Vec<i64> = (0..10_000).map(|value| value * 37).collect();
        let scale = Scale::learn(&sorted);
        assert!(!scale.is_exact());
        assert_eq!(scale.bits(), 6);
        assert!(scale.steps.is_sorted());
        // 0 to 369 963: two fifths are 148 000, three 222 000; between them the roundest is 200 000, and so on.
        assert_eq!(scale.level(200_000), 32);
        assert_eq!(scale.level(100_000), 16);
        assert_eq!(scale.level(300_000), 48);
        assert_eq!(scale.sure_levels((100_000, i64::MAX)), Some((16, 63)));
        assert_eq!(scale.possible_levels((100_000, i64::MAX)), Some((16, 63)));
        assert_eq!(scale.possible_levels((99_999, i64::MAX)), Some((15, 63)));
    }

    #[test]
    fn a_value_that_most_have_does_not_hide_the_others() {
        let mut values = vec![5; 9000];
        values.extend(6..200);
        let scale = Scale::learn(&values);
        assert!(!scale.is_exact());
        // All but one value are in the upper half of each halving: 5 is alone in the first level.
        assert_eq!(scale.sure_levels((5, 5)), Some((0, 0)));
        let full = (0..64).filter(|level| (6..200).any(|value| scale.level(value) == *level));
        assert!(full.count() >= 32);
    }

    #[test]
    fn roundest_numbers_are_those_picked_by_hand() {
        assert_eq!(roundest(187, 212), 200);
        assert_eq!(roundest(947_000, 953_000), 950_000);
        assert_eq!(roundest(9400, 9600), 9500);
        assert_eq!(roundest(7, 8), 8);
        assert_eq!(roundest(-25, -17), -20);
        assert_eq!(roundest(-3, 4), 0);
    }
}
