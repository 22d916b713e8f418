//! What was typed, and nothing more: no file, no environment, no meaning.

mod audit;
mod host;
mod lease;
mod rent;

pub(crate) use audit::{AuditArgs, AuditCheckArgs, AuditCommand, AuditShowArgs};
pub(crate) use host::{HostArgs, HostCommand, HostScoreArgs, HostShowArgs};
pub(crate) use lease::{
    ConvertArgs, ConvertTo, EndArgs, ExecArgs, LogsArgs, LsArgs, NameArgs, ResumeArgs, ShellArgs,
    StopArgs, WaitArgs, WaitFor,
};
pub(crate) use rent::{BidArgs, BidCommand, BidSetArgs, RentArgs, WorkArgs};

use crate::commands::estimate::EstimateArgs;
use crate::commands::search::SearchArgs;
use crate::printer::Format;
use protocol::units::MicroUsd;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  feira init --broker /ip4/203.0.113.7/tcp/7700/p2p/12D3KooW…
  feira search 'gpu_name=RTX_4090 num_gpus>=2 dph<0.50'
  feira rent --gpu rtx4090 --max-price 0.40 --budget 5 --image pytorch/pytorch:2.9.0
  feira bid --gpu rtx4090 --max-price 0.22 --for 8h --budget 5 --image pytorch/pytorch:2.9.0
  feira shell brave-otter
  feira end brave-otter

More: feira help errors | exit-codes | environment | fields | agents | E0307";

/// Rent GPUs from independent hosts.
#[derive(Debug, clap::Parser)]
#[command(
    name = "feira",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = EXAMPLES
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub everywhere: Everywhere,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command takes, before and after its name.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Everywhere {
    /// Form of the answer: table, wide, json, ndjson, tsv or id
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        value_name = "FORM",
        hide_possible_values = true
    )]
    pub output: Option<Format>,
    /// The same as -o json
    #[arg(long, global = true, conflicts_with = "output")]
    pub json: bool,
    /// Say only ids, warnings and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say why
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// When to use colours: auto, always or never
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        hide_possible_values = true
    )]
    pub color: Option<ColorWhen>,
    /// Never ask; fail where an answer would be needed
    #[arg(long, global = true)]
    pub no_input: bool,
    /// Ask this broker instead of the configured ones (can be repeated)
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub broker: Vec<String>,
    /// Use this key file
    #[arg(long, global = true, value_name = "FILE")]
    pub key: Option<PathBuf>,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless the environment says otherwise
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Make a key and remember brokers; safe to run again
    Init(InitArgs),
    /// Find offers
    Search(Box<SearchArgs>),
    /// Show what a job costs until it is done, on each offer
    Estimate(EstimateArgs),
    /// Rent an offer and run an image on it
    Rent(Box<RentArgs>),
    /// Bid for an interruptible lease, or change a bid
    Bid(Box<BidArgs>),
    /// Make a lease one of another kind: on demand, interruptible, or reserved
    Convert(ConvertArgs),
    /// List your leases
    #[command(visible_alias = "list")]
    Ls(LsArgs),
    /// Show all about one lease
    Show(NameArgs),
    /// Show how reliable a host is, or compute it again from what brokers signed
    Host(HostArgs),
    /// Show how a host's hardware was put to the proof, or judge a proof again
    Audit(AuditArgs),
    /// Show what a lease's container wrote
    Logs(LogsArgs),
    /// Run a program in a lease's container
    Exec(ExecArgs),
    /// Open a shell in a lease's container
    Shell(ShellArgs),
    /// Stop leases: the machine is freed, the disk is kept and billed
    Stop(StopArgs),
    /// Start a stopped lease again
    Resume(ResumeArgs),
    /// End leases and delete their disks
    #[command(visible_aliases = ["destroy", "terminate", "down", "rm"])]
    End(EndArgs),
    /// Show your money with each broker
    Balance(BalanceArgs),
    /// Show or verify what a lease cost, signed by the broker
    Receipt(ReceiptArgs),
    /// Wait until a lease is ready, told to go, stopped or ended
    Wait(WaitArgs),
    /// Check key, brokers, clock and the way to your leases
    Doctor,
    /// Print completions for a shell
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Explain a command, a topic or an error
    Help {
        /// A command, a topic (errors, exit-codes, environment, fields, agents) or a code like E0307
        #[arg(value_name = "TOPIC")]
        topic: Vec<String>,
    },
}

/// Of `feira init`.
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// Take every default instead of asking
    #[arg(short, long)]
    pub yes: bool,
    /// Most that one lease may cost unless --budget says otherwise
    #[arg(long, value_name = "USD")]
    pub budget: Option<MicroUsd>,
}

/// Of `feira balance`.
#[derive(Debug, clap::Args)]
pub(crate) struct BalanceArgs {
    /// Every movement of the account instead
    #[arg(long)]
    pub statement: bool,
}

/// Of `feira receipt`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "feira receipt NAME [--save FILE]\n       feira receipt verify FILE")]
pub(crate) struct ReceiptArgs {
    /// The lease; or the word verify and a file
    #[arg(value_name = "NAME", num_args = 1..=2, required_unless_present = "verify")]
    pub words: Vec<String>,
    /// Write the receipt into a file
    #[arg(long, value_name = "FILE", conflicts_with = "verify")]
    pub save: Option<PathBuf>,
    /// Check a receipt in a file, without asking anybody
    #[arg(long, value_name = "FILE", conflicts_with = "words")]
    pub verify: Option<PathBuf>,
}

#[cfg(test)]
mod tests;
