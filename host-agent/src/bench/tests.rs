//! Runs of a few parts on this machine: what they give, how they are stopped, and what one that fails leaves to the
//! others.

use super::*;
use std::sync::Mutex;

fn plan(parts: &[Part], folder: &Path) -> Plan {
    Plan {
        cpu: Duration::from_millis(100),
        disk: disk::Settings {
            file: 4 * 1024 * 1024,
            reserve: 0,
            length: Duration::from_millis(50),
        },
        ..Plan::new(parts.iter().copied().collect(), folder.to_owned())
    }
}

fn quantities(run: &Run) -> Vec<Quantity> {
    run.outcomes.iter().map(|one| one.quantity).collect()
}

/// On a disk, since `/tmp` may be memory.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

#[tokio::test]
async fn each_part_gives_its_quantities_with_method_and_time() {
    let folder = folder();
    let plan = Plan {
        data_root: Ok(folder.path().to_owned()),
        ..plan(&[Part::Cpu, Part::Disk], folder.path())
    };
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&said);
    let watch = Watch::new(move |part, done| heard.lock().unwrap().push((part, done)));
    let run = run(&plan, None, &watch).await;
    assert!(run.failed.is_empty(), "{:?}", run.failed);
    assert_eq!(
        quantities(&run),
        [
            Quantity::CpuSingle,
            Quantity::CpuAll,
            Quantity::DiskRead,
            Quantity::DiskWrite,
            Quantity::DiskRandomRead
        ]
    );
    for one in &run.outcomes {
        assert!(one.version == 1 && one.at.0 > 0 && !one.software, "{one:?}");
    }
    assert_eq!(run.outcomes[0].method.as_str(), "prime-10000-single");
    let said = said.lock().unwrap();
    assert!(said.is_sorted() && said.last() == Some(&(Part::Disk, 1000)));
}

#[tokio::test]
async fn a_part_that_fails_hides_no_other() {
    let folder = folder();
    let plan = plan(&[Part::Cpu, Part::Disk, Part::Network], folder.path());
    let run = run(&plan, None, &Watch::new(|_, _| {})).await;
    assert_eq!(quantities(&run), [Quantity::CpuSingle, Quantity::CpuAll]);
    let failed: Vec<(Part, String)> = run
        .failed
        .iter()
        .map(|(part, error)| (*part, error.to_string()))
        .collect();
    let no_engine =
        "nobody knows which disk the container engine uses: the container engine was not asked";
    assert_eq!(
        failed,
        [
            (Part::Disk, no_engine.to_owned()),
            (Part::Network, "no broker is connected".to_owned())
        ]
    );
}

#[tokio::test]
async fn a_stop_ends_what_runs_and_what_would_come() {
    let folder = folder();
    let plan = Plan {
        cpu: Duration::from_secs(60),
        ..plan(&[Part::Cpu, Part::Ram], folder.path())
    };
    let watch = Watch::new(|_, _| {});
    let stopper = Arc::clone(&watch);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        stopper.stop();
    });
    let began = clock::monotonic();
    let run = run(&plan, None, &watch).await;
    assert!(clock::monotonic().0 - began.0 < 20_000);
    assert!(run.outcomes.is_empty());
    assert!(run.failed.iter().all(|(_, error)| error.is_stop()));
    assert_eq!(run.failed.len(), 2);
}

/// An agent in the group of Docker may look at its folder, and no more.
#[test]
fn a_data_root_that_is_closed_is_measured_beside_it_or_not_at_all() {
    let (own, root) = (folder(), folder());
    let beside = |may: bool, own: &Path| folder_on_disk(root.path(), own, move |_| may);
    assert_eq!(beside(true, Path::new("/proc")).unwrap(), root.path());
    assert_eq!(beside(false, own.path()).unwrap(), own.path());
    let refused = beside(false, Path::new("/proc")).unwrap_err().to_string();
    let expected = format!(
        "may not write in {}, and /proc is on another disk",
        root.path().display()
    );
    assert_eq!(refused, expected);
}
