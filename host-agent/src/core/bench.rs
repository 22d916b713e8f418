//! What benchmarks of this machine gave, what of it goes into an offer, and when it is too old. It measures nothing.

use super::offer::Listed;
use protocol::bounded::{List, Text};
use protocol::machine::{Gpu, MEASURES_MAX, Measure, Quantity};
use protocol::units::{Seconds, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A part of the machine that is measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Processors.
    Cpu,
    /// Memory.
    Ram,
    /// The disk under the engine's data root.
    Disk,
    /// The way to the brokers.
    Network,
    /// The GPUs.
    Gpu,
}

impl Part {
    /// All of them, in the order in which they are measured.
    pub const ALL: [Self; 5] = [Self::Cpu, Self::Ram, Self::Disk, Self::Network, Self::Gpu];

    /// Which one a quantity is of.
    #[must_use]
    pub const fn of(quantity: Quantity) -> Self {
        match quantity {
            Quantity::Fp32
            | Quantity::Fp16Matrix
            | Quantity::Bf16Matrix
            | Quantity::GpuMemory
            | Quantity::HostToDevice
            | Quantity::DeviceToHost
            | Quantity::Fp64
            | Quantity::PcieGeneration
            | Quantity::PcieLanes
            | Quantity::GpuTemperatureMax => Self::Gpu,
            Quantity::CpuSingle | Quantity::CpuAll => Self::Cpu,
            Quantity::Ram => Self::Ram,
            Quantity::DiskRead | Quantity::DiskWrite | Quantity::DiskRandomRead => Self::Disk,
            Quantity::Download | Quantity::Upload => Self::Network,
        }
    }

    /// As it is typed and printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Ram => "ram",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Gpu => "gpu",
        }
    }
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Of what.
    pub quantity: Quantity,
    /// In the quantity's unit.
    pub value: u64,
    /// By which method.
    pub method: Text<32>,
    /// And which version of it.
    pub version: u16,
    /// When it ended, by the wall clock.
    pub at: Timestamp,
    /// The GPU's UUID, or the broker at the other end; empty for the machine.
    pub on: String,
    /// It was measured on a program that stands in for a GPU: shown, and never offered.
    pub software: bool,
}

/// The old results with the new ones in the place of those that they measure again.
#[must_use]
pub fn merged(old: &[Outcome], new: &[Outcome]) -> Vec<Outcome> {
    let mut all: BTreeMap<(Quantity, &str), &Outcome> = BTreeMap::new();
    for outcome in old.iter().chain(new) {
        all.insert((outcome.quantity, &outcome.on), outcome);
    }
    all.into_values().cloned().collect()
}

/// What an offer of these GPUs says was measured: of a GPU the least of all of them, if each was measured by one
/// method; of the way to several brokers the best, since the broker may be what is slow.
#[must_use]
pub fn measures(outcomes: &[Outcome], gpus: &[Gpu]) -> List<Measure, MEASURES_MAX> {
    let real = || outcomes.iter().filter(|outcome| !outcome.software);
    let quantities: BTreeSet<Quantity> = real().map(|outcome| outcome.quantity).collect();
    let chosen = quantities.into_iter().filter_map(|quantity| {
        let mut of_it = real().filter(|outcome| outcome.quantity == quantity);
        match Part::of(quantity) {
            Part::Gpu => least(of_it, gpus),
            Part::Network => of_it.max_by_key(|outcome| outcome.value),
            Part::Cpu | Part::Ram | Part::Disk => of_it.next(),
        }
    });
    List::first(chosen.map(|outcome| Measure {
        quantity: outcome.quantity,
        value: outcome.value,
        method: outcome.method.clone(),
        version: outcome.version,
        at: outcome.at,
    }))
}

/// Offers with what was measured of each. It is beside the terms: measuring again binds nobody anew.
#[must_use]
pub fn with_measures(listed: Vec<Listed>, outcomes: &[Outcome]) -> Vec<Listed> {
    let with = |mut one: Listed| {
        one.offer.measures = measures(outcomes, &one.offer.share.gpus);
        one
    };
    listed.into_iter().map(with).collect()
}

