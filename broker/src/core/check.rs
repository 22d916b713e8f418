//! Deciding about what time brings: deadlines, silence, budgets, money that runs out.
//!
//! Every live lease has a moment at which it is looked at next, computed so that nothing is noticed late;
//! a tick looks at the leases whose moment has come, and at no others. Must not change anything.

use crate::core::charge;
use crate::core::desk::Desk;
use crate::core::event::{Event, Fact};
use crate::core::lease::{Lease, State};
use crate::core::settings::MarketSettings;
use crate::core::term::SILENCE_MAX;
use protocol::lease::{Detail, EndCause, PauseCause, Problem, ProblemKind, Stage};
use protocol::terms::ContractKind;
use protocol::units::{MicroUsd, Millis, Seconds, Timestamp};

const HOUR: Seconds = Seconds(3600);

/// A lease's money at one moment.
#[derive(Debug, Clone, Copy)]
struct Funds {
    /// What is held and not owed yet.
    held: MicroUsd,
    /// That and the renter's available money.
    all: MicroUsd,
    /// What the budget leaves.
    budget: MicroUsd,
    /// What is still to come at most, with the longest duration.
    need: MicroUsd,
}

impl Desk {
    /// What happens to `lease` because it is `now`. `fill` says whether its hold is to be filled up.
    pub(super) fn check(&self, now: Timestamp, lease: &Lease, fill: bool) -> Vec<Event> {
        let to = |state: State| vec![self.moved(now, lease, state, self.meter_at(now, lease))];
        if let Some(cause) = self
            .term_check(now, lease)
            .filter(|_| lease.state.is_open())
        {
            return to(self.closing(now, lease, cause));
        }
        if self.promise_is_over(now, lease) {
            return self
                .end(now, lease, EndCause::OfferEnded)
                .into_iter()
                .collect();
        }
        match &lease.state {
            State::Offered { accept_by, .. } if now >= *accept_by => to(State::Closed {
                cause: EndCause::NotAccepted,
            }),
            State::Preparing { .. } if self.take_up_by(lease).is_some_and(|by| now >= by) => {
                to(self.paused(now, PauseCause::ResumeFailed(not_taken_up())))
            }
            State::Accepted { start_by } | State::Preparing { start_by }
                if now >= self.not_before_heard(lease, *start_by) =>
            {
                to(self.not_started(now, lease))
            }
            State::Suspect { lost_at } if now >= self.not_before_heard(lease, *lost_at) => {
                to(State::Closed {
                    cause: EndCause::HostLost,
                })
            }
            State::Closing {
                cause, give_up_at, ..
            } if now >= *give_up_at => to(State::Closed {
                cause: cause.clone(),
            }),
            State::Noticed { cause, by } if now >= *by => to(self.paused(now, cause.clone())),
            State::Running | State::Noticed { .. } => self.check_running(now, lease, fill),
            State::Paused { disk_until, .. } => self.check_paused(now, lease, *disk_until, fill),
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Accepted { .. }
            | State::Preparing { .. }
            | State::Suspect { .. }
            | State::Closing { .. }
            | State::Closed { .. } => Vec::new(),
        }
    }

    /// Whether the date until which its host promised has come for a lease that is not over.
    fn promise_is_over(&self, now: Timestamp, lease: &Lease) -> bool {
        let until = lease.contract.limits.until;
        lease.state.is_open() && until.is_some_and(|until| self.wall(now) >= until)
    }

    /// A host that could not be heard because the broker was away gets the time to come back.
    fn not_before_heard(&self, lease: &Lease, deadline: Timestamp) -> Timestamp {
        if lease.since >= self.started_at {
            return deadline;
        }
        deadline.max(self.silent_at(self.started_at))
    }

    /// When a host that was heard at `heard` has been silent for too long, as far as this broker can tell.
    fn silent_at(&self, heard: Timestamp) -> Timestamp {
        heard
            .max(self.started_at)
            .after(self.settings.suspect_after.millis())
    }

    /// Until when a host has to say anything of a run that its renter resumed, while it has not.
    fn take_up_by(&self, lease: &Lease) -> Option<Timestamp> {
        let is_silent = lease.run > 1 && self.container_of(lease).is_none();
        let by = lease.since.after(self.settings.accept_within.millis());
        is_silent.then(|| self.not_before_heard(lease, by))
    }

