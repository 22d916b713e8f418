//! Which offer is put to the proof next. Pure: the time and the seed of chance are arguments, and whether an offer
//! is idle is asked of the caller.
//!
//! The moments are drawn so that a host cannot know them: a new offer within `first_within`, one that was proved
//! again between once and twice `every` later, so that no device is put to the proof more than once in `every`
//! unless the operator asks. What is changed, faulty or too old comes up again as soon as that allows.

use protocol::ids::{Digest, HostId, OfferId};
use protocol::units::{Millis, Seconds, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most offers that are kept in mind.
const OFFERS_MAX: usize = 65_536;
/// How many offers one look considers: each may take a search for what is free of it.
const LOOKS_MAX: usize = 32;
/// Proofs that break off in a row, after their challenge was sent, until that counts as a failure of the host. Once
/// may be the network; a host that breaks off whenever it is challenged has something to hide.
pub const BREAKS_MAX: u8 = 2;
/// Tries that come to nothing in a row until it is waited for as long as after a proof.
const TRIES_MAX: u8 = 3;
const HOUR: Seconds = Seconds(3600);

/// The numbers of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The least time between two proofs of one device.
    pub every: Seconds,
    /// For how long a proof stands.
    pub stands: Seconds,
    /// A new offer is put to the proof within this.
    pub first_within: Seconds,
    /// Proofs that go on at once.
    pub at_once: u16,
    /// Proofs that begin in any hour.
    pub per_hour: u16,
}

/// What is known of an offer when it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// When a device of it was last put to the proof.
    pub last: Option<Timestamp>,
    /// Whether what is known holds: nothing changed, failed or grew too old.
    pub holds: bool,
}

/// How an offer stands that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look<T> {
    /// It is idle: what is to be done.
    Idle(T),
    /// Somebody has it, or it is not wholly fit.
    Busy,
    /// It is not listed any more.
    Gone,
    /// It cannot be put to the proof.
    Unprovable,
}

/// What became of a proof that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There is a verdict.
    Judged,
    /// It broke off after the challenge was sent.
    Broken,
    /// It came to nothing before: no lease, or no way to it. Nobody is blamed for it here.
    Nothing,
}

/// How often it went wrong in a row.
#[derive(Debug, Clone, Copy, Default)]
struct Vain {
    breaks: u8,
    tries: u8,
}

/// Who is next, and when.
#[derive(Debug)]
pub struct Schedule {
    rules: Rules,
    seed: [u8; 32],
    due: BTreeMap<OfferId, Timestamp>,
    queue: BTreeSet<(Timestamp, OfferId)>,
    asked: BTreeSet<OfferId>,
    under_way: BTreeMap<OfferId, HostId>,
    /// When those of the last hour began.
    begun: VecDeque<Timestamp>,
    vain: BTreeMap<OfferId, Vain>,
}

impl Schedule {
    /// An empty schedule. `seed` is secret and random: whoever knows it knows the moments.
    #[must_use]
    pub const fn new(rules: Rules, seed: [u8; 32]) -> Self {
        Self {
            rules,
            seed,
            due: BTreeMap::new(),
            queue: BTreeSet::new(),
            asked: BTreeSet::new(),
            under_way: BTreeMap::new(),
            begun: VecDeque::new(),
            vain: BTreeMap::new(),
        }
    }

    /// The operator's numbers.
    #[must_use]
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// An offer is listed, for the first time or again.
    pub fn listed(&mut self, now: Timestamp, offer: OfferId, known: Known) {
        let wanted = self.moment(now, offer, known);
        match self.due.get(&offer) {
            None if self.due.len() < OFFERS_MAX => self.set_due(offer, wanted),
            // Something changed since it was put off for a whole period; a moment that is near stays.
            // But not what came to nothing too often, which would come to nothing again.
            Some(due)
                if !known.holds
                    && !self.vain.contains_key(&offer)
                    && *due > wanted.after(self.rules.first_within.millis()) =>
            {
                self.set_due(offer, wanted);
            }
            Some(_) | None => {}
        }
    }

    /// The operator asks for a proof of an offer as soon as it is idle.
    pub fn ask(&mut self, now: Timestamp, offer: OfferId) {
        self.asked.insert(offer);
        self.set_due(offer, now);
    }

    /// When the next proof of an offer is to be, as far as it is known.
    #[must_use]
    pub fn due(&self, offer: OfferId) -> Option<Timestamp> {
        self.due.get(&offer).copied()
    }

    /// Whether a proof of the offer goes on.
    #[must_use]
    pub fn is_under_way(&self, offer: OfferId) -> bool {
        self.under_way.contains_key(&offer)
    }

