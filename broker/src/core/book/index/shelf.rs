//! Up to four thousand rows of neighbouring prices, column by column.
//!
//! Rows keep their place while they stay, whatever becomes of their prices; new ones take the places of those that
//! went. When a shelf is split, joined or has changed much, its rows are laid out anew, by price, and its scales
//! are learnt from them. Must not know of other shelves.

use super::scale::{Range, Scale, UNKNOWN};
use super::slices::{self, GROUP_ROWS, Group, NONE, Slices};
use super::{Key, Layout, Row, Slot};

/// Groups of a full shelf; few in tests, so that some thousand rows are split, joined and laid out often.
pub(super) const GROUPS_MAX: usize = if cfg!(test) { 2 } else { 16 };

/// Rows of a full shelf: laying it out takes one or two milliseconds, the longest that a change can take.
pub(super) const ROWS_MAX: usize = GROUPS_MAX * GROUP_ROWS;

/// Places by which a shelf grows: little is left empty.
const STEP: usize = 64;

/// Model and count of all rows of a shelf; nothing where they are mixed.
pub(super) type Home = Option<(i64, i64)>;

/// One column of a shelf.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) scale: Scale,
    pub(super) slices: Slices,
    /// What each row has; empty while the scale is exact and says it.
    values: Vec<i64>,
}

/// Rows of one home and of neighbouring prices.
#[derive(Debug, Clone)]
pub(super) struct Shelf {
    home: Home,
    columns: Vec<Column>,
    ties: Vec<u64>,
    slots: Vec<Slot>,
    /// For each group a price that none of its rows is below.
    lows: Vec<i64>,
    /// The places that hold a row.
    present: Vec<Group>,
    /// The rows that searches see.
    shown: Vec<Group>,
    rows: usize,
    /// Rows when it was laid out, and how many came since.
    laid_out: usize,
    changes: usize,
    /// Whether a scale is less exact than it was then.
    is_blurred: bool,
}

/// A row of a shelf that is to be laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) key: Key,
    shelf: usize,
    pub(super) row: usize,
}

impl Column {
    /// What a row has.
    pub(super) fn value(&self, row: usize) -> i64 {
        match self.values.get(row) {
            Some(value) => *value,
            None => self.scale.step(self.slices.get(row)),
        }
    }

    fn learn(values: Vec<i64>, keeps_values: bool) -> Self {
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let scale = Scale::learn(&sorted);
        let mut slices = Slices::new(scale.bits(), values.len());
        if scale.bits() > 0 {
            for (row, value) in values.iter().enumerate() {
                slices.set(row, scale.level(*value));
            }
        }
        let is_told = scale.is_exact() && !keeps_values;
        Self {
            scale,
            slices,
            values: if is_told { Vec::new() } else { values },
        }
    }

    /// Writes a row's value; `rows` are the places up to the last one in use. Says whether that ended the
    /// scale's exactness.
    fn put(&mut self, row: usize, value: i64, rows: usize) -> bool {
        let is_blurred = self.scale.admit(value);
        self.slices.grow(rows);
        if is_blurred && self.values.is_empty() {
            let told = (0..rows).map(|row| self.scale.step(self.slices.get(row)));
            self.values = told.collect();
        }
        let level = self.scale.level(value);
        if self.values.is_empty() && self.scale.is_exact() {
            self.slices.set(row, level);
            return is_blurred;
        }
        if self.values.len() < rows {
            grow(&mut self.values, rows, UNKNOWN);
        }
        if let Some(place) = self.values.get_mut(row) {
            // Each bit lies far from the others, and most stay as they are.
            let before = self.scale.level(*place);
            self.slices.turn(row, before ^ level);
            *place = value;
        }
        is_blurred
    }

    const fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.scale.bytes()
            + self.slices.bytes()
            + self.values.capacity() * size_of::<i64>()
    }
}

impl Shelf {
    /// A shelf for rows of `home`, with none yet.
    pub(super) fn new(layout: &Layout, home: Home) -> Self {
        Self::of(layout, home, &[], &[])
    }

    /// A shelf of these parts of `shelves`, in this order.
    pub(super) fn of(layout: &Layout, home: Home, shelves: &[&Self], parts: &[Part]) -> Self {
        let prices = |group: &[Part]| group.first().map_or(i64::MAX, |part| part.key.0);
        let column = |index: usize| {
            let value = |part: &Part| {
                let column = shelves.get(part.shelf)?.columns.get(index)?;
                Some(column.value(part.row))
            };
            let values = parts.iter().map(|part| value(part).unwrap_or(UNKNOWN));
            Column::learn(values.collect(), index == layout.price)
        };
        let groups = parts.len().div_ceil(GROUP_ROWS);
        let (mut present, mut shown) = (vec![NONE; groups], vec![NONE; groups]);
        for (row, part) in parts.iter().enumerate() {
            slices::set(&mut present, row, true);
            let is_shown = shelves
                .get(part.shelf)
                .is_some_and(|shelf| slices::has(&shelf.shown, part.row));
            slices::set(&mut shown, row, is_shown);
        }
        Self {
            home,
            columns: (0..layout.columns).map(column).collect(),
            ties: parts.iter().map(|part| part.key.1).collect(),
            slots: parts.iter().map(|part| part.key.2).collect(),
            lows: parts.chunks(GROUP_ROWS).map(prices).collect(),
            present,
            shown,
            rows: parts.len(),
            laid_out: parts.len(),
            changes: 0,
            is_blurred: false,
        }
    }

