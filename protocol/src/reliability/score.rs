//! The score that evidence comes to.

use super::evidence::{Evidence, carried_faults};
use super::fault::{Fault, Incident, Weight};
use super::model::{decay, hazard, millionths, start_probability, survival};
use super::statements::Payer;
use super::{CRASH_RENTERS, CRASH_WINDOW, IDLE_WEIGHT, INCIDENT, cap};
use crate::units::{MicroUsd, Timestamp};
use std::collections::BTreeMap;

/// What is thought of a host at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Faults, decayed.
    pub faults: f64,
    /// Hours that count, decayed: of leases as far as the cap on each renter allows, and a quarter of the
    /// idle ones.
    pub exposure_hours: f64,
    /// Hours of leases, decayed, before the cap.
    pub leased_hours: f64,
    /// Hours in which it was heard and not leased, decayed.
    pub idle_hours: f64,
    /// Most hours of one renter that count.
    pub renter_hours_max: f64,
    /// How many renters had it.
    pub renters: usize,
    /// Leases that ran in time.
    pub starts: u32,
    /// Leases that the host did not run in time.
    pub starts_failed: u32,
    /// How likely a lease is to run in time.
    pub start_probability: f64,
    /// How likely no fault comes in an hour.
    pub survives_1h: f64,
    /// In a day.
    pub survives_24h: f64,
    /// In a week.
    pub survives_168h: f64,
    /// Faults to expect in an hour.
    pub hazard_per_hour: f64,
    /// The shown score, that a lease runs in time and then for a day, in millionths.
    pub ppm: u32,
}

impl Score {
    /// What `evidence` comes to at `now`.
    #[must_use]
    pub fn of(evidence: &Evidence, now: Timestamp) -> Self {
        let hours = evidence.hours(now, now);
        let leased: Vec<f64> = hours.leased.values().copied().collect();
        let mut faults = carried_faults(&evidence.carried, now);
        for counted in evidence.counted() {
            faults += counted.weight.faults() * decay(counted.incident.at, now);
        }
        let exposure_hours = cap::counted(&leased) + IDLE_WEIGHT * hours.idle;
        Self {
            leased_hours: leased.iter().sum(),
            idle_hours: hours.idle,
            renter_hours_max: cap::cap_of(&leased),
            renters: leased.len(),
            ..Self::from_counts(faults, exposure_hours, evidence.starts())
        }
    }

    /// What that much comes to: decayed faults, decayed hours that count, starts in time and others.
    #[must_use]
    pub fn from_counts(
        faults: f64,
        exposure_hours: f64,
        (starts, starts_failed): (u32, u32),
    ) -> Self {
        let survives = |hours| survival(faults, exposure_hours, hours);
        let start_probability = start_probability(starts, starts_failed);
        let survives_24h = survives(24.0);
        let ppm = millionths(start_probability * survives_24h);
        Self {
            faults,
            exposure_hours,
            leased_hours: exposure_hours,
            idle_hours: 0.0,
            renter_hours_max: 0.0,
            renters: 0,
            starts,
            starts_failed,
            start_probability,
            survives_1h: survives(1.0),
            survives_24h,
            survives_168h: survives(168.0),
            hazard_per_hour: hazard(faults, exposure_hours),
            ppm: u32::try_from(ppm).unwrap_or(u32::MAX),
        }
    }

    /// How likely a lease is to run in time and then for `hours`.
    #[must_use]
    pub fn completes(&self, hours: f64) -> f64 {
        self.start_probability * survival(self.faults, self.exposure_hours, hours)
    }

    /// Faults to expect in 10⁹ hours, rounded down: the hazard as an integer.
    #[must_use]
    pub fn hazard_in_billion_hours(&self) -> u32 {
        u32::try_from(millionths(self.hazard_per_hour * 1000.0)).unwrap_or(u32::MAX)
    }

    /// The score of a host of which nothing is known: eight tenths of six tenths.
    #[must_use]
    pub fn unknown() -> Self {
        Self::from_counts(0.0, 0.0, (0, 0))
    }
}

/// One incident, perhaps seen by several leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// When it began, and as what it counts: the heaviest that was said of it.
    pub incident: Incident,
    /// What it counts.
    pub weight: Weight,
    /// How many leases or checks saw it.
    pub seen: u32,
    /// Whether it fell into time that counts for nobody.
    pub is_excluded: bool,
}

/// The incidents of some evidence, each once.
pub(super) fn counted_incidents(evidence: &Evidence) -> Vec<Counted> {
    let mut crashes: Vec<(Incident, Payer, bool)> = Vec::new();
    let mut others: Vec<Incident> = evidence.incidents.clone();
    for outcome in evidence.outcomes.values() {
        for incident in &outcome.incidents {
            if incident.fault == Fault::AmbiguousCrash {
                let is_paid = outcome.paid > MicroUsd::ZERO;
                crashes.push((*incident, outcome.payer, is_paid));
            } else {
                others.push(*incident);
            }
        }
    }
    others.sort_unstable();
    let is_excluded = |at| evidence.excluded.iter().any(|away| away.holds(at));
    let mut counted = merged(&others, is_excluded);
    counted.extend(weighed_crashes(crashes, is_excluded));
    counted.sort_unstable_by_key(|counted| counted.incident);
    counted
}

/// Faults of one family, less than 15 minutes after the first of them, are one.
fn merged(sorted: &[Incident], is_excluded: impl Fn(Timestamp) -> bool) -> Vec<Counted> {
    let mut all: Vec<Counted> = Vec::new();
    // Which one of them a family's last incident is.
    let mut last: BTreeMap<Fault, (Timestamp, usize)> = BTreeMap::new();
    for incident in sorted {
        let family = incident.fault.family();
        let is_excluded = is_excluded(incident.at);
        let weight = if is_excluded {
            Weight(0)
        } else {
            incident.fault.weight()
        };
        let known = last
            .get(&family)
            .filter(|(first, _)| incident.at.since(*first) < INCIDENT.millis())
            .and_then(|(_, index)| all.get_mut(*index))
            .filter(|known| known.is_excluded == is_excluded);
        if let Some(known) = known {
            known.seen = known.seen.saturating_add(1);
            if weight > known.weight {
                known.weight = weight;
                known.incident.fault = incident.fault;
            }
            continue;
        }
        last.insert(family, (incident.at, all.len()));
        all.push(Counted {
            incident: *incident,
            weight,
            seen: 1,
            is_excluded,
        });
    }
    all
}

/// A crash counts when with it three renters who pay saw one within a week; those crashes are then spent.
fn weighed_crashes(
    mut crashes: Vec<(Incident, Payer, bool)>,
    is_excluded: impl Fn(Timestamp) -> bool,
) -> Vec<Counted> {
    crashes.sort_unstable();
    let mut recent: BTreeMap<Payer, Timestamp> = BTreeMap::new();
    let mut counted = Vec::new();
    for (incident, payer, is_paid) in crashes {
        let is_excluded = is_excluded(incident.at);
        recent.retain(|_, at| incident.at.since(*at) <= CRASH_WINDOW.millis());
        if is_paid && !is_excluded {
            recent.insert(payer, incident.at);
        }
        let mut weight = incident.fault.weight();
        if recent.len() >= CRASH_RENTERS {
            weight = incident.fault.weight_if_many();
            recent.clear();
        }
        counted.push(Counted {
            incident,
            weight,
            seen: 1,
            is_excluded,
        });
    }
    counted
}
