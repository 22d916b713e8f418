//! The words and flags of `feira rent`.

use crate::amounts::{parse_duration, parse_variable, shortened};
use crate::commands::search::FilterArgs;
use protocol::job::Variable;
use protocol::units::{MicroUsd, Seconds};

const EXAMPLES: &str = "\
Examples:
  feira rent --gpu rtx4090 --max-price 0.40 --budget 5 --image pytorch/pytorch:2.9.0
  feira rent o-7k3f --image debian:12 --for 2h -- sleep infinity
  lease=$(feira rent 'gpu_name=none dph<0.05' --max-price 0.05 --budget 1 --image debian:12 --yes -o id -- sleep 600)

JSON: feira.lease/1, see feira show --help";

/// Longest time that can be asked for: ten years of 365 days.
const HOURS_MAX: u64 = 10 * 365 * 24;

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
    #[arg(
        long,
        value_name = "HOURS",
        conflicts_with = "duration",
        value_parser = clap::value_parser!(u64).range(1..=HOURS_MAX)
    )]
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

    /// This command again with another filter, to be pasted into a shell. Values of variables may be secrets
    /// and are left out, which three dots say.
    pub(crate) fn again(&self, filter: &FilterArgs) -> String {
        let mut words = vec!["feira".to_owned(), "rent".to_owned()];
        words.extend(filter.words());
        let mut flag = |name: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        flag("--image", Some(self.image.clone()));
        flag(
            "--budget",
            self.budget.map(|most| shortened(&most.decimal())),
        );
        flag(
            "--for",
            self.duration_max().map(|most| format!("{}s", most.0)),
        );
        flag("--name", self.name.clone());
        flag("--entrypoint", self.entrypoint.clone());
        let switches = [
            ("--yes", self.yes),
            ("--dry-run", self.dry_run),
            ("--detach", self.detach),
        ];
        let given = switches.into_iter().filter(|(_, is_given)| *is_given);
        words.extend(given.map(|(name, _)| name.to_owned()));
        let mut line = quoted(&words);
        if !self.env.is_empty() {
            line.push_str(" …");
        }
        if !self.command.is_empty() {
            line.push_str(" -- ");
            line.push_str(&quoted(&self.command));
        }
        line
    }

    /// Longest time to run.
    pub(crate) fn duration_max(&self) -> Option<Seconds> {
        self.duration.or_else(|| {
            self.max_hours
                .map(|hours| Seconds(hours.saturating_mul(3600)))
        })
    }
}

/// Words as a shell reads them.
fn quoted(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@,+%".contains(c);
    let quote = |word: &String| {
        if !word.is_empty() && word.chars().all(is_plain) {
            return word.clone();
        }
        format!("'{}'", word.replace('\'', "'\\''"))
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn is_offer_id(word: &str) -> bool {
    word.get(..2)
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case("o-"))
        && word
            .chars()
            .skip(2)
            .all(|character| character.is_ascii_alphanumeric())
}
