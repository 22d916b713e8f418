//! `feira-host run`: the process around an [`Agent`]: log, signals, the service manager, the ready file.

use super::failures::engine_failed;
use super::{Place, block_on};
use crate::agent::{Agent, Setup};
use crate::args::Run;
use crate::hardware::hearing::hear;
use crate::hardware::kernel_log;
use crate::hardware::this::ThisMachine;
use crate::journal;
use crate::runtime::Runtime;
use crate::runtime::docker::LateDocker;
use crate::runtime::sandbox::LABEL_HOST;
use protocol::ids::HostId;
use protocol::operator::{Exit, Failure, NotifyState, Signals, notify, write_whole};
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;

/// Runs until SIGTERM or SIGINT, or until something breaks.
pub(super) fn run(place: &Place, run: &Run) -> Result<Exit, Failure> {
    place.program.start_log(run.log_format)?;
    block_on(serve(place, run))?
}

async fn serve(place: &Place, run: &Run) -> Result<Exit, Failure> {
    let mut signals = Signals::watch()?;
    let mut agent = start(place).await?;
    announce(&agent, run).await?;
    let beats = tokio::spawn(keep_watchdog(agent.alive()));
    let beats = tokio_util::task::AbortOnDropHandle::new(beats);
    tokio::select! {
        ended = agent.join() => {
            return ended.map(|()| Exit::Done).map_err(|error| place.agent_failed(&error));
        }
        () = signals.told_to_stop() => {}
    }
    tracing::info!("stopping; containers go on running");
    notify(NotifyState::Stopping);
    let stopped = tokio::select! {
        stopped = agent.shutdown() => stopped,
        () = signals.told_to_stop() => {
            tracing::warn!("told to stop twice: stopping without waiting");
            return Ok(Exit::Failed);
        }
    };
    drop(beats);
    stopped.map_err(|error| place.agent_failed(&error))?;
    tracing::info!("stopped");
    Ok(Exit::Done)
}

async fn start(place: &Place) -> Result<Agent, Failure> {
    let (config, identity) = (place.config()?, place.identity()?);
    place.check_owner("run")?;
    let host = HostId::from(identity.public());
    if config.brokers.is_empty() {
        tracing::warn!("no broker is set in host.toml, so nobody sees this host");
    }
    let runtime = LateDocker::connect(&config.engine, host)
        .await
        .map_err(|error| engine_failed(&error))?;
    check_journal(place, &runtime, host).await?;
    let (hardware, news) = ThisMachine::start(config.nvml.clone());
    let folder = place.folder.path().to_owned();
    Agent::start(Setup {
        folder,
        config,
        identity,
        runtime,
        hardware,
        heard: Some(hear(news, Path::new(kernel_log::PATH))),
    })
    .await
    .map_err(|error| place.start_failed(&error))
}

/// Containers of leases that the journal never took would be ended, with their disks: a journal that was lost or
/// emptied is not taken for a new one.
async fn check_journal(place: &Place, runtime: &LateDocker, host: HostId) -> Result<(), Failure> {
    let folder = place.folder.path();
    let known = journal::peek(folder).map_err(|error| place.journal_failed(&error))?;
    // An epoch stays when its lease is forgotten.
    if known.is_some_and(|known| !known.epochs.is_empty()) {
        return Ok(());
    }
    let Ok(found) = runtime.containers().await else {
        return Ok(());
    };
    if found.is_empty() {
        return Ok(());
    }
    let file = folder.join(journal::FILE_NAME);
    let what = format!(
        "{} knows of no lease, and {} of this host's containers are here: it was lost or emptied",
        file.display(),
        found.len()
    );
    let give_up = format!(
        "docker rm --force --volumes $(docker ps --all --quiet --filter label={LABEL_HOST}={host})"
    );
    let help = format!("put the journal back, or give those leases and their disks up:\n{give_up}");
    Err(Failure::new(Exit::Failed, what).help(help))
}

/// Tells whoever waits that the agent runs: in the ready file the host's id is the first line, and each
/// address at which it can be dialled directly is another.
async fn announce(agent: &Agent, run: &Run) -> Result<(), Failure> {
    let addresses = agent.addresses().await;
    tracing::info!(host = %agent.host(), socket = %agent.socket().display(), "agent runs");
    let metrics = format!("http://{}/metrics", agent.metrics_address());
    tracing::info!(%metrics, "the page for Prometheus");
    if let Some(path) = &run.ready_file {
        let mut text = format!("{}\n", agent.host());
        for address in &addresses {
            text.push_str(&format!("{address}\n"));
        }
        write_whole(path, &text).map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("could not write {}: {error}", path.display()),
            )
        })?;
    }
    notify(NotifyState::Ready);
    Ok(())
}

/// The service manager hears from this process as long as the agent's loop turns.
async fn keep_watchdog(mut alive: watch::Receiver<u64>) {
    let Some(allowed) = sd_notify::watchdog_enabled() else {
        return;
    };
    let pause = (allowed / 3).max(Duration::from_millis(100));
    while alive.changed().await.is_ok() {
        notify(NotifyState::Watchdog);
        tokio::time::sleep(pause).await;
    }
}
