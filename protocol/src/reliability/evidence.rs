//! All that is known of one host: what a broker adds to, and what anybody can put together again from signed
//! statements.

use super::fault::Incident;
use super::model::{decay, hours, millionths, millis};
use super::score::{Counted, counted_incidents};
use super::statements::{Carried, Interval, Outcome, PAYERS_MAX, Payer, Standing, Start};
use super::timeline::{Hours, Timeline};
use super::{START_WITHIN, statements::INTERVALS_MAX};
use crate::bounded::List;
use crate::codec;
use crate::ids::{Digest, HostId, LeaseId};
use crate::lease::Party;
use crate::units::{Millis, Timestamp};
use std::collections::BTreeMap;

/// Most outcomes that are kept of one host; half of them are carried over when there are more.
const OUTCOMES_MAX: usize = 512;
const OUTCOMES_KEPT: usize = OUTCOMES_MAX / 2;

/// What is known of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Which host.
    pub host: HostId,
    /// When it was heard, in order and apart.
    pub heard: Vec<Interval>,
    /// When the broker or its network was away, in order.
    pub excluded: Vec<Interval>,
    /// What went wrong outside leases.
    pub incidents: Vec<Incident>,
    /// What came of older evidence.
    pub carried: Carried,
    /// What came of its leases, by lease and part.
    pub outcomes: BTreeMap<(LeaseId, u16), Outcome>,
}

/// Why statements are not all the evidence on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// A statement is of another host.
    #[error("an outcome is of the host {found}; the others are of {wanted}")]
    OtherHost {
        /// Whose it is.
        found: HostId,
        /// Whose the standing is.
        wanted: HostId,
    },
    /// Some are missing, or too many.
    #[error("there are {found} outcomes; the broker signed that there are {wanted}")]
    Number {
        /// How many are there.
        found: usize,
        /// How many should be.
        wanted: u32,
    },
    /// One is not what the broker summed up.
    #[error("the outcomes are not the ones that the broker signed the sum of")]
    Digest,
}

impl Evidence {
    /// Nothing about `host`.
    #[must_use]
    pub fn new(host: HostId) -> Self {
        Self {
            host,
            heard: Vec::new(),
            excluded: Vec::new(),
            incidents: Vec::new(),
            carried: Carried::default(),
            outcomes: BTreeMap::new(),
        }
    }

    /// The evidence that a broker signed; its signatures are the caller's to check. Of two outcomes of one
    /// lease and part the later one in `outcomes` is taken.
    ///
    /// # Errors
    /// When outcomes are missing, too many, changed or of another host.
    pub fn of_statements(
        standing: Standing,
        outcomes: impl IntoIterator<Item = Outcome>,
    ) -> Result<Self, CheckError> {
        let Standing {
            host,
            heard,
            excluded,
            incidents,
            carried,
            outcomes: wanted,
            outcomes_digest,
        } = standing;
        let mut evidence = Self {
            host,
            heard: heard.into_vec(),
            excluded: excluded.into_vec(),
            incidents: incidents.into_vec(),
            carried,
            outcomes: BTreeMap::new(),
        };
        for outcome in outcomes {
            if outcome.host != host {
                return Err(CheckError::OtherHost {
                    found: outcome.host,
                    wanted: host,
                });
            }
            evidence
                .outcomes
                .insert((outcome.lease, outcome.part), outcome);
        }
        let found = evidence.outcomes.len();
        if usize::try_from(wanted) != Ok(found) {
            return Err(CheckError::Number { found, wanted });
        }
        if evidence.outcomes_digest() != outcomes_digest {
            return Err(CheckError::Digest);
        }
        Ok(evidence)
    }

    /// What a broker signs about the host beside the outcomes.
    #[must_use]
    pub fn standing(&self) -> Standing {
        Standing {
            host: self.host,
            heard: List::first(self.heard.iter().copied()),
            excluded: List::first(self.excluded.iter().copied()),
            incidents: List::first(self.incidents.iter().copied()),
            carried: self.carried.clone(),
            outcomes: u32::try_from(self.outcomes.len()).unwrap_or(u32::MAX),
            outcomes_digest: self.outcomes_digest(),
        }
    }

    fn outcomes_digest(&self) -> Digest {
        let mut digests = Vec::with_capacity(self.outcomes.len() * 32);
        for outcome in self.outcomes.values() {
            // What is bounded can be encoded.
            let bytes = codec::encode(outcome).unwrap_or_default();
            digests.extend_from_slice(Digest::of(&bytes).as_bytes());
        }
        Digest::of(&digests)
    }

    /// What the hours up to `to` are worth at `now`, by whose they were.
    pub(super) fn hours(&self, to: Timestamp, now: Timestamp) -> Hours {
        let mut timeline = Timeline::between(self.carried.until, to);
        for outcome in self.outcomes.values() {
            timeline.leased(outcome.payer, &outcome.runs);
        }
        timeline.heard(&self.heard);
        timeline.excluded(&self.excluded);
        let mut all = timeline.hours(now);
        let left = decay(self.carried.until, now);
        for (payer, carried) in &self.carried.leased {
            *all.leased.entry(*payer).or_insert(0.0) += hours(*carried) * left;
        }
        all.idle += hours(self.carried.idle) * left;
        all
    }

    /// Every incident with what it counts, by time.
    #[must_use]
    pub fn counted(&self) -> Vec<Counted> {
        counted_incidents(self)
    }

