//! A host changes its ask: its row moves in the index of a million, and the first in line of a hundred thousand orders
//! that wait is found.
//!
//! The orders are the generator's demands as filters, at half of what they would pay. Of its fields, offers here do not
//! say speeds of lines, countries, and who verified what: these conditions are left out. Must not match anything.

use std::cell::RefCell;
use std::hint::black_box;

use broker::core::book::bids::{Bids, Rank};
use broker::core::book::index::Row as IndexRow;
use protocol::bounded::{List, Text};
use protocol::filter::{Comparison, Facts, Field, Filter, Prepared, Term};
use protocol::ids::{HostId, LeaseId, OfferId};
use protocol::machine::{ContainerNetwork, Gpu, Machine, Vendor};
use protocol::offer::{Chunks, Offer, Share};
use protocol::terms::{Limits, Need, Prices, Sales};
use protocol::units::{Bytes, PricePerGb, PricePerGbMonth, PricePerHour, Seconds, Timestamp};

use super::workload::{
    CORES, COUNT, CUDA, DAYS, DISK, MODEL, Offered, PRICE, RAM, RELIABILITY, RawDemand, VRAM,
    Workload, market, raw_demands,
};
use super::{LARGE, built, microseconds, slowest_hundredth};
use crate::Outcome;
use crate::report::Row;
use crate::rounds::{by_turns, median};

/// Orders that wait.
const BIDS: usize = 100_000;
/// Changes of an ask in one round.
const CHANGES: usize = 200;

/// An offer whose ask changes: its row, and what its GPUs ask for now.
struct Change {
    row: usize,
    facts: Facts,
    ask: PricePerHour,
}

/// An order that waits, in the list beside.
type Waiting = (Rank, u16, Prepared);

/// One ask change: the row is written, the first in line is found.
pub(crate) fn measure() -> Outcome<Vec<Row>> {
    let market = market(LARGE)?;
    let (mut index, slots) = built(&market.offers)?;
    let mut bids = Bids::default();
    let mut list: Vec<Waiting> = Vec::with_capacity(BIDS);
    for (number, demand) in raw_demands(BIDS)?.iter().enumerate() {
        let (limit, gpus, filter) = order(demand)?;
        let number = u64::try_from(number)?;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let rank = Rank::new(PricePerHour(limit), number, LeaseId::from_bytes(id));
        let need = Need::default();
        bids.insert(rank, gpus, &filter, need);
        list.push((rank, gpus, filter.prepare(need)));
    }
    list.sort_unstable_by_key(|(rank, _, _)| *rank);
    let changes = changes(market)?;
    let mut served = 0;
    for change in changes.iter().step_by(10) {
        let found = bids.in_line(&change.facts, change.ask, 1);
        if found.first().copied() != first(&list, change) {
            return Err(format!("another order is first in line for {:?}", change.facts).into());
        }
        served += found.len();
    }
    let slow = RefCell::new(Vec::new());
    let mut offers = market.offers.clone();
    let medians = by_turns(
        || {
            let mut times = Vec::with_capacity(CHANGES);
            for change in &changes {
                let before = offers[change.row];
                offers[change.row][PRICE] = before[PRICE] * 99 / 100;
                let row = IndexRow {
                    values: &offers[change.row],
                    tie: 0,
                };
                times.push(microseconds(|| {
                    index.update(slots[change.row], &before, &row);
                    black_box(bids.in_line(&change.facts, change.ask, 1));
                }));
            }
            slow.borrow_mut().push(slowest_hundredth(&mut times));
            Ok(median(&mut times))
        },
        || {
            let mut times = Vec::with_capacity(CHANGES);
            for change in changes.iter().step_by(10) {
                times.push(microseconds(|| {
                    black_box(first(&list, change));
                }));
            }
            Ok(median(&mut times))
        },
    )?;
    let slow = median(&mut slow.borrow_mut());
    let row = Row::new("match_bids", "µs CPU", medians)
        .beside("a list of the orders in line, until one matches")
        .goal("at most 50 µs", |row| row.ours() <= 50.0)
        .note(format!(
            "the slowest hundredth from {slow:.0} µs; {BIDS} orders wait"
        ))
        .note(format!(
            "of {} changes {served} find an order to serve",
            CHANGES / 10
        ));
    Ok(vec![row])
}

fn first(list: &[Waiting], change: &Change) -> Option<Rank> {
    let in_line = list
        .iter()
        .take_while(|(rank, _, _)| rank.bid.0 >= change.ask);
    let mut fitting = in_line
        .filter(|(_, gpus, filter)| *gpus == change.facts.gpus() && filter.matches(&change.facts));
    fitting.next().map(|(rank, _, _)| *rank)
}

