//! Offers from a file, as `feira search -o json` prints them, with what somebody measured beside.
//!
//! Must not ask anybody anything: what stands in the file is believed.

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::files::text_of;
use protocol::bounded::Text;
use protocol::cost::{Interruption, JobProfile, Site, card_of};
use protocol::filter::ModelName;
use protocol::machine::Quantity;
use protocol::offer::{Isolation, Partition};
use protocol::terms::{ContractKind, Need, Prices};
use protocol::units::{Bytes, MicroUsd, PricePerGb, PricePerGbMonth, PricePerHour, Seconds};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::path::Path;
use std::str::FromStr;

/// Largest file that is taken for offers: about ten thousand.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// Notice of an interruptible lease where the file does not say.
const NOTICE_DEFAULT: Seconds = Seconds(120);

/// An offer of the file.
#[derive(Debug)]
pub(super) struct Listed {
    /// Its id, as the file says it.
    pub id: String,
    /// Its GPUs, in words.
    pub gpus: String,
    /// What an hour costs all in.
    pub hourly: MicroUsd,
    /// What is known of it.
    pub site: Site,
    /// All that the file says.
    pub json: Value,
}

#[derive(Deserialize)]
struct Document {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    id: String,
    #[serde(default)]
    gpus: Vec<ItemGpu>,
    num_gpus: Option<u16>,
    #[serde(default, deserialize_with = "price")]
    contract_usd_per_hour: Option<PricePerHour>,
    #[serde(deserialize_with = "text")]
    compute_usd_per_hour: PricePerHour,
    #[serde(default, deserialize_with = "text")]
    storage_usd_per_gb_month: PricePerGbMonth,
    #[serde(default, deserialize_with = "text")]
    upload_usd_per_gb: PricePerGb,
    #[serde(default, deserialize_with = "text")]
    download_usd_per_gb: PricePerGb,
    disk_max_bytes: Option<u64>,
    max_seconds: Option<u64>,
    kind: Option<String>,
    notice_seconds: Option<u64>,
    failures_per_hour: Option<Measure>,
    interruptions_per_hour: Option<Measure>,
    boot_seconds: Option<Measure>,
    download_bytes_per_second: Option<Measure>,
    upload_bytes_per_second: Option<Measure>,
    disk_bytes_per_second: Option<Measure>,
    unpack_bytes_per_second: Option<Measure>,
    units_per_second: Option<Measure>,
    has_image: Option<bool>,
    partition: Option<ItemSlice>,
    #[serde(default)]
    measures: Vec<ItemResult>,
}

/// Which slice of its GPU it is.
#[derive(Deserialize)]
struct ItemSlice {
    profile: String,
    vram_bytes: u64,
    multiprocessors: u16,
    multiprocessors_of_gpu: u16,
    memory_slices: u8,
    memory_slices_of_gpu: u8,
}

/// What a benchmark measured.
#[derive(Deserialize)]
struct ItemResult {
    quantity: String,
    value: Measure,
}

#[derive(Deserialize)]
struct ItemGpu {
    model: String,
    #[serde(default)]
    vram_bytes: u64,
}

/// A measured number: at least 0. JSON has no others than finite ones.
#[derive(Debug, Clone, Copy)]
struct Measure(f64);

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        if number < 0.0 {
            return Err(D::Error::invalid_value(
                Unexpected::Float(number),
                &"a number of at least 0",
            ));
        }
        Ok(Self(number))
    }
}

/// An amount in dollars as a text, as money stands in JSON.
fn text<'de, D: Deserializer<'de>, T: FromStr<Err: std::fmt::Display>>(
    deserializer: D,
) -> Result<T, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map_err(D::Error::custom)
}

fn price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PricePerHour>, D::Error> {
    text(deserializer).map(Some)
}

/// The offers of the file, as they are to somebody with this job.
pub(super) fn read(
    context: &Context,
    path: &Path,
    job: &JobProfile,
) -> Result<Vec<Listed>, Failure> {
    let text = text_of(context, path, FILE_BYTES_MAX, (Code::BadOffers, "offers"))?;
    parse(&text, job).map_err(|error| {
        let what = format!("{}: {error}", path.display());
        Failure::new(Code::BadOffers, what).help("such a file: feira search -o json > offers.json")
    })
}

