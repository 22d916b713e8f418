//! What a broker's goal changes. It is said again every few seconds, so every rule here gives the same
//! result the second time; and it is complete, so a lease that it does not name is to end.

use crate::core::award::{self, Checked, Standing};
use crate::core::capacity::{Capacity, Holdings};
use crate::core::health::unfit;
use crate::core::lease::{LeaseRecord, State};
use crate::core::leases::{Change, Decision, GoalSeen, Leases, Note};
use crate::core::meter::{Meter, Moment};
use crate::core::room::Room;
use crate::core::traffic::Traffic;
use protocol::bounded::Text;
use protocol::ids::{BrokerId, LeaseId};
use protocol::lease::{Goal, LeaseGoal, RefusalReason, StopReason, Want};
use protocol::offer::Share;
use protocol::units::{Bytes, Seconds};
use std::collections::BTreeSet;

/// A goal older than the last one is not followed, unless nothing was heard for this long: then the
/// broker's clock, or its journal, was set back.
pub const GOAL_MEMORY: Seconds = Seconds(60);

/// The goal was overtaken by a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overtaken;

impl Leases {
    /// What `goal` of `broker` changes.
    ///
    /// # Errors
    /// When a newer goal of this broker came before it.
    pub fn decide_goal(
        &self,
        broker: BrokerId,
        goal: &Goal,
        standing: &Standing<'_>,
        now: Moment,
    ) -> Result<Decision, Overtaken> {
        if self.is_overtaken(broker, goal, now) {
            return Err(Overtaken);
        }
        let mut deciding = Deciding {
            leases: self,
            capacity: self.capacity().clone(),
            room: Room::of(self.records().values()),
            promised: self.promised_disk(standing.disk_left),
            leaving: self.leaving(broker, goal),
            now,
        };
        let named: BTreeSet<LeaseId> = goal.leases.iter().map(|lease| lease.lease).collect();
        let mut decision = Decision::default();
        decision.notes.push(Note::Goal(
            broker,
            GoalSeen {
                started_at: goal.started_at,
                sequence: goal.sequence,
                heard_at: now.wall,
                leases: named.clone(),
            },
        ));
        deciding.drop_unnamed(broker, &named, &mut decision);
        for lease in in_order_of_receipt(goal) {
            deciding.follow(broker, lease, standing, &mut decision);
        }
        Ok(decision)
    }

    /// Leases of `broker` that are here and that it wants gone, by this goal.
    fn leaving(&self, broker: BrokerId, goal: &Goal) -> BTreeSet<LeaseId> {
        let stays = |lease: &LeaseGoal| matches!(lease.want, Want::Run(_));
        let staying: BTreeSet<LeaseId> = goal
            .leases
            .iter()
            .filter(|lease| stays(lease))
            .map(|lease| lease.lease)
            .collect();
        self.records()
            .values()
            .filter(|record| record.broker == broker && !staying.contains(&record.lease))
            .map(|record| record.lease)
            .collect()
    }

    fn is_overtaken(&self, broker: BrokerId, goal: &Goal, now: Moment) -> bool {
        self.goal(broker).is_some_and(|seen| {
            let recent = now.wall.since(seen.heard_at) < GOAL_MEMORY.millis();
            recent && (goal.started_at, goal.sequence) < (seen.started_at, seen.sequence)
        })
    }
}

/// Who ordered first is served first, where two leases of one goal want the same resource.
fn in_order_of_receipt(goal: &Goal) -> Vec<&LeaseGoal> {
    let number = |lease: &&LeaseGoal| match lease.award.verify() {
        Ok(award) => award.body().number,
        // It is refused when it is checked.
        Err(_) => u64::MAX,
    };
    let mut leases: Vec<&LeaseGoal> = goal.leases.iter().collect();
    leases.sort_by_cached_key(number);
    leases
}

/// One goal being decided: what it takes so far counts against what it takes next.
struct Deciding<'a> {
    leases: &'a Leases,
    capacity: Capacity,
    room: Room,
    promised: Bytes,
    /// Leases of this broker that are on their way out: what they hold is waited for, not refused.
    leaving: BTreeSet<LeaseId>,
    now: Moment,
}

/// Why a lease does not get what it needs now.
enum Lacking {
    /// Leases that are on their way out have it.
    ForNow,
    /// Leases that stay have it.
    ForGood,
}

