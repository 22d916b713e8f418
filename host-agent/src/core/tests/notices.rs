//! A lease that has to go: told at once, stopped when its notice is over, wherever the agent died meanwhile.

use super::moves::{exited, follow, record, running, runs, see, with};
use super::{START, World, at};
use crate::core::lease::State;
use crate::core::leases::Leases;
use crate::core::reconcile::{Containers, Observed, Outcome};
use crate::core::report::Stages;
use crate::core::traffic::Crossed;
use crate::core::work::Work;
use protocol::lease::{ContainerState, LeaseGoal, StopReason, Vacate, Want};
use protocol::units::{Bytes, Millis, Seconds, Timestamp};

const LEAVE: Want = Want::Vacate(Vacate {
    run: 1,
    by: Timestamp(START + 121_000),
    outbid: true,
});

/// A lease that runs since second 2, and was told at second 1 of the goal's clock to go.
fn leaving(world: &World) -> (Leases, LeaseGoal, Containers) {
    let (mut leases, wanted) = running(world);
    follow(world, &mut leases, 2, &with(LEAVE, &wanted));
    let containers = Containers::from([(wanted.lease, runs(2))]);
    (leases, wanted, containers)
}

fn state(leases: &Leases, goal: &LeaseGoal) -> ContainerState {
    let (_, reports) = leases.decide_reports(&[goal.lease], &Stages::new(), at(900));
    reports[0].state.clone()
}

const VACATED: ContainerState = ContainerState::Stopped(StopReason::Vacated);

#[test]
fn it_is_told_once_runs_on_and_is_killed_when_the_notice_is_over() {
    let world = World::new();
    let (mut leases, wanted, containers) = leaving(&world);
    let work = |leases: &Leases, second| {
        leases
            .work(&containers, at(second))
            .get(&wanted.lease)
            .copied()
    };
    assert_eq!(work(&leases, 2), Some(Work::Notify));
    leases.apply(&leases.decide_outcome(wanted.lease, &Outcome::Told, at(2)));
    assert_eq!(work(&leases, 2), None);
    assert_eq!(state(&leases, &wanted), ContainerState::Running);
    // The same goal again does not begin the notice again: it was heard at second 1, and is 120 s.
    follow(&world, &mut leases, 3, &with(LEAVE, &wanted));
    assert_eq!(work(&leases, 120), None);
    assert_eq!(work(&leases, 121), Some(Work::Stop { grace: Seconds(0) }));
    // It holds its GPU until it is stopped.
    assert_eq!(record(&leases, wanted.lease).state.held().len(), 1);
    see(
        &mut leases,
        &Containers::from([(wanted.lease, exited(137, 2, 121))]),
        122,
    );
    assert_eq!(state(&leases, &wanted), VACATED);
    assert!(record(&leases, wanted.lease).state.held().is_empty());
    assert_eq!(record(&leases, wanted.lease).running(), Millis(119_000));
    // The disk is kept: nothing removes the container, whatever is said next.
    let over = Containers::from([(wanted.lease, exited(137, 2, 121))]);
    assert!(leases.work(&over, at(123)).is_empty());
    follow(&world, &mut leases, 4, &with(LEAVE, &wanted));
    follow(&world, &mut leases, 5, &with(Want::Stop, &wanted));
    assert!(leases.work(&over, at(900)).is_empty());
    assert_eq!(state(&leases, &wanted), VACATED);
    // And it resumes under a new epoch when the market has room again.
    follow(&world, &mut leases, 6, &with(Want::Run(2), &wanted));
    let resumed = record(&leases, wanted.lease);
    assert!(matches!(resumed.state, State::Preparing { run: 2, .. }));
    assert_eq!(resumed.notice, None);
}

#[test]
fn one_that_ends_by_itself_under_notice_is_vacated_too() {
    let world = World::new();
    let (mut leases, wanted, _) = leaving(&world);
    leases.apply(&leases.decide_outcome(wanted.lease, &Outcome::Told, at(2)));
    see(
        &mut leases,
        &Containers::from([(wanted.lease, exited(0, 2, 40))]),
        41,
    );
    assert_eq!(state(&leases, &wanted), VACATED);
    assert_eq!(record(&leases, wanted.lease).running(), Millis(38_000));
}

#[test]
fn one_that_had_ended_before_the_notice_ended_by_itself() {
    let world = World::new();
    let mut leases = world.empty();
    let wanted = world.lease_goal(0, 1, 0, Want::Run(1));
    follow(&world, &mut leases, 1, std::slice::from_ref(&wanted));
    // It was started at 0.2 s and was over at 0.5 s; the notice came at 1 s, before anybody looked.
    let over = Observed::Exited {
        code: 0,
        out_of_memory: false,
        disk_full: false,
        started_at: Timestamp(START + 200),
        finished_at: Timestamp(START + 500),
    };
    let started = Outcome::Started(Timestamp(START + 200));
    leases.apply(&leases.decide_outcome(wanted.lease, &started, at(1)));
    follow(&world, &mut leases, 2, &with(LEAVE, &wanted));
    see(&mut leases, &Containers::from([(wanted.lease, over)]), 2);
    let ended = ContainerState::Stopped(StopReason::Exited(0));
    assert_eq!(state(&leases, &wanted), ended);
}

