//! What happens to a market's rows while it is searched: prices move, leases begin and end, hosts announce again.
//!
//! The same on every run. Must not measure anything.

use broker::core::book::index::{Index, Row as IndexRow, Slot};

use super::workload::{DISK, Offered, PRICE};

/// An index under change, and what is in it.
pub(crate) struct Changing {
    pub(crate) index: Index,
    slots: Vec<Slot>,
    offers: Vec<Offered>,
    noise: u64,
}

impl Changing {
    pub(crate) const fn new(index: Index, slots: Vec<Slot>, offers: Vec<Offered>) -> Self {
        Self {
            index,
            slots,
            offers,
            noise: 88_172_645_463_325_252,
        }
    }

    /// One change of one row: mostly its price, by a twentieth at most.
    pub(crate) fn change(&mut self) {
        let rows = u64::try_from(self.offers.len().max(1)).unwrap_or(1);
        let row = usize::try_from(self.random() % rows).unwrap_or(0);
        let chance = self.random() % 20;
        let percent = i64::try_from(self.random() % 11).unwrap_or(0) - 5;
        let before = self.offers[row];
        let slot = self.slots[row];
        let offer = &mut self.offers[row];
        let tie = u64::try_from(row).unwrap_or(0);
        match chance {
            0 => self.index.show(slot, false),
            1 => self.index.show(slot, true),
            2 => {
                self.index.remove(slot);
                let row_again = IndexRow {
                    values: &before,
                    tie,
                };
                self.slots[row] = self.index.insert(&row_again, true);
            }
            _ => {
                offer[PRICE] = (before[PRICE] + before[PRICE] * percent / 100).max(1);
                offer[DISK] += i64::from(chance == 3);
                let after = IndexRow { values: offer, tie };
                self.index.update(slot, &before, &after);
            }
        }
    }

    /// Numbers that look random and are the same on every run.
    const fn random(&mut self) -> u64 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        self.noise
    }
}
