//! What can be typed after `feira-broker`, and nothing about what it means.

use crate::program::DEFAULT_DATA;
use clap::{Args, Parser, Subcommand};
use protocol::ids::{DepositId, HostId, LeaseId, PaymentId, RenterId};
use protocol::net::{Multiaddr, parse_address};
use protocol::operator::{Completions, LogFormat};
use protocol::units::MicroUsd;
use protocol::whole::whole;
use std::net::SocketAddr;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes: 0 done · 1 failed · 2 used wrongly or a bad broker.toml · 3 not found, or an invariant broke (simulate) · 4 not allowed \
(key or file permissions) · 8 the broker does not run or does not answer · 130 interrupted";

/// The command line of a broker's operator.
#[derive(Debug, Parser)]
#[command(
    name = "feira-broker",
    version,
    about = "Run a broker of the Feira GPU market: match orders with offers, hold the money, keep the record",
    after_help = EXIT_CODES,
    arg_required_else_help = true
)]
pub struct Arguments {
    /// Folder with the broker's key, settings and journal
    #[arg(long, global = true, value_name = "DIR", env = "FEIRA_BROKER_DATA", default_value = DEFAULT_DATA)]
    pub data: PathBuf,
    /// Print JSON instead of text and tables
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What an operator can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the folder, the key and broker.toml; safe to run again
    Init(Init),
    /// Run the broker until it is told to stop
    Run(Run),
    /// What the running broker is doing
    Status,
    /// Credit a renter with money that you received, or take a deposit back
    Deposit(Deposit),
    /// What each renter has
    Accounts,
    /// Hosts that are heard, and what they offer
    Hosts,
    /// Leases that are not over
    Leases(Leases),
    /// Put a host's hardware to the proof as soon as it is idle
    Verify(Verify),
    /// What a host deposited against what it may have to give back
    #[command(subcommand)]
    Bond(Bond),
    /// Give a renter back a part of what a lease cost
    Refund(Refund),
    /// What is to be paid to hosts
    #[command(subcommand)]
    Payouts(Payouts),
    /// Let a host take no leases, or take them again
    Suspend(Suspend),
    /// The books
    #[command(subcommand)]
    Ledger(Ledger),
    /// Let a scenario happen in this program's market, with a virtual clock and no network; prints JSON lines
    Simulate(Simulate),
    /// Rebuild the state from the journal's first event and compare it with every entry; changes nothing
    Replay,
    /// Copy the journal to a new file while the broker runs, and check the copy
    Backup(Backup),
    /// Put a backup in the journal's place, after a check, while no broker runs; keeps what was there.
    /// A copy by hand beside an old journal.db-wal restores nothing
    Restore(Restore),
    /// Check settings, key, journal, ledger, ports and clock
    Doctor,
    /// Print a completion script
    Completions(Completions),
}

/// How a new broker is set up.
#[derive(Debug, Args)]
pub struct Init {
    /// Address to listen at, again for each; TCP and UDP port 7700 on all interfaces when not given
    #[arg(long, value_name = "MULTIADDR", value_parser = address)]
    pub listen: Vec<Multiaddr>,
    /// Address under which others reach this broker, when it is not the one it listens at
    #[arg(long, value_name = "MULTIADDR", value_parser = address)]
    pub announce: Vec<Multiaddr>,
    /// Your part of every charge in hundredths of a percent [default: 300, which is 3 %]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(0..=10_000), allow_negative_numbers = true)]
    pub fee_bps: Option<u16>,
    /// What renters see as the broker's name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Loopback address of the metrics page [default: 127.0.0.1:9640, or another port when that one is taken]
    #[arg(long, value_name = "IP:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Do and say nothing when the broker is there already
    #[arg(long)]
    pub if_missing: bool,
    /// Begin empty books although the key was there: only for a broker that never took money
    #[arg(long, conflicts_with = "if_missing")]
    pub empty_books: bool,
}

/// What to put to the proof.
#[derive(Debug, Args)]
pub struct Verify {
    /// Whole id of a host, for all that it offers, or of one offer
    #[arg(value_name = "HOST|OFFER")]
    pub what: String,
}

