//! The words and flags of `feira rent`.

use crate::amounts::{parse_duration, parse_variable};
use crate::commands::search::FilterArgs;
use protocol::job::Variable;
use protocol::units::{MicroUsd, Seconds};

const EXAMPLES: &str = "\
Examples:
  feira rent --gpu rtx4090 --max-price 0.40 --budget 5 --image pytorch/pytorch:2.9.0
  feira rent o-7k3f --image debian:12 --for 2h -- sleep infinity
  lease=$(feira rent 'gpu_name=none dph<0.05' --max-price 0.05 --budget 1 --image debian:12 --yes -o id -- sleep 600)

JSON: feira.lease/1, see feira show --help";

/// Of `feira rent`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "feira rent OFFER --image IMAGE [OPTIONS] [-- COMMAND...]\n       \
                      feira rent [EXPRESSION] [FILTERS] --image IMAGE [OPTIONS] [-- COMMAND...]"
)]
pub(crate) struct RentArgs {
    /// Conditions; or the id of an offer, in EXPRESSION's place.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// The image to run, by tag or digest
    #[arg(long)]
    pub image: String,
    /// Most that the lease may cost in all; it ends by itself there
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    pub budget: Option<MicroUsd>,
    /// Longest time to run, in hours; it ends by itself then
    #[arg(long, value_name = "HOURS", conflicts_with = "duration")]
    pub max_hours: Option<u64>,
    /// Longest time to run, like 30m or 8h
    #[arg(long = "for", id = "duration", value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Seconds>,
    /// A name for the lease instead of two random words
    #[arg(long)]
    pub name: Option<String>,
    /// A variable for the container, like NAME=value (can be repeated)
    #[arg(short, long, value_name = "K=V", value_parser = parse_variable)]
    pub env: Vec<Variable>,
    /// Instead of the image's entrypoint
    #[arg(long, value_name = "PROGRAM")]
    pub entrypoint: Option<String>,
    /// Sign and rent without asking; without a terminal this also wants a ceiling and a budget
    #[arg(short, long)]
    pub yes: bool,
    /// Show what would be signed, and sign nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Do not wait until it runs
    #[arg(short, long)]
    pub detach: bool,
    /// The command to run instead of the image's
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

impl RentArgs {
    /// The offer that was named, if the only word is an id and no condition.
    pub(crate) fn offer(&self) -> Option<&str> {
        match self.filter.expression.as_slice() {
            [only] if is_offer_id(only) => Some(only),
            _ => None,
        }
    }

    /// Longest time to run.
    pub(crate) fn duration_max(&self) -> Option<Seconds> {
        self.duration.or_else(|| {
            self.max_hours
                .map(|hours| Seconds(hours.saturating_mul(3600)))
        })
    }
}

fn is_offer_id(word: &str) -> bool {
    word.get(..2)
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case("o-"))
        && word
            .chars()
            .skip(2)
            .all(|character| character.is_ascii_alphanumeric())
}
