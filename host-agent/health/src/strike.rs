//! An error of a GPU, from wherever it was heard: heard once, attributed, and judged by its row of the table.

use crate::machine::{Domain, Tenancy};
use crate::turn::{Cause, Turn};
use crate::unit::{DAY, Past, Presence, Until, is_within};
use crate::xid::{OnGpu, OnLease, Reach, Repeat, Row, Special, row};
use protocol::ids::LeaseId;
use protocol::lease::FaultClass;
use protocol::offer::ResourceName;
use protocol::units::Millis;
use std::collections::BTreeSet;

/// The same error heard twice within this is one: from the library and from the kernel's log, or one of a burst.
const ONE: Millis = Millis(5_000);
/// What another source does not attribute to a slice waits this long for the one that does.
const TWIN: Millis = Millis(2_000);
/// What follows an error that says nothing by itself follows within this, and so does the driver's verdict. An
/// offer is withdrawn at once, and leases end within the five seconds that are promised.
const FOLLOWS: Millis = Millis(3_000);
/// Channels are cleared away this long after our own kill.
const AFTER_KILL: Millis = Millis(30_000);
/// And this long after an error elsewhere.
const AFTER_ERROR: Millis = Millis(5_000);
const HOUR: Millis = Millis(3_600_000);
/// Renters whose errors are counted.
const RENTERS_MAX: usize = 1024;

/// An error that was heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Strike {
    pub(crate) gpu: ResourceName,
    pub(crate) xid: u32,
    pub(crate) instance: Option<u32>,
    pub(crate) source: Source,
    /// Of an error of an NVLink unit: whether it is fatal.
    pub(crate) fatal: Option<bool>,
}

/// Where from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The library's event of an Xid, which says the slice where it can be said.
    Xid,
    /// Another event of the library's, or the kernel's log.
    Other,
}

/// An error that is judged later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) strike: Strike,
    pub(crate) awaits: Awaits,
    pub(crate) due: Millis,
}

/// What it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// The same from the source that says the slice.
    Twin,
    /// What follows it.
    Follower,
    /// A reading that says what the driver wants done.
    Verdict,
}

impl Turn {
    pub(crate) fn strike(&mut self, strike: Strike) {
        if self.is_known(&strike) {
            return;
        }
        let is_same = |old: &Waiting| old.strike.gpu == strike.gpu && old.strike.xid == strike.xid;
        self.health
            .waiting
            .retain(|old| !(old.awaits == Awaits::Twin && is_same(old)));
        if strike.source == Source::Other && self.is_ambiguous(&strike) {
            return self.wait_for(Awaits::Twin, strike, TWIN);
        }
        self.judge(strike);
    }

    /// Whether it was heard just now. What is attributed to no slice is the same as what was to one.
    fn is_known(&self, strike: &Strike) -> bool {
        let Some(unit) = self.health.units.get(&strike.gpu) else {
            return false;
        };
        let mut past = unit.past_of(strike.xid, ONE, self.now);
        // That an error of a link is fatal is news.
        strike.fatal != Some(true)
            && past.any(|past| {
                past.instance == strike.instance
                    || (strike.instance.is_none() && strike.source == Source::Other)
            })
    }

    /// Whether it could be of one slice or of another.
    fn is_ambiguous(&self, strike: &Strike) -> bool {
        strike.instance.is_none()
            && self
                .health
                .tenants
                .struck(&strike.gpu, None)
                .any(|tenancy| {
                    tenancy
                        .on(&strike.gpu)
                        .is_some_and(|place| !place.is_whole())
                })
    }

    fn wait_for(&mut self, awaits: Awaits, strike: Strike, span: Millis) {
        self.health.waiting.push(Waiting {
            strike,
            awaits,
            due: self.now.plus(span),
        });
    }

