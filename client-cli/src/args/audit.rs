//! The words and flags of the commands about proofs of hardware.

use std::path::PathBuf;

const AUDIT_FIELDS: &str = "\
JSON: feira.proofs/1: host, and for each of proofs: broker device together class finding (accepted or rejected) flaw
fill_ms pass_ms at transcript; in a file also verdict and transcript_bytes, hexadecimal

What is proved, and what is not, stands in the source: protocol/audit/src/lib.rs.";

/// Of `feira audit`.
#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub command: AuditCommand,
}

/// What to do with proofs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum AuditCommand {
    /// Show what brokers found when they put a host's hardware to the proof
    Show(AuditShowArgs),
    /// Judge the proofs in a file again, without asking anybody
    Check(AuditCheckArgs),
}

/// Of `feira audit show`.
#[derive(Debug, clap::Args)]
#[command(after_help = AUDIT_FIELDS)]
pub(crate) struct AuditShowArgs {
    /// The host's id; its first characters while it offers something
    pub host: String,
    /// Write the signed verdicts and the transcripts into a file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

/// Of `feira audit check`.
#[derive(Debug, clap::Args)]
#[command(after_help = AUDIT_FIELDS)]
pub(crate) struct AuditCheckArgs {
    /// The file, as feira audit show --save writes it
    pub file: PathBuf,
}
