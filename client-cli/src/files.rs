//! Files that are named on the command line: read whole, up to a size, and errors that say where in them.

use crate::failure::{Code, Failure, file_failed};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The text of a file, which should be `what` (`a receipt`) and is refused with `code` when it is not a text or
/// larger than `most` bytes.
pub(crate) fn text_of(path: &Path, most: u64, code: Code, what: &str) -> Result<String, Failure> {
    let failed = |error: &io::Error| {
        if error.kind() == io::ErrorKind::NotFound {
            return Failure::new(
                Code::NoSuchFile,
                format!("there is no file {}", path.display()),
            );
        }
        file_failed("read", path, error)
    };
    let opened = fs::File::open(path).map_err(|error| failed(&error))?;
    // A device says that it is empty and never ends: what is read is counted, not what it says of itself.
    let mut bytes = Vec::new();
    opened
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| failed(&error))?;
    if u64::try_from(bytes.len()).is_ok_and(|size| size > most) {
        let what = format!("{} is too large for {what}", path.display());
        return Err(Failure::new(code, what));
    }
    String::from_utf8(bytes).map_err(|_| {
        let what = format!("{} is not a text", path.display());
        Failure::new(code, what)
    })
}

/// `, line 3 (budget = "3")`: where in `text` byte `start` is, with what stands there.
pub(crate) fn place_in(text: &str, start: usize) -> String {
    let before = text.get(..start).unwrap_or(text);
    let line = before.matches('\n').count();
    let content = text.lines().nth(line).unwrap_or_default().trim();
    format!(", line {} ({content})", line + 1)
}
