//! `feira-broker run`: the process around a [`Server`]: log, signals, the service manager, the ready file.

use super::Place;
use crate::args::Run;
use crate::clock::Clock;
use crate::config::Config;
use crate::server::{Options, Server};
use protocol::operator::{
    Exit, Failure, NotifyState, Signals, Threads, chain, notify, threads, write_whole,
};

/// Runs until SIGTERM or SIGINT, or until something breaks.
pub(super) fn run(place: &Place, run: &Run) -> Result<Exit, Failure> {
    place.program.start_log(run.log_format)?;
    let config =
        Config::read(&place.folder.config()).map_err(|error| place.settings_failed(&error))?;
    let runtime = threads(Threads::Cores)?;
    let ended = runtime.block_on(serve(place, run, config));
    // A start that was broken off may still be in the journal, which SQLite leaves whole.
    runtime.shutdown_background();
    ended
}

async fn serve(place: &Place, run: &Run, config: Config) -> Result<Exit, Failure> {
    let mut signals = Signals::watch()?;
    let options = Options {
        folder: place.folder.clone(),
        config,
        clock: Clock::system(),
    };
    let mut server = tokio::select! {
        started = Server::start(options) => started.map_err(|error| place.start_failed(&error))?,
        () = signals.told_to_stop() => return Ok(Exit::Done),
    };
    announce(&server, run)?;
    tokio::select! {
        ended = server.join() => return ended.map(|()| Exit::Done).map_err(|error| broke(&error)),
        () = signals.told_to_stop() => {}
    }
    tracing::info!("stopping");
    notify(NotifyState::Stopping);
    let stopped = tokio::select! {
        stopped = server.shutdown() => stopped,
        () = signals.told_to_stop() => {
            tracing::warn!("told to stop twice: stopping without waiting");
            return Ok(Exit::Failed);
        }
    };
    stopped.map_err(|error| broke(&error))?;
    tracing::info!("stopped");
    Ok(Exit::Done)
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
