//! Whose time a host's time was: every moment once, however many leases ran in it.
//!
//! The rate of faults is the host's, so it is the host's hours that count, as a fault counts once for all
//! its leases. Hours in which several renters had it are divided among them equally.

use super::model::{DECAYED_HOURS_MAX, decay};
use super::statements::{Interval, Payer};
use crate::units::Timestamp;
use std::collections::BTreeMap;

/// Decayed hours by whose they were.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Hours {
    pub(super) leased: BTreeMap<Payer, f64>,
    /// Heard and not leased.
    pub(super) idle: f64,
}

/// Where something begins or ends; what ends at a moment ends before anything begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Excluded,
    Heard,
    Leased(Payer),
}

/// The stretches of a host's time.
#[derive(Debug)]
pub(super) struct Timeline {
    edges: Vec<(Timestamp, bool, Edge)>,
    from: Timestamp,
    to: Timestamp,
}

impl Timeline {
    /// A timeline of what lies between two moments.
    pub(super) const fn between(from: Timestamp, to: Timestamp) -> Self {
        Self {
            edges: Vec::new(),
            from,
            to,
        }
    }

    pub(super) fn leased(&mut self, payer: Payer, runs: &[Interval]) {
        self.add(Edge::Leased(payer), runs);
    }

    pub(super) fn heard(&mut self, intervals: &[Interval]) {
        self.add(Edge::Heard, intervals);
    }

    pub(super) fn excluded(&mut self, intervals: &[Interval]) {
        self.add(Edge::Excluded, intervals);
    }

    fn add(&mut self, edge: Edge, intervals: &[Interval]) {
        for interval in intervals {
            let (from, to) = (interval.from.max(self.from), interval.to.min(self.to));
            if from < to {
                self.edges.extend([(from, true, edge), (to, false, edge)]);
            }
        }
    }

    /// The hours, as they are worth at `now`.
    pub(super) fn hours(mut self, now: Timestamp) -> Hours {
        self.edges.sort_unstable();
        let mut hours = Hours::default();
        let (mut excluded, mut heard) = (0_u32, 0_u32);
        let mut payers: BTreeMap<Payer, u32> = BTreeMap::new();
        let (mut since, mut worth) = (self.from, decay(self.from, now));
        for (at, begins, edge) in self.edges {
            if at > since {
                // As `decayed_hours`, with each power taken once.
                let worth_at = decay(at, now);
                if excluded == 0 {
                    let stretch = DECAYED_HOURS_MAX * (worth_at - worth);
                    hours.add(stretch, &payers, heard > 0);
                }
                (since, worth) = (at, worth_at);
            }
            match edge {
                Edge::Excluded => step(&mut excluded, begins),
                Edge::Heard => step(&mut heard, begins),
                Edge::Leased(payer) => {
                    let leases = payers.entry(payer).or_insert(0);
                    step(leases, begins);
                    if *leases == 0 {
                        payers.remove(&payer);
                    }
                }
            }
        }
        hours
    }
}

impl Hours {
    fn add(&mut self, stretch: f64, payers: &BTreeMap<Payer, u32>, heard: bool) {
        // There are never more leases than fit into 32 bits.
        let among = f64::from(u32::try_from(payers.len()).unwrap_or(u32::MAX));
        for payer in payers.keys() {
            *self.leased.entry(*payer).or_insert(0.0) += stretch / among;
        }
        if payers.is_empty() && heard {
            self.idle += stretch;
        }
    }
}

const fn step(count: &mut u32, begins: bool) {
    *count = if begins {
        count.saturating_add(1)
    } else {
        count.saturating_sub(1)
    };
}
