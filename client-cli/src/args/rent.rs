//! The words and flags of `feira rent` and `feira bid`.

use crate::amounts::{in_cores, in_gigabytes, parse_cores, parse_days, parse_duration};
use crate::amounts::{parse_price, parse_room, parse_variable, shortened};
use crate::commands::search::FilterArgs;
use protocol::job::Variable;
use protocol::units::{Bytes, MicroUsd, PricePerHour, Seconds};
use protocol::whole::whole;

const EXAMPLES: &str = "\
Examples:
  feira rent --gpu rtx4090 --max-price 0.40 --budget 5 --image pytorch/pytorch:2.9.0
  feira rent o-7k3f --gpus 2 --image debian:12 --for 2h -- sleep infinity
  feira rent --gpu rtx4090 --bid 0.28 --for 6h --budget 5 --image debian:12
  feira rent --gpu h100 --gpus 8 --reserve 30 --budget 12000 --image debian:12
  lease=$(feira rent 'gpu_name=none dph<0.05' --max-price 0.05 --budget 1 --image debian:12 --yes -o id -- sleep 600)

Kinds (one at most; without a flag it is on demand):
  on demand        the host's price now, frozen; nobody can push you out
  --bid            the same as soon as the host's price is at most your limit; you pay the host's price
  --interruptible  your own price while nobody bids more; notice, then stopped, disk kept, resumes by itself
  --reserve        prepaid for a term at a discount; nobody can push you out

JSON: feira.lease/1, see feira show --help";

const BID_EXAMPLES: &str = "\
Examples:
  feira bid --gpu rtx4090 --max-price 0.22 --for 8h --budget 5 --image ghcr.io/me/train:v7
  feira bid o-7k3f --max-price 0.22 --fallback 0.40 --budget 5 --image debian:12 -- ./train.sh
  feira bid set brave-otter --max-price 0.25

You pay your bid while it runs, and nothing for running while it does not. A bid that waits for a price and
then rents on demand is: feira rent --bid PRICE

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
    #[command(flatten)]
    pub deal: DealArgs,
    #[command(flatten)]
    pub work: WorkArgs,
}

/// Of `feira bid`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = BID_EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    override_usage = "feira bid OFFER --max-price USD/H --image IMAGE [OPTIONS] [-- COMMAND...]\n       \
                      feira bid [EXPRESSION] [FILTERS] --max-price USD/H --image IMAGE [OPTIONS] [-- COMMAND...]\n       \
                      feira bid set NAME --max-price USD/H",
    mut_arg("max_price", |arg| arg.required(true).help(
        "Your bid for a GPU and hour, which you pay while it runs, in dollars"
    ))
)]
pub(crate) struct BidArgs {
    #[command(subcommand)]
    pub command: Option<BidCommand>,
    /// Conditions; or the id of an offer, in EXPRESSION's place.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Rather than be pushed out, go on on demand while the host asks at most this for a GPU and hour
    #[arg(long, value_name = "USD/H", value_parser = parse_price, allow_negative_numbers = true)]
    pub fallback: Option<PricePerHour>,
    #[command(flatten)]
    pub work: WorkArgs,
}

/// What to do with a bid that is there.
#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum BidCommand {
    /// Change a bid, at once
    Set(BidSetArgs),
}

/// Of `feira bid set`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct BidSetArgs {
    /// The lease's name or id
    pub name: String,
    /// The new bid (or the new limit of a bid that waits) for a GPU and hour
    #[arg(long, value_name = "USD/H", value_parser = parse_price, allow_negative_numbers = true)]
    pub max_price: PricePerHour,
}

/// The kind of contract, and its price.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Kind of contract (on demand without one)")]
pub(crate) struct DealArgs {
    /// Wait until the host asks at most this for a GPU and hour; then rent at what the host asks
    #[arg(long, value_name = "USD/H", group = "deal", value_parser = parse_price, allow_negative_numbers = true)]
    pub bid: Option<PricePerHour>,
    /// Pay this for a GPU and hour while nobody bids more (the same as feira bid)
    #[arg(long, value_name = "USD/H", group = "deal", value_parser = parse_price, allow_negative_numbers = true)]
    pub interruptible: Option<PricePerHour>,
    /// With --interruptible: rather than be pushed out, go on on demand while the host asks at most this
    #[arg(long, value_name = "USD/H", requires = "interruptible", value_parser = parse_price, allow_negative_numbers = true)]
    pub fallback: Option<PricePerHour>,
    /// Prepay so many days, at the discount that the host gives
    #[arg(
        long,
        value_name = "DAYS",
        group = "deal",
        allow_negative_numbers = true,
        value_parser = parse_days
    )]
    pub reserve: Option<u16>,
}

