//! What a renter wants to run: an image pinned by digest, a command, an environment.

use crate::bounded::{List, Text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A container image by digest: `registry/repository@sha256:…`, with the tag it was resolved from for show.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PinnedImage {
    /// Registry and repository, like `docker.io/library/debian` or `127.0.0.1:5000/feira-demo`.
    pub name: Text<255>,
    /// SHA-256 of the manifest.
    pub sha256: [u8; 32],
}

impl PinnedImage {
    /// `sha256:` and 64 hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut text = String::with_capacity(71);
        text.push_str("sha256:");
        for byte in self.sha256 {
            text.push_str(&format!("{byte:02x}"));
        }
        text
    }
}

impl fmt::Display for PinnedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}@{}", self.name, self.digest()))
    }
}

/// Why a text is not an image by digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an image by digest: NAME@sha256: and 64 hexadecimal digits are wanted")]
pub struct ImageError {
    /// What was given.
    pub text: String,
}

impl FromStr for PinnedImage {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        let wrong = || ImageError {
            text: text.to_owned(),
        };
        let (name, digits) = text.split_once("@sha256:").ok_or_else(wrong)?;
        let is_name_character =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/:".contains(c);
        if name.is_empty() || !name.chars().all(is_name_character) || digits.len() != 64 {
            return Err(wrong());
        }
        let mut sha256 = [0; 32];
        for (byte, pair) in sha256.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            if pair.contains(['A', 'B', 'C', 'D', 'E', 'F', '+']) {
                return Err(wrong());
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self {
            name: Text::new(name).map_err(|_| wrong())?,
            sha256,
        })
    }
}

/// One variable of the container's environment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Variable {
    /// Its name: letters, digits and `_`, not beginning with a digit.
    pub name: Text<128>,
    /// Its value.
    pub value: Text<4096>,
}

/// What to run. There is no field for anything that could weaken the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The image.
    pub image: PinnedImage,
    /// The image's own entrypoint when absent.
    pub entrypoint: Option<List<Text<4096>, 64>>,
    /// The image's own command when absent.
    pub command: Option<List<Text<4096>, 64>>,
    /// Variables beside the image's own.
    pub environment: List<Variable, 64>,
}