    /// How many leases ran in time, and how many the host did not run in time.
    #[must_use]
    pub fn starts(&self) -> (u32, u32) {
        let mut starts = (self.carried.starts, self.carried.starts_failed);
        for outcome in self.outcomes.values() {
            count_start(&mut starts, outcome);
        }
        starts
    }

    /// Whether something is so long that old evidence has to be carried over before more is added. Of outcomes
    /// it is asked after each new one, and answered at every 256th: leases that are not over cannot be carried.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let lists = [self.heard.len(), self.excluded.len(), self.incidents.len()];
        let outcomes = self.outcomes.len();
        let has_many = outcomes > OUTCOMES_MAX && outcomes % OUTCOMES_KEPT == 1;
        has_many || lists.iter().any(|length| *length >= INTERVALS_MAX)
    }

    /// Carries the older half of what is too much over into one sum. What is left of it decays as before, and
    /// the score stays the same but for rounding to a millisecond, a millionth of a fault, and the smallest of
    /// more than [`PAYERS_MAX`] renters.
    pub fn carry_over(&mut self) {
        let mut until = self.carried.until;
        for interval in [&self.heard, &self.excluded] {
            if interval.len() >= INTERVALS_MAX {
                let middle = interval.get(INTERVALS_MAX / 2);
                until = until.max(middle.map_or(until, |interval| interval.from));
            }
        }
        if self.incidents.len() >= INTERVALS_MAX {
            let middle = self.incidents.get(INTERVALS_MAX / 2);
            until = until.max(middle.map_or(until, |incident| incident.at));
        }
        if self.outcomes.len() > OUTCOMES_MAX {
            let mut ends: Vec<Timestamp> = self.outcomes.values().filter_map(end_of).collect();
            ends.sort_unstable();
            let gone = self.outcomes.len() - OUTCOMES_KEPT;
            let last = ends.get(gone.saturating_sub(1)).or(ends.last());
            until = until.max(last.copied().unwrap_or(until));
        }
        self.carry_to(until);
    }

    /// Carries all evidence from before `until` over.
    pub fn carry_to(&mut self, until: Timestamp) {
        let Hours { leased, idle } = self.hours(until, until);
        let mut leased: Vec<(Payer, Millis)> = leased
            .into_iter()
            .map(|(payer, hours)| (payer, millis(hours)))
            .filter(|(_, time)| *time > Millis(0))
            .collect();
        if leased.len() > PAYERS_MAX {
            leased.sort_unstable_by_key(|(payer, time)| (std::cmp::Reverse(*time), *payer));
            leased.truncate(PAYERS_MAX);
            leased.sort_unstable();
        }
        let mut faults = carried_faults(&self.carried, until);
        for counted in self.counted() {
            if counted.incident.at < until {
                faults += counted.weight.faults() * decay(counted.incident.at, until);
            }
        }
        let mut starts = (self.carried.starts, self.carried.starts_failed);
        self.outcomes.retain(|_, outcome| {
            let is_over = end_of(outcome).is_some_and(|end| end <= until);
            if is_over {
                count_start(&mut starts, outcome);
            } else {
                outcome.runs = List::first(later(&outcome.runs, until));
                let incidents = outcome.incidents.iter().copied();
                outcome.incidents = List::first(incidents.filter(|incident| incident.at >= until));
            }
            !is_over
        });
        self.heard = later(&self.heard, until).collect();
        self.excluded = later(&self.excluded, until).collect();
        self.incidents.retain(|incident| incident.at >= until);
        self.carried = Carried {
            until,
            leased: List::first(leased),
            idle: millis(idle),
            faults_ppm: millionths(faults),
            starts: starts.0,
            starts_failed: starts.1,
        };
    }
}

/// What is left of carried faults.
pub(super) fn carried_faults(carried: &Carried, now: Timestamp) -> f64 {
    // Millionths of a fault as microseconds: a number that a float holds exactly.
    let faults = std::time::Duration::from_micros(carried.faults_ppm).as_secs_f64();
    faults * decay(carried.until, now)
}

/// When a lease was over, if it is.
fn end_of(outcome: &Outcome) -> Option<Timestamp> {
    let last_run = outcome.runs.last().map(|run| run.to);
    let last_fault = outcome
        .incidents
        .last()
        .map(|incident| incident.at.after(Millis(1)));
    let ended = outcome.ended.map(|(at, _)| at)?;
    Some(
        ended
            .max(last_run.unwrap_or(ended))
            .max(last_fault.unwrap_or(ended)),
    )
}

fn count_start(starts: &mut (u32, u32), outcome: &Outcome) {
    if outcome.part > 0 {
        return;
    }
    match outcome.start {
        Start::Ran(at) if at.since(outcome.asked_at) <= START_WITHIN.millis() => {
            starts.0 = starts.0.saturating_add(1);
        }
        Start::Ran(_) | Start::Failed(Party::Host) => starts.1 = starts.1.saturating_add(1),
        Start::Pending | Start::Failed(Party::Renter | Party::Broker | Party::Market) => {}
    }
}

/// The parts of intervals after a moment.
fn later(intervals: &[Interval], until: Timestamp) -> impl Iterator<Item = Interval> {
    let parts = intervals.iter().map(move |interval| Interval {
        from: interval.from.max(until),
        to: interval.to,
    });
    parts.filter(|interval| interval.from < interval.to)
}
