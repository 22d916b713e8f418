//! The offers and demands of `tests/data/gen_market.py`, as rows of an index and queries of it.
//!
//! Numbers with decimal places become integers of their last place, exactly. The answers to the demands have
//! checksums that any matcher must reach. Must not measure anything.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use broker::core::book::index::{Layout, Order, Query, Range, Subject, Test, UNKNOWN};
use serde::Deserialize;
use serde_json::Number;

use crate::Outcome;

/// Columns of an offer: all fields of the generator but the listing order, which is an offer's place here.
pub(crate) const COLUMNS: usize = 23;

/// What is in which column.
pub(crate) const MODEL: usize = 0;
pub(crate) const COUNT: usize = 1;
pub(crate) const PRICE: usize = 2;
pub(crate) const VRAM: usize = 3;
pub(crate) const CORES: usize = 4;
pub(crate) const RAM: usize = 5;
pub(crate) const DISK: usize = 6;
pub(crate) const UP: usize = 7;
pub(crate) const DOWN: usize = 8;
pub(crate) const RELIABILITY: usize = 9;
pub(crate) const CUDA: usize = 10;
pub(crate) const DAYS: usize = 11;
pub(crate) const COUNTRY: usize = 12;
pub(crate) const VERIFIED: usize = 13;
pub(crate) const DATACENTER: usize = 14;

/// How the index is told of the columns.
pub(crate) const LAYOUT: Layout = Layout {
    columns: COLUMNS,
    model: MODEL,
    count: COUNT,
    price: PRICE,
    extras: &[],
};

/// How many matches are wanted of each demand.
pub(crate) const WANTED: usize = 20;

/// What an offer has, by column.
pub(crate) type Offered = [i64; COLUMNS];

/// A demand: what kind of renter asks, and what.
#[derive(Debug)]
pub(crate) struct Demand {
    pub(crate) id: u64,
    pub(crate) kind: String,
    pub(crate) query: Query,
}

/// A market: its offers, and the demands that are asked of every size of it.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) offers: Vec<Offered>,
    pub(crate) demands: Vec<Demand>,
    /// The names of the models, by number.
    pub(crate) models: BTreeMap<i64, String>,
}

/// The first `count` offers and the 100 demands of seed 1. The largest market is made once for all rows.
pub(crate) fn market(count: usize) -> Outcome<&'static Workload> {
    static SMALL: OnceLock<Result<Workload, String>> = OnceLock::new();
    static LARGE: OnceLock<Result<Workload, String>> = OnceLock::new();
    let place = if count > 100_000 { &LARGE } else { &SMALL };
    let made = place.get_or_init(|| generate(count).map_err(|error| error.to_string()));
    Ok(made.as_ref().map_err(Clone::clone)?)
}

/// Runs the generator, and reads what it wrote.
pub(crate) fn generate(count: usize) -> Outcome<Workload> {
    let folder = run_generator(count, 100)?;
    let mut names = Names::default();
    let mut models = BTreeMap::new();
    let mut offers = Vec::with_capacity(count);
    for line in lines(&folder.path().join("offers.jsonl"))? {
        let raw: RawOffer = serde_json::from_str(&line?)?;
        let offer = offered(&raw, &mut names)?;
        models.entry(offer[MODEL]).or_insert(raw.gpu_name);
        offers.push(offer);
    }
    let mut demands = Vec::new();
    for line in lines(&folder.path().join("demands.jsonl"))? {
        demands.push(demand(serde_json::from_str(&line?)?, &mut names)?);
    }
    Ok(Workload {
        offers,
        demands,
        models,
    })
}

/// The first `count` demands, as the generator wrote them.
pub(crate) fn raw_demands(count: usize) -> Outcome<Vec<RawDemand>> {
    let folder = run_generator(1, count)?;
    let mut demands = Vec::with_capacity(count);
    for line in lines(&folder.path().join("demands.jsonl"))? {
        demands.push(serde_json::from_str(&line?)?);
    }
    Ok(demands)
}

fn run_generator(offers: usize, demands: usize) -> Outcome<tempfile::TempDir> {
    let folder = tempfile::Builder::new().prefix("feira-market").tempdir()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/gen_market.py");
    let status = Command::new("python3")
        .arg(script)
        .args(["--seed", "1", "--offers", &offers.to_string()])
        .args(["--demands", &demands.to_string(), "--out"])
        .arg(folder.path())
        .status()?;
    if !status.success() {
        return Err("the generator failed".into());
    }
    Ok(folder)
}

fn lines(path: &Path) -> Outcome<impl Iterator<Item = std::io::Result<String>>> {
    Ok(BufReader::new(File::open(path)?).lines())
}

