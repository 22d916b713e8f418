//! Every input in every phase: what follows, drawn as a table.

use super::world::{Ask, World};
use protocol::ids::LeaseId;
use protocol::lease::{ContainerState, Detail, Problem, ProblemKind, Stage, StopReason};
use protocol::message::Rejection;
use protocol::order::LeaseAction;

fn problem() -> Problem {
    Problem {
        stage: Stage::Pulling,
        kind: ProblemKind::ImageUnknown,
        detail: Detail::cut("no such image"),
    }
}

/// A lease in the phase of that word, with a host that is heard.
pub(super) fn lease_in(phase: &str) -> (World, LeaseId) {
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(0, 100_000_000);
    world.offer(0, Ask::default());
    let order = world.order(0);
    let lease = world.place(0, order).unwrap();
    let steps: &[&str] = match phase {
        "offered" => &[],
        "accepted" => &["grant"],
        "preparing" => &["grant", "preparing"],
        "running" => &["grant", "running"],
        "unreachable" => &["grant", "running", "silence"],
        "stopped" => &["grant", "running", "stop"],
        "resuming" => &["grant", "running", "stop", "resume"],
        "closing" => &["grant", "running", "end"],
        "ended" => &["grant", "running", "end", "gone"],
        other => panic!("{other} is no phase"),
    };
    for step in steps {
        input(&mut world, lease, step).unwrap();
    }
    (world, lease)
}

fn input(world: &mut World, lease: LeaseId, name: &str) -> Result<(), Rejection> {
    let mut says = |state| world.report(lease, state, 0);
    match name {
        "preparing" => says(ContainerState::Preparing(Stage::Pulling)),
        "running" => says(ContainerState::Running),
        "failed" => says(ContainerState::Failed(problem())),
        "exited" => says(ContainerState::Stopped(StopReason::Exited(3))),
        "oom" => says(ContainerState::Stopped(StopReason::OutOfMemory)),
        "full" => says(ContainerState::Stopped(StopReason::DiskFull)),
        "taken" => says(ContainerState::Stopped(StopReason::ResourceTaken)),
        "gone" => says(ContainerState::Gone),
        "grant" => world.grant(lease),
        "refuse" => world.refuse(lease),
        "stop" => world.act(lease, LeaseAction::Stop),
        "resume" => world.act(lease, LeaseAction::Resume),
        "end" => world.act(lease, LeaseAction::End),
        "silence" => {
            world.wait(91);
            world.tick();
            world.announce();
            return Ok(());
        }
        other => panic!("{other} is no input"),
    }
    .map(drop)
}

/// What an input does in a phase: `phase input → phase`, or `✗` for a refusal.
const TABLE: &str = "
    offered      preparing → ✗           offered      running → ✗          offered      failed  → ✗
    offered      exited    → ✗           offered      gone    → ended      offered      grant   → accepted
    offered      refuse    → ended       offered      stop    → ✗          offered      resume  → ✗
    offered      end       → ended       offered      silence → ended
    accepted     preparing → preparing   accepted     running → running    accepted     failed  → closing
    accepted     exited    → stopped     accepted     gone    → ended      accepted     grant   → accepted
    accepted     refuse    → ✗           accepted     stop    → ✗          accepted     resume  → ✗
    accepted     end       → closing     accepted     silence → accepted   accepted     taken   → closing
    preparing    preparing → preparing   preparing    running → running    preparing    failed  → closing
    preparing    exited    → stopped     preparing    gone    → ended      preparing    grant   → preparing
    preparing    refuse    → ✗           preparing    stop    → ✗          preparing    resume  → preparing
    preparing    end       → closing     preparing    silence → preparing  preparing    oom     → stopped
    running      preparing → running     running      running → running    running      failed  → stopped
    running      exited    → stopped     running      oom     → stopped    running      gone    → ended
    running      grant     → running     running      refuse  → ✗          running      stop    → stopped
    running      resume    → running     running      end     → closing    running      silence → unreachable
    unreachable  running   → running     unreachable  exited  → stopped    unreachable  gone    → ended
    unreachable  grant     → unreachable unreachable  refuse  → ✗          unreachable  stop    → stopped
    unreachable  resume    → ✗           unreachable  end     → closing    unreachable  silence → unreachable
    stopped      running   → stopped     stopped      exited  → stopped    stopped      gone    → ended
    stopped      grant     → stopped     stopped      refuse  → ✗          stopped      stop    → stopped
    stopped      resume    → preparing   stopped      end     → closing    stopped      silence → stopped
    resuming     preparing → preparing   resuming     running → running    resuming     failed  → stopped
    resuming     taken     → stopped     resuming     gone    → ended      resuming     stop    → stopped
    resuming     resume    → preparing   resuming     end     → closing    resuming     silence → stopped
    closing      running   → closing     closing      exited  → closing    closing      gone    → ended
    closing      grant     → closing     closing      refuse  → closing    closing      stop    → ✗
    closing      resume    → ✗           closing      end     → closing    closing      silence → closing
    ended        running   → ended       ended        gone    → ended      ended        grant   → ✗
    ended        refuse    → ended       ended        stop    → ✗          ended        resume  → ✗
    ended        end       → ended       ended        silence → ended
    running      full      → stopped     preparing    full    → stopped
";

#[test]
fn every_input_in_every_phase() {
    let words: Vec<&str> = TABLE.split_whitespace().collect();
    let mut rows = 0;
    for row in words.chunks(4) {
        let [phase, name, "→", then] = row else {
            panic!("{row:?} is no row")
        };
        let (mut world, lease) = lease_in(phase);
        let before = world.phase(lease);
        let result = input(&mut world, lease, name);
        match *then {
            "✗" => {
                assert_eq!(
                    result,
                    Err(Rejection::WrongPhase(before.clone())),
                    "{row:?}"
                );
                assert_eq!(world.phase(lease), before, "{row:?}");
            }
            word => {
                assert_eq!(result, Ok(()), "{row:?}");
                assert_eq!(world.phase(lease).word(), word, "{row:?}");
            }
        }
        rows += 1;
    }
    assert_eq!(rows, 93);
}