/// The limit for each GPU in micro-dollars, the number of GPUs and the filter of a demand.
fn order(demand: &RawDemand) -> Outcome<(u64, u16, Filter)> {
    let mut terms = Vec::new();
    if let Some(names) = &demand.gpu_names {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        terms.push(Term::one_of(Field::GpuName, &names)?);
    }
    for (field, least) in [
        (Field::GpuRam, &demand.min_vram_gb),
        (Field::CpuCoresEffective, &demand.min_cpu_cores),
        (Field::CpuRam, &demand.min_ram_gb),
        (Field::DiskSpace, &demand.min_disk_gb),
        (Field::Reliability, &demand.min_reliability),
        (Field::CudaVersion, &demand.min_cuda),
        (Field::Duration, &demand.min_days),
    ] {
        if let Some(least) = least {
            let least = least.to_string();
            // Days and the like are written with a nought behind the point.
            let least = least.strip_suffix(".0").unwrap_or(&least);
            terms.push(Term::compare(field, Comparison::AtLeast, least)?);
        }
    }
    let gpus = u16::try_from(demand.num_gpus.unwrap_or(1))?;
    let dollars = match (&demand.max_price_per_hour, &demand.min_vram_gb) {
        (Some(most), _) => most.as_f64().unwrap_or_default() / f64::from(gpus),
        (None, Some(vram)) => vram.as_f64().unwrap_or_default() * 0.02,
        (None, None) => 0.5,
    };
    let limit = format!("{:.0}", dollars * 500_000.0).parse()?;
    Ok((limit, gpus, Filter::of(terms)?))
}

/// Some offers, as hosts announce them, a little cheaper than they were.
fn changes(market: &Workload) -> Outcome<Vec<Change>> {
    let mut changes = Vec::with_capacity(CHANGES);
    for row in (0..CHANGES).map(|number| number * 4987 % LARGE) {
        let offered = &market.offers[row];
        let model = market.models.get(&offered[MODEL]).ok_or("no such model")?;
        let gpus = u16::try_from(offered[COUNT])?;
        let offer = offer(offered, model)?;
        let ppm = u32::try_from(offered[RELIABILITY] * 100)?;
        let facts = Facts::of(HostId::from_bytes([7; 32]), &offer, gpus).with_reliability(ppm);
        let ask = PricePerHour(offer.prices.compute.0 * 99 / 100);
        changes.push(Change { row, facts, ask });
    }
    Ok(changes)
}

fn offer(offered: &Offered, model: &str) -> Outcome<Offer> {
    let amount = |column: usize| u64::try_from(offered[column]);
    let gpus = (0..offered[COUNT]).map(|card| gpu(offered, model, card));
    let gpus: Vec<Gpu> = gpus.collect::<Outcome<_>>()?;
    let names = gpus.iter().map(|gpu| gpu.uuid.clone());
    // Prices here are for all GPUs, in hundreds of micro-dollars.
    let compute = amount(PRICE)? * 100 / amount(COUNT)?;
    Ok(Offer {
        id: OfferId::from_bytes([7; 16]),
        sequence: 1,
        listed_at: Timestamp(0),
        machine: machine(offered, &gpus)?,
        share: Share {
            resources: List::new(names.collect())?,
            gpus: List::new(gpus)?,
            cpu_millicores: u32::try_from(amount(CORES)? * 1000)?,
            ram: Bytes::from_gb(amount(RAM)?),
            shared_memory: Bytes::from_gb(1),
        },
        chunks: Chunks::Any,
        gpus_min: 1,
        partition: None,
        measures: List::default(),
        prices: Prices {
            compute: PricePerHour(compute),
            storage: PricePerGbMonth(0),
            upload: PricePerGb(0),
            download: PricePerGb(0),
        },
        sales: Sales::default(),
        limits: Limits {
            start_within: Seconds(600),
            duration_min: Seconds(0),
            duration_max: Some(Seconds(amount(DAYS)? * 864)),
            until: None,
            stop_grace: Seconds(10),
            notice: Seconds(120),
            disk_max: Bytes::from_gb(amount(DISK)?),
        },
        brokers: List::new(Vec::new())?,
    })
}

fn gpu(offered: &Offered, model: &str, card: i64) -> Outcome<Gpu> {
    let cuda = u16::try_from(offered[CUDA])?;
    Ok(Gpu {
        model: Text::new(model)?,
        uuid: Text::new(format!("GPU-{card}"))?,
        vram: Bytes(u64::try_from(offered[VRAM])? << 30),
        driver: Text::new("570.124.06")?,
        cuda: (cuda / 10, cuda % 10),
        compute_capability: (8, 9),
        pcie_generation: 4,
        pcie_width: 16,
        power_limit_mw: 450_000,
        ..Gpu::unknown(Vendor::Nvidia)
    })
}

fn machine(offered: &Offered, gpus: &[Gpu]) -> Outcome<Machine> {
    let ram = Bytes::from_gb(u64::try_from(offered[RAM])?);
    Ok(Machine {
        cpu_model: Text::new("AMD EPYC 7543 32-Core Processor")?,
        architecture: Text::new("x86_64")?,
        cpu_cores: u16::try_from(offered[CORES])?,
        has_avx: true,
        ram,
        disk_total: Bytes(4_000_000_000_000),
        disk_free: Bytes(3_000_000_000_000),
        disk_enforced: true,
        system: Text::new("Debian GNU/Linux 12")?,
        kernel: Text::new("6.1.0-31-amd64")?,
        engine: Text::new("20.10.24")?,
        runtime: Text::new("runc 1.1.5")?,
        network: ContainerNetwork::None,
        gpus: List::new(gpus.to_vec())?,
        ..Machine::unknown()
    })
}
