//! `feira search`: what was asked, of all brokers at once, the offers merged, verified and shown.
//!
//! `rent` finds its offers through the same door. Every offer's signature is checked here: a broker can
//! leave offers out, but not change one.

mod candidate;
mod conditions;
mod fields;
mod machines;
mod merge;
mod table;
mod why;

pub(crate) use candidate::Candidate;
pub(crate) use conditions::{DISK_GB_DEFAULT, FilterArgs};
pub(crate) use fields::fields_help;
pub(crate) use merge::Finding;
pub(crate) use table::verification_json;
pub(crate) use why::nothing_matches;

use crate::amounts::parse_gigabytes;
use crate::commands::estimate::{self, job_file};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::printer::Listing;
use crate::session::Session;
use conditions::of_parse_error;
use merge::Merger;
use protocol::bounded::List;
use protocol::cost::JobProfile;
use protocol::filter::{Comparison, Field, Filter, Term, parse_sort};
use protocol::message::{BrokerReply, BrokerRequest, FOUND_MAX, Search};
use protocol::terms::{ContractKind, Need};
use protocol::units::Bytes;
use protocol::whole::whole;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  feira search --gpu rtx4090 --max-price 0.40 --disk 60
  feira search 'gpu_name in [RTX_4090,RTX_5090] num_gpus>=1 dph<0.5' --sort price
  feira search --min-vram 48 --sort gpu_ram-,price -o json
  feira search --kind interruptible --gpu rtx4090 --gpus 2 --disk 60 --upload 1
  feira search --kind reserved --gpu h100 --sort reliability-,price
  feira search --partition 3g.40gb --sort score_per_dollar-
  feira search 'verified=true total_flops>=80 inet_down>=500' -o wide
  feira search gpu=none
  feira search --job JOB.toml --min-vram 24        (such a file: feira estimate --help)

All fields with their units: feira help fields

Each row is a portion of an offer: so many of its GPUs. Portions of one machine stand together. A broker
answers with 64 rows at most; next says how to see more.

JSON: feira.offers/1: id host brokers gpus gpu_name num_gpus offer_gpus portions kind price_usd_per_hour
price_usd_per_gpu_hour contract_usd_per_hour on_demand_usd_per_hour pushes_out reliability failures_per_hour
floor_usd_per_gpu_hour discount_max_basis_points priced_disk_bytes priced_upload_bytes_per_hour
priced_download_bytes_per_hour compute_usd_per_hour (a GPU) storage_usd_per_gb_month upload_usd_per_gb
download_usd_per_gb cpu_millicores cpu_name architecture ram_bytes shared_memory_bytes disk_max_bytes
disk_enforced network min_seconds max_seconds promised_until start_within_seconds notice_seconds system kernel
engine runtime toolkit listed_at expires_at partition isolation verified verification score score_per_usd_hour
fp32_tflops fp16_tflops fp32_tflops_per_usd_hour measures cpu_mhz numa_nodes mainboard disk_model";

/// Of `feira search`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub filter: FilterArgs,
    /// What to look for, and to price as: on-demand, interruptible or reserved
    #[arg(
        long,
        value_enum,
        value_name = "KIND",
        default_value_t = SearchKind::OnDemand,
        hide_possible_values = true
    )]
    pub kind: SearchKind,
    /// Traffic out of the container to price with, in GB an hour
    #[arg(long, value_name = "GB", value_parser = parse_gigabytes, allow_negative_numbers = true)]
    pub upload: Option<Bytes>,
    /// Traffic into the container to price with, in GB an hour
    #[arg(long, value_name = "GB", value_parser = parse_gigabytes, allow_negative_numbers = true)]
    pub download: Option<Bytes>,
    /// Order by these fields, a `-` behind one for the largest first
    #[arg(
        long,
        value_name = "FIELD[-],…",
        default_value = "price",
        allow_hyphen_values = true
    )]
    pub sort: String,
    /// Order by what this job costs until it is done, and show what that is made of
    #[arg(long, value_name = "JOB.toml", conflicts_with = "sort")]
    pub job: Option<PathBuf>,
    /// Show this many at most (a broker answers with 64 at most)
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<u16>(1..=u16::MAX.into()), allow_negative_numbers = true)]
    pub limit: u16,
}

/// What `feira search` can look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SearchKind {
    /// What hosts ask
    OnDemand,
    /// What has to be bid to run now
    Interruptible,
    /// What a prepaid term of 30 days comes to
    Reserved,
}

impl SearchKind {
    const fn contract(self) -> ContractKind {
        match self {
            Self::OnDemand => ContractKind::OnDemand,
            Self::Interruptible => ContractKind::Interruptible,
            Self::Reserved => ContractKind::Reserved,
        }
    }
}

impl SearchArgs {
    /// All offers on demand, by what this job costs there.
    pub(crate) fn for_job(job: &Path, limit: u16) -> Self {
        Self {
            filter: FilterArgs::default(),
            kind: SearchKind::OnDemand,
            upload: None,
            download: None,
            sort: "price".to_owned(),
            job: Some(job.to_owned()),
            limit,
        }
    }

