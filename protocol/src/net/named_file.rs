//! Files that a person names on a command line or keeps for a program: read whole, up to a bound.
//!
//! A device, a pipe or a folder is refused before it is opened: one never ends, another makes a program wait for
//! ever. Must not know what stands in them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// What stands on a command line for standard input or output.
pub const STANDARD: &str = "-";

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum NamedFileError {
    /// There is none.
    #[error("there is no such file")]
    Missing,
    /// It is something that is not read as a file.
    #[error("it is {0}, not a file")]
    Special(&'static str),
    /// It is larger than what is asked for can be.
    #[error("it is larger than {most} bytes, which is the most that is read")]
    TooLarge {
        /// The bound.
        most: u64,
    },
    /// Its bytes are no text.
    #[error("it is not a text")]
    NotText,
    /// The system does not let it be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The text of the file at `path`, which may have `most` bytes.
///
/// # Errors
/// When it is no file, larger, no text, or cannot be read.
pub fn read_file(path: &Path, most: u64) -> Result<String, NamedFileError> {
    let found = fs::metadata(path).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            NamedFileError::Missing
        } else {
            error.into()
        }
    })?;
    if let Some(what) = special(&found) {
        return Err(NamedFileError::Special(what));
    }
    if found.len() > most {
        return Err(NamedFileError::TooLarge { most });
    }
    // It may have grown since, and files of the kernel's say that they are empty.
    bounded(File::open(path)?, most)
}

/// As [`read_file`], or, where the path is [`STANDARD`], what comes from `input`.
///
/// # Errors
/// When it is no file, larger, no text, or cannot be read.
pub fn read_file_or(path: &Path, input: impl Read, most: u64) -> Result<String, NamedFileError> {
    if path.as_os_str() == STANDARD {
        return bounded(input, most);
    }
    read_file(path, most)
}

fn bounded(from: impl Read, most: u64) -> Result<String, NamedFileError> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|size| size > most) {
        return Err(NamedFileError::TooLarge { most });
    }
    String::from_utf8(bytes).map_err(|_| NamedFileError::NotText)
}

/// What it is when it is not a regular file.
fn special(found: &fs::Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;
    let kind = found.file_type();
    if kind.is_file() {
        return None;
    }
    Some(if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(path: &Path, most: u64) -> String {
        read_file(path, most).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_small_file_of_text_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(refused(folder.path(), 9), "it is a folder, not a file");
        assert_eq!(
            refused(Path::new("/dev/zero"), 9),
            "it is a device, not a file"
        );
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        assert_eq!(refused(&pipe, 9), "it is a pipe, not a file");
        assert_eq!(
            refused(&folder.path().join("none"), 9),
            "there is no such file"
        );
        let file = folder.path().join("file");
        fs::write(&file, "0123456789").unwrap();
        assert_eq!(read_file(&file, 10).unwrap(), "0123456789");
        assert!(refused(&file, 9).starts_with("it is larger than 9 bytes"));
        fs::write(&file, [0xff]).unwrap();
        assert_eq!(refused(&file, 9), "it is not a text");
    }

    #[test]
    fn a_dash_is_what_comes_in_up_to_the_same_bound() {
        let read = |most| read_file_or(Path::new("-"), &b"0123456789"[..], most);
        assert_eq!(read(10).unwrap(), "0123456789");
        assert!(matches!(read(9), Err(NamedFileError::TooLarge { most: 9 })));
    }
}
