//! An index over all rows that can be rented: counts every match of a search exactly, finds the first of them by
//! price, and says why nothing matched, without looking at every row.
//!
//! Rows are kept on shelves: those of one GPU model and count, two thousand of neighbouring prices on each. On a
//! shelf every column is cut into bits (`slices`), so that a condition on 64 rows takes a few word operations;
//! rows that these cannot decide are looked at one by one, with their exact values. Changes are made in place, in
//! about a microsecond, and at times a shelf is laid out anew, in about a millisecond: searches wait for neither.
//!
//! One owner. Must not know what the columns mean, nor leases or money; what it cannot decide is asked of
//! [`Rows`].

mod explain;
mod narrow;
mod query;
mod scale;
mod search;
mod shelf;
mod slices;
#[cfg(test)]
mod tests;

pub use explain::{Cost, Explained};
pub use query::{Layout, Matches, Order, Query, Row, Rows, Slot, Subject, Test};
pub use scale::{Range, UNKNOWN};

use shelf::{Home, ROWS_MAX, Shelf};
use std::collections::BTreeMap;

/// Most pairs of model and count that have shelves of their own. Rows of more go to one mixed home: a stranger who
/// makes up models cannot make every search walk through them.
const HOMES_MAX: usize = 2048;

/// What rows are put on shelves by: price, then tie; the slot, so that no two are the same.
type Key = (i64, u64, Slot);

/// No key is less.
const LOWEST: Key = (i64::MIN, 0, Slot::FIRST);

/// Of a shelf that nothing is on.
const NO_COLUMNS: Layout = Layout {
    columns: 0,
    model: 0,
    count: 0,
    price: 0,
    extras: &[],
};

/// Where a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    shelf: u32,
    row: u32,
}

const NOWHERE: Place = Place {
    shelf: u32::MAX,
    row: u32::MAX,
};

/// A row between two shelves.
struct Stray {
    home: Home,
    slot: Slot,
    tie: u64,
    is_shown: bool,
    values: Vec<i64>,
}

/// Shelves of one model and count, by the lowest key that each takes.
type Stack = Vec<(Key, u32)>;

/// The index.
#[derive(Debug)]
pub struct Index {
    layout: Layout,
    homes: BTreeMap<Home, Stack>,
    /// By number; those that are not in a stack are empty and used again.
    shelves: Vec<Shelf>,
    spare_shelves: Vec<u32>,
    places: Vec<Place>,
    spare_slots: Vec<Slot>,
    shown: usize,
}

impl Index {
    /// An empty index.
    #[must_use]
    pub const fn new(layout: Layout) -> Self {
        Self {
            layout,
            homes: BTreeMap::new(),
            shelves: Vec::new(),
            spare_shelves: Vec::new(),
            places: Vec::new(),
            spare_slots: Vec::new(),
            shown: 0,
        }
    }

    /// How many rows searches see.
    #[must_use]
    pub const fn shown(&self) -> usize {
        self.shown
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.places.len() - self.spare_slots.len()
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let stacks = self
            .homes
            .values()
            .map(|stack| size_of::<(Home, Stack)>() + stack.capacity() * size_of::<(Key, u32)>());
        let empty = self.shelves.capacity() - self.shelves.len();
        self.shelves.iter().map(Shelf::bytes).sum::<usize>()
            + stacks.sum::<usize>()
            + empty * size_of::<Shelf>()
            + self.spare_shelves.capacity() * size_of::<u32>()
            + self.places.capacity() * size_of::<Place>()
            + self.spare_slots.capacity() * size_of::<Slot>()
    }

    /// Takes a row in; searches see it if it is shown.
    pub fn insert(&mut self, row: &Row<'_>, is_shown: bool) -> Slot {
        let slot = self.spare_slots.pop().unwrap_or_else(|| {
            self.places.push(NOWHERE);
            Slot::nth(self.places.len() - 1)
        });
        self.shown += usize::from(is_shown);
        self.put(row, slot, is_shown);
        slot
    }

    /// Drops a row.
    pub fn remove(&mut self, slot: Slot) {
        if let Some(is_shown) = self.take(slot) {
            self.shown -= usize::from(is_shown);
            self.spare_slots.push(slot);
        }
    }

    /// Makes searches see a row, or not.
    pub fn show(&mut self, slot: Slot, is_shown: bool) {
        let place = self.place(slot);
        if let Some(shelf) = self.shelves.get_mut(at(place.shelf)) {
            let was_shown = shelf.is_shown(at(place.row));
            shelf.show(at(place.row), is_shown);
            self.shown = self.shown + usize::from(is_shown) - usize::from(was_shown);
        }
    }

