//! How GPUs would come into a container here, and whether what brings them there can be trusted. Pure.

use super::Check;
use crate::runtime::EngineFacts;
use crate::runtime::gpus::given::Way;
use crate::runtime::gpus::host::HostGpus;
use crate::runtime::gpus::way::{TOOLKIT_FLOOR, Ways};
use crate::version::Version;
use protocol::machine::{Gpu, Vendor};

/// NVIDIA's container toolkit as it is installed.
pub(super) struct Toolkit {
    /// Its version; nothing where there is none.
    pub(super) version: Option<Version>,
    /// The text of its settings, where there are any.
    pub(super) settings: Option<String>,
}

/// Lets a container's own variable choose GPUs, unless it is off.
const BY_VARIABLE: &str = "accept-nvidia-visible-devices-envvar-when-unprivileged";

/// The way of each vendor's GPUs, the toolkit and its settings, and the engine's default runtime.
pub(super) fn checks(
    gpus: &[&Gpu],
    engine: &EngineFacts,
    host: &HostGpus,
    toolkit: &Toolkit,
) -> Vec<Check> {
    let of = |vendor: Vendor| gpus.iter().copied().filter(move |gpu| gpu.vendor == vendor);
    let names: Vec<&str> = of(Vendor::Nvidia).map(|gpu| gpu.uuid.as_str()).collect();
    let mut checks = Vec::new();
    if !names.is_empty() {
        let ways = Ways::of(engine, host);
        let chosen = ways.choose(&names, host);
        checks.push(way(&names, &ways, &chosen, host));
        checks.push(version(toolkit));
        checks.extend(settings(toolkit, chosen.ok()));
        checks.extend(default_runtime(engine));
    }
    let others = of(Vendor::Amd).chain(of(Vendor::Intel));
    checks.extend(others.map(|gpu| render(gpu, host)));
    checks
}

fn way(names: &[&str], ways: &Ways, chosen: &Result<Way, String>, host: &HostGpus) -> Check {
    let fix = "nvidia-ctk cdi generate --device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml";
    let listed = names
        .iter()
        .filter(|name| host.cdi.contains(&format!("nvidia.com/gpu={name}")));
    let list = format!(
        "the engine's list has {} of {} GPUs",
        listed.count(),
        names.len()
    );
    match chosen {
        Ok(Way::Cdi) => Check::ok(
            "container",
            format!("{list}; they are given {}", Way::Cdi.in_words()),
        ),
        Ok(way @ (Way::Request | Way::Nodes)) => {
            let found = format!("GPUs are given {}", way.in_words());
            match &ways.cdi {
                // The list is all that is missing.
                Ok(()) => Check::warn(
                    "container",
                    format!("{list}; {found}; needed all of them"),
                    fix,
                ),
                Err(reason) => Check::ok("container", format!("{found} ({reason})")),
            }
        }
        Err(reason) => Check::fail(
            "container",
            format!("GPUs cannot be given to a container: {reason}; needed one of these ways"),
            format!("install the NVIDIA Container Toolkit, then: {fix}"),
        ),
    }
}

fn version(toolkit: &Toolkit) -> Check {
    let floor = Version::of(&TOOLKIT_FLOOR);
    match &toolkit.version {
        Some(version) if *version < floor => Check::warn(
            "toolkit",
            format!(
                "{version} lets an image run what it likes as root (CVE-2025-23266), so it is not used; needed {floor}"
            ),
            "upgrade nvidia-container-toolkit",
        ),
        Some(version) => Check::ok("toolkit", format!("{version}; needed {floor}")),
        None => Check::ok("toolkit", "none is installed; GPUs can be given without"),
    }
}

/// By the request to the runtime its hook is told of GPUs in a variable; on every other way nobody should listen to one.
fn settings(toolkit: &Toolkit, way: Option<Way>) -> Option<Check> {
    let text = toolkit.settings.as_deref()?;
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(_) => {
            let found = "its config.toml cannot be read";
            return Some(Check::warn("toolkit", found, "nvidia-ctk config default"));
        }
    };
    let is_on = table
        .get(BY_VARIABLE)
        .and_then(toml::Value::as_bool)
        .unwrap_or(true);
    let set = |to: bool| format!("nvidia-ctk config --in-place --set {BY_VARIABLE}={to}");
    match (way, is_on) {
        (Some(Way::Request), false) => Some(Check::fail(
            "toolkit",
            format!(
                "{BY_VARIABLE} is off, so the engine's request gives no GPU; needed a device list (CDI)"
            ),
            "nvidia-ctk cdi generate --device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml, with Docker 25 or later",
        )),
        (Some(Way::Cdi | Way::Nodes) | None, true) => Some(Check::warn(
            "toolkit",
            format!(
                "{BY_VARIABLE} is on: with NVIDIA's runtime an image chooses GPUs by itself; needed off"
            ),
            set(false),
        )),
        (Some(Way::Request), true) | (Some(Way::Cdi | Way::Nodes) | None, false) => None,
    }
}

fn default_runtime(engine: &EngineFacts) -> Option<Check> {
    (engine.default_runtime == "nvidia").then(|| {
        Check::fail(
            "runtime",
            "NVIDIA's runtime is the engine's default, so an image of anybody chooses GPUs by itself; needed runc",
            "take \"default-runtime\" out of /etc/docker/daemon.json, and systemctl restart docker",
        )
    })
}