    /// The job, with the disk that will be rented for it.
    fn job(&self, context: &Context) -> Result<Option<JobProfile>, Failure> {
        let Some(file) = &self.job else {
            return Ok(None);
        };
        let job = job_file::read(context, file)?;
        let disk = estimate::disk_of(&job, self.filter.disk);
        Ok(Some(JobProfile { disk, ..job }))
    }
}

/// Runs `feira search`.
pub(crate) async fn run(context: &Context, arguments: &SearchArgs) -> Result<Exit, Failure> {
    let job = arguments.job(context)?;
    let mut filter = arguments.filter.clone();
    filter.disk = job.as_ref().map(|job| job.disk).or(filter.disk);
    let search = Search {
        filter: filter.filter()?,
        sort: parse_sort(&arguments.sort).map_err(|error| of_parse_error(&error, "--sort"))?,
        need: Need {
            disk: filter.disk(),
            upload: arguments.upload.unwrap_or_default(),
            download: arguments.download.unwrap_or_default(),
        },
        kind: arguments.kind.contract(),
        limit: arguments.limit,
        job: job.clone(),
    };
    let session = context.session().await?;
    let finding = find(session, &search).await?;
    for warning in &finding.warnings {
        context.printer.warn(warning);
    }
    let mut why = why::lines(&finding, &filter, search.kind).into_iter();
    let empty = why.next().unwrap_or_default();
    let (listing, closing) = match &job {
        None => (
            table::listing(&finding, &search, empty),
            table::closing_lines(&finding, &search),
        ),
        Some(job) => by_job(context, job, &finding, &search, (arguments.limit, empty)),
    };
    context.printer.list(&listing)?;
    if finding.candidates.is_empty() {
        // People got the first line in the table's place.
        if !context.printer.format().is_for_people() {
            context.printer.say(&listing.empty);
        }
        for line in why {
            context.printer.say(&line);
        }
    } else {
        for line in closing {
            context.printer.hint(&line);
        }
    }
    Ok(Exit::Done)
}

/// The offers by what the job costs there, and what stands below them.
fn by_job(
    context: &Context,
    job: &JobProfile,
    finding: &Finding,
    search: &Search,
    (limit, empty): (u16, String),
) -> (Listing, Vec<String>) {
    let now = context.now();
    let estimates = finding.candidates.iter().map(|one| {
        let json = table::offer_json(one, search);
        estimate::of_candidate(job, one, search.kind, now, json)
    });
    let mut estimates = estimate::ranked(estimates.collect());
    estimates.truncate(usize::from(limit));
    let of = usize::try_from(finding.matching).unwrap_or(usize::MAX);
    let closing = estimate::closing_lines(&estimates, job, of);
    (estimate::listing(&estimates, empty), closing)
}

/// The offer with an id that begins so, whether it sells GPUs or slices.
pub(crate) fn offer_filter(id: &str) -> Result<Filter, Failure> {
    let bad = |problem: String| Failure::new(Code::BadValue, problem);
    let terms = [(Field::Id, id), (Field::Partition, "any")];
    let terms = terms.map(|(field, value)| Term::compare(field, Comparison::Equal, value));
    let terms: Result<Vec<Term>, _> = terms.into_iter().collect();
    let terms = terms.map_err(|problem| bad(problem.to_string()))?;
    Filter::of(terms).map_err(|problem| bad(problem.to_string()))
}

/// As many offers as a broker answers with.
fn most() -> u16 {
    u16::try_from(FOUND_MAX).unwrap_or(u16::MAX)
}

/// Asks all brokers at once and merges what they answer, best first, as many as the search asks for.
pub(crate) async fn find(session: &Session, search: &Search) -> Result<Finding, Failure> {
    let asked = Search {
        limit: search.limit.min(most()),
        ..search.clone()
    };
    let mut merger = Merger::new(search);
    let mut failures = Vec::new();
    for (broker, answer) in session.ask_all(&BrokerRequest::Search(asked)).await {
        match answer {
            Ok(BrokerReply::Found(found)) => merger.add(broker, &found),
            Ok(_) => failures.push(crate::context::unexpected(broker)),
            Err(failure) => failures.push(failure),
        }
    }
    if merger.answers() == 0
        && let Some(first) = failures.pop()
    {
        return Err(first);
    }
    let mut finding = merger.finish();
    finding
        .warnings
        .extend(failures.iter().map(|failure| failure.what().to_owned()));
    Ok(finding)
}

/// The offers whose id begins with what was typed, whatever else they are.
pub(crate) async fn find_offer(
    session: &Session,
    typed: &str,
    disk: Bytes,
    kind: ContractKind,
) -> Result<Vec<Candidate>, Failure> {
    let filter = offer_filter(typed)?;
    let search = Search {
        filter,
        sort: List::default(),
        need: Need::disk(disk),
        kind,
        limit: most(),
        job: None,
    };
    Ok(find(session, &search).await?.candidates)
}
