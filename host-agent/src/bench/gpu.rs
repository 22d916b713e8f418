//! GPUs, each in a process that has its driver to itself: it is this program again, says lines of JSON, and is killed
//! when its time is over or the run is stopped. A driver that hangs or crashes takes only that process with it.

use super::{BenchError, Plan, Watch};
use crate::clock;
use crate::core::bench::{Outcome, Part};
use crate::hardware::pci;
use gpu_bench::{Figure, Said, What};
use protocol::bounded::Text;
use protocol::machine::{Gpu, Quantity, Vendor};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

/// A GPU takes some twenty seconds, and a slow driver as long again to translate the kernels.
const DEADLINE: Duration = Duration::from_secs(180);
/// All lines of one process together.
const SAID_MAX: u64 = 1024 * 1024;
/// A process that was killed is gone in a moment, unless the kernel's driver does not let it go.
const GONE: Duration = Duration::from_secs(2);

/// What a software device is called in results.
pub const SOFTWARE: &str = "software";

/// Measures every GPU of the plan. One that cannot be measured hides no other.
pub(super) async fn measure(
    plan: &Plan,
    watch: &Arc<Watch>,
    skipped: &mut Vec<String>,
) -> Result<Vec<Outcome>, BenchError> {
    let targets = targets(plan, skipped);
    let mut outcomes = Vec::new();
    let mut failed = None;
    let count = u32::try_from(targets.len()).unwrap_or(u32::MAX).max(1);
    for (number, target) in (0_u32..).zip(targets) {
        let say = |done: u16| {
            let part = (number * 1000 + u32::from(done.min(1000))) / count;
            watch.say(Part::Gpu, u16::try_from(part).unwrap_or(1000));
        };
        let asked = one(&plan.program, &target, DEADLINE, &say);
        let answer = tokio::select! {
            answer = asked => answer,
            () = watch.until_stopped() => return Err(BenchError::Stopped),
        };
        match answer {
            Ok(found) => {
                outcomes.extend(found.outcomes);
                skipped.extend(found.skipped);
            }
            Err(reason) => {
                failed = Some(BenchError::Gpu {
                    on: target.on,
                    reason,
                })
            }
        }
    }
    watch.say(Part::Gpu, 1000);
    failed.map_or(Ok(outcomes), Err)
}

/// A GPU as its process is asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    on: String,
    arguments: Vec<String>,
    /// What the driver is shown.
    visible: Option<String>,
    /// Where the kernel's files are, which is `/sys`, and where the GPU is on the bus; empty when unknown.
    bus: (PathBuf, String),
}

fn targets(plan: &Plan, skipped: &mut Vec<String>) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for gpu in &plan.gpus {
        match target(gpu) {
            Ok(target) => targets.push(target),
            Err(why) => skipped.push(format!("{}: {why}", gpu.uuid)),
        }
    }
    if plan.software_gpu {
        targets.push(Target {
            on: SOFTWARE.to_owned(),
            arguments: vec!["--software".to_owned()],
            visible: None,
            bus: (PathBuf::new(), String::new()),
        });
    }
    if targets.is_empty() && skipped.is_empty() {
        skipped.push("there is no GPU".to_owned());
    }
    targets
}

fn target(gpu: &Gpu) -> Result<Target, &'static str> {
    if gpu.is_divided == Some(true) {
        return Err("it is divided, and only whole GPUs are measured");
    }
    let (arguments, visible) = match gpu.vendor {
        Vendor::Nvidia => (vec!["--cuda".to_owned()], Some(gpu.uuid.to_string())),
        Vendor::Amd | Vendor::Intel if gpu.pci_address.is_empty() => {
            return Err("where it is on the PCI bus is not known");
        }
        Vendor::Amd | Vendor::Intel => {
            let at = gpu.pci_address.to_string();
            (vec!["--pci".to_owned(), at], None)
        }
    };
    Ok(Target {
        on: gpu.uuid.to_string(),
        arguments,
        visible,
        bus: (PathBuf::from("/sys"), gpu.pci_address.to_string()),
    })
}

#[derive(Debug, Default)]
struct Found {
    outcomes: Vec<Outcome>,
    skipped: Vec<String>,
}

