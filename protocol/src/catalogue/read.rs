//! The catalogue's data: read from the text that is compiled in, checked as it is read.

use super::Sheet;
use crate::cost::number::nearest;
use crate::filter::ModelName;
use crate::machine::Vendor;
use crate::units::Bytes;
use serde::Deserialize;

/// The data, as people maintain it.
pub(super) const DATA: &str = include_str!("../../data/gpu_catalog.toml");

/// Why a text is no catalogue.
#[derive(Debug, thiserror::Error)]
pub(super) enum DataError {
    /// It is no TOML, or a figure is missing.
    #[error("the catalogue cannot be read")]
    Form(#[from] toml::de::Error),
    /// A value that means nothing.
    #[error("{id}: '{value}' is no {what}")]
    Value {
        id: String,
        what: &'static str,
        value: String,
    },
}

#[derive(Deserialize)]
struct Data {
    gpu: Vec<Entry>,
}

/// One model; figures in the units that data sheets use.
#[derive(Deserialize)]
struct Entry {
    id: String,
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    vendor: String,
    isa: String,
    compute_cap: Option<String>,
    vram_gb: u64,
    mem_bw_gbs: f64,
    fp32_tflops: f64,
    fp16_tflops: f64,
    fp8_tflops: f64,
    tdp_w: u16,
    pcie_gen: u8,
    pcie_lanes: u8,
    link_gbs: f64,
    #[serde(default)]
    host_link_gbs: f64,
    mig: bool,
}

/// The sheets of a catalogue.
pub(super) fn sheets(text: &str) -> Result<Vec<Sheet>, DataError> {
    let data: Data = toml::from_str(text)?;
    data.gpu.into_iter().map(Entry::sheet).collect()
}

impl Entry {
    fn sheet(self) -> Result<Sheet, DataError> {
        let vendor = match self.vendor.as_str() {
            "nvidia" => Vendor::Nvidia,
            "amd" => Vendor::Amd,
            "intel" => Vendor::Intel,
            _ => return Err(self.wrong("vendor", &self.vendor)),
        };
        let capability = match &self.compute_cap {
            None => None,
            Some(text) => {
                Some(capability(text).ok_or_else(|| self.wrong("compute capability", text))?)
            }
        };
        let spellings = std::iter::once(&self.name).chain(&self.aliases);
        Ok(Sheet {
            spellings: spellings.map(|name| ModelName::asked(name)).collect(),
            vendor,
            capability,
            vram: Bytes(self.vram_gb << 30),
            memory: thousandths(self.mem_bw_gbs),
            single: thousandths(self.fp32_tflops),
            half: thousandths(self.fp16_tflops),
            quarter: thousandths(self.fp8_tflops),
            power: self.tdp_w,
            pcie: (self.pcie_gen, self.pcie_lanes),
            links: thousandths(self.link_gbs),
            host_link: thousandths(self.host_link_gbs),
            is_divisible: self.mig,
            id: self.id,
            name: self.name,
            instructions: self.isa,
        })
    }

    fn wrong(&self, what: &'static str, value: &str) -> DataError {
        DataError::Value {
            id: self.id.clone(),
            what,
            value: value.to_owned(),
        }
    }
}

fn thousandths(figure: f64) -> u64 {
    nearest(figure * 1000.0)
}

fn capability(text: &str) -> Option<(u16, u16)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