    fn not_started(&self, now: Timestamp, lease: &Lease) -> State {
        if lease.started_at.is_none() {
            return self.closing(now, lease, EndCause::NotStarted);
        }
        let problem = Problem {
            stage: Stage::Starting,
            kind: ProblemKind::HostSilent,
            detail: Detail::cut("the host did not run it within the time that it promised"),
        };
        self.paused(now, PauseCause::ResumeFailed(problem))
    }

    fn check_running(&self, now: Timestamp, lease: &Lease, fill: bool) -> Vec<Event> {
        let meter = self.meter(lease);
        // Who has notice goes at its end, heard or not.
        let has_notice = matches!(lease.state, State::Noticed { .. });
        if now > self.silent_at(meter.heard) && !has_notice {
            let MarketSettings {
                suspect_after,
                lost_after,
                ..
            } = self.settings;
            // From the moment it is noticed: a clock that jumps ahead must not lose every lease at once.
            let lost_after = match lease.term {
                Some(_) => lost_after.max(SILENCE_MAX),
                None => lost_after,
            };
            let wait = Seconds(lost_after.0.saturating_sub(suspect_after.0));
            let lost_at = now.after(wait.millis());
            return vec![self.moved(now, lease, State::Suspect { lost_at }, meter)];
        }
        let ahead = self.meter_at(now, lease);
        let expected = meter.expected(now, lease.state.counting(), self.settings.suspect_after);
        let to = |state: State| vec![self.moved(now, lease, state, ahead)];
        if lease.charge_for(&expected).total() >= lease.contract.budget {
            return to(self.closing(now, lease, EndCause::Budget));
        }
        if lease
            .contract
            .duration_max
            .is_some_and(|most| expected.running >= most.millis())
        {
            return to(self.closing(now, lease, EndCause::Duration));
        }
        let funds = self.funds(now, lease);
        let lasts = |time| funds.all >= lease.burn(time).min(funds.need);
        if !lasts(self.settings.stop_below) {
            return to(self.paused(now, PauseCause::FundsLow));
        }
        let low = !lasts(self.settings.low_balance);
        let mut events = Vec::new();
        if low != lease.low_balance {
            let fact = Fact::Warned {
                lease: lease.id,
                low,
            };
            events.push(Event::bare(now, fact));
        }
        if fill {
            events.extend(self.topped_up(now, lease, self.hold_to_run(lease, &ahead)));
        }
        events
    }

    fn check_paused(
        &self,
        now: Timestamp,
        lease: &Lease,
        disk_until: Timestamp,
        fill: bool,
    ) -> Vec<Event> {
        let ahead = self.meter_at(now, lease);
        let funds = self.funds(now, lease);
        // A gap that will be billed must still be paid for.
        let unpaid = funds.all < lease.burn(self.settings.suspect_after).min(funds.budget);
        if now >= disk_until || unpaid || funds.budget <= MicroUsd::ZERO {
            return vec![self.moved(
                now,
                lease,
                self.closing(now, lease, EndCause::DiskExpired),
                ahead,
            )];
        }
        let fill = fill.then(|| self.topped_up(now, lease, self.hold_to_store(lease, &ahead)));
        fill.flatten().into_iter().collect()
    }

    fn funds(&self, now: Timestamp, lease: &Lease) -> Funds {
        let ahead = self.meter_at(now, lease);
        let due = lease.charge_for(&ahead.at_most()).total();
        let owed = due.saturating_sub(lease.charged.total());
        let held = self.market.held(lease.id).saturating_sub(owed);
        let budget = lease.contract.budget.saturating_sub(due);
        let need = match lease.contract.duration_max {
            Some(most) => {
                let left = most.millis().0.saturating_sub(ahead.usage.running.0);
                // One more: the price of a part of a second is not nothing.
                lease.burn(Seconds(left / 1000 + 1)).min(budget)
            }
            None => budget,
        };
        let all = held.saturating_add(self.market.available(lease.contract.renter));
        Funds {
            held,
            all,
            budget,
            need,
        }
    }

