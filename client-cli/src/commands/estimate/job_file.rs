//! The renter's JOB.toml: what a job needs, in the units that people say, and its errors with line and key.
//!
//! Must not know any offer: what was typed becomes a profile here, or a failure that says where.

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::files::{place_in, text_of};
use protocol::bounded::{List, Text};
use protocol::cost::{Fraction, JobProfile, Precision, RATES_MAX, Rate, Work};
use protocol::units::Bytes;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU64};
use std::path::Path;
use std::time::Duration;
use toml::Spanned;

/// Largest file that is taken for one.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// A petabyte.
const GIGABYTES_MAX: f64 = 1e6;
/// Ten times what the largest training runs took.
const FLOPS_MAX: f64 = 1e28;
/// The most pieces, and the most pieces a second.
const UNITS_MAX: f64 = 1e15;

const KEYS: &str = "keys: disk_gb, image_gb, data_gb, load_gb, checkpoint_gb, upload_gb, gpus, scaling; \
                    [work] flops, precision, compute_efficiency, memory_gb, memory_efficiency, units; \
                    [work.units_per_second] \"RTX 4090\" = 54.3";

/// The file as it is typed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Typed {
    work: Spanned<TypedWork>,
    #[serde(default, deserialize_with = "gpus")]
    gpus: Option<NonZeroU16>,
    #[serde(default, deserialize_with = "part")]
    scaling: Option<Fraction>,
    #[serde(default, deserialize_with = "size")]
    disk_gb: Bytes,
    #[serde(default, deserialize_with = "size")]
    image_gb: Bytes,
    #[serde(default, deserialize_with = "size")]
    data_gb: Bytes,
    #[serde(default, deserialize_with = "size")]
    load_gb: Bytes,
    #[serde(default, deserialize_with = "size_if_any")]
    checkpoint_gb: Option<Bytes>,
    #[serde(default, deserialize_with = "size")]
    upload_gb: Bytes,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedWork {
    #[serde(default, deserialize_with = "flops")]
    flops: Option<NonZeroU64>,
    #[serde(default)]
    precision: TypedPrecision,
    #[serde(default, deserialize_with = "part")]
    compute_efficiency: Option<Fraction>,
    #[serde(default, deserialize_with = "memory")]
    memory_gb: Option<NonZeroU64>,
    #[serde(default, deserialize_with = "part")]
    memory_efficiency: Option<Fraction>,
    #[serde(default, deserialize_with = "units")]
    units: Option<NonZeroU64>,
    #[serde(default)]
    units_per_second: BTreeMap<String, Spanned<TypedRate>>,
}

/// What numbers are computed with, in the words of those who train.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TypedPrecision {
    #[default]
    #[serde(alias = "bf16")]
    Fp16,
    #[serde(alias = "fp8_e4m3")]
    Fp8,
    #[serde(alias = "tf32")]
    Fp32,
}

/// Thousandths of a piece a second.
#[derive(Debug, Deserialize)]
struct TypedRate(#[serde(deserialize_with = "rate")] NonZeroU64);

/// A number, whole or not, as TOML has both.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number is wanted here")]
enum Number {
    Whole(i64),
    Decimal(f64),
}

/// `scale` times a number between `least` and `most`, rounded to the nearest; with a scale of 1 it is a count.
fn scaled<'de, D: Deserializer<'de>>(
    deserializer: D,
    (least, most): (f64, f64),
    scale: f64,
    wanted: &'static str,
) -> Result<u64, D::Error> {
    let number = match Number::deserialize(deserializer)? {
        Number::Decimal(number) => number,
        Number::Whole(number) => {
            let size = Duration::from_secs(number.unsigned_abs()).as_secs_f64();
            if number < 0 { -size } else { size }
        }
    };
    // Neither a number that is none nor one that is endless is between them.
    let is_in_range = (least..=most).contains(&number);
    // What is counted is whole.
    let is_fine = scale != 1.0 || number.fract() == 0.0;
    if !is_in_range || !is_fine {
        return Err(D::Error::invalid_value(Unexpected::Float(number), &wanted));
    }
    let whole = Duration::try_from_secs_f64((number * scale).round());
    Ok(whole.map_or(u64::MAX, |whole| whole.as_secs()))
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let wanted = "gigabytes from 0 to 1000000, like 60 or 0.5";
    scaled(deserializer, (0.0, GIGABYTES_MAX), 1e9, wanted).map(Bytes)
}

fn size_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    size(deserializer).map(Some)
}

