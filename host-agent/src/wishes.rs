//! What an owner says of the offer: on the command line of `list`, and under `[offer]` in `host.toml`, by the same
//! names and with the same rules.
//!
//! What is not said in either is as it was listed before. It knows no machine: [`resolve`] holds it against one.

mod file;
pub mod partition;
mod read;
pub mod resolve;

pub(crate) use read::length;

use clap::{Args, ValueEnum};
use protocol::machine::ContainerNetwork;
use protocol::offer::Chunks;
use protocol::units::{BasisPoints, PricePerGb, PricePerGbMonth, PricePerHour, Seconds, Timestamp};

/// A bound that may be taken off again, with `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit<T> {
    /// It is this.
    At(T),
    /// There is none.
    None,
}

/// Which GPUs are sold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuChoice {
    /// Every one.
    All,
    /// None of them: the machine without.
    None,
    /// These, by their number or by the beginning of their UUID.
    Some(Vec<String>),
}

/// What is offered, and for how much. Only what was said is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Wishes {
    /// US dollars for an hour of each GPU, or of the machine when it has none
    #[arg(long, value_name = "USD", allow_hyphen_values = true, value_parser = read::amount::<PricePerHour>)]
    pub price: Option<PricePerHour>,
    /// Needed with --price 0: the machine is given away, and renters pay for disk and traffic alone
    #[arg(long)]
    pub free: bool,
    /// Sell interruptible leases too, to bids from this much for a GPU and hour on; none: sell no such leases
    #[arg(long, value_name = "USD|none", allow_hyphen_values = true, value_parser = read::limit(read::amount::<PricePerHour>))]
    pub floor: Option<Limit<PricePerHour>>,
    /// Sell prepaid terms too, at a discount of at most so many percent; none: sell no terms
    #[arg(long, value_name = "PERCENT|none", allow_hyphen_values = true, value_parser = read::limit(read::percent))]
    pub max_discount: Option<Limit<BasisPoints>>,
    /// In which portions the GPUs of one model are sold [default: any]
    #[arg(long, value_enum)]
    pub chunks: Option<ChunksWord>,
    /// Sell slices of the GPUs: off, dynamic (what is asked for), dynamic:1g.10gb,3g.40gb (of these), or a fixed layout
    /// like 3g.40gb,4g.40gb; for each GPU by itself: '0=off; 1=dynamic'; of AMD's all alike: CPX, CPX/NPS4 [default: off]
    #[arg(long, visible_alias = "partition", value_name = "LAYOUT", value_parser = partition::layouts)]
    pub partition_layout: Option<partition::LayoutWishes>,
    /// Of the GPUs with a dynamic layout, leave so many whole [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(0..=16))]
    pub keep_whole: Option<u16>,
    /// Whether GPUs that are cut are sold whole too: never, or idle (while no slice of them is leased) [default: never]
    #[arg(long, value_enum)]
    pub whole_beside: Option<WholeWord>,
    /// Prices of slices for an hour, like 3g.40gb=0.60,1g.10gb=0.15; rule: by the part of the GPU [default: rule]
    #[arg(long, value_name = "LIST|rule", allow_hyphen_values = true, value_parser = partition::prices)]
    pub slice_price: Option<partition::SlicePrices>,
    /// How much more than its part of the GPU a slice costs by the rule; none: no more [default: 15]
    #[arg(long, value_name = "PERCENT|none", allow_hyphen_values = true, value_parser = read::limit(read::percent))]
    pub slice_premium: Option<Limit<BasisPoints>>,
    /// Fewest GPUs of one lease [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub min_gpus: Option<u16>,
    /// Which GPUs: all, none (sell the machine without them), or numbers and UUIDs, separated by commas [default: all]
    #[arg(long, value_name = "LIST", value_parser = read::gpus)]
    pub gpus: Option<GpuChoice>,
    /// Shortest lease that may be asked for [default: any]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read::length)]
    pub min_duration: Option<Seconds>,
    /// Longest lease; none: no limit [default: none]
    #[arg(long, value_name = "TIME|none", allow_hyphen_values = true, value_parser = read::limit(read::length))]
    pub max_duration: Option<Limit<Seconds>>,
    /// Promise to be there until then, like 2027-03-01, and end leases there; none: promise nothing [default: none]
    #[arg(long, value_name = "DATE|none", allow_hyphen_values = true, value_parser = read::limit(read::date))]
    pub until: Option<Limit<Timestamp>>,
    /// Notice that an interruptible lease gets before it is stopped, 30 to 600 seconds [default: 120]
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true, value_parser = read::notice)]
    pub notice: Option<Seconds>,
    /// US dollars for a gigabyte of disk for a month [default: 0.10]
    #[arg(long, visible_alias = "storage", value_name = "USD", allow_hyphen_values = true, value_parser = read::amount::<PricePerGbMonth>)]
    pub storage_price: Option<PricePerGbMonth>,
    /// US dollars for a gigabyte that leaves a container [default: 0]
    #[arg(long, visible_alias = "upload", value_name = "USD", allow_hyphen_values = true, value_parser = read::amount::<PricePerGb>)]
    pub upload_price: Option<PricePerGb>,
    /// US dollars for a gigabyte that reaches a container [default: 0]
    #[arg(long, visible_alias = "download", value_name = "USD", allow_hyphen_values = true, value_parser = read::amount::<PricePerGb>)]
    pub download_price: Option<PricePerGb>,
    /// Largest disk of all leases together in GB [default: four fifths of what is free]
    #[arg(long, value_name = "GB", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub disk_max: Option<u64>,
    /// From the match until the container runs, pulling included; after it the renter pays nothing [default: 10m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read::start_within)]
    pub start_within: Option<Seconds>,
    /// From the polite signal to the kill when a lease stops [default: 10s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read::of_a_day)]
    pub stop_grace: Option<Seconds>,
    /// Network of containers: none, or a bridge with a way out [default: none]
    #[arg(long, value_enum)]
    pub network: Option<Network>,
    /// CPU cores to offer in all [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub cpus: Option<u16>,
    /// RAM to offer in all, in GB [default: all but a sixteenth]
    #[arg(long, value_name = "GB", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub ram: Option<u64>,
}

