//! One file for each thing an operator can do. A command takes what was typed and a printer, and ends in an
//! exit code; none of them ends the process.

mod asking;
mod backup;
mod deposit;
mod doctor;
mod failures;
mod init;
mod ledger;
mod lists;
mod restore;
mod run;
mod status;

use crate::args::{Arguments, Command, Ledger};
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

/// Runs what was typed.
#[must_use]
pub fn run(arguments: Arguments) -> ExitCode {
    let printer = Printer::new(arguments.json);
    let place = Place {
        folder: Folder::new(arguments.data),
        printer: printer.clone(),
    };
    let done = dispatch(arguments.command, &place);
    match done.and_then(|exit| printer.finish().map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            printer.failure(&failure);
            failure.exit.into()
        }
    }
}

fn dispatch(command: Command, place: &Place) -> Result<Exit, Failure> {
    match command {
        Command::Init(init) => init::init(place, &init),
        Command::Run(run) => run::run(place, &run),
        Command::Status => status::status(place),
        Command::Deposit(deposit) => deposit::deposit(place, deposit),
        Command::Accounts => lists::accounts(place),
        Command::Hosts => lists::hosts(place),
        Command::Leases(leases) => lists::leases(place, leases.all),
        Command::Ledger(Ledger::Check) => ledger::check(place),
        Command::Replay => ledger::replay(place),
        Command::Backup(backup) => backup::backup(place, &backup.file),
        Command::Restore(restore) => restore::restore(place, &restore),
        Command::Doctor => doctor::doctor(place),
        Command::Completions(completions) => {
            let mut command = Arguments::command();
            let mut script = Vec::new();
            clap_complete::generate(completions.shell, &mut command, "feira-broker", &mut script);
            place
                .printer
                .line(String::from_utf8_lossy(&script).trim_end());
            Ok(Exit::Done)
        }
    }
}
