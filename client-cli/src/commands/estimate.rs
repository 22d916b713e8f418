//! `feira estimate`: what a job costs from its start to its end on each offer, cheapest first.
//!
//! `search --job` ranks by the same sum and shows the same table. The sum itself is `protocol::cost`.

pub(crate) mod job_file;
mod offers_file;
mod table;

use crate::commands::search::{self, Candidate, SearchArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::view::offered_in_words;
use protocol::cost::{Interruption, JobCost, JobProfile, Site, Sites, Unfit, estimate, hazard_of};
use protocol::ids::OfferId;
use protocol::terms::{ContractKind, Need};
use protocol::units::{Bytes, MicroUsd, Timestamp};
use protocol::whole::whole;
use serde_json::Value;
use std::path::PathBuf;

pub(crate) use table::{closing_lines, listing};

const EXAMPLES: &str = "\
Examples:
  feira estimate JOB.toml
  feira estimate JOB.toml --offers offers.json        (feira search -o json > offers.json)
  feira search --job JOB.toml --gpu rtx4090,h100 --max-price 3

JOB.toml, sizes in GB of 10⁹ bytes; only [work] and one thing to do in it is needed:
  image_gb = 20            # pulled and unpacked first
  data_gb = 0.5            # downloaded before it begins
  load_gb = 16             # read from disk whenever it begins
  checkpoint_gb = 20       # without it a failure loses everything
  upload_gb = 0.4          # the result
  disk_gb = 150
  gpus = 1                 # most that it can use
  scaling = 0.9            # what each of several GPUs does of what one alone would
  [work]
  flops = 2.4e18           # operations in all, and/or memory_gb: bytes through the GPU's memory
  precision = \"fp16\"       # fp8, fp16, bf16, fp32
  compute_efficiency = 0.45
  memory_efficiency = 0.65
  units = 1_000_000        # or pieces, where you measured how fast a GPU does them:
  [work.units_per_second]
  \"RTX 4090\" = 54.3

An item of FILE may say what somebody measured: has_image boot_seconds download_bytes_per_second
upload_bytes_per_second disk_bytes_per_second unpack_bytes_per_second units_per_second failures_per_hour
interruptions_per_hour. What nobody measured is assumed, and named.

JSON: feira.offers/1 (feira search --help), and in each item
job: cost_usd compute_usd storage_usd download_usd upload_usd seconds boot_seconds image_seconds
unpack_seconds data_seconds load_seconds work_seconds checkpoint_seconds lost_seconds upload_seconds assumed
unfit";

/// Of `feira estimate`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EstimateArgs {
    /// What the job needs: a TOML file
    #[arg(value_name = "JOB.toml")]
    pub job: PathBuf,
    /// Offers to estimate: a file as feira search -o json prints it, or live to ask the brokers
    #[arg(long, value_name = "FILE | live", default_value = "live")]
    pub offers: String,
    /// Show this many at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<u16>(1..=u16::MAX.into()), allow_negative_numbers = true)]
    pub limit: u16,
}

/// What a job costs on one offer.
#[derive(Debug, Clone)]
pub(crate) struct Estimate {
    /// The offer's id in full.
    pub id: String,
    /// The same, as it is shown.
    pub short: String,
    /// Its GPUs, in words.
    pub gpus: String,
    /// What an hour costs all in.
    pub hourly: MicroUsd,
    /// What the job costs there, or why it cannot be done.
    pub cost: Result<JobCost, Unfit>,
    /// The offer as programs see it.
    pub json: Value,
}

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &EstimateArgs) -> Result<Exit, Failure> {
    if arguments.offers == "live" {
        let search = SearchArgs::for_job(&arguments.job, arguments.limit);
        return search::run(context, &search).await;
    }
    let mut job = job_file::read(context, &arguments.job)?;
    job.disk = disk_of(&job, None);
    let listed = offers_file::read(context, &PathBuf::from(&arguments.offers), &job)?;
    let estimates = listed.into_iter().map(|offer| of_file(&job, offer));
    let mut estimates = ranked(estimates.collect());
    let of = estimates.len();
    estimates.truncate(usize::from(arguments.limit));
    let empty = format!("There are no offers in {}.", arguments.offers);
    context.printer.list(&listing(&estimates, empty))?;
    for line in closing_lines(&estimates, &job, of) {
        context.printer.hint(&line);
    }
    Ok(Exit::Done)
}

/// The disk to rent: what the command line says, then the file, then the default.
pub(crate) fn disk_of(job: &JobProfile, typed: Option<Bytes>) -> Bytes {
    let of_job = Some(job.disk).filter(|disk| disk.0 > 0);
    typed
        .or(of_job)
        .unwrap_or(Bytes::from_gb(search::DISK_GB_DEFAULT))
}

/// Cheapest first, by the job; what cannot do it last, cheapest hour first. Of two that are alike the one that
/// came first stays first.
pub(crate) fn ranked(mut estimates: Vec<Estimate>) -> Vec<Estimate> {
    let cost = |one: &Estimate| one.cost.ok().map(|cost| cost.costs.total());
    estimates.sort_by_key(|one| (one.cost.is_err(), cost(one), one.hourly));
    estimates
}

/// What the job costs on an offer that was found.
pub(crate) fn of_candidate(
    job: &JobProfile,
    candidate: &Candidate,
    kind: ContractKind,
    now: Timestamp,
    json: Value,
) -> Estimate {
    let offer = candidate.offer.body();
    let interruption = (kind == ContractKind::Interruptible).then_some(Interruption {
        per_hour: None,
        notice: offer.limits.notice,
    });
    let site = Site {
        hazard: hazard_of(candidate.hazard),
        interruption,
        ..Sites::of(job).at(offer, candidate.gpus, candidate.price, now)
    };
    Estimate {
        id: offer.id.to_string(),
        short: offer.id.short(),
        gpus: offered_in_words(offer, candidate.gpus),
        hourly: candidate.hourly(Need::disk(job.disk)),
        cost: estimate(job, &site),
        json,
    }
}

/// An id as it is shown; what is none stays as it is.
fn short(id: &str) -> String {
    id.parse::<OfferId>()
        .map_or_else(|_| id.to_owned(), |id| id.short())
}

fn of_file(job: &JobProfile, offer: offers_file::Listed) -> Estimate {
    Estimate {
        short: short(&offer.id),
        cost: estimate(job, &offer.site),
        id: offer.id,
        gpus: offer.gpus,
        hourly: offer.hourly,
        json: offer.json,
    }
}