fn parse(text: &str, job: &JobProfile) -> Result<Vec<Listed>, serde_json::Error> {
    let document: Document = serde_json::from_str(text)?;
    let mut whole: Value = serde_json::from_str(text)?;
    let values = whole.get_mut("items").and_then(Value::as_array_mut);
    let values = values.map(std::mem::take).unwrap_or_default();
    let listed = document.items.into_iter().zip(values);
    Ok(listed.map(|(item, json)| item.listed(job, json)).collect())
}

impl ItemSlice {
    fn partition(&self) -> Partition {
        Partition {
            profile: Text::cut(&self.profile),
            vram: Bytes(self.vram_bytes),
            multiprocessors: (self.multiprocessors, self.multiprocessors_of_gpu),
            memory_slices: (self.memory_slices, self.memory_slices_of_gpu),
            isolation: Isolation::Hardware,
        }
    }
}

impl Item {
    fn listed(self, job: &JobProfile, json: Value) -> Listed {
        let all = u16::try_from(self.gpus.len()).unwrap_or(u16::MAX);
        let count = self.num_gpus.unwrap_or(all);
        let first = self.gpus.first();
        let model = first.map_or_else(ModelName::none, |gpu| {
            ModelName::reported(&gpu.model, Bytes(gpu.vram_bytes))
        });
        let prices = self.prices(count);
        let slice = self.partition.as_ref().map(ItemSlice::partition);
        let card = card_of(&model);
        let card = match &slice {
            Some(slice) => card.map(|card| card.slice(slice)),
            None => card,
        };
        let result = |quantity: Quantity, bytes: f64| {
            let mut results = self.measures.iter();
            let found = results.find(|one| one.quantity == quantity.key())?;
            Some(found.value.0 * bytes).filter(|speed| *speed > 0.0)
        };
        let rate = job.rate_on(&model).filter(|_| slice.is_none());
        let measured = |measure: Option<Measure>| measure.map(|Measure(number)| number);
        let is_interruptible = self.kind.as_deref() == Some(ContractKind::Interruptible.word());
        let site = Site {
            prices,
            gpus: count,
            machines: 1,
            card,
            rate: measured(self.units_per_second).or(rate),
            boot: measured(self.boot_seconds),
            download: measured(self.download_bytes_per_second)
                .or_else(|| result(Quantity::Download, 125.0)),
            upload: measured(self.upload_bytes_per_second)
                .or_else(|| result(Quantity::Upload, 125.0)),
            disk: measured(self.disk_bytes_per_second).or_else(|| result(Quantity::DiskRead, 1e6)),
            unpack: measured(self.unpack_bytes_per_second),
            has_image: self.has_image,
            hazard: measured(self.failures_per_hour),
            interruption: is_interruptible.then(|| Interruption {
                per_hour: measured(self.interruptions_per_hour),
                notice: self.notice_seconds.map_or(NOTICE_DEFAULT, Seconds),
            }),
            duration_max: self.max_seconds.map(Seconds),
            disk_max: self.disk_max_bytes.map(Bytes),
            ..Site::default()
        };
        let profile = slice.map_or_else(String::new, |slice| format!(" {}", slice.profile));
        let name = first.map(|gpu| gpu.model.replace("NVIDIA ", "").replace("GeForce ", ""));
        Listed {
            id: self.id,
            gpus: name.map_or_else(
                || "none".to_owned(),
                |name| format!("{count}x {name}{profile}"),
            ),
            hourly: prices.all_in_hour(Need::disk(job.disk)),
            site,
            json,
        }
    }

    /// Of all GPUs together: what the kind of contract costs, or the ask for each of them.
    fn prices(&self, gpus: u16) -> Prices {
        let ask = Prices {
            compute: self.compute_usd_per_hour,
            storage: self.storage_usd_per_gb_month,
            upload: self.upload_usd_per_gb,
            download: self.download_usd_per_gb,
        };
        match self.contract_usd_per_hour {
            Some(compute) => Prices { compute, ..ask },
            None => ask.of_gpus(gpus),
        }
    }
}

#[cfg(test)]
mod tests;