    /// Changes a row from what it has to `row`. A row whose price changes stays where it is, a stray, until its
    /// shelf is laid out anew; only another model or count moves it at once.
    pub fn update(&mut self, slot: Slot, before: &[i64], row: &Row<'_>) {
        let is_same = |column: usize| before.get(column) == row.values.get(column);
        let place = self.place(slot);
        if !is_same(self.layout.model) || !is_same(self.layout.count) {
            if let Some(is_shown) = self.take(slot) {
                self.put(row, slot, is_shown);
            }
        } else if let Some(shelf) = self.shelves.get_mut(at(place.shelf)) {
            shelf.retie(at(place.row), row.tie);
            for (column, (before, value)) in before.iter().zip(row.values).enumerate() {
                if before != value {
                    shelf.write(&self.layout, at(place.row), column, *value);
                }
            }
            shelf.wear();
            if shelf.is_worn() {
                self.tidy(place.shelf);
            }
        }
    }

    fn place(&self, slot: Slot) -> Place {
        self.places.get(slot.number()).copied().unwrap_or(NOWHERE)
    }

    fn key_of(&self, row: &Row<'_>, slot: Slot) -> Key {
        let price = row.values.get(self.layout.price);
        (price.copied().unwrap_or(UNKNOWN), row.tie, slot)
    }

    fn home_of(&self, row: &Row<'_>) -> Home {
        let value = |column: usize| row.values.get(column).copied().unwrap_or(UNKNOWN);
        let home = Some((value(self.layout.model), value(self.layout.count)));
        let fits = self.homes.len() < HOMES_MAX || self.homes.contains_key(&home);
        if fits { home } else { None }
    }

    /// The shelf that takes rows of this home and key.
    fn shelf_for(&self, home: Home, key: Key) -> Option<u32> {
        let stack = self.homes.get(&home)?;
        let above = stack.partition_point(|(low, _)| *low <= key);
        let (_, shelf) = stack.get(above.saturating_sub(1))?;
        Some(*shelf)
    }

    fn put(&mut self, row: &Row<'_>, slot: Slot, is_shown: bool) {
        let (home, key) = (self.home_of(row), self.key_of(row, slot));
        let number = self.shelf_for(home, key).unwrap_or_else(|| {
            let number = self.add(Shelf::new(&self.layout, home));
            self.homes.insert(home, vec![(LOWEST, number)]);
            number
        });
        if self.put_on(number, row, slot, is_shown) {
            self.tidy(number);
        }
    }

    /// Puts a row on a shelf, and says whether that should be laid out now.
    fn put_on(&mut self, number: u32, row: &Row<'_>, slot: Slot, is_shown: bool) -> bool {
        let Some(shelf) = self.shelves.get_mut(at(number)) else {
            return false;
        };
        let place = shelf.insert(&self.layout, row, slot);
        shelf.show(place, is_shown);
        let is_due = shelf.is_full() || shelf.is_worn();
        self.settle(slot, number, place);
        is_due
    }

    fn settle(&mut self, slot: Slot, shelf: u32, row: usize) {
        let row = u32::try_from(row).unwrap_or(u32::MAX);
        if let Some(place) = self.places.get_mut(slot.number()) {
            *place = Place { shelf, row };
        }
    }

    /// Takes a row off its shelf, and says whether it was shown.
    fn take(&mut self, slot: Slot) -> Option<bool> {
        let place = self.place(slot);
        let shelf = self.shelves.get_mut(at(place.shelf))?;
        let is_shown = shelf.is_shown(at(place.row));
        shelf.remove(at(place.row));
        *self.places.get_mut(slot.number())? = NOWHERE;
        self.join(place.shelf);
        Some(is_shown)
    }

    fn add(&mut self, shelf: Shelf) -> u32 {
        let number = self.spare_shelves.pop().unwrap_or_else(|| {
            self.shelves.push(Shelf::new(&NO_COLUMNS, None));
            u32::try_from(self.shelves.len() - 1).unwrap_or(u32::MAX)
        });
        self.replace(number, shelf);
        number
    }

    /// Puts a shelf in the place of another, and notes where its rows are now.
    fn replace(&mut self, number: u32, shelf: Shelf) {
        for (row, slot) in shelf.places() {
            self.settle(slot, number, row);
        }
        if let Some(place) = self.shelves.get_mut(at(number)) {
            *place = shelf;
        }
    }

