//! `feira-broker run`: the process around a [`Server`]: log, signals, the service manager, the ready file.

use super::Place;
use crate::args::Run;
use crate::clock::Clock;
use crate::config::Config;
use crate::exit::{Exit, Failure, chain};
use crate::logs;
use crate::server::{Options, Server};
use sd_notify::NotifyState;
use std::io;
use std::path::Path;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs until SIGTERM or SIGINT, or until something breaks.
pub(super) fn run(place: &Place, run: &Run) -> Result<Exit, Failure> {
    logs::start(run.log_format).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let config =
        Config::read(&place.folder.config()).map_err(|error| place.config_failed(&error))?;
    if place.folder.key().exists() && !place.has_books() {
        return Err(place.books_missing());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Failed, format!("could not start threads: {error}")))?;
    let ended = runtime.block_on(serve(place, run, config));
    // A start that was broken off may still be in the journal, which SQLite leaves whole.
    runtime.shutdown_background();
    ended
}

async fn serve(place: &Place, run: &Run, config: Config) -> Result<Exit, Failure> {
    let failed = |error: io::Error| {
        Failure::new(
            Exit::Failed,
            format!("could not watch for signals: {error}"),
        )
    };
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let options = Options {
        folder: place.folder.clone(),
        config,
        clock: Clock::system(),
    };
    let mut server = tokio::select! {
        started = Server::start(options) => started.map_err(|error| place.start_failed(&error))?,
        () = either(&mut terminate, &mut interrupt) => return Ok(Exit::Done),
    };
    announce(&server, run)?;
    tokio::select! {
        ended = server.join() => return ended.map(|()| Exit::Done).map_err(|error| broke(&error)),
        () = either(&mut terminate, &mut interrupt) => {}
    }
    tracing::info!("stopping");
    notify(NotifyState::Stopping);
    let stopped = tokio::select! {
        stopped = server.shutdown() => stopped,
        () = either(&mut terminate, &mut interrupt) => {
            tracing::warn!("told to stop twice: stopping without waiting");
            return Ok(Exit::Failed);
        }
    };
    stopped.map_err(|error| broke(&error))?;
    tracing::info!("stopped");
    Ok(Exit::Done)
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn broke(error: &crate::server::ServerError) -> Failure {
    Failure::new(Exit::Failed, chain(error)).help(
        "everything that was answered is in the journal; look at the disk, then start it again",
    )
}

/// Tells whoever waits that the broker listens, and where.
fn announce(server: &Server, run: &Run) -> Result<(), Failure> {
    tracing::info!(broker = %server.broker(), "broker runs");
    for address in server.addresses() {
        tracing::info!(%address, "listening");
    }
    let metrics = format!("http://{}/metrics", server.metrics_address());
    tracing::info!(%metrics, admin = %server.admin_socket().display(), "operator's places");
    if let Some(path) = &run.ready_file {
        let mut lines: Vec<String> = server.addresses().iter().map(ToString::to_string).collect();
        lines.push(metrics);
        write_whole(path, &(lines.join("\n") + "\n")).map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("could not write {}: {error}", path.display()),
            )
        })?;
    }
    notify(NotifyState::Ready);
    Ok(())
}

/// Without a service manager there is nobody to tell.
fn notify(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "the service manager was not told");
    }
}

/// Whoever waits for the file sees all of it or nothing.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}