/// Portions as they are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChunksWord {
    /// Any number of GPUs
    Any,
    /// 1, 2, 4, 8, 16, and all of them
    PowersOfTwo,
    /// All of them together, or nothing
    Whole,
}

/// Whether GPUs that are cut are sold whole too, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WholeWord {
    /// In slices alone
    Never,
    /// Whole too, while no slice of them is leased
    Idle,
}

/// The network of containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Network {
    /// Loopback only; renters come in through Feira's tunnels
    None,
    /// A bridge with a way out, and no fence yet to this machine's own network
    Bridge,
}

impl From<Network> for ContainerNetwork {
    fn from(network: Network) -> Self {
        match network {
            Network::None => Self::None,
            Network::Bridge => Self::Bridge,
        }
    }
}

impl From<ChunksWord> for Chunks {
    fn from(word: ChunksWord) -> Self {
        match word {
            ChunksWord::Any => Self::Any,
            ChunksWord::PowersOfTwo => Self::PowersOfTwo,
            ChunksWord::Whole => Self::Whole,
        }
    }
}

impl Wishes {
    /// These, and where they say nothing, `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            // With a price of its own, a command means what it says and not what the file gives away.
            free: self.free || (self.price.is_none() && others.free),
            price: self.price.or(others.price),
            floor: self.floor.or(others.floor),
            max_discount: self.max_discount.or(others.max_discount),
            chunks: self.chunks.or(others.chunks),
            partition_layout: self.partition_layout.or(others.partition_layout),
            keep_whole: self.keep_whole.or(others.keep_whole),
            whole_beside: self.whole_beside.or(others.whole_beside),
            slice_price: self.slice_price.or(others.slice_price),
            slice_premium: self.slice_premium.or(others.slice_premium),
            min_gpus: self.min_gpus.or(others.min_gpus),
            gpus: self.gpus.or(others.gpus),
            min_duration: self.min_duration.or(others.min_duration),
            max_duration: self.max_duration.or(others.max_duration),
            until: self.until.or(others.until),
            notice: self.notice.or(others.notice),
            storage_price: self.storage_price.or(others.storage_price),
            upload_price: self.upload_price.or(others.upload_price),
            download_price: self.download_price.or(others.download_price),
            disk_max: self.disk_max.or(others.disk_max),
            start_within: self.start_within.or(others.start_within),
            stop_grace: self.stop_grace.or(others.stop_grace),
            network: self.network.or(others.network),
            cpus: self.cpus.or(others.cpus),
            ram: self.ram.or(others.ram),
        }
    }
}
