//! `feira-broker simulate FILE`: a scenario through the broker's own core, with a virtual clock and no network.

use crate::simulate::{Broken, City, Scenario};
use protocol::operator::{Exit, Failure};
use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

/// Most bytes of a scenario's file.
const FILE_MAX: u64 = 256 * 1024 * 1024;

/// Reads the scenario, lets it happen, and prints what did.
pub(super) fn simulate(file: &Path) -> Result<Exit, Failure> {
    let name = file.display();
    let unreadable = |error: io::Error| {
        Failure::new(Exit::Usage, format!("cannot read {name}: {error}"))
            .help("give the name of a scenario's JSON file")
    };
    let size = fs::metadata(file).map_err(unreadable)?.len();
    if size > FILE_MAX {
        let what = format!("{name} has {size} bytes; a scenario has at most {FILE_MAX}");
        return Err(Failure::new(Exit::Usage, what));
    }
    let text = fs::read_to_string(file).map_err(unreadable)?;
    let scenario = Scenario::read(&text)
        .map_err(|error| Failure::new(Exit::Usage, format!("{name}: {error}")))?;
    let mut out = BufWriter::new(io::stdout().lock());
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