    /// Lays out a shelf anew. Its strays go to the shelves of their prices; one that is full by that is laid out
    /// in its turn, and so on: a row moves once at most.
    fn tidy(&mut self, number: u32) {
        let mut strays = Vec::new();
        self.lay_out(number, &mut strays);
        while let Some(stray) = strays.pop() {
            let row = Row {
                values: &stray.values,
                tie: stray.tie,
            };
            let key = self.key_of(&row, stray.slot);
            let Some(target) = self.shelf_for(stray.home, key) else {
                continue;
            };
            self.put_on(target, &row, stray.slot, stray.is_shown);
            if self.shelves.get(at(target)).is_some_and(Shelf::is_full) {
                self.lay_out(target, &mut strays);
            }
        }
        self.join(number);
    }

    /// Takes the strays off a shelf, lays out the rest anew, and splits it if it is full.
    fn lay_out(&mut self, number: u32, strays: &mut Vec<Stray>) {
        let Some(shelf) = self.shelves.get(at(number)) else {
            return;
        };
        let home = shelf.home();
        let stack = self.homes.get(&home).map_or(&[][..], Vec::as_slice);
        let index = stack.iter().position(|(_, shelf)| *shelf == number);
        let index = index.unwrap_or(0);
        let low = stack.get(index).map_or(LOWEST, |(low, _)| *low);
        let high = stack.get(index + 1).map(|(high, _)| *high);
        let parts = Shelf::parts(&self.layout, &[shelf]);
        let first = parts.partition_point(|part| part.key < low);
        let end = parts.partition_point(|part| high.is_none_or(|high| part.key < high));
        let inside = parts.get(first..end).unwrap_or_default();
        for part in parts.iter().take(first).chain(parts.iter().skip(end)) {
            strays.push(Stray {
                home,
                slot: part.key.2,
                tie: part.key.1,
                is_shown: shelf.is_shown(part.row),
                values: (0..self.layout.columns)
                    .map(|column| shelf.value(column, part.row))
                    .collect(),
            });
        }
        let is_full = inside.len() >= ROWS_MAX / 4 * 3;
        let middle = if is_full {
            inside.len() / 2
        } else {
            inside.len()
        };
        let (lower, upper) = inside.split_at(middle);
        let middle = upper.first().map(|part| part.key);
        let [lower, upper] =
            [lower, upper].map(|parts| Shelf::of(&self.layout, home, &[shelf], parts));
        self.replace(number, lower);
        if let Some(middle) = middle {
            let added = self.add(upper);
            if let Some(stack) = self.homes.get_mut(&home) {
                stack.insert(index + 1, (middle, added));
            }
        }
    }

    /// Drops a shelf that is empty, and joins one that is nearly so to a neighbour with room.
    fn join(&mut self, number: u32) {
        let Some(shelf) = self.shelves.get(at(number)) else {
            return;
        };
        let home = shelf.home();
        if shelf.rows() > ROWS_MAX / 8 {
            return;
        }
        let Some(stack) = self.homes.get(&home) else {
            return;
        };
        let index = stack.iter().position(|(_, shelf)| *shelf == number);
        let index = index.unwrap_or(0);
        let neighbour = stack
            .get(index + 1)
            .or_else(|| stack.get(index.checked_sub(1)?));
        let Some((_, other)) = neighbour.copied() else {
            if shelf.rows() == 0 {
                self.homes.remove(&home);
                self.discard(number);
            }
            return;
        };
        let fits = |other: &&Shelf| other.rows() + shelf.rows() <= ROWS_MAX / 2;
        let Some(beside) = self.shelves.get(at(other)).filter(fits) else {
            return;
        };
        let parts = Shelf::parts(&self.layout, &[shelf, beside]);
        let joined = Shelf::of(&self.layout, home, &[shelf, beside], &parts);
        // The one with the lower keys stays, and takes the keys of both.
        let is_next = stack.get(index + 1).is_some();
        let (kept, gone) = if is_next {
            (number, other)
        } else {
            (other, number)
        };
        self.replace(kept, joined);
        if let Some(stack) = self.homes.get_mut(&home) {
            stack.retain(|(_, shelf)| *shelf != gone);
        }
        self.discard(gone);
    }

    fn discard(&mut self, number: u32) {
        if let Some(shelf) = self.shelves.get_mut(at(number)) {
            *shelf = Shelf::new(&NO_COLUMNS, None);
            self.spare_shelves.push(number);
        }
    }
}

/// The place in a list of a number that counts one.
fn at(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