async fn one(
    program: &Path,
    target: &Target,
    deadline: Duration,
    say: &(dyn Fn(u16) + Sync),
) -> Result<Found, String> {
    let mut command = Command::new(program);
    command
        .arg("bench-gpu")
        .args(&target.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    if let Some(uuid) = &target.visible {
        command.env("CUDA_VISIBLE_DEVICES", uuid);
    }
    let mut child = command
        .spawn()
        .map_err(|error| format!("its process could not be started: {error}"))?;
    let heard = tokio::time::timeout(deadline, hear(&mut child, target, say)).await;
    // Also one that said everything: it has nothing more to do.
    let killed = child.start_kill();
    let ended = tokio::time::timeout(GONE, child.wait()).await;
    match heard {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(Some(reason))) => Err(reason),
        Ok(Err(None)) => Err(match (ended, killed) {
            (Ok(Ok(status)), _) => format!("its process broke off: {status}"),
            (Ok(Err(_)) | Err(_), _) => "its process broke off".to_owned(),
        }),
        Err(_) => Err(format!(
            "its driver did not answer within {} s",
            deadline.as_secs()
        )),
    }
}

/// The lines to their end. No reason where it ended without a word.
async fn hear(
    child: &mut Child,
    target: &Target,
    say: &(dyn Fn(u16) + Sync),
) -> Result<Found, Option<String>> {
    let Some(out) = child.stdout.take() else {
        return Err(None);
    };
    let mut lines = BufReader::new(out.take(SAID_MAX)).lines();
    let (mut found, mut software, mut done) = (Found::default(), false, 0);
    let mut link = (0, 0);
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str::<Said>(&line) {
            Ok(Said::Device { software: is, .. }) => software = is,
            Ok(Said::Progress(part)) => {
                done = part;
                say(part);
                link = faster(link, pci::link_now(&target.bus.0, &target.bus.1));
            }
            Ok(Said::Figure(figure)) => found.outcomes.push(outcome(figure, target, software)),
            Ok(Said::Skipped { what, why }) => {
                let what = name(what);
                found.skipped.push(format!("{}: {what}: {why}", target.on));
            }
            Ok(Said::Failed(reason)) => return Err(Some(reason)),
            // Another version of this program is not started by this one.
            Err(_) => return Err(Some("its process said something else".to_owned())),
        }
    }
    if done < 1000 {
        return Err(None);
    }
    found.outcomes.extend(link_outcomes(link, target));
    Ok(found)
}

/// A link at rest lowers its generation, and some their lanes: what it had at its best while the GPU worked counts.
fn faster(before: (u8, u8), now: (u8, u8)) -> (u8, u8) {
    (before.0.max(now.0), before.1.max(now.1))
}

/// What the kernel said of the link; nothing of what it did not say.
fn link_outcomes((generation, lanes): (u8, u8), target: &Target) -> Vec<Outcome> {
    let both = [
        (Quantity::PcieGeneration, generation),
        (Quantity::PcieLanes, lanes),
    ];
    let known = both.into_iter().filter(|(_, value)| *value > 0);
    known
        .map(|(quantity, value)| Outcome {
            quantity,
            value: value.into(),
            method: Text::cut("kernel-under-load"),
            version: 1,
            at: clock::wall(),
            on: target.on.clone(),
            software: false,
        })
        .collect()
}

const fn name(what: What) -> &'static str {
    match what {
        What::Fp32 => "FP32",
        What::Fp64 => "FP64",
        What::Fp16Matrix => "FP16",
        What::Bf16Matrix => "BF16",
        What::Memory => "memory",
        What::HostToDevice => "to the GPU",
        What::DeviceToHost => "from the GPU",
    }
}

