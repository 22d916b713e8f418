//! The settings of proofs of hardware: off unless an image with the prover is named.

use super::{File, Wrong};
use crate::core::proofs::classes::{CLASSES_MAX, Classes, OwnClass};
use crate::core::proofs::level::STANDS;
use crate::core::proofs::schedule::Rules;
use crate::verify::ProofConfig;
use protocol::bounded::Text;
use protocol::job::PinnedImage;
use protocol::units::{Bytes, Millis, Seconds};
use protocol::verify::Parameters;
use serde::Deserialize;
use std::ops::RangeInclusive;

const DAY: u64 = 24 * 3600;
/// Most images: one is drawn for each proof.
const IMAGES_MAX: usize = 32;

/// A class of hardware as it is written: all that a device has to do.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassFile {
    name: String,
    models: Vec<String>,
    memory_min_gb: u64,
    tile_side: u32,
    inner: u32,
    tiles: u32,
    rounds: u16,
    audits: u16,
    fill_max_ms: u64,
    pass_max_ms: u64,
}

/// What holds unless the file says otherwise, and the transcripts' time.
pub(super) const fn usual() -> (Rules, Seconds) {
    let rules = Rules {
        every: Seconds(DAY),
        stands: STANDS,
        first_within: Seconds(3600),
        at_once: 4,
        per_hour: 60,
    };
    (rules, Seconds(30 * DAY))
}

impl File {
    pub(super) fn proofs(&self) -> Result<Option<ProofConfig>, Wrong> {
        let (rules, keep) = self.rules()?;
        let classes = Classes {
            own: self.classes()?,
        };
        let images = self.proof_images.iter().map(|image| image.parse());
        let images: Result<Vec<PinnedImage>, _> = images.collect();
        let images = images.map_err(|error| ("proof_images", error.to_string()))?;
        if images.len() > IMAGES_MAX {
            return Err(("proof_images", format!("at most {IMAGES_MAX} are wanted")));
        }
        Ok((!images.is_empty()).then_some(ProofConfig {
            images,
            rules,
            classes,
            keep,
        }))
    }

    fn rules(&self) -> Result<(Rules, Seconds), Wrong> {
        let (usual, keep) = usual();
        let time = |field, set: Option<u64>, usual: Seconds, range: RangeInclusive<u64>| {
            let seconds = set.unwrap_or(usual.0);
            if !range.contains(&seconds) {
                let (from, to) = (range.start(), range.end());
                return Err((field, format!("it must be from {from} to {to} seconds")));
            }
            Ok(Seconds(seconds))
        };
        let count = |field, set: Option<u16>, usual: u16, most: u16| {
            let count = set.unwrap_or(usual);
            if count == 0 || count > most {
                return Err((field, format!("it must be from 1 to {most}")));
            }
            Ok(count)
        };
        // A proof takes a GPU's whole power and memory: no more than one a day.
        let every = time(
            "proof_every_s",
            self.proof_every_s,
            usual.every,
            DAY..=30 * DAY,
        )?;
        let stands = time(
            "proof_stands_s",
            self.proof_stands_s,
            usual.stands,
            DAY..=90 * DAY,
        )?;
        if stands.0 <= 2 * every.0 {
            let problem = format!(
                "it must be longer than twice `proof_every_s`, {every}, which is how long the next proof may take to come"
            );
            return Err(("proof_stands_s", problem));
        }
        let first = self.proof_first_within_s;
        let first_within = time(
            "proof_first_within_s",
            first,
            usual.first_within,
            1..=7 * DAY,
        )?;
        let keep = time("proof_keep_s", self.proof_keep_s, keep, DAY..=365 * DAY)?;
        if keep < stands {
            let problem = format!("it must be at least `proof_stands_s`, {stands}");
            return Err(("proof_keep_s", problem));
        }
        let rules = Rules {
            every,
            stands,
            first_within,
            at_once: count("proofs_at_once", self.proofs_at_once, usual.at_once, 64)?,
            per_hour: count(
                "proofs_per_hour",
                self.proofs_per_hour,
                usual.per_hour,
                3600,
            )?,
        };
        Ok((rules, keep))
    }

    fn classes(&self) -> Result<Vec<OwnClass>, Wrong> {
        let wrong = |problem: String| ("proof_classes", problem);
        if self.proof_classes.len() > CLASSES_MAX {
            return Err(wrong(format!("at most {CLASSES_MAX} are wanted")));
        }
        let class = |class: &ClassFile| {
            let name = Text::new(class.name.as_str());
            let name = name.map_err(|error| wrong(format!("a class's name: {error}")))?;
            let parameters = Parameters {
                tile_side: class.tile_side,
                inner: class.inner,
                tiles: class.tiles,
                rounds: class.rounds,
                audits: class.audits,
                fill_max: Millis(class.fill_max_ms),
                pass_max: Millis(class.pass_max_ms),
            };
            parameters
                .check()
                .map_err(|error| wrong(format!("{name}: {error}")))?;
            // Longer than this nobody is to have a GPU for a proof.
            let longest = 600_000;
            let times = [class.fill_max_ms, class.pass_max_ms];
            if times.iter().any(|time| *time == 0 || *time > longest) {
                return Err(wrong(format!("{name}: times are from 1 to {longest} ms")));
            }
            if class.models.is_empty() {
                return Err(wrong(format!("{name}: no model is of it")));
            }
            Ok(OwnClass {
                name,
                models: class.models.clone(),
                memory_min: Bytes::from_gb(class.memory_min_gb),
                parameters,
            })
        };
        self.proof_classes.iter().map(class).collect()
    }
}

#[cfg(test)]
mod tests;