/// What is to run, with which bounds, and how it is agreed to.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Lease")]
pub(crate) struct WorkArgs {
    /// This offer and no other
    #[arg(long, value_name = "OFFER")]
    pub offer: Option<String>,
    /// CPUs of the lease [default: in proportion to its GPUs]
    #[arg(long, value_name = "N", value_parser = parse_cores, allow_negative_numbers = true)]
    pub cpus: Option<u32>,
    /// RAM of the lease, in GB [default: in proportion to its GPUs]
    #[arg(long, value_name = "GB", value_parser = parse_room, allow_negative_numbers = true)]
    pub ram: Option<Bytes>,
    /// The image to run, by tag or digest
    #[arg(long, required = true)]
    pub image: Option<String>,
    /// Most that the lease may cost in all; it ends by itself there
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    pub budget: Option<MicroUsd>,
    /// Longest time to run, in hours; it ends by itself then
    #[arg(
        long,
        value_name = "HOURS",
        allow_negative_numbers = true,
        value_parser = whole::<u64>(1..=HOURS_MAX)
    )]
    pub max_hours: Option<u64>,
    /// Longest time to run, like 30m or 8h; of a bid: how long it waits for its first start [default: 24h]
    #[arg(long = "for", id = "duration", value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
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

impl BidArgs {
    /// The same as words of `feira rent`: an interruptible lease at the price that was bid.
    pub(crate) fn rent(&self) -> RentArgs {
        let mut filter = self.filter.clone();
        let deal = DealArgs {
            interruptible: filter.max_price.take(),
            fallback: self.fallback,
            ..DealArgs::default()
        };
        RentArgs {
            filter,
            deal,
            work: self.work.clone(),
        }
    }
}

impl RentArgs {
    /// The offer that was named: with its flag, or as the only word.
    pub(crate) fn offer(&self) -> Option<&str> {
        if self.work.offer.is_some() {
            return self.work.offer.as_deref();
        }
        match self.filter.expression.as_slice() {
            [only] if is_offer_id(only) => Some(only),
            _ => None,
        }
    }

    /// This command again with another filter, to be pasted into a shell. Values of variables may be secrets
    /// and are left out, which three dots say.
    pub(crate) fn again(&self, filter: &FilterArgs) -> String {
        let work = &self.work;
        let mut words = vec!["feira".to_owned(), "rent".to_owned()];
        words.extend(filter.words());
        let mut flag = |name: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        let price = |price: PricePerHour| shortened(&price.amount().decimal());
        flag("--offer", work.offer.clone());
        flag("--bid", self.deal.bid.map(price));
        flag("--interruptible", self.deal.interruptible.map(price));
        flag("--fallback", self.deal.fallback.map(price));
        flag("--reserve", self.deal.reserve.map(|days| days.to_string()));
        flag("--cpus", work.cpus.map(in_cores));
        flag("--ram", work.ram.map(in_gigabytes));
        flag("--image", work.image.clone());
        flag(
            "--budget",
            work.budget.map(|most| shortened(&most.decimal())),
        );
        flag("--for", work.duration.map(|time| format!("{}s", time.0)));
        flag("--max-hours", work.max_hours.map(|hours| hours.to_string()));
        flag("--name", work.name.clone());
        flag("--entrypoint", work.entrypoint.clone());
        let switches = [
            ("--yes", work.yes),
            ("--dry-run", work.dry_run),
            ("--detach", work.detach),
        ];
        let given = switches.into_iter().filter(|(_, is_given)| *is_given);
        words.extend(given.map(|(name, _)| name.to_owned()));
        let mut line = quoted(&words);
        if !work.env.is_empty() {
            line.push_str(" …");
        }
        if !work.command.is_empty() {
            line.push_str(" -- ");
            line.push_str(&quoted(&work.command));
        }
        line
    }
}

impl WorkArgs {
    /// The hours that it may run, if they were given as such.
    pub(crate) fn hours(&self) -> Option<Seconds> {
        self.max_hours
            .map(|hours| Seconds(hours.saturating_mul(3600)))
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
