//! Files that are named on the command line: read whole, up to a size, and errors that say where in them. `-` is
//! standard input, and standard output for what is saved.

use crate::context::Context;
use crate::failure::{Code, Failure, file_failed};
use protocol::net::named_file::{NamedFileError, STANDARD, read_file_or};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The text of a file, which should be `what` (`a receipt`) and is refused with `code` when it is not a text or
/// larger than `most` bytes.
pub(crate) fn text_of(
    context: &Context,
    path: &Path,
    most: u64,
    (code, what): (Code, &str),
) -> Result<String, Failure> {
    let input: Box<dyn Read> = match path.as_os_str() == STANDARD {
        true => context
            .take_input()
            .map_or_else(|| Box::new(io::empty()) as Box<dyn Read>, |it| Box::new(it)),
        false => Box::new(io::empty()),
    };
    read_file_or(path, input, most).map_err(|error| unread(path, &error, (code, what)))
}

/// A file that was not read.
pub(crate) fn unread(path: &Path, error: &NamedFileError, (code, what): (Code, &str)) -> Failure {
    let name = path.display();
    match error {
        NamedFileError::Missing => {
            Failure::new(Code::NoSuchFile, format!("there is no file {name}"))
        }
        NamedFileError::Special(kind) => {
            Failure::new(code, format!("{name} is {kind}, not a file"))
                .help("name a file, or pass it on standard input and name it -")
        }
        NamedFileError::TooLarge { most } => {
            let what = format!("{name} is too large for {what}: at most {most} bytes are read");
            Failure::new(code, what)
        }
        NamedFileError::NotText => Failure::new(code, format!("{name} is not a text")),
        NamedFileError::Io(error) => file_failed("read", path, error),
    }
}

/// Whether what is saved goes to standard output, in the answer's place.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == STANDARD
}

/// Writes `text` to the file at `path`.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| file_failed("write", path, &error))
}

/// `, line 3 (budget = "3")`: where in `text` byte `start` is, with what stands there.
pub(crate) fn place_in(text: &str, start: usize) -> String {
    let before = text.get(..start).unwrap_or(text);
    let line = before.matches('\n').count();
    let content = text.lines().nth(line).unwrap_or_default().trim();
    format!(", line {} ({content})", line + 1)
}
