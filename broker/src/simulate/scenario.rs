//! A scenario's file: what is in it, and what is wrong with it.

use super::doing::Do;
use super::slices::profile_of;
use protocol::units::{BasisPoints, PricePerGb, PricePerGbMonth, PricePerHour};
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
    /// The slices of them that are sold too.
    #[serde(default)]
    pub slices: Vec<SliceSale>,
}

/// A kind of slice that is sold.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceSale {
    /// Its profile, like `3g.40gb`.
    pub profile: String,
    /// Price of a slice and hour, in µ$.
    pub ask_uh: u64,
    /// Lowest interruptible bid, in µ$; none is taken without.
    pub floor_uh: Option<u64>,
}

/// A step, and when.
#[derive(Debug, Clone)]
pub struct Step {
    /// When, in seconds from the beginning.
    pub at_s: u64,
    /// What.
    pub what: Do,
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
        check_settings(&self.settings)?;
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

fn check_settings(settings: &Settings) -> Result<(), BadScenario> {
    let is_whole = |bps: Option<u16>| bps.is_none_or(|bps| bps <= BasisPoints::WHOLE.0);
    let is_short = |seconds: Option<u64>| seconds.is_none_or(|seconds| seconds <= UNTIL_MAX_S);
    let dispute_s = settings.dispute_h.map(|hours| hours.saturating_mul(3600));
    let problems = [
        (
            !is_whole(settings.fee_bps),
            "fee_bps is more than the whole, which is 10000",
        ),
        (
            !is_short(settings.min_run_s),
            "min_run_s is more than ten years",
        ),
        (
            !is_short(settings.grace_s),
            "grace_s is more than ten years",
        ),
        (!is_short(dispute_s), "dispute_h is more than ten years"),
    ];
    match problems.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, problem)) => Err(wrong("settings", problem)),
        None => Ok(()),
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
        (
            !PricePerHour(host.ask_uh).is_sane(),
            "ask_uh is above a million dollars",
        ),
        (
            !host
                .floor_uh
                .is_none_or(|floor| PricePerHour(floor).is_sane()),
            "floor_uh is above a million dollars",
        ),
        (
            !PricePerGbMonth(host.disk_ugbmo).is_sane(),
            "disk_ugbmo is above a million dollars",
        ),
        (
            !PricePerGb(host.up_ugb).is_sane() || !PricePerGb(host.down_ugb).is_sane(),
            "up_ugb or down_ugb is above a million dollars",
        ),
        (
            host.max_discount_bps
                .is_some_and(|bps| bps > BasisPoints::WHOLE.0),
            "max_discount_bps is more than the whole, which is 10000",
        ),
        (models.len() < host.gpus.len(), "a model stands there twice"),
        (
            host.gpus.iter().any(|group| group.count == 0),
            "a count of GPUs is 0",
        ),
        (count > 16, "a machine has 16 GPUs at most"),
        (
            host.gpus.iter().any(|group| {
                let mut sales = group.slices.iter();
                sales.any(|sale| profile_of(group, sale).is_none())
            }),
            "a model cannot be cut into slices of that profile",
        ),
    ];
    match problems.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, problem)) => Err(wrong(place, problem)),
        None => Ok(()),
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
