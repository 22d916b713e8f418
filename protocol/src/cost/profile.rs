//! What a job needs, as a renter describes it and as it crosses the wire: integers only, each in a unit that
//! its name says.
//!
//! Must not know any offer, or what anything costs.

use super::number::float;
use crate::bounded::{List, Text};
use crate::filter::ModelName;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU16, NonZeroU64};

/// Most measured rates of one job.
pub const RATES_MAX: usize = 16;

/// A part of a whole, in ten-thousandths: more than nothing, at most all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u16")]
pub struct Fraction(u16);

/// Why a number is no part of a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} ten-thousandths are no part of a whole: 1 to 10000 are")]
pub struct FractionError(u16);

impl Fraction {
    /// All of it.
    pub const WHOLE: Self = Self(10_000);

    /// So many ten-thousandths.
    ///
    /// # Errors
    /// When that is nothing, or more than the whole.
    pub const fn new(ten_thousandths: u16) -> Result<Self, FractionError> {
        if ten_thousandths == 0 || ten_thousandths > Self::WHOLE.0 {
            return Err(FractionError(ten_thousandths));
        }
        Ok(Self(ten_thousandths))
    }

    /// As a number between 0 and 1.
    pub(super) fn ratio(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE.0)
    }
}

impl TryFrom<u16> for Fraction {
    type Error = FractionError;

    fn try_from(ten_thousandths: u16) -> Result<Self, FractionError> {
        Self::new(ten_thousandths)
    }
}

/// The numbers that a job mostly computes with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Precision {
    /// 16 bits, with or without a longer exponent, summed in 32: nearly all training and inference.
    #[default]
    Half,
    /// 8 bits.
    Quarter,
    /// 32 bits.
    Single,
}

/// How much a job has to do. Where a rate was measured for an offer's GPU it decides; else the longer of
/// computing and moving does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Floating-point operations in all, in thousands of millions (10⁹).
    pub gigaflops: Option<NonZeroU64>,
    /// What they are done with.
    pub precision: Precision,
    /// What has to go through the GPUs' memory in all, in millions of bytes (10⁶).
    pub memory_megabytes: Option<NonZeroU64>,
    /// Pieces to do: tokens, images, steps.
    pub units: Option<NonZeroU64>,
    /// How fast pieces were done where the renter measured it.
    pub rates: List<Rate, RATES_MAX>,
}

/// How fast one GPU of a model was measured to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// The model, in any form that a search takes; `none` for a machine without a GPU.
    pub gpu: Text<64>,
    /// Thousandths of a piece a second.
    pub milliunits_per_second: NonZeroU64,
}

/// A job, as far as its cost depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobProfile {
    /// What is to be done.
    pub work: Work,
    /// Most GPUs that it can use; all of a lease's when absent.
    pub gpus_max: Option<NonZeroU16>,
    /// What each of several GPUs does of what one alone would.
    pub scaling: Option<Fraction>,
    /// What it does of the operations that the GPU could do.
    pub compute_efficiency: Option<Fraction>,
    /// What it moves of the bytes that the GPU's memory could.
    pub memory_efficiency: Option<Fraction>,
    /// The image, as it is pulled.
    pub image: Bytes,
    /// What it downloads before it begins.
    pub data: Bytes,
    /// What it reads from disk whenever it begins: weights, or its last checkpoint.
    pub load: Bytes,
    /// One checkpoint; absent when it makes none and a failure loses everything.
    pub checkpoint: Option<Bytes>,
    /// What it uploads when it is done.
    pub upload: Bytes,
    /// The disk that it rents.
    pub disk: Bytes,
}

impl JobProfile {
    /// Pieces a second that the renter measured one GPU of this model to do: of the first rate that means it.
    /// Reads names: ask once for each model, not for each offer.
    #[must_use]
    pub fn rate_on(&self, model: &ModelName) -> Option<f64> {
        let means = |rate: &&Rate| model.is_meant_by(&ModelName::asked(&rate.gpu));
        let found = self.work.rates.iter().find(means)?;
        Some(float(found.milliunits_per_second.get()) / 1000.0)
    }
}