    /// All rows of these shelves, in order.
    pub(super) fn parts(layout: &Layout, shelves: &[&Self]) -> Vec<Part> {
        let mut parts = Vec::new();
        for (index, shelf) in shelves.iter().enumerate() {
            slices::for_each(&shelf.present, |row| {
                parts.push(Part {
                    key: (
                        shelf.value(layout.price, row),
                        shelf.tie(row),
                        shelf.slot(row),
                    ),
                    shelf: index,
                    row,
                });
            });
        }
        parts.sort_unstable();
        parts
    }

    pub(super) const fn home(&self) -> Home {
        self.home
    }

    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn column(&self, index: usize) -> Option<&Column> {
        self.columns.get(index)
    }

    /// The places that hold a row.
    pub(super) fn present(&self) -> &[Group] {
        &self.present
    }

    /// The rows that searches see.
    pub(super) fn shown(&self) -> &[Group] {
        &self.shown
    }

    pub(super) fn is_shown(&self, row: usize) -> bool {
        slices::has(&self.shown, row)
    }

    /// What a row has in a column.
    pub(super) fn value(&self, column: usize, row: usize) -> i64 {
        let column = self.columns.get(column);
        column.map_or(UNKNOWN, |column| column.value(row))
    }

    /// No value of a column is below the first or above the second.
    pub(super) fn bounds(&self, column: usize) -> Range {
        let column = self.columns.get(column);
        column.map_or((UNKNOWN, UNKNOWN), |column| column.scale.bounds())
    }

    pub(super) fn tie(&self, row: usize) -> u64 {
        self.ties.get(row).copied().unwrap_or(u64::MAX)
    }

    pub(super) fn slot(&self, row: usize) -> Slot {
        self.slots.get(row).copied().unwrap_or(Slot::NOWHERE)
    }

    /// For each group a price that none of its rows is below.
    pub(super) fn lows(&self) -> &[i64] {
        &self.lows
    }

    /// The slots of the rows and where each is.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, Slot)> {
        self.slots.iter().copied().enumerate()
    }

    /// Whether no row more fits.
    pub(super) const fn is_full(&self) -> bool {
        self.rows >= ROWS_MAX
    }

    /// Whether so much changed that it should be laid out anew. Most changes are of prices, and a layout costs as
    /// much as a thousand of them: so they are let pile up, and the scales and the order are only roughly right
    /// meanwhile.
    pub(super) const fn is_worn(&self) -> bool {
        let few = if self.is_blurred { 1 } else { 8 };
        self.changes >= few * (self.laid_out + 32)
    }

    /// Takes a row in, and says at which place.
    pub(super) fn insert(&mut self, layout: &Layout, row: &Row<'_>, slot: Slot) -> usize {
        let place = if self.rows < self.slots.len() {
            self.first_gap()
        } else {
            self.slots.len()
        };
        let rows = self.slots.len().max(place + 1);
        grow(&mut self.slots, rows, Slot::NOWHERE);
        grow(&mut self.ties, rows, 0);
        let groups = rows.div_ceil(GROUP_ROWS);
        self.present.resize(groups, NONE);
        self.shown.resize(groups, NONE);
        self.lows.resize(groups, i64::MAX);
        if let Some(at) = self.slots.get_mut(place) {
            *at = slot;
        }
        slices::set(&mut self.present, place, true);
        self.rows += 1;
        self.retie(place, row.tie);
        for (column, value) in row.values.iter().enumerate() {
            self.write(layout, place, column, *value);
        }
        self.changes += 1;
        place
    }

    /// Writes what a row has in a column, where it is.
    pub(super) fn write(&mut self, layout: &Layout, place: usize, column: usize, value: i64) {
        let rows = self.slots.len();
        if column == layout.price
            && let Some(low) = self.lows.get_mut(place / GROUP_ROWS)
        {
            *low = value.min(*low);
        }
        if let Some(column) = self.columns.get_mut(column) {
            self.is_blurred |= column.put(place, value, rows);
        }
    }

    /// Writes how a row is ordered among those of its price.
    pub(super) fn retie(&mut self, place: usize, tie: u64) {
        if let Some(at) = self.ties.get_mut(place) {
            *at = tie;
        }
    }

    /// Counts a change to a row that stays.
    pub(super) const fn wear(&mut self) {
        self.changes += 1;
    }

    pub(super) fn remove(&mut self, place: usize) {
        slices::set(&mut self.present, place, false);
        slices::set(&mut self.shown, place, false);
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Slot::NOWHERE;
        }
        self.rows -= 1;
    }

    pub(super) fn show(&mut self, place: usize, is_shown: bool) {
        slices::set(&mut self.shown, place, is_shown);
    }

    fn first_gap(&self) -> usize {
        let mut words = self.present.iter().flatten().enumerate();
        let gap = words.find(|(_, word)| **word != u64::MAX);
        gap.map_or(self.slots.len(), |(index, word)| {
            index * 64 + usize::try_from(word.trailing_ones()).unwrap_or(0)
        })
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.columns.iter().map(Column::bytes).sum::<usize>()
            + self.ties.capacity() * size_of::<u64>()
            + self.slots.capacity() * size_of::<Slot>()
            + (self.present.capacity() + self.shown.capacity()) * size_of::<Group>()
            + self.lows.capacity() * size_of::<i64>()
    }
}

/// Makes a list as long as `length`, with little room to spare.
fn grow<T: Clone>(list: &mut Vec<T>, length: usize, filling: T) {
    if length > list.capacity() {
        list.reserve_exact(length + length.min(STEP) - list.len());
    }
    if length > list.len() {
        list.resize(length, filling);
    }
}