/// How to run.
#[derive(Debug, Args)]
pub struct Run {
    /// How to write the log, which goes to stderr
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Write the broker's addresses and the metrics page's to this file once all of them listen
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
}

/// A deposit.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    override_usage = "feira-broker deposit RENTER AMOUNT [OPTIONS]\n       \
                      feira-broker deposit reverse DEPOSIT [AMOUNT] --note TEXT [OPTIONS]"
)]
pub struct Deposit {
    /// What to do with a deposit that is there.
    #[command(subcommand)]
    pub command: Option<DepositCommand>,
    /// Whole id of the renter, as `feira init` prints it
    #[arg(value_name = "RENTER", required = true)]
    pub renter: Option<RenterId>,
    /// Dollars, like 10 or 0.25
    #[arg(value_name = "AMOUNT", required = true, allow_negative_numbers = true)]
    pub amount: Option<MicroUsd>,
    /// Also to a renter that this broker never heard of
    #[arg(long)]
    pub new: bool,
    /// Id of the deposit: with the same id, money is credited once, however often this is run
    #[arg(long, value_name = "ID")]
    pub id: Option<DepositId>,
    /// A note for the books
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub memo: String,
}

/// What can be done with a deposit that is there.
#[derive(Debug, Subcommand)]
pub enum DepositCommand {
    /// Take it, or a part of it, back: never more than its renter has free
    Reverse(Reverse),
}

/// A deposit that is taken back.
#[derive(Debug, Args)]
pub struct Reverse {
    /// Id of the deposit, as `deposit` printed it
    #[arg(value_name = "DEPOSIT")]
    pub deposit: DepositId,
    /// Dollars, like 10 or 0.25 [default: all of it that was not taken back before]
    #[arg(value_name = "AMOUNT", allow_negative_numbers = true)]
    pub amount: Option<MicroUsd>,
    /// Id of the payment: with the same id it counts once, however often this is run
    #[arg(long, value_name = "ID")]
    pub id: Option<PaymentId>,
    /// Why, for the books
    #[arg(long, value_name = "TEXT")]
    pub note: String,
}

/// A host's bond.
#[derive(Debug, Subcommand)]
pub enum Bond {
    /// Credit a host's bond with money that you received
    Deposit(HostMoney),
    /// Put down that you gave a host its bond, or a part of it, back
    Return(HostMoney),
}

/// Money of a host's bond.
#[derive(Debug, Args)]
pub struct HostMoney {
    /// Whole id of the host, as `feira-host status` prints it
    #[arg(value_name = "HOST")]
    pub host: HostId,
    /// Dollars, like 50 or 0.25
    #[arg(value_name = "AMOUNT")]
    pub amount: MicroUsd,
    /// Id of the payment: with the same id it counts once, however often this is run
    #[arg(long, value_name = "ID")]
    pub id: Option<PaymentId>,
    /// A note for the books
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub note: String,
    /// Also for a host that this broker never heard of
    #[arg(long)]
    pub new: bool,
}

/// A refund.
#[derive(Debug, Args)]
pub struct Refund {
    /// Whole id of the lease
    #[arg(value_name = "LEASE")]
    pub lease: LeaseId,
    /// Dollars, like 0.20
    #[arg(value_name = "AMOUNT")]
    pub amount: MicroUsd,
    /// Id of the payment: with the same id it counts once, however often this is run
    #[arg(long, value_name = "ID")]
    pub id: Option<PaymentId>,
    /// Why, for the books
    #[arg(long, value_name = "TEXT")]
    pub note: String,
}

/// Payouts.
#[derive(Debug, Subcommand)]
pub enum Payouts {
    /// Make a payout of all that is free for each host that has none open, and write all open ones as CSV
    Export {
        /// A file that does not exist yet; standard output when not given, or -
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Leave hosts alone that have less free, in dollars
        #[arg(long, value_name = "AMOUNT", default_value = "20")]
        minimum: MicroUsd,
    },
    /// Put down that a payout was paid
    Paid(PayoutNote),
    /// Put down that a payout is not to be paid; its money is free for the next one
    Drop(PayoutNote),
}