    /// When `lease` is to be looked at next. `filled` is when its hold was filled up last.
    pub(super) fn next_look(&self, now: Timestamp, lease: &Lease, filled: Timestamp) -> Timestamp {
        let at = self.next_look_of_state(now, lease, filled);
        if lease.state.is_open() {
            at.min(self.term_look(now, lease))
                .min(self.promise_look(lease))
                .min(self.bids_look(now, lease))
        } else {
            at
        }
    }

    /// When the date comes until which its host promised, by the books' time.
    fn promise_look(&self, lease: &Lease) -> Timestamp {
        let until = lease.contract.limits.until;
        until.map_or(Timestamp(u64::MAX), |until| self.book_time(until))
    }

    /// When a higher bid can push it out, if none can yet.
    fn bids_look(&self, now: Timestamp, lease: &Lease) -> Timestamp {
        let is_safe = lease.contract.kind == ContractKind::Interruptible
            && matches!(lease.state, State::Running)
            && !self.has_had_its_time(now, lease);
        if !is_safe {
            return Timestamp(u64::MAX);
        }
        let left = self.settings.min_run.millis().0;
        now.after(Millis(left.saturating_sub(self.ran(now, lease).0)))
    }

    fn next_look_of_state(&self, now: Timestamp, lease: &Lease, filled: Timestamp) -> Timestamp {
        let fill_at = filled.after(self.settings.top_up_every.millis());
        match &lease.state {
            State::Clearing { until } => *until,
            State::Offered { accept_by, .. } => *accept_by,
            State::Accepted { start_by } => self.not_before_heard(lease, *start_by),
            State::Preparing { start_by } => {
                let by = self.not_before_heard(lease, *start_by);
                self.take_up_by(lease)
                    .map_or(by, |taken_up| taken_up.min(by))
            }
            State::Suspect { lost_at } => self.not_before_heard(lease, *lost_at),
            State::Closing { give_up_at, .. } => *give_up_at,
            State::Closed { .. } => Timestamp(u64::MAX),
            State::Running => self.next_look_running(now, lease).min(fill_at),
            State::Noticed { by, .. } => self.next_look_running(now, lease).min(fill_at).min(*by),
            State::Paused { disk_until, .. } => {
                let funds = self.funds(now, lease);
                let spare = funds
                    .held
                    .saturating_sub(lease.burn(self.settings.suspect_after));
                let until = charge::lasts(spare.min(funds.budget), lease.burn(HOUR));
                soon(now, until).min(*disk_until).min(fill_at)
            }
        }
    }

    fn next_look_running(&self, now: Timestamp, lease: &Lease) -> Timestamp {
        let meter = self.meter(lease);
        let per_hour = lease.burn(HOUR);
        let silent_at = self.silent_at(meter.heard).after(Millis(1));
        let expected = meter.expected(now, lease.state.counting(), self.settings.suspect_after);
        let due = lease.charge_for(&expected).total();
        let left = lease.contract.budget.saturating_sub(due);
        let budget_at = soon(now, charge::lasts(left, per_hour));
        let funds = self.funds(now, lease);
        // Only what is held is this lease's alone; when that gets low, look at all of it each second.
        let spare = funds
            .held
            .saturating_sub(lease.burn(self.settings.low_balance));
        let low_at = if funds.held >= funds.need && !lease.low_balance {
            Timestamp(u64::MAX)
        } else {
            soon(now, charge::lasts(spare, per_hour))
        };
        let duration_at = lease
            .contract
            .duration_max
            .map_or(Timestamp(u64::MAX), |most| {
                now.after(Millis(most.millis().0.saturating_sub(expected.running.0)))
            });
        silent_at.min(budget_at).min(low_at).min(duration_at)
    }
}

fn not_taken_up() -> Problem {
    Problem {
        stage: Stage::Granting,
        kind: ProblemKind::HostSilent,
        detail: Detail::cut("the host did not answer within the time that it has to accept"),
    }
}

/// The moment `span` from `now`; never when there is no end.
fn soon(now: Timestamp, span: Option<Millis>) -> Timestamp {
    span.map_or(Timestamp(u64::MAX), |span| now.after(span))
}
