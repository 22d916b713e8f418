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

/// Variables that are the host's alone: they steer the hooks that put a GPU into a container and run as the host's
/// root, or what is loaded into every program there. An order with one of them is refused.
pub const HOST_VARIABLES: [&str; 18] = [
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_MIG_CONFIG_DEVICES",
    "NVIDIA_MIG_MONITOR_DEVICES",
    "NVIDIA_IMEX_CHANNELS",
    "NVIDIA_DISABLE_REQUIRE",
    "NVIDIA_GDS",
    "NVIDIA_MOFED",
    "NVIDIA_GDRCOPY",
    "NVIDIA_NVSWITCH",
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "GLIBC_TUNABLES",
    "GCONV_PATH",
    "CUDA_VERSION",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_LOG_DIRECTORY",
];
/// What the names of more of them begin with: what an image's GPU libraries need of a driver.
pub const REQUIREMENT_PREFIX: &str = "NVIDIA_REQUIRE_";

/// Whether only the host may set this variable.
#[must_use]
pub fn is_hosts_variable(name: &str) -> bool {
    HOST_VARIABLES.contains(&name) || name.starts_with(REQUIREMENT_PREFIX)
}

/// Whether a variable may have this name: letters, digits and `_`, not beginning with a digit.
#[must_use]
pub fn is_variable_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_inner) && name.chars().next().is_some_and(|c| !c.is_ascii_digit())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names() {
        assert!(is_variable_name("_A1"));
        for wrong in ["", "1A", "A-B", "A=B", "A B", "Ä"] {
            assert!(!is_variable_name(wrong), "{wrong} was accepted");
        }
    }

    #[test]
    fn what_renters_really_set_is_theirs() {
        for name in [
            "PATH",
            "PYTHONUNBUFFERED",
            "NVIDIA_TF32_OVERRIDE",
            "HF_TOKEN",
            "LD_BIND_NOW",
        ] {
            assert!(!is_hosts_variable(name), "{name} was refused");
        }
        for name in [
            "LD_PRELOAD",
            "NVIDIA_VISIBLE_DEVICES",
            "NVIDIA_REQUIRE_CUDA",
        ] {
            assert!(is_hosts_variable(name), "{name} was let through");
        }
    }
}
