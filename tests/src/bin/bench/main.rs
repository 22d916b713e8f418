//! Measures Feira beside something that is known, in one run on one machine; `scripts/bench` builds
//! and calls it.
//!
//! Must not judge: a row that misses its goal says so, and the run still ends well. It fails only
//! where something could not be measured.

mod book;
mod clock;
mod cpu;
mod desk;
mod gpu_hang;
mod group_commit;
mod machine;
mod market;
mod memory;
mod mig;
mod orders;
mod orders_mixed;
mod proof;
mod recorded;
mod report;
mod rounds;
mod search;
mod simulate;
mod start;
mod threads;

use broker::program::Allocator;
use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

/// A broker's market runs here as in its own program, with its memory from the same place.
#[global_allocator]
static MEMORY: Allocator = Allocator;

/// What every row of the bench returns where it could not measure.
type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let (json, names): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|argument| argument == "--json");
    match report::run(&names, !json.is_empty()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where standard error is closed there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "bench: {error}");
            ExitCode::FAILURE
        }
    }
}