#[test]
fn one_that_could_not_be_told_hears_it_when_it_is_stopped() {
    let world = World::new();
    let (leases, wanted, containers) = leaving(&world);
    let grace = Seconds(10);
    assert_eq!(
        leases.work(&containers, at(121))[&wanted.lease],
        Work::Stop { grace }
    );
}

#[test]
fn an_agent_that_starts_in_the_middle_of_a_notice_goes_on_with_it() {
    let world = World::new();
    let (mut leases, wanted, containers) = leaving(&world);
    leases.apply(&leases.decide_outcome(wanted.lease, &Outcome::Told, at(2)));
    let records = leases.records().values().cloned();
    let leases = Leases::recovered(world.host, [], records);
    assert!(leases.work(&containers, at(120)).is_empty());
    assert_eq!(
        leases.work(&containers, at(121))[&wanted.lease],
        Work::Stop { grace: Seconds(0) }
    );
}

#[test]
fn one_that_is_still_prepared_is_not_started_any_more() {
    let world = World::new();
    let mut leases = world.empty();
    let wanted = world.lease_goal(0, 1, 0, Want::Run(1));
    follow(&world, &mut leases, 1, std::slice::from_ref(&wanted));
    follow(&world, &mut leases, 2, &with(LEAVE, &wanted));
    assert!(leases.work(&Containers::new(), at(2)).is_empty());
    see(&mut leases, &Containers::new(), 3);
    assert_eq!(state(&leases, &wanted), VACATED);
    assert!(record(&leases, wanted.lease).state.held().is_empty());
}

#[test]
fn one_that_was_started_all_the_same_has_its_whole_notice() {
    let world = World::new();
    let mut leases = world.empty();
    let wanted = world.lease_goal(0, 1, 0, Want::Run(1));
    follow(&world, &mut leases, 1, std::slice::from_ref(&wanted));
    follow(&world, &mut leases, 2, &with(LEAVE, &wanted));
    let containers = Containers::from([(wanted.lease, runs(2))]);
    see(&mut leases, &containers, 3);
    assert_eq!(leases.work(&containers, at(3))[&wanted.lease], Work::Notify);
}

#[test]
fn a_notice_that_is_taken_back_is_taken_from_the_container() {
    let world = World::new();
    let (mut leases, wanted, containers) = leaving(&world);
    leases.apply(&leases.decide_outcome(wanted.lease, &Outcome::Told, at(2)));
    follow(&world, &mut leases, 3, &with(Want::Run(1), &wanted));
    assert_eq!(
        leases.work(&containers, at(300))[&wanted.lease],
        Work::Recall
    );
    leases.apply(&leases.decide_outcome(wanted.lease, &Outcome::Recalled, at(300)));
    assert!(leases.work(&containers, at(300)).is_empty());
    assert_eq!(record(&leases, wanted.lease).notice, None);
    // Told again, it has its whole notice again.
    follow(&world, &mut leases, 4, &with(LEAVE, &wanted));
    assert_eq!(leases.work(&containers, at(2))[&wanted.lease], Work::Notify);
}

#[test]
fn the_end_and_a_stop_do_not_wait_for_a_notice() {
    let world = World::new();
    let (mut leases, wanted, containers) = leaving(&world);
    let grace = Seconds(10);
    follow(&world, &mut leases, 3, &with(Want::Stop, &wanted));
    assert_eq!(
        leases.work(&containers, at(3))[&wanted.lease],
        Work::Stop { grace }
    );
    follow(&world, &mut leases, 4, &with(Want::End, &wanted));
    assert_eq!(
        leases.work(&containers, at(3))[&wanted.lease],
        Work::Remove { grace }
    );
}

#[test]
fn a_run_that_this_host_did_not_hear_of_is_vacated_without_having_run() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    see(
        &mut leases,
        &Containers::from([(wanted.lease, exited(3, 2, 5))]),
        6,
    );
    let later = Want::Vacate(Vacate {
        run: 2,
        by: Timestamp(START),
        outbid: false,
    });
    follow(&world, &mut leases, 2, &with(later, &wanted));
    let (_, reports) = leases.decide_reports(&[wanted.lease], &Stages::new(), at(7));
    assert_eq!((reports[0].run, reports[0].state.clone()), (2, VACATED));
}

