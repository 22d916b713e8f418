//! What is known of the place where a job would run: one portion of one offer, in one kind of contract.
//!
//! A fact that nobody measured is absent here and assumed by the sum, which says so.

use super::card::Card;
use super::number::float;
use super::profile::JobProfile;
use crate::catalogue::sheet_of;
use crate::filter::ModelName;
use crate::machine::Quantity;
use crate::offer::Offer;
use crate::terms::Prices;
use crate::units::{Bytes, PricePerHour, Seconds, Timestamp};
use std::collections::BTreeMap;

/// A portion of an offer, as far as a job's cost depends on it. Speeds are bytes a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Site {
    /// All its GPUs together for an hour (the bid, where that is what is paid), disk and traffic.
    pub prices: Prices,
    /// How many GPUs; 0 on a machine without one, whose work is measured as one GPU's.
    pub gpus: u16,
    /// Over how many machines they are spread; 0 counts as one.
    pub machines: u16,
    /// What the data sheet says of each GPU.
    pub card: Option<Card>,
    /// Pieces of the job's work a second that one GPU was measured to do.
    pub rate: Option<f64>,
    /// Operations a second that one GPU was measured to sustain: in place of peak and efficiency.
    pub sustained_operations: Option<f64>,
    /// Bytes a second that one GPU's memory was measured to sustain: in place of peak and efficiency.
    pub sustained_memory: Option<f64>,
    /// From the match to the container running, in seconds, the image aside.
    pub boot: Option<f64>,
    /// Into the machine.
    pub download: Option<f64>,
    /// Out of it.
    pub upload: Option<f64>,
    /// Of its disk.
    pub disk: Option<f64>,
    /// Of the engine that unpacks images.
    pub unpack: Option<f64>,
    /// Whether it has the job's image.
    pub has_image: Option<bool>,
    /// Failures of one machine an hour.
    pub hazard: Option<f64>,
    /// How a lease here is interrupted; absent where it cannot be.
    pub interruption: Option<Interruption>,
    /// Longest that a lease may run.
    pub duration_max: Option<Seconds>,
    /// Largest disk of a lease, if it is known.
    pub disk_max: Option<Bytes>,
}

/// What a model is known to do: its data sheet, and the job's own rate for it.
type Speeds = (Option<Card>, Option<f64>);

/// Sites for one job: what its model makes a GPU good for is looked up once for each model, since names cost
/// more to read than the sum.
#[derive(Debug)]
pub struct Sites<'a> {
    job: &'a JobProfile,
    models: BTreeMap<(&'a str, Bytes), Speeds>,
}

impl<'a> Sites<'a> {
    /// For this job.
    #[must_use]
    pub const fn of(job: &'a JobProfile) -> Self {
        Self {
            job,
            models: BTreeMap::new(),
        }
    }

    /// What `offer` itself says of `gpus` of its GPUs, each at `price` an hour: prices, data sheet, the job's
    /// own rate for the model, and the bounds that hold `now`. What a broker knows of the host, and how a
    /// lease there may be interrupted, is added to it.
    pub fn at(&mut self, offer: &'a Offer, gpus: u16, price: PricePerHour, now: Timestamp) -> Site {
        let first = offer.share.gpus.first();
        let (name, vram) = first.map_or(("", Bytes(0)), |gpu| (&gpu.model, gpu.vram));
        let (card, rate) = *self.models.entry((name, vram)).or_insert_with(|| {
            let model = if name.is_empty() {
                ModelName::none()
            } else {
                ModelName::reported(name, vram)
            };
            (
                sheet_of(&model, vram).map(Card::from),
                self.job.rate_on(&model),
            )
        });
        let card = match (&offer.partition, card) {
            (Some(partition), Some(card)) => Some(card.slice(partition)),
            (_, card) => card,
        };
        let measured = |quantity: Quantity, bytes: f64| {
            offer.measured(quantity).map(|value| float(value) * bytes)
        };
        let promised = offer.limits.until.map(|until| until.since(now).seconds());
        let asked = Prices {
            compute: price,
            ..offer.prices
        };
        let (.., disk_max) = offer.proportion(gpus);
        Site {
            prices: asked.of_gpus(gpus),
            gpus,
            machines: 1,
            card,
            // A job's own rate is that of a whole GPU.
            rate: rate.filter(|_| offer.partition.is_none()),
            download: measured(Quantity::Download, 125.0),
            upload: measured(Quantity::Upload, 125.0),
            disk: measured(Quantity::DiskRead, 1e6),
            duration_max: offer.limits.duration_max.into_iter().chain(promised).min(),
            disk_max: Some(disk_max),
            ..Site::default()
        }
    }
}

/// How an interruptible lease is interrupted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interruption {
    /// Times an hour.
    pub per_hour: Option<f64>,
    /// From the notice to the end.
    pub notice: Seconds,
}

/// Failures an hour as they cross the wire: failures in 10⁹ hours; absent when it is 0, which no host is known
/// to have.
#[must_use]
pub fn hazard_of(failures_per_billion_hours: u32) -> Option<f64> {
    (failures_per_billion_hours > 0).then(|| f64::from(failures_per_billion_hours) / 1e9)
}
