//! The words and flags of the commands about leases one has.

use crate::amounts::{parse_days, parse_duration, parse_price, parse_variable};
use protocol::job::Variable;
use protocol::units::{PricePerHour, Seconds};
use protocol::whole::whole;

const LEASE_FIELDS: &str = "\
JSON: feira.lease/1: id name kind partition state reason since broker host offer order renter image gpus cpu_millicores
ram_bytes disk_bytes gpu_count bid_usd_per_gpu_hour to_win_usd_per_gpu_hour rests_until must_go_by clears_by
resumes_by_itself rates term price_usd_per_hour compute_usd_per_hour storage_usd_per_gb_month upload_usd_per_gb
download_usd_per_gb fee_basis_points ordered_at started_at ends_by disk_until running_seconds max_seconds
promised_until charged_usd held_usd budget_usd low_balance addresses";

/// One lease.
#[derive(Debug, clap::Args)]
#[command(after_help = LEASE_FIELDS)]
pub(crate) struct NameArgs {
    /// The lease's name or id, or at least four characters of its beginning
    pub name: String,
}

/// Of `feira ls`.
#[derive(Debug, clap::Args)]
#[command(after_help = "JSON: feira.leases/1: items as in feira show --help")]
pub(crate) struct LsArgs {
    /// Also those that are over
    #[arg(short, long)]
    pub all: bool,
}

/// Of `feira logs`.
#[derive(Debug, clap::Args)]
pub(crate) struct LogsArgs {
    /// Go on as more is written; survives a lost connection
    #[arg(short, long)]
    pub follow: bool,
    /// Nothing older than this, like 10m or 2h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub since: Option<Seconds>,
    /// Only so many last lines
    #[arg(long, value_name = "LINES", value_parser = whole::<u32>(0..=u32::MAX.into()), allow_negative_numbers = true)]
    pub tail: Option<u32>,
    /// Each line with its time
    #[arg(short, long)]
    pub timestamps: bool,
    /// The lease's name or id
    pub name: String,
}

/// Of `feira exec`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExecArgs {
    /// Accepted for those used to docker; standard input is always passed on
    #[arg(short, long)]
    pub interactive: bool,
    /// With a terminal, even if this program has none
    #[arg(short, long, conflicts_with = "no_tty")]
    pub tty: bool,
    /// Without a terminal, even if this program has one
    #[arg(short = 'T', long)]
    pub no_tty: bool,
    /// A variable for the program, like NAME=value (can be repeated)
    #[arg(short, long, value_name = "K=V", value_parser = parse_variable)]
    pub env: Vec<Variable>,
    /// The lease's name or id
    pub name: String,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<String>,
}

/// Of `feira shell`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShellArgs {
    /// The lease's name or id
    pub name: String,
}

/// Of `feira stop`.
#[derive(Debug, clap::Args)]
pub(crate) struct StopArgs {
    /// Names or ids of leases
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
}

/// Of `feira resume`.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// Do not wait until it runs
    #[arg(short, long)]
    pub detach: bool,
    /// The lease's name or id
    pub name: String,
}

/// Of `feira end`.
#[derive(Debug, clap::Args)]
pub(crate) struct EndArgs {
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Say what would be ended, and end nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Names or ids of leases
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
}

/// Of `feira wait`.
#[derive(Debug, clap::Args)]
pub(crate) struct WaitArgs {
    /// The lease's name or id
    pub name: String,
    /// What to wait for
    #[arg(
        long = "for",
        value_enum,
        default_value = "ready",
        value_name = "STATE"
    )]
    pub until: WaitFor,
    /// How long to wait, like 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10m")]
    pub timeout: Seconds,
}

/// What `feira wait` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WaitFor {
    /// The container runs
    Ready,
    /// It does not run, its disk is kept
    Stopped,
    /// It and its disk are gone
    Ended,
    /// It was told that it has to go, or is stopped already
    Noticed,
}

/// Of `feira convert`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  feira convert brave-otter on-demand
  feira convert brave-otter interruptible --price 0.22 --fallback 0.40
  feira convert brave-otter reserve --days 30

The lease goes on where it is. JSON: feira.lease/1, see feira show --help")]
pub(crate) struct ConvertArgs {
    /// The lease's name or id
    pub name: String,
    /// What it becomes
    #[arg(value_enum, value_name = "KIND")]
    pub to: ConvertTo,
    /// With interruptible: your bid for a GPU and hour, which you pay while it runs
    #[arg(long, value_name = "USD/H", value_parser = parse_price, allow_negative_numbers = true)]
    pub price: Option<PricePerHour>,
    /// With interruptible: rather than be pushed out, go on on demand while the host asks at most this
    #[arg(long, value_name = "USD/H", value_parser = parse_price, allow_negative_numbers = true)]
    pub fallback: Option<PricePerHour>,
    /// With reserve: how long, prepaid
    #[arg(
        long,
        value_name = "DAYS",
        allow_negative_numbers = true,
        value_parser = parse_days
    )]
    pub days: Option<u16>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Show what it would mean, and change nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// What a lease becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ConvertTo {
    /// At the host's price, frozen; nobody can push it out
    OnDemand,
    /// At your own price, while nobody bids more
    Interruptible,
    /// Prepaid for a term, at a discount
    #[value(alias = "reserved")]
    Reserve,
}
