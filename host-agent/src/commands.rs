//! One file for each thing an owner can do. A command takes what was typed and a printer, and ends in an
//! exit code; none of them ends the process.

mod asking;
mod doctor;
mod earnings;
mod failures;
mod init;
mod leases;
mod list;
mod measuring;
mod offers;
mod owner;
mod run;
mod status;

use crate::args::{Arguments, Command};
use crate::exit::{Exit, Failure};
use crate::folder::Folder;
use crate::printer::Printer;
use clap::CommandFactory;
use std::process::ExitCode;

/// What a command needs to know beside its own arguments.
#[derive(Debug)]
struct Place {
    folder: Folder,
    printer: Printer,
}

impl Place {
    /// A command whose answer was lost is not done.
    fn is_written(&self, exit: Exit) -> Result<Exit, Failure> {
        let Some(error) = self.printer.lost() else {
            return Ok(exit);
        };
        Err(Failure::new(
            Exit::Failed,
            format!("the answer could not be written: {error}"),
        )
        .help("is the disk or the file behind stdout full?"))
    }
}

/// Runs what was typed.
#[must_use]
pub fn run(arguments: Arguments) -> ExitCode {
    let place = Place {
        folder: Folder::new(arguments.data),
        printer: Printer::new(arguments.json),
    };
    match dispatch(arguments.command, &place).and_then(|exit| place.is_written(exit)) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            place.printer.failure(&failure);
            failure.exit.into()
        }
    }
}

fn dispatch(command: Command, place: &Place) -> Result<Exit, Failure> {
    match command {
        Command::Init(init) => init::init(place, &init),
        Command::Doctor => doctor::doctor(place),
        Command::List(list) => list::list(place, &list),
        Command::Unlist => list::unlist(place),
        Command::Run(run) => run::run(place, &run),
        Command::Status => status::status(place),
        Command::Leases => leases::leases(place),
        Command::Earnings => earnings::earnings(place),
        Command::ShowOffer => offers::show(place),
        Command::Completions(completions) => {
            let mut command = Arguments::command();
            let mut script = Vec::new();
            clap_complete::generate(completions.shell, &mut command, "feira-host", &mut script);
            place
                .printer
                .line(String::from_utf8_lossy(&script).trim_end());
            Ok(Exit::Done)
        }
    }
}

/// Runs `work` on a runtime of its own that is gone when the command is.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Failed, format!("could not start threads: {error}")))?;
    Ok(runtime.block_on(work))
}