    /// The next proof to begin at `now`, if one may: `look` says how an offer of the queue stands. It is under way
    /// from here on, until [`Self::over`] is said.
    pub fn next<T>(
        &mut self,
        now: Timestamp,
        mut look: impl FnMut(OfferId) -> Look<(HostId, T)>,
    ) -> Option<T> {
        let hour_ago = now.before(HOUR.millis());
        while self.begun.front().is_some_and(|at| *at <= hour_ago) {
            self.begun.pop_front();
        }
        if self.under_way.len() >= usize::from(self.rules.at_once) {
            return None;
        }
        let is_full = self.begun.len() >= usize::from(self.rules.per_hour);
        let due: Vec<OfferId> = self
            .queue
            .range(..=(now, OfferId::from_bytes([u8::MAX; 16])))
            .map(|(_, offer)| *offer)
            .filter(|offer| !is_full || self.asked.contains(offer))
            .take(LOOKS_MAX)
            .collect();
        for offer in due {
            match look(offer) {
                Look::Gone => self.forget(offer),
                Look::Unprovable => {
                    self.asked.remove(&offer);
                    self.set_due(offer, now.after(self.rules.every.millis()));
                }
                Look::Idle((host, _)) if self.under_way.values().any(|of| *of == host) => {
                    self.look_again(now, offer);
                }
                Look::Busy => self.look_again(now, offer),
                Look::Idle((host, task)) => {
                    self.begun.push_back(now);
                    self.under_way.insert(offer, host);
                    self.asked.remove(&offer);
                    // If nothing is heard of it any more, it comes up again.
                    self.set_due(offer, self.after_proof(now, offer));
                    return Some(task);
                }
            }
        }
        None
    }

    /// A proof that was begun is over. Gives back whether a break counts as the host's failure.
    pub fn over(&mut self, now: Timestamp, offer: OfferId, outcome: Outcome) -> bool {
        if self.under_way.remove(&offer).is_none() {
            return false;
        }
        let mut vain = self.vain.remove(&offer).unwrap_or_default();
        match outcome {
            Outcome::Judged => {
                self.set_due(offer, self.after_proof(now, offer));
                return false;
            }
            Outcome::Broken => vain.breaks = vain.breaks.saturating_add(1),
            Outcome::Nothing => {}
        }
        vain.tries = vain.tries.saturating_add(1);
        if vain.breaks >= BREAKS_MAX {
            self.set_due(offer, self.after_proof(now, offer));
            return true;
        }
        if vain.tries >= TRIES_MAX {
            vain.tries = 0;
            self.set_due(offer, self.after_proof(now, offer));
        } else {
            self.look_again(now, offer);
        }
        self.vain.insert(offer, vain);
        false
    }

    /// When an offer is to be put to the proof that was just listed.
    fn moment(&self, now: Timestamp, offer: OfferId, known: Known) -> Timestamp {
        let first = self.drawn(offer, known.last.unwrap_or(now), self.rules.first_within);
        match known.last {
            None => now.after(first),
            Some(last) if known.holds => self.after_proof(last, offer),
            Some(last) => now.max(last.after(self.rules.every.millis())).after(first),
        }
    }

    fn after_proof(&self, last: Timestamp, offer: OfferId) -> Timestamp {
        let more = self.drawn(offer, last, self.rules.every);
        last.after(self.rules.every.millis()).after(more)
    }

    /// Busy now: it is looked at again between a sixth and a third of `first_within` later.
    fn look_again(&mut self, now: Timestamp, offer: OfferId) {
        let part = Millis(self.rules.first_within.millis().0 / 6);
        let more = self.drawn(offer, now, Seconds(part.0.div_ceil(1000)));
        self.set_due(offer, now.after(part).after(more));
    }

    /// A time below `within`, drawn for this offer and moment.
    fn drawn(&self, offer: OfferId, at: Timestamp, within: Seconds) -> Millis {
        let mut drawn = self.seed.to_vec();
        drawn.extend_from_slice(offer.as_bytes());
        drawn.extend_from_slice(&at.0.to_le_bytes());
        let digest = Digest::of(&drawn);
        let word = digest.as_bytes().first_chunk().copied().unwrap_or([0; 8]);
        let part = (u128::from(u64::from_le_bytes(word)) * u128::from(within.millis().0)) >> 64;
        Millis(u64::try_from(part).unwrap_or(0))
    }

    fn set_due(&mut self, offer: OfferId, due: Timestamp) {
        if let Some(before) = self.due.insert(offer, due) {
            self.queue.remove(&(before, offer));
        }
        self.queue.insert((due, offer));
    }

    fn forget(&mut self, offer: OfferId) {
        if let Some(before) = self.due.remove(&offer) {
            self.queue.remove(&(before, offer));
        }
        self.asked.remove(&offer);
        self.vain.remove(&offer);
    }
}

#[cfg(test)]
mod tests;
