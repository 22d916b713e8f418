//! The journal against crashes, second agents, older and newer files.

use super::{Journal, JournalError, Recovered, peek};
use crate::core::capacity::Held;
use crate::core::lease::State;
use crate::core::leases::{Change, Leases};
use crate::core::slices::known::{Known, KnownChange, Made};
use crate::core::tests::{World, at, goal, listing, machine};
use crate::journal::lock::LockError;
use protocol::bounded::List;
use protocol::lease::Want;
use protocol::offer::ResourceName;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The change that taking a lease is.
fn taken(world: &World, number: u8, offer: usize) -> Change {
    let wanted = world.lease_goal(0, number, offer, Want::Run(1));
    let goal = goal(1, vec![wanted]);
    let standing = world.standing();
    let decision = world
        .empty()
        .decide_goal(world.broker(0), &goal, &standing, at(1))
        .unwrap();
    decision.changes[0].clone()
}

fn reopened(folder: &Path) -> Recovered {
    Journal::open(folder).unwrap().1
}

#[test]
fn what_was_committed_is_there_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new();
    let (mut journal, recovered) = Journal::open(folder.path()).unwrap();
    assert_eq!(recovered, Recovered::default());
    let change = taken(&world, 1, 0);
    journal.commit(std::slice::from_ref(&change)).unwrap();
    let sold = listing(&machine(&[]));
    journal.set_listing(Some(&sold)).unwrap();
    // A crash: nothing is closed. The copy is what a disk would hold.
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let recovered = reopened(copy.path());
    let Change::Lease(record) = change else {
        panic!("not a lease")
    };
    assert_eq!(recovered.records, [*record.clone()]);
    assert_eq!(recovered.epochs[0].1, record.state.held()[0].epoch);
    assert_eq!(recovered.listing, Some(sold));
    let leases = Leases::recovered(world.host, recovered.epochs, recovered.records);
    let holder = leases.capacity().holder(&record.state.held()[0].resource);
    assert_eq!(holder, Some(record.lease));
}

#[test]
fn the_files_of_the_journal_are_for_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mode = |name: &str| {
        let path = folder.path().join(name);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    let names = ["journal.db", "journal.db-wal", "journal.db-shm"];
    let (mut journal, _) = Journal::open(folder.path()).unwrap();
    journal.set_listing(None).unwrap();
    assert_eq!(names.map(mode), [0o600; 3]);
    drop(journal);
    // As an earlier version left it.
    let path = folder.path().join("journal.db");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (_journal, _) = Journal::open(folder.path()).unwrap();
    assert_eq!(mode("journal.db"), 0o600);
}

#[test]
fn a_journal_cut_in_the_middle_of_a_commit_holds_the_commits_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new();
    let (mut journal, _) = Journal::open(folder.path()).unwrap();
    journal.commit(&[taken(&world, 1, 0)]).unwrap();
    let wal = folder.path().join("journal.db-wal");
    let before = std::fs::metadata(&wal).unwrap().len();
    journal.commit(&[taken(&world, 2, 1)]).unwrap();
    let after = std::fs::metadata(&wal).unwrap().len();
    assert!(after > before);
    for cut in [before, before + 1, before + (after - before) / 2, after - 1] {
        let copy = tempfile::tempdir().unwrap();
        let target = copy.path().join("journal.db");
        std::fs::copy(folder.path().join("journal.db"), &target).unwrap();
        let bytes = std::fs::read(&wal).unwrap();
        let kept = usize::try_from(cut).unwrap();
        std::fs::write(copy.path().join("journal.db-wal"), &bytes[..kept]).unwrap();
        assert_eq!(
            reopened(copy.path()).records.len(),
            1,
            "cut at {cut} of {after}"
        );
    }
}

#[test]
fn two_holders_of_one_resource_are_refused_whatever_was_decided() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new();
    let (mut journal, _) = Journal::open(folder.path()).unwrap();
    journal.commit(&[taken(&world, 1, 0)]).unwrap();
    let error = journal.commit(&[taken(&world, 2, 0)]).unwrap_err();
    assert!(matches!(error, JournalError::Sqlite { .. }), "{error}");
    drop(journal);
    assert_eq!(reopened(folder.path()).records.len(), 1);
}

