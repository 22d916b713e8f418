//! What becomes of a lease after it was taken: stopped, resumed, ended, failed, vanished, overdue, reported.

use super::{START, World, at, goal};
use crate::core::lease::{LeaseRecord, State};
use crate::core::leases::{Change, Decision, Leases};
use crate::core::reconcile::{Containers, Observed, Outcome};
use crate::core::report::Stages;
use crate::core::traffic::Crossed;
use crate::core::work::Work;
use protocol::ids::LeaseId;
use protocol::lease::{
    ContainerState, Detail, LeaseGoal, Problem, ProblemKind, Stage, StopReason, Want,
};
use protocol::units::{Millis, Seconds, Timestamp};
use std::collections::BTreeSet;

/// Decides and applies a goal of broker 0 with this sequence.
pub(super) fn follow(
    world: &World,
    leases: &mut Leases,
    sequence: u64,
    wanted: &[LeaseGoal],
) -> Decision {
    let goal = goal(sequence, wanted.to_vec());
    let decision = leases
        .decide_goal(world.broker(0), &goal, &world.standing(), at(1))
        .unwrap();
    leases.apply(&decision);
    decision
}

pub(super) fn with(want: Want, goal: &LeaseGoal) -> Vec<LeaseGoal> {
    vec![LeaseGoal {
        want,
        ..goal.clone()
    }]
}

pub(super) fn record(leases: &Leases, lease: LeaseId) -> &LeaseRecord {
    leases.record(lease).unwrap()
}

/// A lease that runs since second 2.
pub(super) fn running(world: &World) -> (Leases, LeaseGoal) {
    let mut leases = world.empty();
    let wanted = world.lease_goal(0, 1, 0, Want::Run(1));
    follow(world, &mut leases, 1, std::slice::from_ref(&wanted));
    let started = Outcome::Started(Timestamp(START + 2_000));
    let decision = leases.decide_outcome(wanted.lease, &started, at(2));
    leases.apply(&decision);
    (leases, wanted)
}

pub(super) fn see(leases: &mut Leases, containers: &Containers, second: u64) {
    let decision = leases.decide_sight(containers, &BTreeSet::new(), at(second));
    leases.apply(&decision);
}

pub(super) fn exited(code: i32, started: u64, finished: u64) -> Observed {
    Observed::Exited {
        code,
        out_of_memory: false,
        disk_full: false,
        started_at: Timestamp(START + started * 1000),
        finished_at: Timestamp(START + finished * 1000),
    }
}

pub(super) fn runs(started: u64) -> Observed {
    Observed::Running {
        started_at: Timestamp(START + started * 1000),
        crossed: Crossed::default(),
    }
}

#[test]
fn what_is_not_named_any_more_is_ended_and_other_brokers_leases_are_left_alone() {
    let world = World::new();
    let (mut leases, mine) = running(&world);
    let theirs = world.lease_goal(1, 2, 1, Want::Run(1));
    let asked = goal(1, vec![theirs.clone()]);
    let decision = leases
        .decide_goal(world.broker(1), &asked, &world.standing(), at(3))
        .unwrap();
    leases.apply(&decision);
    follow(&world, &mut leases, 2, &[]);
    assert_eq!(record(&leases, mine.lease).want, Want::End);
    assert_eq!(record(&leases, theirs.lease).want, Want::Run(1));
    let containers = Containers::from([(mine.lease, runs(2)), (theirs.lease, runs(3))]);
    let work = leases.work(&containers, at(1));
    assert_eq!(work[&mine.lease], Work::Remove { grace: Seconds(10) });
    assert_eq!(work[&theirs.lease], Work::Prepare);
}

#[test]
fn stop_frees_the_resource_only_when_the_container_stopped_and_resume_takes_a_new_epoch() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    follow(&world, &mut leases, 2, &with(Want::Stop, &wanted));
    let containers = Containers::from([(wanted.lease, runs(2))]);
    assert_eq!(
        leases.work(&containers, at(1))[&wanted.lease],
        Work::Stop { grace: Seconds(10) }
    );
    assert_eq!(record(&leases, wanted.lease).state.held().len(), 1);
    see(
        &mut leases,
        &Containers::from([(wanted.lease, exited(0, 2, 12))]),
        15,
    );
    let stopped = record(&leases, wanted.lease);
    assert!(matches!(
        stopped.state,
        State::Stopped {
            run: 1,
            reason: StopReason::Asked,
            ..
        }
    ));
    assert_eq!(stopped.running(), Millis(10_000));
    follow(&world, &mut leases, 3, &with(Want::Run(2), &wanted));
    let resumed = record(&leases, wanted.lease);
    let State::Preparing { run: 2, held, .. } = &resumed.state else {
        panic!("not preparing")
    };
    // The clock has not moved in this test; the epoch has.
    assert_eq!(held[0].epoch, START + 1_001);
    // The container that ended in the first run is started again, and does not count as this run's end.
    see(
        &mut leases,
        &Containers::from([(wanted.lease, exited(0, 2, 12))]),
        16,
    );
    assert_eq!(record(&leases, wanted.lease).state.run(), 2);
    assert_eq!(
        leases.work(&Containers::new(), at(1))[&wanted.lease],
        Work::Prepare
    );
}

