//! Where results are kept between runs, and that only one run is under way. The file is written whole or not at all,
//! and has a version of its own.

use crate::core::bench::Outcome;
use protocol::operator::write_over;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Its name in the data folder.
pub const FILE_NAME: &str = "bench.json";
/// What it says it is.
const SCHEMA: &str = "feira.host-bench-results/1";
const LOCK_NAME: &str = "bench.lock";
/// Results of 16 GPUs and 16 brokers take a tenth of it.
const BYTES_MAX: u64 = 256 * 1024;

/// Why results cannot be read, kept, or made.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The file is of another version of this program, or was changed.
    #[error("{path} is not what this version writes: {reason}; delete it and measure again")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file fails.
    #[error("could not {doing} {path}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another run is under way.
    #[error("a benchmark is under way{}: two at once would each measure the other", by(.pid))]
    UnderWay {
        /// Its process, if it said so.
        pid: Option<u32>,
    },
}

fn by(pid: &Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    schema: String,
    results: Vec<Outcome>,
}

/// The results in `folder`; none when nothing was measured yet.
///
/// # Errors
/// When there are some that cannot be read.
pub fn load(folder: &Path) -> Result<Vec<Outcome>, ResultsError> {
    let path = folder.join(FILE_NAME);
    let failed = |source| ResultsError::Io {
        doing: "read",
        path: path.clone(),
        source,
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut text = String::new();
    file.take(BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(failed)?;
    let foreign = |reason: String| ResultsError::Foreign {
        path: path.clone(),
        reason,
    };
    let kept: Kept = serde_json::from_str(&text).map_err(|error| foreign(error.to_string()))?;
    if kept.schema != SCHEMA {
        return Err(foreign(format!("it says that it is {}", kept.schema)));
    }
    Ok(kept.results)
}

/// Keeps results in `folder` in the place of those that are there.
///
/// # Errors
/// What the system said.
pub fn save(folder: &Path, results: &[Outcome]) -> Result<(), ResultsError> {
    let path = folder.join(FILE_NAME);
    let kept = Kept {
        schema: SCHEMA.to_owned(),
        results: results.to_vec(),
    };
    let failed = |source| ResultsError::Io {
        doing: "write",
        path: path.clone(),
        source,
    };
    let text = serde_json::to_string_pretty(&kept).map_err(|error| failed(error.into()))?;
    write_over(&path, &text).map_err(failed)
}

/// That no other run is under way for the same folder, as long as it is held. The kernel lets go of it however its
/// process ends.
#[derive(Debug)]
pub struct Turn {
    _file: File,
}

impl Turn {
    /// Takes the turn, or says whose it is.
    ///
    /// # Errors
    /// When another run has it.
    pub fn take(folder: &Path) -> Result<Self, ResultsError> {
        let path = folder.join(LOCK_NAME);
        let failed = |source| ResultsError::Io {
            doing: "lock",
            path: path.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // Who has it is said as a help; without it the refusal stands.
                let read = file.take(16).read_to_string(&mut text);
                let pid = read.ok().and_then(|_| text.trim().parse().ok());
                return Err(ResultsError::UnderWay { pid });
            }
            Err(error) => return Err(failed(error.into())),
        }
        let written = file.set_len(0).and_then(|()| file.rewind());
        written.map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::bounded::Text;
    use protocol::machine::Quantity;
    use protocol::units::Timestamp;

    fn outcome(value: u64) -> Outcome {
        Outcome {
            quantity: Quantity::CpuAll,
            value,
            method: Text::cut("prime-10000-all"),
            version: 1,
            at: Timestamp(5),
            on: String::new(),
            software: false,
        }
    }

    #[test]
    fn results_are_kept_whole_and_nothing_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load(folder.path()).unwrap(), []);
        save(folder.path(), &[outcome(7)]).unwrap();
        save(folder.path(), &[outcome(8)]).unwrap();
        assert_eq!(load(folder.path()).unwrap(), [outcome(8)]);
        let names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, [FILE_NAME]);
    }

    #[test]
    fn a_file_of_another_version_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        std::fs::write(
            &path,
            r#"{"schema":"feira.host-bench-results/2","results":[]}"#,
        )
        .unwrap();
        let refused = load(folder.path()).unwrap_err().to_string();
        assert!(
            refused.contains("bench.json") && refused.contains("results/2"),
            "{refused}"
        );
        std::fs::write(&path, "{").unwrap();
        assert!(matches!(
            load(folder.path()),
            Err(ResultsError::Foreign { .. })
        ));
    }

    #[test]
    fn two_at_once_are_refused_with_whose_turn_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let first = Turn::take(folder.path()).unwrap();
        let refused = Turn::take(folder.path()).unwrap_err().to_string();
        let expected = format!(
            "a benchmark is under way (process {}): two at once would each measure the other",
            std::process::id()
        );
        assert_eq!(refused, expected);
        drop(first);
        Turn::take(folder.path()).unwrap();
    }
}
