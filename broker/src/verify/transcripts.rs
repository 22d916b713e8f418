//! Transcripts of proofs on disk, one file each, named by its digest. What is kept is on disk when it is said to be.
//!
//! Must not read what is in one.

use protocol::bounded::Blob;
use protocol::ids::Digest;
use protocol::units::Seconds;
use protocol::verify::{TRANSCRIPT_PART_MAX, TranscriptPart};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder of them in a broker's data folder.
pub const FOLDER: &str = "proofs";

/// Where transcripts are.
#[derive(Debug, Clone)]
pub struct Transcripts {
    folder: PathBuf,
}

impl Transcripts {
    /// Those in this broker's data folder.
    #[must_use]
    pub fn in_folder(data: &Path) -> Self {
        Self {
            folder: data.join(FOLDER),
        }
    }

    /// Keeps one: its bytes are on disk when this returns.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn keep(&self, bytes: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of(bytes);
        fs::create_dir_all(&self.folder)?;
        let path = self.path(digest);
        let new = path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(digest)
    }

    /// Deletes those that are older than `keep`. Gives back how many.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn forget(&self, keep: Seconds) -> io::Result<usize> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut forgotten = 0;
        for entry in entries.flatten() {
            let age = entry
                .metadata()
                .and_then(|found| found.modified())
                .map(|modified| modified.elapsed().unwrap_or_default());
            if age.is_ok_and(|age| age > Duration::from_secs(keep.0))
                && fs::remove_file(entry.path()).is_ok()
            {
                forgotten += 1;
            }
        }
        Ok(forgotten)
    }

    /// A part of one, from byte `from` on.
    pub async fn part(&self, digest: Digest, from: u32) -> TranscriptPart {
        let path = self.path(digest);
        let reading = tokio::task::spawn_blocking(move || read_part(&path, from));
        let nothing = TranscriptPart {
            length: 0,
            bytes: Blob::default(),
        };
        reading.await.ok().and_then(Result::ok).unwrap_or(nothing)
    }

    fn path(&self, digest: Digest) -> PathBuf {
        self.folder.join(digest.to_string())
    }
}

fn read_part(path: &Path, from: u32) -> io::Result<TranscriptPart> {
    let mut file = File::open(path)?;
    let length = u32::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    file.seek(SeekFrom::Start(u64::from(from)))?;
    let mut bytes = Vec::new();
    let most = u64::try_from(TRANSCRIPT_PART_MAX).map_err(io::Error::other)?;
    file.take(most).read_to_end(&mut bytes)?;
    let bytes = Blob::new(bytes).map_err(io::Error::other)?;
    Ok(TranscriptPart { length, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_transcript_is_read_in_parts_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let transcripts = Transcripts::in_folder(folder.path());
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(300_000).collect();
        let digest = transcripts.keep(&bytes).unwrap();
        assert_eq!(digest, Digest::of(&bytes));
        let mut read = Vec::new();
        // 300 000 = 2 · 131 072 + 37 856.
        for expected in [131_072, 131_072, 37_856, 0] {
            let from = u32::try_from(read.len()).unwrap();
            let part = transcripts.part(digest, from).await;
            assert_eq!((part.length, part.bytes.len()), (300_000, expected));
            read.extend_from_slice(&part.bytes);
        }
        assert_eq!(read, bytes);
        assert_eq!(transcripts.forget(Seconds(3600)).unwrap(), 0);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(transcripts.forget(Seconds(0)).unwrap(), 1);
        assert_eq!(transcripts.part(digest, 0).await.length, 0);
    }
}
