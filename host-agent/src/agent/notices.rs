//! The folder that each lease's container sees at `/run/feira`, and the one file that appears in it: the notice
//! that the container has to go. The container can read the folder and nothing else of this machine.

use protocol::ids::LeaseId;
use protocol::operator::rfc3339;
use protocol::units::{Seconds, Timestamp};
use serde::Serialize;
use std::fs::Permissions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio::fs;

/// Name of the folder of these folders in the data folder.
const NAME: &str = "notices";
/// Name of the file.
const FILE: &str = "notice.json";

/// What a container is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// Whether for a better bid, rather than for a firm lease.
    pub(super) outbid: bool,
    /// When it is stopped.
    pub(super) stop_at: Timestamp,
    /// How long that is from now.
    pub(super) left: Seconds,
}

/// What stands in the file.
#[derive(Serialize)]
struct Text {
    reason: &'static str,
    stop_at: String,
    seconds: u64,
}

/// One lease's folder.
#[derive(Debug, Clone)]
pub(super) struct NoticeFolder {
    folder: PathBuf,
    /// Where the file is written before it appears.
    draft: PathBuf,
}

impl NoticeFolder {
    /// The lease's folder below the data folder.
    pub(super) fn of(data: &Path, lease: LeaseId) -> Self {
        let all = data.join(NAME);
        Self {
            folder: all.join(lease.to_string()),
            draft: all.join(format!("{lease}.draft")),
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// Makes it, empty: no run begins with an earlier one's notice.
    pub(super) async fn prepare(&self) -> io::Result<()> {
        fs::create_dir_all(&self.folder).await?;
        // Whoever the image runs as may read it; the data folder around it is its owner's alone.
        fs::set_permissions(&self.folder, Permissions::from_mode(0o755)).await?;
        self.recall().await
    }

    /// Lets the file appear whole: a program that watches the folder hears of it once.
    pub(super) async fn tell(&self, told: Told) -> io::Result<()> {
        let text = Text {
            reason: if told.outbid { "outbid" } else { "preempted" },
            stop_at: rfc3339(told.stop_at),
            seconds: told.left.0,
        };
        let mut bytes = serde_json::to_vec(&text)?;
        bytes.push(b'\n');
        fs::write(&self.draft, bytes).await?;
        fs::set_permissions(&self.draft, Permissions::from_mode(0o444)).await?;
        fs::rename(&self.draft, self.folder.join(FILE)).await
    }

    /// Takes the file away, if it is there.
    pub(super) async fn recall(&self) -> io::Result<()> {
        is_gone(fs::remove_file(self.folder.join(FILE)).await)
    }

    /// Deletes the folder, if it is there.
    pub(super) async fn delete(&self) -> io::Result<()> {
        is_gone(fs::remove_file(&self.draft).await)?;
        is_gone(fs::remove_dir_all(&self.folder).await)
    }
}

fn is_gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_file_appears_whole_and_goes_with_the_next_run() {
        let data = tempfile::tempdir().unwrap();
        let notices = NoticeFolder::of(data.path(), LeaseId::from_bytes([7; 16]));
        notices.prepare().await.unwrap();
        let told = Told {
            outbid: true,
            stop_at: Timestamp(1_798_761_600_000),
            left: Seconds(120),
        };
        notices.tell(told).await.unwrap();
        let file = notices.path().join("notice.json");
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(
            text,
            "{\"reason\":\"outbid\",\"stop_at\":\"2027-01-01T00:00:00Z\",\"seconds\":120}\n"
        );
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(notices.path())), (0o444, 0o755));
        // Told again after a restart: it says how long is left by then.
        let later = Told {
            outbid: false,
            left: Seconds(60),
            ..told
        };
        notices.tell(later).await.unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            text.contains("\"preempted\"") && text.contains("\"seconds\":60"),
            "{text}"
        );
        notices.prepare().await.unwrap();
        assert!(!file.exists());
        notices.delete().await.unwrap();
        notices.delete().await.unwrap();
        assert!(!notices.path().exists());
    }
}