fn least<'a>(outcomes: impl Iterator<Item = &'a Outcome>, gpus: &[Gpu]) -> Option<&'a Outcome> {
    let of_gpu: BTreeMap<&str, &Outcome> = outcomes
        .map(|outcome| (outcome.on.as_str(), outcome))
        .collect();
    let all: Option<Vec<&Outcome>> = gpus
        .iter()
        .map(|gpu| of_gpu.get(gpu.uuid.as_str()).copied())
        .collect();
    let all = all?;
    let first = all.first()?;
    let alike = |one: &&Outcome| (&one.method, one.version) == (&first.method, first.version);
    if !all.iter().all(alike) {
        return None;
    }
    all.iter().copied().min_by_key(|outcome| outcome.value)
}

/// The parts of which some result is older than `every`. What was never measured is not due: its owner begins.
#[must_use]
pub fn due(outcomes: &[Outcome], every: Seconds, now: Timestamp) -> BTreeSet<Part> {
    let is_old = |outcome: &&Outcome| now.since(outcome.at).seconds() >= every;
    outcomes
        .iter()
        .filter(is_old)
        .map(|outcome| Part::of(outcome.quantity))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tests::gpu;

    fn outcome(quantity: Quantity, value: u64, on: &str) -> Outcome {
        Outcome {
            quantity,
            value,
            method: Text::cut("m"),
            version: 1,
            at: Timestamp(1_000_000),
            on: on.to_owned(),
            software: false,
        }
    }

    fn values(outcomes: &[Outcome], gpus: &[&str]) -> Vec<(Quantity, u64)> {
        let gpus: Vec<Gpu> = gpus.iter().map(|uuid| gpu(uuid)).collect();
        let measures = measures(outcomes, &gpus);
        let each = measures.iter();
        each.map(|measure| (measure.quantity, measure.value))
            .collect()
    }

    #[test]
    fn of_several_gpus_the_least_is_offered_and_none_when_one_is_missing() {
        let all = [
            outcome(Quantity::Fp32, 80_000, "GPU-a"),
            outcome(Quantity::Fp32, 78_000, "GPU-b"),
            outcome(Quantity::CpuAll, 5, ""),
        ];
        let cpu = (Quantity::CpuAll, 5);
        assert_eq!(
            values(&all, &["GPU-a", "GPU-b"]),
            [(Quantity::Fp32, 78_000), cpu]
        );
        assert_eq!(values(&all, &["GPU-a"]), [(Quantity::Fp32, 80_000), cpu]);
        assert_eq!(values(&all, &["GPU-a", "GPU-c"]), [cpu]);
        assert_eq!(values(&all, &[]), [cpu]);
    }

    #[test]
    fn figures_of_two_versions_are_not_compared() {
        let newer = Outcome {
            version: 2,
            ..outcome(Quantity::Fp32, 70_000, "GPU-b")
        };
        let all = [outcome(Quantity::Fp32, 80_000, "GPU-a"), newer];
        assert_eq!(values(&all, &["GPU-a", "GPU-b"]), []);
    }

    #[test]
    fn a_program_in_the_place_of_a_gpu_is_never_offered() {
        let software = Outcome {
            software: true,
            ..outcome(Quantity::Fp32, 9, "GPU-a")
        };
        assert_eq!(values(&[software], &["GPU-a"]), []);
    }

    #[test]
    fn of_several_brokers_the_best_way_counts() {
        let all = [
            outcome(Quantity::Upload, 90_000, "b-one"),
            outcome(Quantity::Upload, 700_000, "b-two"),
        ];
        assert_eq!(values(&all, &[]), [(Quantity::Upload, 700_000)]);
    }

    #[test]
    fn a_new_result_takes_the_place_of_the_old_one_and_of_no_other() {
        let old = [
            outcome(Quantity::Fp32, 1, "GPU-a"),
            outcome(Quantity::Fp32, 2, "GPU-b"),
        ];
        let new = [outcome(Quantity::Fp32, 3, "GPU-b")];
        let values: Vec<u64> = merged(&old, &new).iter().map(|one| one.value).collect();
        assert_eq!(values, [1, 3]);
    }

    #[test]
    fn what_is_old_is_due_and_what_never_was_is_not() {
        let week = Seconds(604_800);
        let all = [
            outcome(Quantity::CpuAll, 1, ""),
            outcome(Quantity::Ram, 1, ""),
        ];
        let at = |millis: u64| Timestamp(1_000_000 + millis);
        assert!(due(&all, week, at(604_799_999)).is_empty());
        assert_eq!(
            due(&all, week, at(604_800_000)),
            BTreeSet::from([Part::Cpu, Part::Ram])
        );
        assert!(due(&[], week, at(604_800_000)).is_empty());
    }
}