#[test]
fn a_resource_taken_meanwhile_fails_the_resume() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    see(
        &mut leases,
        &Containers::from([(wanted.lease, exited(3, 2, 5))]),
        6,
    );
    let reason = StopReason::Exited(3);
    assert!(
        matches!(&record(&leases, wanted.lease).state, State::Stopped { reason: r, .. } if *r == reason)
    );
    let other = world.lease_goal(0, 2, 0, Want::Run(1));
    follow(&world, &mut leases, 2, &[wanted.clone(), other.clone()]);
    assert!(leases.record(other.lease).is_some());
    let both = vec![
        LeaseGoal {
            want: Want::Run(2),
            ..wanted.clone()
        },
        other,
    ];
    follow(&world, &mut leases, 3, &both);
    let (_, reports) = leases.decide_reports(&[wanted.lease], &Stages::new(), at(7));
    assert_eq!(
        reports[0].state,
        ContainerState::Stopped(StopReason::ResourceTaken)
    );
    assert_eq!(reports[0].run, 2);
}

#[test]
fn a_program_that_ended_is_not_started_by_the_same_goal() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    let gone = Containers::from([(wanted.lease, exited(0, 2, 4))]);
    see(&mut leases, &gone, 5);
    follow(&world, &mut leases, 2, std::slice::from_ref(&wanted));
    assert!(leases.work(&gone, at(1)).is_empty());
}

#[test]
fn a_vanished_container_is_gone_and_frees_its_resource() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    see(&mut leases, &Containers::new(), 5);
    assert!(matches!(
        record(&leases, wanted.lease).state,
        State::Gone { .. }
    ));
    assert!(
        leases
            .capacity()
            .holder(&world.offers[0].offer.share.resources[0])
            .is_none()
    );
    let (_, reports) = leases.decide_reports(&[wanted.lease], &Stages::new(), at(6));
    assert_eq!(reports[0].state, ContainerState::Gone);
}

#[test]
fn a_failed_start_says_where_and_frees_the_resource() {
    let world = World::new();
    let mut leases = world.empty();
    let wanted = world.lease_goal(0, 1, 0, Want::Run(1));
    follow(&world, &mut leases, 1, std::slice::from_ref(&wanted));
    let problem = Problem {
        stage: Stage::Pulling,
        kind: ProblemKind::ImageUnknown,
        detail: Detail::cut("no such image"),
    };
    let decision = leases.decide_outcome(wanted.lease, &Outcome::Problem(problem.clone()), at(3));
    leases.apply(&decision);
    assert!(record(&leases, wanted.lease).state.held().is_empty());
    let (_, reports) = leases.decide_reports(&[wanted.lease], &Stages::new(), at(4));
    assert_eq!(reports[0].state, ContainerState::Failed(problem));
    assert!(leases.work(&Containers::new(), at(1)).is_empty());
}

#[test]
fn an_unknown_lease_is_gone_and_a_lease_is_forgotten_a_week_after_its_end() {
    let world = World::new();
    let mut leases = world.empty();
    let wanted = world.lease_goal(0, 1, 0, Want::Stop);
    follow(&world, &mut leases, 1, std::slice::from_ref(&wanted));
    assert!(leases.unknown().contains_key(&wanted.lease) && leases.records().is_empty());

    let (mut leases, wanted) = running(&world);
    let week = Seconds(604_800);
    follow(&world, &mut leases, 2, &with(Want::End, &wanted));
    leases.apply(&leases.decide_outcome(wanted.lease, &Outcome::Removed(None), at(10)));
    assert!(
        leases.forgettable(week, at(604_811).wall).is_empty(),
        "the broker still asks"
    );
    follow(&world, &mut leases, 3, &[]);
    assert!(leases.forgettable(week, at(604_809).wall).is_empty());
    let old = leases.forgettable(week, at(604_810).wall);
    assert_eq!(old, [wanted.lease]);
    leases.apply(&Decision {
        changes: vec![Change::Forgotten(old[0])],
        notes: Vec::new(),
    });
    assert!(leases.records().is_empty());
}