/// In thousands of millions.
fn flops<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU64>, D::Error> {
    let wanted = "operations from 1e9 to 1e28, like 2.4e18";
    scaled(deserializer, (1e9, FLOPS_MAX), 1e-9, wanted).map(NonZeroU64::new)
}

/// In megabytes.
fn memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU64>, D::Error> {
    let wanted = "gigabytes from 0.001 to 1e15, like 16e6";
    scaled(deserializer, (0.001, 1e15), 1e3, wanted).map(NonZeroU64::new)
}

fn units<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU64>, D::Error> {
    let wanted = "a count from 1 to 1e15";
    scaled(deserializer, (1.0, UNITS_MAX), 1.0, wanted).map(NonZeroU64::new)
}

/// In thousandths a second.
fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NonZeroU64, D::Error> {
    let wanted = "a rate from 0.001 to 1e15 a second, like 54.3";
    let found = scaled(deserializer, (0.001, UNITS_MAX), 1e3, wanted)?;
    Ok(NonZeroU64::new(found).unwrap_or(NonZeroU64::MIN))
}

/// In ten-thousandths.
fn part<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Fraction>, D::Error> {
    let wanted = "a part of a whole from 0.0001 to 1, like 0.45";
    let found = scaled(deserializer, (0.0001, 1.0), 1e4, wanted)?;
    let found = u16::try_from(found).ok().map(Fraction::new);
    Ok(found.and_then(Result::ok))
}

fn gpus<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU16>, D::Error> {
    let wanted = "a number of GPUs from 1 to 16";
    let found = scaled(deserializer, (1.0, 16.0), 1.0, wanted)?;
    Ok(u16::try_from(found).ok().and_then(NonZeroU16::new))
}

/// The job that the file describes.
pub(crate) fn read(context: &Context, path: &Path) -> Result<JobProfile, Failure> {
    let text = text_of(context, path, FILE_BYTES_MAX, (Code::BadJob, "a job file"))?;
    parse(&text, path)
}

fn parse(text: &str, path: &Path) -> Result<JobProfile, Failure> {
    let wrong = |start: Option<usize>, what: &str| {
        let place = start.map(|start| place_in(text, start)).unwrap_or_default();
        let what = format!("{}{place}: {what}", path.display());
        Failure::new(Code::BadJob, what).help(KEYS)
    };
    let typed: Typed = toml::from_str(text)
        .map_err(|error| wrong(error.span().map(|span| span.start), error.message()))?;
    let start = typed.work.span().start;
    let work = typed.work.into_inner();
    if work.flops.is_none() && work.memory_gb.is_none() && work.units.is_none() {
        let what = "[work] says nothing to do: flops, memory_gb, or units";
        return Err(wrong(Some(start), what));
    }
    let is_rated = !work.units_per_second.is_empty();
    if work.units.is_some() != is_rated {
        let what = "units and [work.units_per_second] are worth something together only";
        return Err(wrong(Some(start), what));
    }
    let mut rates = Vec::new();
    for (gpu, rate) in work.units_per_second {
        let start = rate.span().start;
        let gpu = Text::new(gpu).map_err(|error| wrong(Some(start), &error.to_string()))?;
        rates.push(Rate {
            gpu,
            milliunits_per_second: rate.into_inner().0,
        });
    }
    let too_many = format!("[work.units_per_second] has more than {RATES_MAX} GPUs");
    let rates = List::new(rates).map_err(|_| wrong(Some(start), &too_many))?;
    Ok(JobProfile {
        work: Work {
            gigaflops: work.flops,
            precision: match work.precision {
                TypedPrecision::Fp16 => Precision::Half,
                TypedPrecision::Fp8 => Precision::Quarter,
                TypedPrecision::Fp32 => Precision::Single,
            },
            memory_megabytes: work.memory_gb,
            units: work.units,
            rates,
        },
        gpus_max: typed.gpus,
        scaling: typed.scaling,
        compute_efficiency: work.compute_efficiency,
        memory_efficiency: work.memory_efficiency,
        image: typed.image_gb,
        data: typed.data_gb,
        load: typed.load_gb,
        checkpoint: typed.checkpoint_gb,
        upload: typed.upload_gb,
        disk: typed.disk_gb,
    })
}

#[cfg(test)]
mod tests;
