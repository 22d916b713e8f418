//! How much of the time each GPU and slice was leased since the agent started. It reads no clock.

use protocol::offer::{ResourceName, parent};
use protocol::units::Millis;
use std::collections::{BTreeMap, BTreeSet};

/// The time since it began, and what of it each was leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    since: Millis,
    seen: Millis,
    leased: BTreeMap<String, Millis>,
}

impl Tally {
    /// Begins at `now`, which is time since the boot.
    #[must_use]
    pub const fn new(now: Millis) -> Self {
        Self {
            since: now,
            seen: now,
            leased: BTreeMap::new(),
        }
    }

    /// What was held from the last note until now. A GPU of which a slice is held counts as held.
    pub fn note<'a>(&mut self, held: impl Iterator<Item = &'a ResourceName>, now: Millis) {
        let span = Millis(now.0.saturating_sub(self.seen.0));
        self.seen = now;
        let names: BTreeSet<&str> = held
            .flat_map(|name| [name.as_str(), parent(name)])
            .collect();
        for name in names {
            let leased = self.leased.entry(name.to_owned()).or_default();
            *leased = leased.plus(span);
        }
    }

    /// In thousandths, how much of the time it was not leased; nothing in the first second.
    #[must_use]
    pub fn idle_permille(&self, resource: &str) -> Option<u32> {
        let whole = self.seen.0.saturating_sub(self.since.0);
        if whole < 1000 {
            return None;
        }
        let leased = self.leased.get(resource).map_or(0, |leased| leased.0);
        let idle = u128::from(whole.saturating_sub(leased)) * 1000 / u128::from(whole);
        u32::try_from(idle).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_nobody_leased_is_idle() {
        let name = |text: &str| ResourceName::new(text).unwrap();
        let (whole, slice) = (name("GPU-1"), name("GPU-0/3g.40gb@4+4"));
        let mut tally = Tally::new(Millis(50_000));
        assert_eq!(tally.idle_permille("GPU-1"), None);
        tally.note([].into_iter(), Millis(54_000));
        assert_eq!(tally.idle_permille("GPU-1"), Some(1000));
        tally.note([&whole, &slice].into_iter(), Millis(57_000));
        tally.note([&whole].into_iter(), Millis(58_000));
        // Four of eight seconds, and three for the slice and for the GPU that it is of.
        assert_eq!(tally.idle_permille("GPU-1"), Some(500));
        assert_eq!(tally.idle_permille("GPU-0/3g.40gb@4+4"), Some(625));
        assert_eq!(tally.idle_permille("GPU-0"), Some(625));
        // A clock that stands still changes nothing.
        tally.note([&whole].into_iter(), Millis(58_000));
        assert_eq!(tally.idle_permille("GPU-1"), Some(500));
    }
}
