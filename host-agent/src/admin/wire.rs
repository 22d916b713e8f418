//! What the owner's commands and the agent say to each other: closed enums, one JSON object a line. Amounts
//! and times are texts for people and programs alike; `--json` prints them as they are.

mod gpus;

pub use gpus::{EccRow, GpuRow, ReadingRow, RemappedRow, SliceRow};

use crate::core::offer::Listing;
use gpu_health::unit::Until;
use protocol::operator::{Exit, Reply};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an owner asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "ask",
    content = "with",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum AdminRequest {
    /// What are you doing?
    Status,
    /// Which leases do you have?
    Leases,
    /// What did I earn?
    Earnings,
    /// What do you say you offer?
    Offers,
    /// Offer this from now on.
    List(Box<Listing>),
    /// Offer nothing from now on.
    Unlist,
    /// This GPU was checked and is sound: its name, or how it begins.
    Checked(String),
}

/// What the agent answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", content = "with", rename_all = "snake_case")]
pub enum AdminReply {
    /// To [`AdminRequest::Status`].
    Status(Box<Status>),
    /// To [`AdminRequest::Leases`].
    Leases(Vec<LeaseRow>),
    /// To [`AdminRequest::Earnings`].
    Earnings(Vec<EarningsRow>),
    /// To [`AdminRequest::Offers`], and to a new listing.
    Offers(Vec<OfferRow>),
    /// Done.
    Done,
    /// No, because.
    Refused(String),
}

impl Reply for AdminReply {
    fn refusal(reason: String) -> Self {
        Self::Refused(reason)
    }

    fn refused(&self) -> Option<(Exit, &str)> {
        if let Self::Refused(reason) = self {
            return Some((Exit::Failed, reason));
        }
        None
    }
}

/// What a running agent is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its id.
    pub host: String,
    /// The program's version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it was started, RFC 3339.
    pub started_at: String,
    /// The engine, or why it does not answer.
    pub engine: Result<String, String>,
    /// Its GPUs; `none` on a CPU machine.
    pub gpus: Vec<String>,
    /// The same one by one, with their slices.
    pub gpu_rows: Vec<GpuRow>,
    /// Where the page for Prometheus is.
    pub metrics: String,
    /// Whether the machine is listed.
    pub listed: bool,
    /// Offers in all, and those that can be leased now.
    pub offers: u64,
    /// See `offers`.
    pub offers_free: u64,
    /// The offers themselves.
    pub offered: Vec<OfferRow>,
    /// How its GPUs are, and the slices that are leased or not clean.
    #[serde(default)]
    pub health: Vec<HealthRow>,
    /// Why it takes no lease until it was booted anew.
    #[serde(default)]
    pub drained: Option<String>,
    /// Disk that a new lease may have, in bytes.
    pub disk_free_bytes: u64,
    /// Leases by state.
    pub leases: BTreeMap<String, u64>,
    /// Its brokers.
    pub brokers: Vec<BrokerRow>,
    /// Tunnels open now.
    pub tunnels: u64,
    /// Refusals since the start, by reason; those that did not happen are left out.
    pub refusals: BTreeMap<String, u64>,
}

/// How a GPU or a slice is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthRow {
    /// Which.
    pub resource: String,
    /// In one word: `fit`, `finishing`, `quarantined`, `resetting`, `cleaning`, `gone`, `unknown`.
    pub state: String,
    /// In words, with the reason.
    pub words: String,
    /// What it waits for.
    pub waits: Option<Until>,
    /// What its grade is lowered for.
    pub lowered: Option<String>,
    /// Why it is reset as soon as nobody has it, though it is leased until then.
    pub reset_wanted: Option<String>,
    /// How long it took to clean it after its last lease, in milliseconds; nobody was billed for it.
    pub cleaning_ms: Option<u64>,
}

