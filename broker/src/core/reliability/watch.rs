//! Watching hosts between events: who is heard, who fell silent, which scores are to be computed anew. Gone
//! after a restart, and nothing that counts is lost by that but the hours since a host's last line.
//!
//! Must not change hard state: what is worth keeping is given back as facts.

use super::outages::{Outage, find_outage};
use super::{Heard, Reliability, SILENT_AFTER};
use crate::core::event::Fact;
use protocol::bounded::Text;
use protocol::ids::HostId;
use protocol::reliability::{Evidence, Interval, Score};
use protocol::units::{Seconds, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// How often a host's hours are journalled at most.
const TELL_EVERY: Seconds = Seconds(3600);
/// How often it is looked for what is to be journalled, and by whom an outage ended.
const LOOK_EVERY: Seconds = Seconds(20);
/// A silent host is remembered for so long: longer than any outage.
const REMEMBER: Seconds = Seconds(2 * 3600);
/// How old a score gets before it is computed again though nothing happened.
const SCORE_AGE_MAX: Seconds = Seconds(3600);
/// How many scores are computed in one look: each takes up to some tenths of a millisecond.
const SCORES_A_LOOK: usize = 32;
/// Of a host with more outcomes one more good one changes little, and is seen in an hour.
const FEW: usize = 16;
/// Most stretches of one host between two lines.
const STRETCHES_MAX: usize = 16;

/// A host's place in the network: the first half of its IPv4 address, or of its IPv6 one. Until brokers know
/// which networks belong to one operator it stands for the operator. Hosts that give no address are in one.
pub(super) type Network = [u8; 8];

/// A host that is heard, or was lately.
#[derive(Debug)]
pub(super) struct Beat {
    pub(super) network: Network,
    /// When it was heard last.
    pub(super) heard: Timestamp,
    pub(super) is_silent: bool,
    /// Since when it has been heard without a gap, as far as that is not journalled.
    since: Timestamp,
    /// Earlier stretches that are not journalled.
    stretches: Vec<Interval>,
    told: Timestamp,
}

/// A score that was computed.
#[derive(Debug, Clone, Copy)]
struct Known {
    score: Score,
    at: Timestamp,
    /// What was against the host then: incidents and failed starts.
    against: (usize, u32),
}

/// All that is watched.
#[derive(Debug, Default)]
pub(in crate::core) struct HostWatch {
    beats: BTreeMap<HostId, Beat>,
    looked: Timestamp,
    /// How long the broker was away before it started, until that is journalled.
    away: Option<Interval>,
    outage: Option<Outage>,
    scores: BTreeMap<HostId, Known>,
    /// When each score is computed next.
    due: BTreeSet<(Timestamp, HostId)>,
    due_at: BTreeMap<HostId, Timestamp>,
}

impl HostWatch {
    /// A watch that begins at `now`; the last event happened at `last_at`.
    pub(in crate::core) fn open(known: &Reliability, last_at: Timestamp, now: Timestamp) -> Self {
        let mut watch = Self::default();
        let away = Interval {
            from: last_at,
            to: now,
        };
        let is_known = known.hosts().next().is_some();
        watch.away = Some(away).filter(|away| is_known && away.from < away.to);
        for host in known.hosts() {
            watch.compute(known, host, now);
        }
        watch
    }

    /// Notes that a host is heard.
    pub(in crate::core) fn heard(&mut self, now: Timestamp, host: HostId, addresses: &[Text<256>]) {
        let begin = || Beat {
            network: network_of(addresses),
            heard: now,
            is_silent: false,
            since: now,
            stretches: Vec::new(),
            told: now,
        };
        let beat = self.beats.entry(host).or_insert_with(begin);
        beat.network = network_of(addresses);
        if now.since(beat.heard) > SILENT_AFTER.millis() {
            beat.end_stretch();
            beat.since = now;
        }
        beat.heard = beat.heard.max(now);
        beat.is_silent = false;
    }

    /// Says that a host's score is to be computed anew.
    pub(in crate::core) fn touch(&mut self, host: HostId) {
        self.set_due(host, Timestamp(0));
    }

    /// Says that every score is to be computed anew.
    pub(in crate::core) fn touch_all(&mut self) {
        let hosts: Vec<HostId> = self.due_at.keys().copied().collect();
        for host in hosts {
            if let Some(known) = self.scores.get_mut(&host) {
                known.at = Timestamp(0);
            }
            self.touch(host);
        }
    }

    /// What is worth journalling of what was heard and not heard up to `now`.
    pub(in crate::core) fn facts(&mut self, now: Timestamp) -> Vec<Fact> {
        let mut facts = Vec::new();
        facts.extend(self.away.take().map(Fact::Away));
        if now.since(self.looked) < LOOK_EVERY.millis() {
            return facts;
        }
        self.looked = now;
        let mut fell_silent = false;
        for beat in self.beats.values_mut() {
            if !beat.is_silent && now.since(beat.heard) > SILENT_AFTER.millis() {
                beat.is_silent = true;
                beat.end_stretch();
                fell_silent = true;
            }
        }
        facts.extend(self.look_for_outage(now, fell_silent).map(Fact::Away));
        facts.extend(self.tell(now).into_iter().map(Fact::Heard));
        self.beats.retain(|_, beat| {
            now.since(beat.heard) <= REMEMBER.millis() || !beat.stretches.is_empty()
        });
        facts
    }

    fn look_for_outage(&mut self, now: Timestamp, fell_silent: bool) -> Option<Interval> {
        if let Some(outage) = &mut self.outage {
            let beats = &self.beats;
            let is_back = |host: &HostId| beats.get(host).is_some_and(|beat| !beat.is_silent);
            let ended = outage.end(now, is_back);
            if ended.is_some() {
                self.outage = None;
            }
            return ended;
        }
        if !fell_silent {
            return None;
        }
        self.outage = find_outage(&self.beats, now);
        self.outage.as_ref().map(|outage| Interval {
            from: outage.from,
            to: now,
        })
    }

    /// The hours of hosts whose last line is an hour old.
    fn tell(&mut self, now: Timestamp) -> Vec<Heard> {
        let mut stretches = Vec::new();
        for (host, beat) in &mut self.beats {
            if now.since(beat.told) < TELL_EVERY.millis() {
                continue;
            }
            beat.told = now;
            if !beat.is_silent {
                beat.end_stretch();
            }
            let told = std::mem::take(&mut beat.stretches);
            stretches.extend(told.into_iter().map(|stretch| (*host, stretch)));
        }
        let mut lines = Vec::new();
        let mut stretches = stretches.into_iter().peekable();
        while stretches.peek().is_some() {
            lines.push(Heard::first(stretches.by_ref().take(Heard::MAXIMUM)));
        }
        lines
    }

    /// The score of a host.
    pub(in crate::core) fn score(&self, host: HostId) -> Score {
        let known = self.scores.get(&host).map(|known| known.score);
        known.unwrap_or_else(Score::unknown)
    }

    /// Computes some of the scores that are due. Gives back the hosts whose shown score is another one now.
    pub(in crate::core) fn compute_due(
        &mut self,
        known: &Reliability,
        now: Timestamp,
    ) -> Vec<HostId> {
        let mut changed = Vec::new();
        for _ in 0..SCORES_A_LOOK {
            let Some((_, host)) = self.due.first().copied().filter(|(due, _)| *due <= now) else {
                break;
            };
            let before = self.score(host).ppm;
            if !self.put_off(known, host, now) {
                self.compute(known, host, now);
            }
            if self.score(host).ppm != before {
                changed.push(host);
            }
        }
        changed
    }

    /// Whether a score that was touched can wait: nothing new speaks against the host.
    fn put_off(&mut self, known: &Reliability, host: HostId, now: Timestamp) -> bool {
        let (Some(evidence), Some(last)) = (known.evidence(host), self.scores.get(&host)) else {
            return false;
        };
        let due = last.at.after(SCORE_AGE_MAX.millis());
        let can_wait =
            due > now && evidence.outcomes.len() > FEW && against(evidence) == last.against;
        if can_wait {
            self.set_due(host, due);
        }
        can_wait
    }

    fn compute(&mut self, known: &Reliability, host: HostId, now: Timestamp) {
        if let Some(evidence) = known.evidence(host) {
            let computed = Known {
                score: Score::of(evidence, now),
                at: now,
                against: against(evidence),
            };
            self.scores.insert(host, computed);
            self.set_due(host, now.after(SCORE_AGE_MAX.millis()));
        } else {
            self.scores.remove(&host);
            if let Some(due) = self.due_at.remove(&host) {
                self.due.remove(&(due, host));
            }
        }
    }

    fn set_due(&mut self, host: HostId, due: Timestamp) {
        if let Some(before) = self.due_at.insert(host, due) {
            self.due.remove(&(before, host));
        }
        self.due.insert((due, host));
    }
}

impl Beat {
    /// Keeps the stretch up to where the host was heard; the next one goes on from there.
    fn end_stretch(&mut self) {
        if self.since < self.heard && self.stretches.len() < STRETCHES_MAX {
            self.stretches.push(Interval {
                from: self.since,
                to: self.heard,
            });
        }
        self.since = self.heard;
    }

    /// A host of an outage, for tests of finding them.
    #[cfg(test)]
    pub(super) fn silent(network: Network, heard: Timestamp, is_silent: bool) -> Self {
        Self {
            network,
            heard,
            is_silent,
            since: heard,
            stretches: Vec::new(),
            told: heard,
        }
    }
}

fn against(evidence: &Evidence) -> (usize, u32) {
    let in_leases = evidence.outcomes.values().map(|one| one.incidents.len());
    let incidents = evidence.incidents.len() + in_leases.sum::<usize>();
    (incidents, evidence.starts().1)
}

/// The network of the first address that names one.
fn network_of(addresses: &[Text<256>]) -> Network {
    let mut network = [0; 8];
    let parts = addresses.iter().find_map(|address| {
        let mut parts = address
            .split('/')
            .skip_while(|part| !matches!(*part, "ip4" | "ip6"));
        parts.next()?;
        parts.next()?.parse::<std::net::IpAddr>().ok()
    });
    let half: &[u8] = match &parts {
        Some(std::net::IpAddr::V4(address)) => &address.octets()[..2],
        Some(std::net::IpAddr::V6(address)) => &address.octets()[..4],
        None => &[],
    };
    for (place, byte) in network.iter_mut().zip(half) {
        *place = *byte;
    }
    network
}