#[test]
fn traffic_is_counted_over_all_runs_and_to_the_moment_of_the_stop() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    let crossed = |uploaded, downloaded| Crossed {
        uploaded: Bytes(uploaded),
        downloaded: Bytes(downloaded),
    };
    let runs_with = |started: u64, crossed| {
        let started_at = Timestamp(START + started * 1000);
        Containers::from([(
            wanted.lease,
            Observed::Running {
                started_at,
                crossed,
            },
        )])
    };
    let meters = |leases: &Leases| {
        let (_, reports) = leases.decide_reports(&[wanted.lease], &Stages::new(), at(900));
        (reports[0].meters.uploaded.0, reports[0].meters.downloaded.0)
    };
    see(&mut leases, &runs_with(2, crossed(100, 7)), 3);
    assert_eq!(meters(&leases), (100, 7));
    let read = Some((Timestamp(START + 2_000), crossed(130, 9)));
    leases.apply(&leases.decide_outcome(wanted.lease, &Outcome::Stopped(read), at(5)));
    see(
        &mut leases,
        &Containers::from([(wanted.lease, exited(0, 2, 5))]),
        6,
    );
    assert_eq!(meters(&leases), (130, 9));
    follow(&world, &mut leases, 2, &with(Want::Run(2), &wanted));
    see(&mut leases, &runs_with(8, crossed(5, 1)), 9);
    assert_eq!(meters(&leases), (135, 10));
    // Another agent goes on from the journal.
    let records = leases.records().values().cloned();
    let mut leases = Leases::recovered(world.host, [], records);
    see(&mut leases, &runs_with(8, crossed(6, 1)), 10);
    assert_eq!(meters(&leases), (136, 10));
}

#[test]
fn what_comes_for_its_place_waits_until_it_is_gone() {
    let world = World::new();
    let (mut leases, going) = running(&world);
    let next = world.lease_goal(0, 2, 0, Want::Run(1));
    let said = |want: Want| {
        let mut leases = with(want, &going);
        leases.push(next.clone());
        leases
    };
    // Its broker takes it off at the end of the notice, and gives its place away in the same goal.
    follow(&world, &mut leases, 2, &with(LEAVE, &going));
    leases.apply(&leases.decide_outcome(going.lease, &Outcome::Told, at(2)));
    follow(&world, &mut leases, 3, &said(Want::Stop));
    assert!(leases.waits(world.broker(0)));
    assert!(leases.record(next.lease).is_none() && leases.refused().is_empty());
    let over = Containers::from([(going.lease, exited(137, 2, 121))]);
    see(&mut leases, &over, 122);
    // The same goal, followed again.
    follow(&world, &mut leases, 3, &said(Want::Stop));
    assert!(!leases.waits(world.broker(0)));
    let held = record(&leases, next.lease).state.held();
    assert_eq!(held[0].resource.as_str(), "GPU-a");
}

#[test]
fn a_resume_waits_for_what_is_about_to_be_free_and_for_nothing_else() {
    let world = World::new();
    let (mut leases, first) = running(&world);
    let over = Containers::from([(first.lease, exited(0, 2, 5))]);
    see(&mut leases, &over, 6);
    let second = world.lease_goal(0, 2, 0, Want::Run(1));
    let said = |one: Want, other: Want| {
        let mut both = with(one, &first);
        both.extend(with(other, &second));
        both
    };
    follow(&world, &mut leases, 2, &said(Want::Stop, Want::Run(1)));
    let both = said(Want::Run(2), Want::End);
    follow(&world, &mut leases, 3, &both);
    assert!(leases.waits(world.broker(0)));
    assert_eq!(record(&leases, first.lease).state.run(), 1);
    leases.apply(&leases.decide_outcome(second.lease, &Outcome::Removed(None), at(8)));
    follow(&world, &mut leases, 3, &both);
    let state = &record(&leases, first.lease).state;
    assert!(matches!(state, State::Preparing { run: 2, .. }));
}

#[test]
fn one_broker_does_not_wait_for_what_another_ends() {
    let world = World::new();
    let (mut leases, going) = running(&world);
    follow(&world, &mut leases, 2, &with(Want::End, &going));
    let theirs = world.lease_goal(1, 2, 0, Want::Run(1));
    let asked = super::goal(1, vec![theirs.clone()]);
    let decision = leases
        .decide_goal(world.broker(1), &asked, &world.standing(), at(3))
        .unwrap();
    leases.apply(&decision);
    assert!(leases.refused().contains_key(&theirs.lease));
}

#[test]
fn a_stop_in_a_notice_waits_no_longer_than_the_notice() {
    let world = World::new();
    let (mut leases, wanted, containers) = leaving(&world);
    leases.apply(&leases.decide_outcome(wanted.lease, &Outcome::Told, at(2)));
    follow(&world, &mut leases, 3, &with(Want::Stop, &wanted));
    let grace = |second| match leases.work(&containers, at(second))[&wanted.lease] {
        Work::Stop { grace } => grace.0,
        other @ (Work::Prepare | Work::Notify | Work::Recall | Work::Remove { .. }) => {
            panic!("{other:?}")
        }
    };
    assert_eq!(
        (grace(20), grace(111), grace(118), grace(121)),
        (10, 10, 3, 0)
    );
}