impl Deciding<'_> {
    /// What the broker does not name any more is to end.
    fn drop_unnamed(
        &mut self,
        broker: BrokerId,
        named: &BTreeSet<LeaseId>,
        decision: &mut Decision,
    ) {
        let dropped = self.leases.records().values().filter(|record| {
            record.broker == broker && record.want != Want::End && !named.contains(&record.lease)
        });
        for record in dropped {
            let ending = LeaseRecord {
                want: Want::End,
                ..record.clone()
            };
            decision.changes.push(Change::Lease(Box::new(ending)));
        }
    }

    fn follow(
        &mut self,
        broker: BrokerId,
        goal: &LeaseGoal,
        standing: &Standing<'_>,
        decision: &mut Decision,
    ) {
        match self.leases.record(goal.lease) {
            // A lease id is a hash over its broker's key: another broker cannot name this one honestly.
            Some(record) if record.broker != broker => {
                let reason = RefusalReason::UnknownBroker;
                decision
                    .notes
                    .push(Note::Refused(broker, goal.lease, reason));
            }
            Some(record) => {
                if let Some(changed) = self.follow_known(record, goal, standing, decision) {
                    decision.changes.push(Change::Lease(Box::new(changed)));
                }
            }
            None => self.follow_new(broker, goal, standing, decision),
        }
    }

    /// A lease that is on record: its wish may have changed, and a resumed run takes its resources again.
    fn follow_known(
        &mut self,
        record: &LeaseRecord,
        goal: &LeaseGoal,
        standing: &Standing<'_>,
        decision: &mut Decision,
    ) -> Option<LeaseRecord> {
        if record.want == Want::End {
            return None;
        }
        let (known, is_elsewhere) = award::with_award(self.leases.host(), record, goal);
        let want = goal.want;
        let wanted = LeaseRecord {
            want,
            notice: record.notice_after(want, self.now),
            ..known
        };
        let moved = match (&record.state, want) {
            (State::Stopped { run, .. } | State::Failed { run, .. }, Want::Run(next))
                if next > *run =>
            {
                let resumed = if is_elsewhere {
                    Some(wanted.not_resumed(next, StopReason::ResourceTaken))
                } else {
                    self.resumed(&wanted, next, standing)
                };
                if resumed.is_none() {
                    decision.notes.push(Note::Waiting(record.broker));
                }
                resumed
            }
            // It is to leave a run that this host did not hear of.
            (State::Stopped { run, .. } | State::Failed { run, .. }, Want::Vacate(vacate))
                if vacate.run > *run =>
            {
                Some(wanted.not_resumed(vacate.run, StopReason::Vacated))
            }
            // Stopped and resumed before the stop had any effect: the same preparation goes on.
            (
                State::Preparing {
                    run,
                    held,
                    started_before,
                },
                Want::Run(next),
            ) if next > *run => Some(wanted.in_state(State::Preparing {
                run: next,
                held: held.clone(),
                started_before: *started_before,
            })),
            (
                State::Preparing { .. }
                | State::Running { .. }
                | State::Stopped { .. }
                | State::Failed { .. }
                | State::Gone { .. },
                Want::Run(_) | Want::Stop | Want::End | Want::Vacate(_),
            ) => None,
        };
        moved.or_else(|| (*record != wanted).then_some(wanted))
    }

    /// What `lease` would hold of `share`: its resources under new epochs, with CPU and RAM beside the others.
    fn hold(
        &mut self,
        lease: LeaseId,
        share: &Share,
        standing: &Standing<'_>,
    ) -> Result<Holdings, Lacking> {
        let lacking = |holders: BTreeSet<LeaseId>, all: bool| {
            let mut holders = holders.iter();
            let is_leaving = |holder: &LeaseId| self.leaving.contains(holder);
            let is_for_now = if all {
                holders.all(is_leaving)
            } else {
                holders.any(is_leaving)
            };
            if is_for_now {
                Lacking::ForNow
            } else {
                Lacking::ForGood
            }
        };
        let held = self.capacity.take(lease, &share.resources, self.now.wall);
        let held = held.map_err(|_| {
            let holders = self.capacity.in_the_way(lease, &share.resources);
            lacking(holders, true)
        })?;
        if !self.room.can_run(lease, share, standing.offers) {
            return Err(lacking(self.room.beside(share, standing.offers), false));
        }
        Ok(held)
    }

    fn take(&mut self, lease: LeaseId, share: &Share, disk: Bytes, held: &Holdings) {
        self.capacity.set_holdings(lease, held);
        self.room.take(lease, share, disk);
    }

    /// The next run of a lease that does not run: with its resources under new epochs, or without. Nothing while
    /// they are about to be free.
    fn resumed(
        &mut self,
        record: &LeaseRecord,
        run: u32,
        standing: &Standing<'_>,
    ) -> Option<LeaseRecord> {
        let (lease, share) = (record.lease, &record.share);
        let held = match self.hold(lease, share, standing) {
            Ok(held) => held,
            Err(Lacking::ForNow) => return None,
            Err(Lacking::ForGood) => {
                return Some(record.not_resumed(run, StopReason::ResourceTaken));
            }
        };
        if let Some(unfit) = unfit(standing.health, lease, share) {
            return (!unfit.soon).then(|| record.not_resumed(run, StopReason::ResourceTaken));
        }
        self.take(lease, share, record.order.disk, &held);
        Some(LeaseRecord {
            meter: record.meter.next_run(self.now),
            ..record.in_state(State::Preparing {
                run,
                held,
                started_before: record.state.started_before(),
            })
        })
    }

    fn follow_new(
        &mut self,
        broker: BrokerId,
        goal: &LeaseGoal,
        standing: &Standing<'_>,
        decision: &mut Decision,
    ) {
        if let Some((_, reason)) = self.leases.refused().get(&goal.lease) {
            decision
                .notes
                .push(Note::Refused(broker, goal.lease, reason.clone()));
            return;
        }
        match goal.want {
            Want::Run(1) => match self.taken(broker, goal, standing) {
                Ok(Some(record)) => decision.changes.push(Change::Lease(Box::new(record))),
                Ok(None) => decision.notes.push(Note::Waiting(broker)),
                Err(reason) => decision
                    .notes
                    .push(Note::Refused(broker, goal.lease, reason)),
            },
            // It ran before, and this host has nothing of it.
            Want::Run(_) | Want::Stop | Want::End | Want::Vacate(_) => {
                decision.notes.push(Note::Unknown(broker, goal.lease));
            }
        }
    }

    /// The record of a lease that is new here; nothing while what it needs is about to be free.
    fn taken(
        &mut self,
        broker: BrokerId,
        goal: &LeaseGoal,
        standing: &Standing<'_>,
    ) -> Result<Option<LeaseRecord>, RefusalReason> {
        let host = self.leases.host();
        let Checked {
            order,
            renter,
            award,
            listed,
        } = award::check(host, broker, goal, standing, self.now.wall)?;
        let (lease, offer) = (goal.lease, &listed.offer);
        let share = offer.share.part(&award.part);
        let held = match self.hold(lease, &share, standing) {
            Ok(held) => held,
            Err(Lacking::ForNow) => return Ok(None),
            Err(Lacking::ForGood) => return Err(RefusalReason::Taken),
        };
        match unfit(standing.health, lease, &share) {
            None => {}
            Some(unfit) if unfit.soon => return Ok(None),
            Some(unfit) => return Err(RefusalReason::GpuUnfit(Text::cut(&unfit.why))),
        }
        let free = standing.disk_free.0.saturating_sub(self.promised.0);
        if order.disk.0 > free
            || !self
                .room
                .has_disk(lease, order.disk, offer, standing.offers)
        {
            return Err(RefusalReason::DiskFull);
        }
        self.take(lease, &share, order.disk, &held);
        self.promised = Bytes(self.promised.0.saturating_add(order.disk.0));
        Ok(Some(LeaseRecord {
            lease: goal.lease,
            broker,
            renter,
            signed_order: goal.order.clone(),
            order,
            award: goal.award.clone(),
            kind: award.kind,
            share,
            limits: listed.offer.limits,
            network: listed.offer.machine.network,
            taken_at: self.now.wall,
            want: goal.want,
            notice: None,
            state: State::Preparing {
                run: 1,
                held,
                started_before: None,
            },
            meter: Meter::new(self.now),
            traffic: Traffic::new(self.now.boot),
            sequence: 0,
        }))
    }
}
