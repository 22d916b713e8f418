//! A scenario's file: what is in it, and what is wrong with it.

use protocol::filter::Filter;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeSet;

/// Most seconds of one scenario: ten years.
const UNTIL_MAX_S: u64 = 10 * 365 * 24 * 3600;
/// Most hosts, and most steps.
const PARTS_MAX: usize = 1_000_000;

/// A scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The operator's numbers.
    #[serde(default)]
    pub settings: Settings,
    /// Who offers what.
    pub hosts: Vec<Host>,
    /// What is done, and when; steps of one moment in their order here.
    pub steps: Vec<Step>,
    /// When it ends.
    pub until_s: u64,
}

/// Numbers of the market; the broker's own where one is missing.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The broker's part of every charge, in hundredths of a percent.
    pub fee_bps: Option<u16>,
    /// How long an interruptible lease runs before it can be outbid.
    pub min_run_s: Option<u64>,
    /// Notice of the hosts' offers.
    pub grace_s: Option<u64>,
    /// How long earnings are pending, whatever the host's score.
    pub dispute_h: Option<u64>,
}

/// A host.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name in the scenario.
    pub id: String,
    /// Its GPUs: one offer for each model.
    #[serde(default)]
    pub gpus: Vec<GpuGroup>,
    /// Logical CPUs.
    pub cpu_cores: u16,
    /// RAM in GB.
    pub ram_gb: u64,
    /// Disk in GB.
    pub disk_gb: u64,
    /// Price of a GPU (or of the machine) and hour, in µ$.
    pub ask_uh: u64,
    /// Lowest interruptible bid, in µ$; none is taken without.
    pub floor_uh: Option<u64>,
    /// Price of a GB and month of disk, in µ$.
    #[serde(default)]
    pub disk_ugbmo: u64,
    /// Price of a GB that leaves a container, in µ$.
    #[serde(default)]
    pub up_ugb: u64,
    /// Price of a GB that reaches one, in µ$.
    #[serde(default)]
    pub down_ugb: u64,
    /// Largest discount of a prepaid term; none is sold without.
    pub max_discount_bps: Option<u16>,
    /// Its bond, in µ$.
    #[serde(default)]
    pub bond: i64,
    /// When it comes.
    #[serde(default)]
    pub listed_at_s: u64,
    /// How long a start takes.
    #[serde(default)]
    pub prepare_s: u64,
}

/// GPUs of one model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuGroup {
    /// Their model, like `RTX 4090`.
    pub model: String,
    /// How many.
    pub count: u16,
}

/// A step, and when.
#[derive(Debug, Clone)]
pub struct Step {
    /// When, in seconds from the beginning.
    pub at_s: u64,
    /// What.
    pub what: Do,
}

/// What is done.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Do {
    /// The operator credits a renter.
    Deposit { renter: String, amount: i64 },
    /// An order on demand.
    Rent(Rent),
    /// A bid: interruptible, or resting until a host's price comes down to it.
    Bid(Bid),
    /// A prepaid term.
    Reserve(Reserve),
    /// A host changes its price.
    SetAsk { host: String, ask_uh: u64 },
    /// A host changes its lowest bid.
    SetFloor { host: String, floor_uh: u64 },
    /// A lease moved so many bytes more.
    Usage {
        order: String,
        #[serde(default)]
        up_bytes: u64,
        #[serde(default)]
        down_bytes: u64,
    },
    /// Something goes wrong with a host.
    Fault {
        host: String,
        kind: FaultKind,
        #[serde(default)]
        for_s: u64,
    },
    /// A renter stops a lease; its disk is kept.
    Stop { order: String },
    /// A renter starts it again.
    Resume { order: String },
    /// A renter ends it.
    Destroy { order: String },
    /// A renter changes its bid.
    ChangeBid { order: String, limit_uh: u64 },
    /// A renter withdraws a bid that rests, or ends a lease early.
    Cancel { order: String },
    /// The operator gives a renter a part of what a lease cost back.
    Refund { order: String, amount: i64 },
    /// The operator pays out all that is free.
    PayOut {},
}

/// What goes wrong with a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// It is not heard for a time.
    Offline,
    /// It takes its offers back and ends its leases.
    Withdraw,
}

