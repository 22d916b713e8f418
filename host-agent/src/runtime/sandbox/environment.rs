//! The container's environment: the host's own variables, the renter's, and what an image may not set.
//!
//! The hooks that put a GPU into a container run as the host's root and read the container's environment, so
//! some names are the host's alone.

use protocol::job::Variable;
use protocol::lease::{Problem, ProblemKind, Stage};

use super::super::ContainerSpec;
use super::{owned, problem};

/// Names that the host sets itself, always. An image's value loses.
const GPU_CHOICE: &str = "NVIDIA_VISIBLE_DEVICES";
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
const HOST_VARIABLES: [(&str, &str); 6] = [
    ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
    ("NVIDIA_MIG_CONFIG_DEVICES", ""),
    ("NVIDIA_MIG_MONITOR_DEVICES", ""),
    ("NVIDIA_IMEX_CHANNELS", ""),
    ("LD_PRELOAD", ""),
    ("LD_AUDIT", ""),
];

/// Names that a renter may not set and that are emptied when an image sets them: they steer the GPU's hooks
/// or reach a server of the host's.
const EMPTIED: [&str; 9] = [
    "NVIDIA_DISABLE_REQUIRE",
    "NVIDIA_GDS",
    "NVIDIA_MOFED",
    "NVIDIA_GDRCOPY",
    "NVIDIA_NVSWITCH",
    "GLIBC_TUNABLES",
    "GCONV_PATH",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_LOG_DIRECTORY",
];

/// Names that a renter may not set, and an image may: what its GPU libraries need of a driver.
const REQUIREMENT_PREFIX: &str = "NVIDIA_REQUIRE_";
const CUDA_VERSION: &str = "CUDA_VERSION";

/// Where a library path may not lead: places that change under the reader or that anyone may write.
const UNTRUSTED_ROOTS: [&str; 4] = ["/proc", "/dev", "/sys", "/tmp"];

/// `NAME=value` for everything that the request sets; the engine adds what else the image has.
pub(super) fn variables(spec: &ContainerSpec, image: &[String]) -> Result<Vec<String>, Problem> {
    refuse_variables(&spec.job.environment)
        .map_err(|detail| problem(Stage::Creating, ProblemKind::ImageUnusable, &detail))?;
    let choice = if spec.gpus.is_empty() {
        "void".to_owned()
    } else {
        owned(&spec.gpus).join(",")
    };
    let mut variables = vec![format!("{GPU_CHOICE}={choice}")];
    variables.extend(
        HOST_VARIABLES
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    for variable in image {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        if name == LIBRARY_PATH {
            variables.push(format!("{LIBRARY_PATH}={}", trusted_library_path(value)));
        } else if EMPTIED.contains(&name) {
            variables.push(format!("{name}="));
        }
    }
    let renters = spec.job.environment.iter();
    variables.extend(renters.map(|variable| format!("{}={}", variable.name, variable.value)));
    Ok(variables)
}

/// Refuses variables that a renter may not set, by name, in words for the renter.
pub(crate) fn refuse_variables(variables: &[Variable]) -> Result<(), String> {
    for Variable { name, .. } in variables {
        if !is_variable_name(name) {
            return Err(format!(
                "'{name}' is not the name of a variable: letters, digits and _, not beginning with a digit"
            ));
        }
        if is_reserved(name) {
            return Err(format!(
                "the variable {name} may not be set: it is the host's"
            ));
        }
    }
    Ok(())
}

fn is_reserved(name: &str) -> bool {
    name == GPU_CHOICE
        || name == LIBRARY_PATH
        || name == CUDA_VERSION
        || name.starts_with(REQUIREMENT_PREFIX)
        || HOST_VARIABLES.iter().any(|(host, _)| *host == name)
        || EMPTIED.contains(&name)
}

fn is_variable_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_inner) && name.chars().next().is_some_and(|c| !c.is_ascii_digit())
}

/// The entries of a library path that are absolute, plain, and lead to no place of [`UNTRUSTED_ROOTS`].
fn trusted_library_path(path: &str) -> String {
    let trusted = |entry: &&str| {
        super::paths::clean(entry).is_some_and(|clean| {
            !UNTRUSTED_ROOTS
                .iter()
                .any(|root| super::paths::is_within(&clean, root))
        })
    };
    path.split(':')
        .filter(trusted)
        .collect::<Vec<_>>()
        .join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_path_keeps_its_trusted_entries() {
        let path = "/usr/local/cuda/lib64:/proc/self/cwd:lib::/usr/../tmp/x:/opt/lib";
        assert_eq!(trusted_library_path(path), "/usr/local/cuda/lib64:/opt/lib");
    }

    #[test]
    fn names_are_names() {
        assert!(is_variable_name("_A1"));
        for wrong in ["", "1A", "A-B", "A=B", "Ä"] {
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
            assert!(!is_reserved(name), "{name} was refused");
        }
    }
}