fn outcome(figure: Figure, target: &Target, software: bool) -> Outcome {
    let quantity = match figure.what {
        What::Fp32 => Quantity::Fp32,
        What::Fp64 => Quantity::Fp64,
        What::Fp16Matrix => Quantity::Fp16Matrix,
        What::Bf16Matrix => Quantity::Bf16Matrix,
        What::Memory => Quantity::GpuMemory,
        What::HostToDevice => Quantity::HostToDevice,
        What::DeviceToHost => Quantity::DeviceToHost,
    };
    Outcome {
        quantity,
        value: figure.value,
        method: Text::cut(&figure.method),
        version: figure.version,
        at: clock::wall(),
        on: target.on.clone(),
        software,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn target_of(on: &str) -> Target {
        Target {
            on: on.to_owned(),
            arguments: Vec::new(),
            visible: Some(on.to_owned()),
            bus: (PathBuf::new(), String::new()),
        }
    }

    /// A process that does what `script` says in the place of this program.
    async fn ask(script: &str, deadline: Duration) -> Result<Found, String> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("child");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        one(&program, &target_of("GPU-a"), deadline, &|_| {}).await
    }

    /// The link sleeps at first, wakes for the copies, and sleeps again: the process is the GPU and the bus.
    #[tokio::test]
    async fn the_link_is_measured_while_the_gpu_works() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("bus/pci/devices/0000:05:00.0");
        std::fs::create_dir_all(&device).unwrap();
        let write = |speed: &str, width: &str| {
            std::fs::write(device.join("current_link_speed"), speed).unwrap();
            std::fs::write(device.join("current_link_width"), width).unwrap();
        };
        write("2.5 GT/s PCIe\n", "8\n");
        let program = folder.path().join("child");
        // Each line is said when the one before was heard, for the bus to be looked at between them.
        let script = format!(
            "#!/bin/sh\ncd {}\necho '{{\"progress\":10}}'; sleep 0.3\n\
             echo '16.0 GT/s PCIe' > current_link_speed; echo '{{\"progress\":900}}'; sleep 0.3\n\
             echo '2.5 GT/s PCIe' > current_link_speed; echo '{{\"progress\":1000}}'\n",
            device.display()
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let target = Target {
            bus: (folder.path().to_owned(), "0000:05:00.0".to_owned()),
            ..target_of("GPU-a")
        };
        let found = one(&program, &target, LONG, &|_| {}).await.unwrap();
        let link: Vec<(Quantity, u64)> = found
            .outcomes
            .iter()
            .map(|it| (it.quantity, it.value))
            .collect();
        let wanted = [(Quantity::PcieGeneration, 4), (Quantity::PcieLanes, 8)];
        assert_eq!(link, wanted);
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn lines_become_results_of_the_gpu_that_was_shown() {
        let found = ask(
            r#"echo '{"device":{"name":"'$CUDA_VISIBLE_DEVICES'","software":false}}'
            echo '{"skipped":{"what":"bf16-matrix","why":"too old"}}'
            echo '{"figure":{"what":"fp32","value":82000,"method":"ptx-fma-chains","version":1}}'
            echo '{"progress":1000}'"#,
            LONG,
        );
        let found = found.await.unwrap();
        assert_eq!(found.skipped, ["GPU-a: BF16: too old"]);
        let one = &found.outcomes[0];
        assert_eq!((one.quantity, one.value), (Quantity::Fp32, 82_000));
        assert_eq!((one.on.as_str(), one.software), ("GPU-a", false));
    }

    #[tokio::test]
    async fn a_driver_that_hangs_is_killed_at_the_deadline() {
        let began = clock::monotonic();
        let refused = ask("exec sleep 60", Duration::from_secs(1))
            .await
            .unwrap_err();
        assert_eq!(refused, "its driver did not answer within 1 s");
        assert!(clock::monotonic().0 - began.0 < 15_000);
    }

    #[tokio::test]
    async fn a_driver_that_crashes_is_told_from_one_that_refuses() {
        let crashed = ask("kill -SEGV $$", LONG).await.unwrap_err();
        assert!(
            crashed.starts_with("its process broke off: signal: 11"),
            "{crashed}"
        );
        let refused = ask(r#"echo '{"failed":"no CUDA"}'"#, LONG)
            .await
            .unwrap_err();
        assert_eq!(refused, "no CUDA");
        // Half of its results are none.
        let half = ask(r#"echo '{"progress":500}'"#, LONG).await.unwrap_err();
        assert_eq!(half, "its process broke off: exit status: 0");
    }
}
