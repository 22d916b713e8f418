//! Telling a broker's outage from its hosts': many hosts of different networks that fall silent in the same
//! minute did not all fail.

use super::watch::{Beat, Network};
use protocol::ids::HostId;
use protocol::reliability::Interval;
use protocol::units::{Millis, Seconds, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// In which they have to fall silent.
const MINUTE: Millis = Millis(60_000);
/// One in so many of the hosts that were heard.
const PART: usize = 5;
/// Of so many networks.
const NETWORKS: usize = 3;
/// An outage is over when four in five of those that fell silent are back, and after this in any case: what is
/// still away then is away by itself.
const LONGEST: Seconds = Seconds(3600);

/// An outage that is not over.
#[derive(Debug)]
pub(super) struct Outage {
    /// When the first of its hosts was heard last.
    pub(super) from: Timestamp,
    lost: BTreeSet<HostId>,
}

impl Outage {
    /// The whole of it, if it is over at `now`.
    pub(super) fn end(
        &self,
        now: Timestamp,
        is_back: impl Fn(&HostId) -> bool,
    ) -> Option<Interval> {
        let back = self.lost.iter().filter(|host| is_back(host)).count();
        let is_over =
            back * PART >= self.lost.len() * (PART - 1) || now.since(self.from) >= LONGEST.millis();
        is_over.then_some(Interval {
            from: self.from,
            to: now,
        })
    }
}

/// An outage among hosts, if some minute has one: the latest.
pub(super) fn find_outage(beats: &BTreeMap<HostId, Beat>, now: Timestamp) -> Option<Outage> {
    let mut silent: Vec<(Timestamp, HostId, Network)> = beats
        .iter()
        .filter(|(_, beat)| beat.is_silent)
        .map(|(host, beat)| (beat.heard, *host, beat.network))
        .collect();
    silent.sort_unstable();
    let mut first = 0;
    let mut found = None;
    for (last, (heard, ..)) in silent.iter().enumerate() {
        while silent
            .get(first)
            .is_some_and(|(earliest, ..)| heard.since(*earliest) >= MINUTE)
        {
            first += 1;
        }
        let minute = silent.get(first..=last).unwrap_or_default();
        let networks: BTreeSet<Network> = minute.iter().map(|(.., network)| *network).collect();
        let Some((from, ..)) = minute.first().filter(|_| networks.len() >= NETWORKS) else {
            continue;
        };
        // Those that were heard then: a host that was gone long before is no part of the whole.
        let there = beats.values().filter(|beat| beat.heard >= *from).count();
        if minute.len() * PART >= there && now.since(*from) < LONGEST.millis() {
            found = Some(Outage {
                from: *from,
                lost: minute.iter().map(|(_, host, _)| *host).collect(),
            });
        }
    }
    found
}
