//! `feira-broker simulate FILE`: a scenario through the broker's own core, with a virtual clock and no network.

use crate::simulate::{Broken, City, Scenario};
use protocol::net::named_file::{NamedFileError, read_file_or};
use protocol::operator::{Exit, Failure};
use std::io::{self, ErrorKind, LineWriter, Write};
use std::path::Path;

/// Most bytes of a scenario's file.
const FILE_MAX: u64 = 256 * 1024 * 1024;

/// Reads the scenario, lets it happen, and prints what did.
pub(super) fn simulate(file: &Path) -> Result<Exit, Failure> {
    let name = file.display();
    let text = read_file_or(file, io::stdin().lock(), FILE_MAX).map_err(|error| {
        let exit = match error {
            NamedFileError::Missing => Exit::NotFound,
            NamedFileError::Special(_)
            | NamedFileError::TooLarge { .. }
            | NamedFileError::NotText
            | NamedFileError::Io(_) => Exit::Usage,
        };
        Failure::new(exit, format!("cannot read {name}: {error}"))
            .help("give the name of a scenario's JSON file, or - for standard input")
    })?;
    let scenario = Scenario::read(&text)
        .map_err(|error| Failure::new(Exit::Usage, format!("{name}: {error}")))?;
    // Whoever looks on sees each line as it happens.
    let mut out = LineWriter::new(io::stdout().lock());
    let done = City::new(&scenario, &mut out).run();
    let done = done.and_then(|()| out.flush().map_err(Broken::from));
    match done {
        Ok(()) => Ok(Exit::Done),
        // Whoever reads has read enough.
        Err(Broken::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(error @ Broken::Invariant { .. }) => Err(Failure::new(Exit::Broken, error.to_string())
            .help("this is a fault of the program: keep the file, it shows how")),
        Err(error) => Err(Failure::new(Exit::Failed, error.to_string())),
    }
}