// Threat 6, at the last place where it could go wrong.
#[test]
fn a_gpu_and_its_slices_have_one_holder_whatever_was_decided() {
    let world = World::new();
    let holding = |number: u8, resource: &str| {
        let Change::Lease(mut record) = taken(&world, number, 0) else {
            panic!("not a lease")
        };
        let resource = ResourceName::new(resource).unwrap();
        record.state = State::Preparing {
            run: 1,
            held: List::first([Held { resource, epoch: 1 }]),
            started_before: None,
        };
        Change::Lease(record)
    };
    for (first, second, both) in [
        ("GPU-a/3g.40gb@4+4", "GPU-a", false),
        ("GPU-a", "GPU-a/1g.10gb@6+1", false),
        ("GPU-a/3g.40gb@4+4", "GPU-a/1g.10gb@6+1", false),
        ("GPU-a/3g.40gb@4+4", "GPU-a/4g.40gb@0+4", true),
        ("GPU-a/3g.40gb@4+4", "GPU-b/3g.40gb@4+4", true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(folder.path()).unwrap();
        journal.commit(&[holding(1, first)]).unwrap();
        let second_taken = journal.commit(&[holding(2, second)]);
        assert_eq!(second_taken.is_ok(), both, "{second} beside {first}");
    }
}

#[test]
fn slices_that_were_made_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(folder.path()).unwrap();
    let name = |text: &str| ResourceName::new(text).unwrap();
    let [one, two] = ["GPU-a/1g.10gb@6+1", "GPU-a/2g.20gb@4+2"].map(name);
    let done = Made::Done {
        device: ResourceName::cut("MIG-1"),
    };
    let changes = [
        KnownChange::Set(one.clone(), Made::Begun),
        KnownChange::Set(two.clone(), Made::Begun),
        KnownChange::Set(two.clone(), done.clone()),
    ];
    journal.note_slices(&changes).unwrap();
    drop(journal);
    let recovered = reopened(folder.path()).slices;
    assert_eq!(
        recovered,
        Known::from([(one.clone(), Made::Begun), (two.clone(), done)])
    );
    let (mut journal, _) = Journal::open(folder.path()).unwrap();
    journal.note_slices(&[KnownChange::Gone(one)]).unwrap();
    drop(journal);
    assert_eq!(
        reopened(folder.path())
            .slices
            .into_keys()
            .collect::<Vec<_>>(),
        [two]
    );
}

#[test]
fn a_second_agent_is_refused_and_told_who_has_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = Journal::open(folder.path()).unwrap();
    let error = Journal::open(folder.path()).unwrap_err();
    let JournalError::Lock(LockError::Taken { pid, .. }) = &error else {
        panic!("{error}")
    };
    assert_eq!(*pid, Some(std::process::id()));
    assert!(
        error.to_string().starts_with("another agent (process "),
        "{error}"
    );
    // Reading beside it is allowed.
    assert_eq!(peek(folder.path()).unwrap(), Some(Recovered::default()));
    drop(first);
    Journal::open(folder.path()).unwrap();
}

#[test]
fn a_newer_file_is_left_alone_and_no_file_is_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(peek(folder.path()).unwrap(), None);
    let (journal, _) = Journal::open(folder.path()).unwrap();
    journal
        .connection
        .pragma_update(None, "user_version", 99)
        .unwrap();
    drop(journal);
    let error = Journal::open(folder.path()).unwrap_err();
    assert!(
        matches!(
            error,
            JournalError::TooNew {
                found: 99,
                known: 4,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn leases_of_the_first_wire_are_given_up_and_their_epochs_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new();
    let (mut journal, _) = Journal::open(folder.path()).unwrap();
    journal.commit(&[taken(&world, 1, 0)]).unwrap();
    let sold = listing(&machine(&[]));
    journal.set_listing(Some(&sold)).unwrap();
    // As the first version wrote it: in an encoding that this one does not read.
    let connection = &journal.connection;
    connection
        .execute_batch("DROP TABLE held_unit; DROP TABLE slice; DROP TABLE health; UPDATE lease SET record = x'01'")
        .unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    drop(journal);
    assert_eq!(peek(folder.path()).unwrap(), None);
    let recovered = reopened(folder.path());
    assert!(recovered.records.is_empty() && recovered.listing.is_none());
    assert_eq!(recovered.epochs.len(), 1);
}

#[test]
fn a_damaged_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("journal.db"), vec![7_u8; 8192]).unwrap();
    let error = Journal::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("journal.db"), "{error}");
}

/// That a lease is over and what its GPU waits for are on disk together, or neither is.
#[test]
fn the_health_of_gpus_is_kept_with_what_it_ends_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new();
    let (mut journal, recovered) = Journal::open(folder.path()).unwrap();
    assert_eq!(recovered.health, gpu_health::unit::Kept::default());
    let kept = gpu_health::unit::Kept {
        boot: "b".to_owned(),
        drain: Some("two fell off".to_owned()),
        ..Default::default()
    };
    journal.keep_health(&kept, &[taken(&world, 1, 0)]).unwrap();
    let other = gpu_health::unit::Kept {
        drain: None,
        ..kept.clone()
    };
    // Another lease has that GPU: the schema refuses, and nothing of it was written.
    assert!(journal.keep_health(&other, &[taken(&world, 2, 0)]).is_err());
    drop(journal);
    let recovered = reopened(folder.path());
    assert_eq!(recovered.records.len(), 1);
    assert_eq!(recovered.health, kept);
}
