//! What happens to the GPUs, from the driver's library and from the kernel's log, in one line for the agent's loop.

use super::kernel_log::KernelLog;
use gpu_health::input::Input;
use host_nvml::news::GpuNews;
use std::path::Path;
use tokio::sync::mpsc;

/// What may wait for the agent's loop.
const HEARD: usize = 64;

/// Passes on `news`, and what is written to the kernel's log at `log` from now on. Without that log faults come from
/// the library alone.
#[must_use]
pub fn hear(mut news: mpsc::Receiver<GpuNews>, log: &Path) -> mpsc::Receiver<Input> {
    let (say, heard) = mpsc::channel(HEARD);
    let (lines, mut read) = mpsc::channel(HEARD);
    match KernelLog::open(log) {
        Ok(log) => drop(tokio::spawn(log.follow(lines))),
        Err(error) => tracing::info!(
            %error,
            "the kernel's log is not read: faults of GPUs come from their library alone"
        ),
    }
    tokio::spawn(async move {
        loop {
            let input = tokio::select! {
                Some(news) = news.recv() => Input::News(news),
                Some(line) = read.recv() => Input::Line(line),
                else => return,
            };
            if say.send(input).await.is_err() {
                return;
            }
        }
    });
    heard
}
