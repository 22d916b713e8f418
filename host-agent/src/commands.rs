//! One file for each thing an owner can do. A command takes what was typed and a printer, and ends in an
//! exit code; none of them ends the process.

mod bench;
mod bench_gpu;
mod checked;
mod doctor;
mod earnings;
mod failures;
mod gpu_helper;
mod gpu_scrub;
mod health;
mod init;
mod leases;
mod list;
mod measuring;
mod mig;
mod offers;
mod owner;
mod run;
mod status;

use crate::args::{Arguments, Command, Mig};
use crate::config::Config;
use crate::program::PROGRAM;
use protocol::operator::{self, Exit, Failure, Threads, threads};
use std::ops::Deref;
use std::process::ExitCode;

/// What a command needs to know beside its own arguments.
#[derive(Debug)]
struct Place(operator::Place);

impl Deref for Place {
    type Target = operator::Place;

    fn deref(&self) -> &operator::Place {
        &self.0
    }
}

impl Place {
    /// The settings.
    fn config(&self) -> Result<Config, Failure> {
        Config::read(&self.folder.config()).map_err(|error| self.settings_failed(&error))
    }
}

/// Runs what was typed.
#[must_use]
pub fn run(arguments: Arguments) -> ExitCode {
    let place = operator::Place::new(&PROGRAM, arguments.data, arguments.json);
    let place = Place(place);
    place.end(dispatch(arguments.command, &place))
}

fn dispatch(command: Command, place: &Place) -> Result<Exit, Failure> {
    match command {
        Command::Init(init) => init::init(place, &init),
        Command::Doctor => doctor::doctor(place),
        Command::Bench(bench) => bench::bench(place, &bench),
        Command::BenchGpu(asked) => bench_gpu::run(asked),
        Command::List(wishes) => list::list(place, *wishes),
        Command::Unlist(unlist) => list::unlist(place, &unlist),
        Command::Run(run) => run::run(place, &run),
        Command::Status => status::status(place),
        Command::GpuHelper(asked) => gpu_helper::run(place, asked),
        Command::GpuScrub => gpu_scrub::run(),
        Command::Checked(checked) => checked::checked(place, &checked.gpu),
        Command::Leases => leases::leases(place),
        Command::Earnings => earnings::earnings(place),
        Command::ShowOffer => offers::show(place),
        Command::Mig(Mig::Plan) => mig::plan(place),
        Command::Completions(completions) => {
            place.completions::<Arguments>(completions.shell);
            Ok(Exit::Done)
        }
    }
}

/// Runs `work` on a runtime of its own that is gone when the command is.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    Ok(threads(Threads::Two)?.block_on(work))
}
