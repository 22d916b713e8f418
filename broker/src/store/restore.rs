//! A backup in the journal's place. What was there before is moved aside as it is, all of its files together:
//! a log of SQLite's that stayed beside another file would change or hide what the backup says.

use crate::store::lock::JournalLock;
use crate::store::{JOURNAL_FILE, LedgerReport, StoreError, ledger, lock, schema};
use protocol::ids::BrokerId;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

/// What SQLite keeps a journal in, its main file first: as long as that is missing no broker starts.
const PARTS: [&str; 3] = ["journal.db", "journal.db-wal", "journal.db-shm"];

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// What the backup adds up to.
    pub report: LedgerReport,
    /// Where the files are that were there before, if any were.
    pub before: Option<PathBuf>,
}

/// Puts the backup `file` in the place of the journal in `folder`, after a check from its first event. `moment`
/// names the folder into which the files that were there are moved.
///
/// # Errors
/// When a broker uses the folder, or the backup is damaged, unfinished or another broker's; then nothing has
/// changed. When a file cannot be moved; then a repetition goes on.
pub fn restore(
    folder: &Path,
    broker: BrokerId,
    file: &Path,
    moment: u64,
) -> Result<Restored, StoreError> {
    let _lock = JournalLock::take(folder)?;
    let coming = folder.join("restoring");
    let copy = coming.join(JOURNAL_FILE);
    forget(&coming)?;
    fs::create_dir(&coming).map_err(failed("make", &coming))?;
    let report = copied(file, &copy, broker).inspect_err(|_| {
        // The failure is the answer; what is left is taken away by the next try.
        let _ = fs::remove_dir_all(&coming);
    })?;
    let before = put_aside(folder, moment)?;
    let journal = folder.join(JOURNAL_FILE);
    fs::rename(&copy, &journal).map_err(failed("put in place", &journal))?;
    sync(folder)?;
    forget(&coming)?;
    Ok(Restored { report, before })
}

/// Copies the backup to a file of the broker's own and checks that.
fn copied(file: &Path, copy: &Path, broker: BrokerId) -> Result<LedgerReport, StoreError> {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    if fs::metadata(&log).is_ok_and(|found| found.len() > 0) {
        let problem = format!(
            "{} lies beside it: it is a journal in use and no backup",
            Path::new(&log).display()
        );
        return Err(StoreError::Damaged(problem));
    }
    lock::make_private(copy)?;
    give_to_owner(copy).map_err(failed("give away", copy))?;
    let mut from = File::open(file).map_err(failed("open", file))?;
    let mut to = File::options()
        .write(true)
        .open(copy)
        .map_err(failed("open", copy))?;
    std::io::copy(&mut from, &mut to).map_err(failed("copy", file))?;
    to.sync_all().map_err(failed("sync", copy))?;
    let report = ledger::check_file(copy)?;
    if let Some(problem) = report.problems.first() {
        return Err(StoreError::Ledger(problem.clone()));
    }
    schema::claim(&schema::connect_to_read(copy)?, broker)?;
    Ok(report)
}

/// Moves what is there into a folder of its own.
fn put_aside(folder: &Path, moment: u64) -> Result<Option<PathBuf>, StoreError> {
    let aside = folder.join(format!("replaced-{moment}"));
    let mut moved = None;
    for part in PARTS {
        let path = folder.join(part);
        if !path.exists() {
            continue;
        }
        if moved.is_none() {
            fs::create_dir_all(&aside).map_err(failed("make", &aside))?;
            moved = Some(aside.clone());
        }
        fs::rename(&path, aside.join(part)).map_err(failed("move", &path))?;
    }
    sync(folder)?;
    Ok(moved)
}

/// A file that root makes belongs to whom the folder belongs to, whose broker has to write it.
fn give_to_owner(copy: &Path) -> std::io::Result<()> {
    let Some(folder) = copy.parent().and_then(Path::parent) else {
        return Ok(());
    };
    let (wanted, own) = (fs::metadata(folder)?, fs::metadata(copy)?);
    if wanted.uid() == own.uid() {
        return Ok(());
    }
    chown(copy, Some(wanted.uid()), Some(wanted.gid()))
}

fn sync(folder: &Path) -> Result<(), StoreError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(failed("sync", folder))
}

fn forget(folder: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", folder)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    move |source| StoreError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}