/// An order on demand.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rent {
    /// Its name in the scenario.
    pub order: String,
    /// Who rents.
    pub renter: String,
    /// How; on demand is the only way here.
    #[serde(default)]
    pub kind: RentKind,
    /// How many GPUs.
    #[serde(default = "one")]
    pub gpus: u16,
    /// What must hold of the offer.
    #[serde(default, deserialize_with = "filter")]
    pub filter: Filter,
    /// Disk in GB.
    #[serde(default)]
    pub disk_gb: u64,
}

/// How an order on demand is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RentKind {
    /// At the host's price.
    #[default]
    OnDemand,
}

/// A bid.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bid {
    /// Its name in the scenario.
    pub order: String,
    /// Who bids.
    pub renter: String,
    /// Which kind of bid.
    pub kind: BidKind,
    /// For each GPU and hour, in µ$.
    pub limit_uh: u64,
    /// How many GPUs.
    #[serde(default = "one")]
    pub gpus: u16,
    /// What must hold of the offer.
    #[serde(default, deserialize_with = "filter")]
    pub filter: Filter,
    /// Disk in GB.
    #[serde(default)]
    pub disk_gb: u64,
    /// How long it waits; to the end of the scenario when not given.
    pub for_s: Option<u64>,
}

/// Which kind of bid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BidKind {
    /// It runs at its bid until somebody bids more.
    Interruptible,
    /// It waits for the host's price.
    Resting,
}

/// A prepaid term.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// Its name in the scenario.
    pub order: String,
    /// Who reserves.
    pub renter: String,
    /// For how long.
    pub days: u16,
    /// How many GPUs.
    #[serde(default = "one")]
    pub gpus: u16,
    /// What must hold of the offer.
    #[serde(default, deserialize_with = "filter")]
    pub filter: Filter,
    /// Disk in GB.
    #[serde(default)]
    pub disk_gb: u64,
}

/// What is wrong with a scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadScenario {
    /// It is no JSON, or has a key, a step or a value that there is not.
    #[error("line {line}, column {column}: {problem}")]
    Unreadable {
        /// Which line.
        line: usize,
        /// Which column.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// It contradicts itself.
    #[error("{place}: {problem}")]
    Wrong {
        /// Where in the file.
        place: String,
        /// What is wrong.
        problem: String,
    },
}

impl Scenario {
    /// The scenario that `text` is.
    ///
    /// # Errors
    /// With the line and the key, or the place, that is wrong.
    pub fn read(text: &str) -> Result<Self, BadScenario> {
        let scenario: Self =
            serde_json::from_str(text).map_err(|error| BadScenario::Unreadable {
                line: error.line(),
                column: error.column(),
                problem: without_place(&error.to_string()),
            })?;
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), BadScenario> {
        if self.until_s > UNTIL_MAX_S {
            return Err(wrong("until_s", &format!("at most {UNTIL_MAX_S} seconds")));
        }
        if self.hosts.len() > PARTS_MAX || self.steps.len() > PARTS_MAX {
            return Err(wrong("hosts, steps", "at most a million of each"));
        }
        let mut hosts = BTreeSet::new();
        for (index, host) in self.hosts.iter().enumerate() {
            let place = format!("hosts[{index}]");
            if !hosts.insert(&host.id) {
                return Err(wrong(
                    &place,
                    &format!("there is a host {} before it", host.id),
                ));
            }
            check_host(&place, host)?;
        }
        let mut orders = BTreeSet::new();
        for (index, step) in self.steps.iter().enumerate() {
            let place = format!("steps[{index}]");
            if step.at_s > self.until_s {
                return Err(wrong(&place, "it is after until_s"));
            }
            if let Some(order) = step.what.makes()
                && !orders.insert(order)
            {
                return Err(wrong(
                    &place,
                    &format!("there is an order {order} before it"),
                ));
            }
        }
        for (index, step) in self.steps.iter().enumerate() {
            let place = format!("steps[{index}]");
            if let Some(order) = step.what.order().filter(|order| !orders.contains(order)) {
                return Err(wrong(&place, &format!("there is no order {order}")));
            }
            if let Some(host) = step.what.host().filter(|host| !hosts.contains(host)) {
                return Err(wrong(&place, &format!("there is no host {host}")));
            }
        }
        Ok(())
    }
}

