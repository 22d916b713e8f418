//! The container's environment: the host's own variables, the renter's, and what an image may not set.
//!
//! The hooks that put a GPU into a container run as the host's root and read the container's environment, so
//! some names are the host's alone.

use protocol::job::{REQUIREMENT_PREFIX, Variable, is_hosts_variable, is_variable_name};
use protocol::lease::{Problem, ProblemKind, Stage};

use super::super::ContainerSpec;
use super::super::gpus::LIBRARY_FOLDER;
use super::super::gpus::given::Way;
use super::super::gpus::way::Injection;
use super::problem;

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

/// What an image may set of the host's names: what its GPU libraries need of a driver.
const CUDA_VERSION: &str = "CUDA_VERSION";

/// Where a library path may not lead: places that change under the reader or that anyone may write.
const UNTRUSTED_ROOTS: [&str; 4] = ["/proc", "/dev", "/sys", "/tmp"];

/// `NAME=value` for everything that the request sets; the engine adds what else the image has.
pub(super) fn variables(
    spec: &ContainerSpec,
    image: &[String],
    injection: &Injection,
) -> Result<Vec<String>, Problem> {
    refuse_variables(&spec.job.environment)
        .map_err(|detail| problem(Stage::Creating, ProblemKind::ImageUnusable, &detail))?;
    // The engine itself says it again to NVIDIA's runtime; on every other way nothing is to look at it.
    let choice = match injection.way() {
        Some(Way::Request) => injection.names.join(","),
        Some(Way::Cdi | Way::Nodes) | None => "void".to_owned(),
    };
    let mut variables = vec![format!("{GPU_CHOICE}={choice}")];
    variables.extend(
        HOST_VARIABLES
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    // No hook tells the loader of the driver's libraries.
    let own_path = (!injection.files.is_empty()).then(|| LIBRARY_FOLDER.to_owned());
    variables.extend(own_path.iter().map(|path| format!("{LIBRARY_PATH}={path}")));
    for variable in image {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        if name == LIBRARY_PATH {
            let paths = own_path.clone().into_iter();
            let paths = paths.chain([trusted_library_path(value)]);
            let paths: Vec<String> = paths.filter(|path| !path.is_empty()).collect();
            variables.push(format!("{LIBRARY_PATH}={}", paths.join(":")));
        } else if is_emptied(name) {
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
        if is_hosts_variable(name) {
            return Err(format!(
                "the variable {name} may not be set: it is the host's"
            ));
        }
    }
    Ok(())
}

/// Whether a variable that an image sets is emptied: it would steer the GPU's hooks or reach a server of the host's,
/// and the host has no value of its own for it.
fn is_emptied(name: &str) -> bool {
    let is_set = name == GPU_CHOICE || HOST_VARIABLES.iter().any(|(host, _)| *host == name);
    let is_images = name == CUDA_VERSION || name.starts_with(REQUIREMENT_PREFIX);
    is_hosts_variable(name) && !is_set && !is_images
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
    fn what_the_host_sets_itself_no_renter_may_set() {
        let names = HOST_VARIABLES.map(|(name, _)| name);
        for name in names.into_iter().chain([GPU_CHOICE, LIBRARY_PATH]) {
            assert!(is_hosts_variable(name), "{name}");
        }
    }

    #[test]
    fn of_an_image_only_the_needs_of_its_libraries_stay() {
        for name in ["NVIDIA_GDS", "GLIBC_TUNABLES", "CUDA_MPS_PIPE_DIRECTORY"] {
            assert!(is_emptied(name), "{name}");
        }
        for name in ["CUDA_VERSION", "NVIDIA_REQUIRE_CUDA", "PATH", "LD_PRELOAD"] {
            assert!(!is_emptied(name), "{name}");
        }
    }
}