/// A broker as the host sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerRow {
    /// Which.
    pub broker: String,
    /// Where it is dialled.
    pub addresses: Vec<String>,
    /// `connected`, `connecting`, or why not.
    pub connection: String,
    /// Where renters reach this host through it, once the broker agreed.
    pub circuit: Option<String>,
    /// When its last goal came, RFC 3339.
    pub goal_heard_at: Option<String>,
    /// When it last noted the offers, RFC 3339.
    pub offers_noted_at: Option<String>,
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRow {
    /// Which.
    pub lease: String,
    /// Its name.
    pub name: String,
    /// Whose match.
    pub broker: String,
    /// Whose job.
    pub renter: String,
    /// What runs.
    pub image: String,
    /// Where it stands, in one word.
    pub state: String,
    /// What its broker wants of it.
    pub want: String,
    /// What kind of contract it is: `on-demand`, `bid`, `interruptible`, `reserved`.
    pub kind: String,
    /// Until when a prepaid lease is promised, RFC 3339.
    pub promised_until: Option<String>,
    /// When a lease that was given notice is stopped, RFC 3339.
    pub stops_at: Option<String>,
    /// What it holds.
    pub resources: Vec<String>,
    /// How long it ran.
    pub running_s: u64,
    /// Bytes that left its container.
    pub uploaded_bytes: u64,
    /// Bytes that reached it.
    pub downloaded_bytes: u64,
    /// When it was taken, RFC 3339.
    pub taken_at: String,
    /// Price while it runs.
    pub price_usd_per_hour: String,
}

/// A host's money with one broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarningsRow {
    /// Which.
    pub broker: String,
    /// The money, or why it is not known now.
    pub earned: Result<Earned, String>,
}

/// See [`EarningsRow`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earned {
    /// Earned, not yet free to pay out.
    pub pending_usd: String,
    /// Free to pay out.
    pub available_usd: String,
    /// Paid out so far.
    pub paid_out_usd: String,
    /// The bond, which stands for refunds.
    pub bond_usd: String,
    /// The broker's fees on it.
    pub fees_usd: String,
    /// Leases that ran.
    pub leases: u32,
    /// Time that they ran, as billed.
    pub running_s: u64,
}

/// An offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferRow {
    /// Which.
    pub offer: String,
    /// Digest of the terms that an order agrees to.
    pub terms: String,
    /// What it sells.
    pub resources: Vec<String>,
    /// The GPU's model; `none` on a CPU machine.
    pub gpu_name: String,
    /// Its GPUs.
    pub gpus: u64,
    /// How many of its resources can be leased now.
    pub free: u64,
    /// How many GPUs are sold together; 0 alone for a machine without one.
    pub sold_as: Vec<u16>,
    /// `any`, `powers-of-two` or `whole`.
    pub chunks: String,
    /// Fewest GPUs of one lease.
    pub gpus_min: u16,
    /// Cores of all together, to a thousandth.
    pub cpu_millicores: u32,
    /// RAM of all together, in bytes.
    pub ram_bytes: u64,
    /// Largest disk of all its leases together, in bytes.
    pub disk_max_bytes: u64,
    /// For each GPU, or for the machine, while it runs.
    pub price_usd_per_hour: String,
    /// The lowest interruptible bid for each GPU; none when nothing is sold so.
    pub floor_usd_per_hour: Option<String>,
    /// The largest discount of a prepaid term in percent; none when none is sold.
    pub discount_max_percent: Option<String>,
    /// For disk.
    pub storage_usd_per_gb_month: String,
    /// For traffic out.
    pub upload_usd_per_gb: String,
    /// For traffic in.
    pub download_usd_per_gb: String,
    /// From the match to the container running.
    pub start_within_s: u64,
    /// Shortest lease.
    pub duration_min_s: u64,
    /// Longest lease.
    pub duration_max_s: Option<u64>,
    /// Until when the host promises to be there, RFC 3339.
    pub until: Option<String>,
    /// Notice that an interruptible lease gets before it is stopped.
    pub notice_s: u64,
    /// `none` or `bridge`.
    pub network: String,
    /// Leases that have some of it, each with how many of its resources.
    pub held_by: BTreeMap<String, usize>,
    /// Why nothing of it can be leased now: the leases that have it all, or what else is in the way.
    pub taken_by: Option<String>,
    /// The bytes that are signed, in hexadecimal.
    pub signed_bytes: String,
}
