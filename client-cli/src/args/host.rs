//! The words and flags of the commands about hosts.

use std::path::PathBuf;

const HOST_FIELDS: &str = "\
JSON: feira.host/1: host, and for each of brokers: broker as_of heard_at score score_millionths start_probability
starts starts_failed survives_1h survives_24h survives_168h faults_decayed exposure_hours leased_hours idle_hours
renter_hours_max renters hazard_per_hour faults leases heard broker_away;
with --why of show also hardware: for each offer broker offer verification unprovable

How it is computed stands in the source: protocol/src/reliability.";

/// Of `feira host`.
#[derive(Debug, clap::Args)]
pub(crate) struct HostArgs {
    #[command(subcommand)]
    pub command: HostCommand,
}

/// What to do with a host.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum HostCommand {
    /// Show how reliable a host is, and why
    Show(HostShowArgs),
    /// Compute a host's score again from a file of what brokers signed, without asking anybody
    Score(HostScoreArgs),
}

/// Of `feira host show`.
#[derive(Debug, clap::Args)]
#[command(after_help = HOST_FIELDS)]
pub(crate) struct HostShowArgs {
    /// The host's id; its first characters while it offers something
    pub host: String,
    /// Also what the score rests on: faults, leases, outages
    #[arg(long)]
    pub why: bool,
    /// Write what the brokers signed into a file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

/// Of `feira host score`.
#[derive(Debug, clap::Args)]
#[command(after_help = HOST_FIELDS)]
pub(crate) struct HostScoreArgs {
    /// The file, as feira host show --save writes it
    pub file: PathBuf,
    /// Also what the score rests on: faults, leases, outages
    #[arg(long)]
    pub why: bool,
}