/// What became of a payout.
#[derive(Debug, Args)]
pub struct PayoutNote {
    /// Its id, from the export
    #[arg(value_name = "PAYOUT")]
    pub payout: PaymentId,
    /// The bank's name of the transfer, or why it is dropped
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub note: String,
}

/// Which host, and why.
#[derive(Debug, Args)]
pub struct Suspend {
    /// Whole id of the host
    #[arg(value_name = "HOST")]
    pub host: HostId,
    /// Why it may take no leases
    #[arg(long, value_name = "TEXT", required_unless_present = "lift")]
    pub why: Option<String>,
    /// Let it take leases again
    #[arg(long, conflicts_with = "why")]
    pub lift: bool,
    /// Also a host that this broker never heard of
    #[arg(long)]
    pub new: bool,
}

/// Which leases.
#[derive(Debug, Args)]
pub struct Leases {
    /// Those that are over, too
    #[arg(long)]
    pub all: bool,
}

/// What can be done with the books.
#[derive(Debug, Subcommand)]
pub enum Ledger {
    /// Add up every entry: the sum must be zero and no balance below it
    Check,
}

/// Which scenario.
#[derive(Debug, Args)]
pub struct Simulate {
    /// A JSON file with settings, hosts, steps and until_s; - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Where to.
#[derive(Debug, Args)]
pub struct Backup {
    /// A file that does not exist yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// What to put in place.
#[derive(Debug, Args)]
pub struct Restore {
    /// A file that `backup` wrote
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Also when there are books: they are kept in a folder beside, and all since the backup is forgotten
    #[arg(long)]
    pub replace: bool,
}

fn address(text: &str) -> Result<Multiaddr, String> {
    parse_address(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn global_flags_stand_before_and_after_the_command() {
        for line in [["x", "--json", "status"], ["x", "status", "--json"]] {
            assert!(Arguments::try_parse_from(line).unwrap().json);
        }
    }

    #[test]
    fn a_deposit_wants_a_whole_renter_and_an_amount_in_dollars() {
        let renter = RenterId::from_bytes([7; 32]).to_string();
        let parsed = Arguments::try_parse_from(["x", "deposit", &renter, "0.25"]).unwrap();
        let Command::Deposit(deposit) = parsed.command else {
            panic!("another command")
        };
        assert_eq!(deposit.amount, Some(MicroUsd(250_000)));
        let short = Arguments::try_parse_from(["x", "deposit", &renter[..10], "1"]).unwrap_err();
        assert!(
            short.to_string().contains("is not a whole renter"),
            "{short}"
        );
        let amount = Arguments::try_parse_from(["x", "deposit", &renter, "1e3"]).unwrap_err();
        assert!(
            amount.to_string().contains("is not an amount in dollars"),
            "{amount}"
        );
    }

    #[test]
    fn a_deposit_is_made_or_taken_back() {
        let id = DepositId::from_bytes([7; 16]).to_string();
        let line = ["x", "deposit", "reverse", &id, "0.25", "--note", "typo"];
        let Command::Deposit(Deposit {
            command: Some(DepositCommand::Reverse(reverse)),
            ..
        }) = Arguments::try_parse_from(line).unwrap().command
        else {
            panic!("another command")
        };
        assert_eq!(reverse.amount, Some(MicroUsd(250_000)));
        // Without a reason, without an amount, without anything.
        assert!(Arguments::try_parse_from(&line[..5]).is_err());
        let renter = RenterId::from_bytes([7; 32]).to_string();
        assert!(Arguments::try_parse_from(["x", "deposit", &renter]).is_err());
        assert!(Arguments::try_parse_from(["x", "deposit"]).is_err());
        let stray = format!("{}z", &id[..id.len() - 1]);
        let line = ["x", "deposit", &renter, "1", "--id", &stray];
        let said = Arguments::try_parse_from(line).unwrap_err().to_string();
        assert!(
            said.contains("its last character can only be one of"),
            "{said}"
        );
    }

    #[test]
    fn a_bad_address_says_how_one_looks() {
        let error =
            Arguments::try_parse_from(["x", "init", "--listen", "0.0.0.0:7700"]).unwrap_err();
        assert!(error.to_string().contains("/ip4/"), "{error}");
    }
}