    /// Judges what waited long enough.
    pub(crate) fn settle_waiting(&mut self) {
        let (now, waiting) = (self.now, std::mem::take(&mut self.health.waiting));
        let (due, still): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|old| old.due <= now);
        self.health.waiting = still;
        for Waiting { strike, awaits, .. } in due {
            match (awaits, row(strike.xid)) {
                (Awaits::Twin, _) => self.judge(strike),
                (Awaits::Follower, Some(row)) => self.apply(&strike, row, true),
                (Awaits::Follower | Awaits::Verdict, _) => self.without_verdict(&strike),
            }
        }
    }

    fn judge(&mut self, strike: Strike) {
        let Some(row) = row(strike.xid) else {
            self.remember(&strike);
            return self.wait_for(Awaits::Verdict, strike, FOLLOWS);
        };
        if matches!(strike.xid, 63 | 64 | 94 | 95) {
            let is_followed =
                |old: &Waiting| old.awaits == Awaits::Follower && old.strike.gpu == strike.gpu;
            self.health.waiting.retain(|old| !is_followed(old));
        }
        match row.special {
            Special::Collateral => self.collateral(&strike, row),
            Special::Followed => {
                self.remember(&strike);
                self.wait_for(Awaits::Follower, strike, FOLLOWS);
            }
            Special::Verdict => {
                self.remember(&strike);
                self.wait_for(Awaits::Verdict, strike, FOLLOWS);
            }
            Special::Severity if strike.fatal != Some(true) => {
                self.remember(&strike);
                self.note(Some(&strike.gpu), said(row, &strike));
            }
            Special::AlarmIfShared(text) => {
                let linked = self
                    .health
                    .machine
                    .members(&Domain::Linked(strike.gpu.clone()));
                if self.health.tenants.within(&linked).count() > 1 {
                    self.alarm(Some(&strike.gpu), text.to_owned());
                }
                self.apply(&strike, row, false);
            }
            Special::Alarm(text) => {
                self.alarm(Some(&strike.gpu), text.to_owned());
                self.apply(&strike, row, false);
            }
            Special::Severity | Special::No => self.apply(&strike, row, false),
        }
    }

    /// It was cleared away after something else: which?
    fn collateral(&mut self, strike: &Strike, row: &Row) {
        let unit = self.health.units.get(&strike.gpu);
        let killed_at = unit.and_then(|unit| unit.killed_at);
        let cause = if killed_at.is_some_and(|at| is_within(at, AFTER_KILL, self.now)) {
            "after its lease was ended".to_owned()
        } else {
            match self.error_before() {
                Some((gpu, xid)) => format!("after Xid {xid} of {gpu}"),
                None => "with no error before it".to_owned(),
            }
        };
        self.note(Some(&strike.gpu), format!("{}, {cause}", said(row, strike)));
    }

    /// The last error of any GPU, just now.
    fn error_before(&self) -> Option<(ResourceName, u32)> {
        let units = self.health.units.iter();
        let errors = units.flat_map(|(gpu, unit)| unit.past.iter().map(move |past| (gpu, past)));
        errors
            .filter(|(_, past)| is_within(past.at, AFTER_ERROR, self.now))
            .max_by_key(|(_, past)| past.at)
            .map(|(gpu, past)| (gpu.clone(), past.xid))
    }

    /// What the row says, and what it says when it repeats. `known` is whether it is remembered already.
    fn apply(&mut self, strike: &Strike, row: &Row, known: bool) {
        let gpu = &strike.gpu;
        let again = self.repeats(strike, row);
        if !known {
            self.remember(strike);
        }
        self.note(Some(gpu), said(row, strike));
        let is_noted = row.repeat == Repeat::FirstIsNoted && !again;
        if let (OnLease::Ends(reach), false) = (row.lease, is_noted) {
            let struck = self.reached(strike, reach);
            let cause = Cause {
                xid: strike.xid,
                class: row.class(),
                text: row.meaning.to_owned(),
            };
            self.end(gpu, &struck, &cause);
        }
        if strike.xid == 92 {
            self.unit(gpu).worn = true;
        }
        match row.gpu {
            OnGpu::Waits(until) if !is_noted => {
                let until = self.after_resets(gpu, strike.xid, until);
                self.raise(gpu, strike.xid, until, row.meaning);
            }
            OnGpu::ResetWhenIdle => {
                let unit = self.unit(gpu);
                unit.reset_wanted
                    .get_or_insert_with(|| row.meaning.to_owned());
            }
            OnGpu::Waits(_) | OnGpu::Nothing => {}
        }
        if again {
            self.repeated(strike, row);
        }
    }

    /// What a second or third time does.
    fn repeated(&mut self, strike: &Strike, row: &Row) {
        let why = format!("{}, again", row.meaning);
        match row.repeat {
            Repeat::Same | Repeat::FirstIsNoted => {}
            Repeat::WithinAnHour(_, until)
            | Repeat::AcrossLeases(until)
            | Repeat::WithinADay(until) => {
                self.raise(&strike.gpu, strike.xid, until, &why);
            }
            Repeat::Pair(until) => {
                let linked = self
                    .health
                    .machine
                    .members(&Domain::Linked(strike.gpu.clone()));
                for gpu in linked {
                    let unit = self.health.units.get(&gpu);
                    let has = unit.is_some_and(|unit| {
                        unit.past_of(strike.xid, HOUR, self.now).next().is_some()
                    });
                    if has {
                        self.raise(&gpu, strike.xid, until, &why);
                    }
                }
            }
            Repeat::IfCoherent => {
                let device = self.health.machine.device(&strike.gpu);
                if device.is_some_and(|device| device.coherent) && self.health.drain.is_none() {
                    let why = format!("{}: {why}", strike.gpu);
                    self.health.drain = Some(why.clone());
                    self.alarm(None, why);
                }
            }
        }
    }

    /// Whether this is a repeat, as its row counts it.
    fn repeats(&self, strike: &Strike, row: &Row) -> bool {
        let Some(unit) = self.health.units.get(&strike.gpu) else {
            return false;
        };
        match row.repeat {
            Repeat::Same => false,
            Repeat::WithinAnHour(times, _) => {
                unit.past_of(strike.xid, HOUR, self.now).count() + 1 >= times
            }
            Repeat::AcrossLeases(_) => {
                let before = unit.past_of(strike.xid, DAY, self.now);
                let leases: BTreeSet<LeaseId> = before.filter_map(|past| past.lease).collect();
                self.only_one(strike)
                    .is_some_and(|tenancy| leases.iter().any(|lease| *lease != tenancy.lease))
            }
            Repeat::WithinADay(_) | Repeat::Pair(_) | Repeat::IfCoherent | Repeat::FirstIsNoted => {
                unit.past_of(strike.xid, DAY, self.now).next().is_some()
            }
        }
    }

    /// A reset that helped twice today and not for long does not help.
    pub(crate) fn after_resets(&self, gpu: &ResourceName, of: u32, until: Until) -> Until {
        let unit = self.health.units.get(gpu);
        let resets = unit.map_or(0, |unit| {
            let done = unit.reset.done.iter();
            done.filter(|(xid, at)| *xid == of && is_within(*at, DAY, self.now))
                .count()
        });
        if resets >= 2 {
            until.max(Until::Checked)
        } else {
            until
        }
    }

    fn reached(&self, strike: &Strike, reach: Reach) -> Vec<Tenancy> {
        match reach {
            Reach::Struck => self.struck(&strike.gpu, strike.instance),
            Reach::Gpu => self.struck(&strike.gpu, None),
            Reach::Together => {
                let mut struck = self.struck(&strike.gpu, None);
                struck.retain(Tenancy::is_together);
                struck
            }
        }
    }

    /// The lease that it happened to, where it is one.
    fn only_one(&self, strike: &Strike) -> Option<Tenancy> {
        let mut struck = self.health.tenants.struck(&strike.gpu, strike.instance);
        let one = struck.next().cloned();
        one.filter(|_| struck.next().is_none())
    }

    fn remember(&mut self, strike: &Strike) {
        let one = self.only_one(strike);
        let is_programs = row(strike.xid)
            .is_some_and(|row| row.class() == FaultClass::Program && !row.classes.is_empty());
        if let Some(tenancy) = one.as_ref().filter(|_| is_programs) {
            let counted = &mut self.health.provoked;
            if counted.contains_key(&tenancy.renter) || counted.len() < RENTERS_MAX {
                let count = counted.entry(tenancy.renter).or_default();
                *count = count.saturating_add(1);
            }
        }
        let past = Past {
            xid: strike.xid,
            instance: strike.instance,
            at: self.now,
            lease: one.map(|tenancy| tenancy.lease),
        };
        self.unit(&strike.gpu).remember(past);
    }

    /// The last error of this GPU, if it was just now: what an end that follows is put down to.
    pub(crate) fn recent_cause(&self, gpu: &ResourceName) -> Option<Cause> {
        let unit = self.health.units.get(gpu)?;
        let errors = unit.past.iter().rev();
        let mut errors = errors.filter(|past| is_within(past.at, Millis(10_000), self.now));
        errors.find_map(|past| {
            let row = row(past.xid)?;
            (!row.classes.is_empty()).then(|| Cause {
                xid: past.xid,
                class: row.class(),
                text: row.meaning.to_owned(),
            })
        })
    }

    /// No reading came that says what the driver wants: what it runs now goes on, and then it is looked at.
    fn without_verdict(&mut self, strike: &Strike) {
        let why = format!("an error that is not known (Xid {})", strike.xid);
        self.raise(&strike.gpu, strike.xid, Until::Tested, &why);
    }

    /// Whether nobody tells how the GPU is.
    pub(crate) fn is_unheard(&self, gpu: &ResourceName) -> bool {
        let unit = self.health.units.get(gpu);
        unit.is_none_or(|unit| unit.presence == Presence::Unheard)
    }

    /// Whether the GPU answers.
    pub(crate) fn answers(&self, gpu: &ResourceName) -> bool {
        let unit = self.health.units.get(gpu);
        unit.is_some_and(|unit| unit.presence == Presence::Answers)
    }
}

fn said(row: &Row, strike: &Strike) -> String {
    format!("Xid {}: {}", strike.xid, row.meaning)
}
