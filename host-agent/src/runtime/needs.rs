//! What an image needs of a GPU, held against the GPUs of a lease: before its container is made, so that a lease whose
//! image cannot work there is over before it costs anything. Pure.
//!
//! An image says it in three ways, and all must be met:
//!
//! * variables `NVIDIA_REQUIRE_…` in NVIDIA's own language ([`requirement`]); the image's own wish to have them passed
//!   over (`NVIDIA_DISABLE_REQUIRE`) is not heard, since the renter pays for what comes of it.
//! * `CUDA_VERSION`, or the label of older images: the driver must be as new, where no such variable says it better.
//! * labels [`LABEL_CUDA`], [`LABEL_DRIVER`], [`LABEL_MEMORY`], [`LABEL_CAPABILITY`].

pub mod requirement;

#[cfg(test)]
mod tests;

use super::ImageConfig;
use super::gpus::LeasedGpu;
use super::sandbox::problem;
use crate::version::Version;
use protocol::job::REQUIREMENT_PREFIX;
use protocol::lease::{Problem, ProblemKind, Stage};
use protocol::machine::{Gpu, Vendor};
use protocol::units::Bytes;
use requirement::{Card, Unmet};

/// Label with the CUDA version that a driver must go up to, like `12.4`.
pub const LABEL_CUDA: &str = "feira.needs.cuda";
/// Label with the least driver version.
pub const LABEL_DRIVER: &str = "feira.needs.driver";
/// Label with the least memory of each GPU, in GB.
pub const LABEL_MEMORY: &str = "feira.needs.vram-gb";
/// Label with the least compute capability, like `8.0`.
pub const LABEL_CAPABILITY: &str = "feira.needs.compute-capability";
/// Label of images from before there were requirements.
const LABEL_CUDA_OLD: &str = "com.nvidia.cuda.version";

const CUDA_VERSION: &str = "CUDA_VERSION";
const REQUIRE_CUDA: &str = "NVIDIA_REQUIRE_CUDA";

/// Refuses an image that needs other GPUs than these. Without a GPU an image is on its own.
///
/// # Errors
/// [`ProblemKind::ImageNeedsOtherGpu`] with what is needed and what is there; [`ProblemKind::ImageUnusable`] where
/// what is needed cannot be read.
pub fn check(image: &ImageConfig, gpus: &[LeasedGpu]) -> Result<(), Problem> {
    gpus.iter().try_for_each(|gpu| check_one(image, gpu))
}

fn check_one(image: &ImageConfig, gpu: &LeasedGpu) -> Result<(), Problem> {
    let other = |said: String| problem(Stage::Creating, ProblemKind::ImageNeedsOtherGpu, &said);
    let unreadable = |said: String| problem(Stage::Creating, ProblemKind::ImageUnusable, &said);
    let requirements = requirements(image);
    let card = &gpu.card;
    match card.vendor {
        Vendor::Nvidia => {}
        Vendor::Amd | Vendor::Intel => {
            return requirements.first().map_or(Ok(()), |(name, text)| {
                Err(other(format!(
                    "the image needs an NVIDIA GPU ({name}={text}), and {} is none",
                    card.model
                )))
            });
        }
    }
    let known = card_of(card);
    for (name, text) in requirements {
        match requirement::check(&text, &known) {
            Ok(()) => {}
            Err(Unmet::Not { needed, found }) => {
                return Err(other(format!(
                    "the image needs {needed} ({name}), and {} has {found}",
                    card.model
                )));
            }
            Err(Unmet::Unreadable { part }) => {
                return Err(unreadable(format!(
                    "what the image needs cannot be read: '{part}' in {name}"
                )));
            }
        }
    }
    check_memory(image, gpu).map_err(|unfit| match unfit {
        Unfit::Other(said) => other(said),
        Unfit::Unreadable(said) => unreadable(said),
    })
}

enum Unfit {
    Other(String),
    Unreadable(String),
}

fn check_memory(image: &ImageConfig, gpu: &LeasedGpu) -> Result<(), Unfit> {
    let Some(text) = image.labels.get(LABEL_MEMORY) else {
        return Ok(());
    };
    let wrong = || {
        Unfit::Unreadable(format!(
            "'{text}' in the label {LABEL_MEMORY} is not a number of GB"
        ))
    };
    let needed = Bytes::from_gb(text.parse().map_err(|_| wrong())?);
    if gpu.memory >= needed {
        return Ok(());
    }
    Err(Unfit::Other(format!(
        "the image needs {needed} of GPU memory ({LABEL_MEMORY}), and {} has {}",
        gpu.device, gpu.memory
    )))
}

/// All that the image says in NVIDIA's language or that can be said in it, each with where it is said.
fn requirements(image: &ImageConfig) -> Vec<(String, String)> {
    let variables = image.environment.iter();
    let variables: Vec<(&str, &str)> = variables.filter_map(|text| text.split_once('=')).collect();
    let mut all: Vec<(String, String)> = variables
        .iter()
        .filter(|(name, _)| name.starts_with(REQUIREMENT_PREFIX))
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    let says_cuda = all.iter().any(|(name, _)| name == REQUIRE_CUDA);
    let of_variable = variables.iter().find(|(name, _)| *name == CUDA_VERSION);
    let of_variable = of_variable.map(|(_, version)| (CUDA_VERSION, *version));
    let of_label = image.labels.get(LABEL_CUDA_OLD);
    let of_label = of_label.map(|version| (LABEL_CUDA_OLD, version.as_str()));
    if let Some((name, version)) = of_variable.or(of_label).filter(|_| !says_cuda) {
        // A patch of a release needs no newer driver than the release.
        let release: Vec<&str> = version.split('.').take(2).collect();
        all.push((name.to_owned(), format!("cuda>={}", release.join("."))));
    }
    for (label, property) in [
        (LABEL_CUDA, "cuda"),
        (LABEL_DRIVER, "driver"),
        (LABEL_CAPABILITY, "arch"),
    ] {
        let text = image.labels.get(label);
        all.extend(text.map(|text| (label.to_owned(), format!("{property}>={text}"))));
    }
    all
}

/// What is known of a GPU in the words of the language.
fn card_of(gpu: &Gpu) -> Card {
    let pair = |(major, minor): (u16, u16)| {
        (major > 0).then(|| Version::of(&[u64::from(major), u64::from(minor)]))
    };
    Card {
        cuda: pair(gpu.cuda),
        driver: Version::find(&gpu.driver),
        capability: pair(gpu.compute_capability),
        brand: brand(&gpu.model),
    }
}

/// The brand of a product by its name, in the language's words; nothing where the name does not say.
fn brand(model: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 9] = [
        ("geforce", "geforce"),
        ("titan", "titan"),
        ("quadro rtx", "quadrortx"),
        ("quadro", "quadro"),
        ("tesla", "tesla"),
        ("grid", "grid"),
        ("nvs", "nvs"),
        ("nvidia rtx", "nvidiartx"),
        ("nvidia", "nvidia"),
    ];
    let model = model.to_lowercase();
    let mut fits = WORDS.iter().filter(|(word, _)| model.contains(word));
    fits.next().map(|(_, brand)| *brand)
}