/// A GPU of another vendor by its render node.
fn render(gpu: &Gpu, host: &HostGpus) -> Check {
    let name = format!("{} at {}", gpu.model, gpu.pci_address);
    let nodes = host.render.get(gpu.pci_address.as_str());
    let needs_kfd = gpu.vendor == Vendor::Amd && !host.nodes.contains_key("kfd");
    match nodes {
        Some(_) if needs_kfd => Check::fail(
            "container",
            format!("{name}: there is no /dev/kfd, through which it computes; needed /dev/kfd"),
            "modprobe amdgpu, and look at dmesg",
        ),
        Some(nodes) => Check::ok(
            "container",
            format!("{name}: given by /dev/{}", nodes.join(", /dev/")),
        ),
        None => Check::fail(
            "container",
            format!("{name}: it has no render node; needed /dev/dri/renderD…"),
            "load its driver (amdgpu, xe, i915), and look at dmesg",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::bounded::Text;
    use protocol::operator::doctor::Grade;

    fn gpu(vendor: Vendor) -> Gpu {
        Gpu {
            uuid: Text::cut("GPU-0a"),
            model: Text::cut("Card"),
            pci_address: Text::cut("0000:63:00.0"),
            ..Gpu::unknown(vendor)
        }
    }

    fn engine(version: &str) -> EngineFacts {
        EngineFacts {
            version: version.to_owned(),
            runtimes: vec!["nvidia".to_owned()],
            default_runtime: "runc".to_owned(),
            cdi_spec_dirs: vec!["/etc/cdi".to_owned()],
            ..EngineFacts::default()
        }
    }

    fn toolkit(version: &str, settings: Option<&str>) -> Toolkit {
        Toolkit {
            version: Version::parse(version),
            settings: settings.map(str::to_owned),
        }
    }

    fn listed() -> HostGpus {
        HostGpus {
            cdi: ["nvidia.com/gpu=GPU-0a".to_owned()].into(),
            ..HostGpus::default()
        }
    }

    fn found(engine: &EngineFacts, host: &HostGpus, toolkit: &Toolkit) -> Vec<(Grade, String)> {
        let host = HostGpus {
            toolkit: toolkit.version.clone(),
            ..host.clone()
        };
        let checks = checks(&[&gpu(Vendor::Nvidia)], engine, &host, toolkit);
        checks.into_iter().map(|it| (it.grade, it.found)).collect()
    }

    #[test]
    fn the_way_is_said_and_what_is_missing_on_a_better_one() {
        let fine = toolkit("1.18.0", Some(&format!("{BY_VARIABLE} = false\n")));
        let all = found(&engine("28.2.2"), &listed(), &fine);
        let way = "the engine's list has 1 of 1 GPUs; they are given by name through the engine's device list (CDI)";
        let wanted = [
            (Grade::Ok, way.to_owned()),
            (Grade::Ok, "1.18; needed 1.17.8".to_owned()),
        ];
        assert_eq!(all, wanted);
        let unlisted = found(&engine("28.2.2"), &HostGpus::default(), &fine);
        assert_eq!(unlisted[0].0, Grade::Warn);
        assert!(unlisted[0].1.starts_with(
            "the engine's list has 0 of 1 GPUs; GPUs are given by the engine's request"
        ));
        // By the request nothing would be given: the hook does not listen.
        assert_eq!(unlisted[2].0, Grade::Fail);
        let older = found(&engine("24.0.9"), &listed(), &toolkit("1.18.0", None));
        assert_eq!(older[0].0, Grade::Ok);
        assert!(
            older[0]
                .1
                .ends_with("(the engine is 24.0.9, and CDI needs 25)"),
            "{older:?}"
        );
    }

    #[test]
    fn an_old_toolkit_an_open_one_and_a_default_runtime_are_wrong() {
        let old = found(&engine("28.2.2"), &listed(), &toolkit("1.17.7", None));
        assert_eq!((old[0].0, old[1].0), (Grade::Fail, Grade::Warn));
        assert!(old[1].1.contains("CVE-2025-23266") && old[1].1.ends_with("needed 1.17.8"));
        let open = found(&engine("28.2.2"), &listed(), &toolkit("1.18.0", Some("")));
        assert_eq!(open[2].0, Grade::Warn);
        let default = EngineFacts {
            default_runtime: "nvidia".to_owned(),
            ..engine("28.2.2")
        };
        let default = found(&default, &listed(), &toolkit("1.18.0", None));
        assert_eq!(default[2].0, Grade::Fail);
        assert!(default[2].1.contains("needed runc"));
    }

    #[test]
    fn other_vendors_have_their_nodes() {
        let of = |vendor: Vendor, host: &HostGpus| {
            let none = toolkit("", None);
            checks(&[&gpu(vendor)], &engine("28.2.2"), host, &none)
        };
        let rendered = HostGpus {
            render: [("0000:63:00.0".to_owned(), vec!["dri/renderD129".to_owned()])].into(),
            ..HostGpus::default()
        };
        let intel = of(Vendor::Intel, &rendered);
        let said = "Card at 0000:63:00.0: given by /dev/dri/renderD129";
        assert_eq!(intel, [Check::ok("container", said)]);
        assert!(of(Vendor::Amd, &rendered)[0].found.contains("no /dev/kfd"));
        assert!(
            of(Vendor::Amd, &HostGpus::default())[0]
                .found
                .contains("no render node")
        );
    }
}