fn check_host(place: &str, host: &Host) -> Result<(), BadScenario> {
    let models: BTreeSet<&String> = host.gpus.iter().map(|group| &group.model).collect();
    let count: u32 = host.gpus.iter().map(|group| u32::from(group.count)).sum();
    let problems = [
        (host.cpu_cores == 0, "cpu_cores is 0"),
        (host.ram_gb == 0, "ram_gb is 0"),
        (host.disk_gb == 0, "disk_gb is 0"),
        (host.bond < 0, "bond is negative"),
        (models.len() < host.gpus.len(), "a model stands there twice"),
        (
            host.gpus.iter().any(|group| group.count == 0),
            "a count of GPUs is 0",
        ),
        (count > 16, "a machine has 16 GPUs at most"),
    ];
    match problems.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, problem)) => Err(wrong(place, problem)),
        None => Ok(()),
    }
}

impl Do {
    /// The order that it makes.
    pub(super) fn makes(&self) -> Option<&String> {
        match self {
            Self::Rent(rent) => Some(&rent.order),
            Self::Bid(bid) => Some(&bid.order),
            Self::Reserve(reserve) => Some(&reserve.order),
            Self::Deposit { .. }
            | Self::SetAsk { .. }
            | Self::SetFloor { .. }
            | Self::Usage { .. }
            | Self::Fault { .. }
            | Self::Stop { .. }
            | Self::Resume { .. }
            | Self::Destroy { .. }
            | Self::ChangeBid { .. }
            | Self::Cancel { .. }
            | Self::Refund { .. }
            | Self::PayOut {} => None,
        }
    }

    /// The order of another step that it is about.
    fn order(&self) -> Option<&String> {
        match self {
            Self::Usage { order, .. }
            | Self::Stop { order }
            | Self::Resume { order }
            | Self::Destroy { order }
            | Self::ChangeBid { order, .. }
            | Self::Cancel { order }
            | Self::Refund { order, .. } => Some(order),
            Self::Deposit { .. }
            | Self::Rent(_)
            | Self::Bid(_)
            | Self::Reserve(_)
            | Self::SetAsk { .. }
            | Self::SetFloor { .. }
            | Self::Fault { .. }
            | Self::PayOut {} => None,
        }
    }

    /// The host that it is about.
    fn host(&self) -> Option<&String> {
        match self {
            Self::SetAsk { host, .. } | Self::SetFloor { host, .. } | Self::Fault { host, .. } => {
                Some(host)
            }
            Self::Deposit { .. }
            | Self::Rent(_)
            | Self::Bid(_)
            | Self::Reserve(_)
            | Self::Usage { .. }
            | Self::Stop { .. }
            | Self::Resume { .. }
            | Self::Destroy { .. }
            | Self::ChangeBid { .. }
            | Self::Cancel { .. }
            | Self::Refund { .. }
            | Self::PayOut {} => None,
        }
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StepVisitor)
    }
}

/// Reads a step while its own line is being read, so that this is the line of what is wrong with it.
struct StepVisitor;

impl<'de> Visitor<'de> for StepVisitor {
    type Value = Step;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a step: an object with at_s and do")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Step, A::Error> {
        let mut fields = serde_json::Map::new();
        while let Some((key, value)) = map.next_entry::<String, serde_json::Value>()? {
            if fields.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format!("{key} stands there twice")));
            }
        }
        // The time is taken out first, so that what is left can be refused key by key.
        let at = fields
            .remove("at_s")
            .ok_or_else(|| A::Error::missing_field("at_s"))?;
        let at_s = at
            .as_u64()
            .ok_or_else(|| A::Error::custom(format!("at_s: {at} is not a number of seconds")))?;
        let what = serde_json::from_value(fields.into()).map_err(A::Error::custom)?;
        Ok(Step { at_s, what })
    }
}

const fn one() -> u16 {
    1
}

fn filter<'de, D: Deserializer<'de>>(from: D) -> Result<Filter, D::Error> {
    let text = String::deserialize(from)?;
    text.parse()
        .map_err(|error| serde::de::Error::custom(format!("filter: {error}")))
}

fn wrong(place: &str, problem: &str) -> BadScenario {
    BadScenario::Wrong {
        place: place.to_owned(),
        problem: problem.to_owned(),
    }
}

/// The library's words without the place, which is said in front.
fn without_place(text: &str) -> String {
    text.rsplit_once(" at line ")
        .map_or(text, |(words, _)| words)
        .to_owned()
}