/// FNV-1a over demand, number of matches, number of the first, and each of these: the checksum of
/// `gen_market.py`.
pub(crate) fn checksum(answers: &[(u64, usize, Vec<usize>)]) -> Outcome<u64> {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for (demand, count, first) in answers {
        let mut words = vec![*demand, u64::try_from(*count)?, u64::try_from(first.len())?];
        for offer in first {
            words.push(u64::try_from(*offer)?);
        }
        for byte in words.into_iter().flat_map(u64::to_le_bytes) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(hash)
}

/// Words as numbers, in the order in which they are met.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, i64>);

impl Names {
    fn number(&mut self, name: &str) -> Outcome<i64> {
        if let Some(number) = self.0.get(name) {
            return Ok(*number);
        }
        let number = i64::try_from(self.0.len())?;
        self.0.insert(name.to_owned(), number);
        Ok(number)
    }
}

#[derive(Deserialize)]
struct RawOffer {
    machine_id: i64,
    host_id: i64,
    gpu_name: String,
    gpu_arch: String,
    compute_cap: i64,
    num_gpus: i64,
    vram_gb: i64,
    tflops: Number,
    price_per_hour: Number,
    cpu_cores: i64,
    ram_gb: i64,
    disk_gb: i64,
    disk_mbps: Number,
    inet_up_mbps: Number,
    inet_down_mbps: Number,
    pcie_gbps: Number,
    reliability: Number,
    country: String,
    cuda_version: Number,
    verified: bool,
    datacenter: bool,
    static_ip: bool,
    max_days: Number,
}

fn offered(raw: &RawOffer, names: &mut Names) -> Outcome<Offered> {
    Ok([
        names.number(&raw.gpu_name)?,
        raw.num_gpus,
        scaled(&raw.price_per_hour, 4)?,
        raw.vram_gb,
        raw.cpu_cores,
        raw.ram_gb,
        raw.disk_gb,
        scaled(&raw.inet_up_mbps, 1)?,
        scaled(&raw.inet_down_mbps, 1)?,
        scaled(&raw.reliability, 4)?,
        scaled(&raw.cuda_version, 1)?,
        scaled(&raw.max_days, 2)?,
        names.number(&raw.country)?,
        raw.verified.into(),
        raw.datacenter.into(),
        raw.static_ip.into(),
        names.number(&raw.gpu_arch)?,
        raw.compute_cap,
        scaled(&raw.tflops, 2)?,
        scaled(&raw.disk_mbps, 1)?,
        scaled(&raw.pcie_gbps, 1)?,
        raw.machine_id,
        raw.host_id,
    ])
}

/// A demand as the generator writes it: what is absent is no condition.
#[derive(Debug, Deserialize)]
pub(crate) struct RawDemand {
    pub(crate) id: u64,
    pub(crate) kind: String,
    pub(crate) gpu_names: Option<Vec<String>>,
    pub(crate) num_gpus: Option<i64>,
    pub(crate) max_price_per_hour: Option<Number>,
    pub(crate) min_vram_gb: Option<Number>,
    pub(crate) min_cpu_cores: Option<Number>,
    pub(crate) min_ram_gb: Option<Number>,
    pub(crate) min_disk_gb: Option<Number>,
    pub(crate) min_inet_up_mbps: Option<Number>,
    pub(crate) min_inet_down_mbps: Option<Number>,
    pub(crate) min_reliability: Option<Number>,
    pub(crate) min_cuda: Option<Number>,
    pub(crate) min_days: Option<Number>,
    pub(crate) countries: Option<Vec<String>>,
    pub(crate) verified: Option<bool>,
    pub(crate) datacenter: Option<bool>,
}

fn demand(raw: RawDemand, names: &mut Names) -> Outcome<Demand> {
    let mut tests = Vec::new();
    let mut add = |subject, ranges: Vec<Range>| tests.push(Test { subject, ranges });
    for (column, words) in [(MODEL, raw.gpu_names), (COUNTRY, raw.countries)] {
        if let Some(words) = words {
            let numbers: Outcome<Vec<i64>> = words.iter().map(|word| names.number(word)).collect();
            let mut numbers = numbers?;
            numbers.sort_unstable();
            let ranges = numbers.into_iter().map(|number| (number, number));
            add(Subject::Column(column), ranges.collect());
        }
    }
    if let Some(count) = raw.num_gpus {
        add(Subject::Column(COUNT), vec![(count, count)]);
    }
    if let Some(most) = raw.max_price_per_hour {
        add(Subject::Total, vec![(UNKNOWN + 1, scaled(&most, 4)?)]);
    }
    for (column, least, places) in [
        (VRAM, raw.min_vram_gb, 0),
        (CORES, raw.min_cpu_cores, 0),
        (RAM, raw.min_ram_gb, 0),
        (DISK, raw.min_disk_gb, 0),
        (UP, raw.min_inet_up_mbps, 1),
        (DOWN, raw.min_inet_down_mbps, 1),
        (RELIABILITY, raw.min_reliability, 4),
        (CUDA, raw.min_cuda, 1),
        (DAYS, raw.min_days, 2),
    ] {
        if let Some(least) = least {
            add(
                Subject::Column(column),
                vec![(scaled(&least, places)?, i64::MAX)],
            );
        }
    }
    for (column, wanted) in [(VERIFIED, raw.verified), (DATACENTER, raw.datacenter)] {
        if wanted == Some(true) {
            add(Subject::Column(column), vec![(1, 1)]);
        }
    }
    Ok(Demand {
        id: raw.id,
        kind: raw.kind,
        query: Query {
            scope: Vec::new(),
            sees_all: false,
            tests,
            order: Order::Total,
            wanted: WANTED,
        },
    })
}

/// A decimal number in units of its `places`th decimal place; it has no more places than that.
fn scaled(number: &Number, places: usize) -> Outcome<i64> {
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > places {
        return Err(format!("{text} has more than {places} places").into());
    }
    Ok(format!("{whole}{fraction:0<places$}").parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_scaled_exactly() {
        let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
        assert_eq!(scaled(&number("0.4123"), 4).unwrap(), 4123);
        assert_eq!(scaled(&number("12"), 1).unwrap(), 120);
        assert_eq!(scaled(&number("13.0"), 1).unwrap(), 130);
        assert!(scaled(&number("0.41235"), 4).is_err());
    }
}
