//! One file for each thing an operator can do. A command takes what was typed and a printer, and ends in an
//! exit code; none of them ends the process.

mod backup;
mod deposit;
mod doctor;
mod failures;
mod init;
mod ledger;
mod lists;
mod payments;
mod payouts;
mod restore;
mod run;
mod simulate;
mod status;
mod verify;

use crate::args::{Arguments, Command, Ledger};
use crate::program::PROGRAM;
use protocol::operator::{self, Exit, Failure};
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
        Command::Run(run) => run::run(place, &run),
        Command::Status => status::status(place),
        Command::Deposit(deposit) => deposit::deposit(place, deposit),
        Command::Accounts => lists::accounts(place),
        Command::Hosts => lists::hosts(place),
        Command::Leases(leases) => lists::leases(place, leases.all),
        Command::Verify(typed) => verify::verify(place, &typed),
        Command::Bond(bond) => payments::bond(place, bond),
        Command::Refund(refund) => payments::refund(place, refund),
        Command::Payouts(payouts) => payouts::payouts(place, payouts),
        Command::Suspend(suspend) => payments::suspend(place, suspend),
        Command::Ledger(Ledger::Check) => ledger::check(place),
        Command::Simulate(simulate) => simulate::simulate(&simulate.file),
        Command::Replay => ledger::replay(place),
        Command::Backup(backup) => backup::backup(place, &backup.file),
        Command::Restore(restore) => restore::restore(place, &restore),
        Command::Doctor => doctor::doctor(place),
        Command::Completions(completions) => {
            place.completions::<Arguments>(completions.shell);
            Ok(Exit::Done)
        }
    }
}