#[test]
fn the_host_ends_an_overdue_lease_when_its_broker_is_silent() {
    let world = World::new();
    let mut leases = world.empty();
    let wanted = world.changed_goal(0, 1, 0, |order, _| order.duration_max = Some(Seconds(100)));
    follow(&world, &mut leases, 1, std::slice::from_ref(&wanted));
    leases.apply(&leases.decide_outcome(wanted.lease, &Outcome::Started(at(2).wall), at(2)));
    let container = Containers::from([(wanted.lease, runs(2))]);
    see(&mut leases, &container, 161);
    assert!(leases.work(&container, at(1)).is_empty());
    see(&mut leases, &container, 162);
    assert_eq!(
        leases.work(&container, at(1))[&wanted.lease],
        Work::Stop { grace: Seconds(10) }
    );
    see(
        &mut leases,
        &Containers::from([(wanted.lease, exited(0, 2, 163))]),
        164,
    );
    let state = &record(&leases, wanted.lease).state;
    assert!(matches!(
        state,
        State::Stopped {
            reason: StopReason::Asked,
            ..
        }
    ));
}

#[test]
fn report_numbers_rise_even_when_the_journal_was_lost() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    let mut last = 0;
    for second in [10, 10, 5] {
        let (changes, reports) = leases.decide_reports(&[wanted.lease], &Stages::new(), at(second));
        leases.apply(&Decision {
            changes,
            notes: Vec::new(),
        });
        assert!(reports[0].sequence > last);
        last = reports[0].sequence;
    }
    assert!(last >= START + 10_000);
}

#[test]
fn an_agent_that_died_in_a_resume_does_not_start_the_same_run_twice() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    see(
        &mut leases,
        &Containers::from([(wanted.lease, exited(3, 2, 5))]),
        6,
    );
    follow(&world, &mut leases, 2, &with(Want::Run(2), &wanted));
    // The container was started at second 7 and ended at second 9; the agent saw neither.
    see(
        &mut leases,
        &Containers::from([(wanted.lease, exited(4, 7, 9))]),
        20,
    );
    let state = &record(&leases, wanted.lease).state;
    let ended = State::Stopped {
        run: 2,
        reason: StopReason::Exited(4),
        started_before: Some(Timestamp(START + 7_000)),
    };
    assert_eq!(*state, ended);
    // Three seconds of the first run, two of the second.
    assert_eq!(record(&leases, wanted.lease).running(), Millis(5_000));
}

#[test]
fn a_container_that_is_paused_is_not_paid_for_and_is_made_to_go_on() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    let started_at = Timestamp(START + 2_000);
    let runs = Containers::from([(wanted.lease, runs(2))]);
    let paused = Containers::from([(wanted.lease, Observed::Paused { started_at })]);
    see(&mut leases, &runs, 12);
    see(&mut leases, &paused, 20);
    see(&mut leases, &paused, 40);
    assert_eq!(record(&leases, wanted.lease).running(), Millis(10_000));
    assert_eq!(record(&leases, wanted.lease).state.word(), "running");
    assert_eq!(leases.work(&paused, at(1))[&wanted.lease], Work::Prepare);
    // 21 s paused, and then it goes on.
    see(&mut leases, &runs, 43);
    assert_eq!(record(&leases, wanted.lease).running(), Millis(13_000));
    assert!(leases.work(&runs, at(1)).is_empty());
}

#[test]
fn a_container_that_was_stopped_for_its_disk_says_so() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    let Observed::Exited {
        started_at,
        finished_at,
        ..
    } = exited(0, 2, 9)
    else {
        panic!("not exited")
    };
    let full = Observed::Exited {
        code: 0,
        out_of_memory: false,
        disk_full: true,
        started_at,
        finished_at,
    };
    see(&mut leases, &Containers::from([(wanted.lease, full)]), 10);
    let State::Stopped { ref reason, .. } = record(&leases, wanted.lease).state else {
        panic!("it is not stopped")
    };
    assert_eq!(*reason, StopReason::DiskFull);
    assert_eq!(record(&leases, wanted.lease).running(), Millis(7_000));
}
