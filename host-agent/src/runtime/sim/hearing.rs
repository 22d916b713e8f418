//! What watchers and readers of the simulated engine hear, as they would of a real one.

use protocol::ids::LeaseId;
use tokio::sync::{broadcast, mpsc};

use super::super::logs::LogRecord;
use super::super::{ContainerEvent, RuntimeError};
use super::SimRuntime;
use super::engine::Notice;

/// Passes on what happens to this host's containers, as an engine's watch does.
pub(super) async fn forward(
    runtime: SimRuntime,
    mut notices: broadcast::Receiver<Notice>,
    events: mpsc::Sender<ContainerEvent>,
) {
    let list = || ContainerEvent::Listed(runtime.engine.containers(runtime.host));
    let mut next = Some(list());
    loop {
        if let Some(event) = next.take()
            && events.send(event).await.is_err()
        {
            return;
        }
        next = match notices.recv().await {
            Ok(Notice::Event(host, event)) if host == runtime.host => Some(event),
            Ok(Notice::Event(..) | Notice::Written(..)) => None,
            Ok(Notice::Down) => Some(ContainerEvent::EngineLost {
                reason: "down".to_owned(),
            }),
            Ok(Notice::Up) | Err(broadcast::error::RecvError::Lagged(_)) => Some(list()),
            Err(broadcast::error::RecvError::Closed) => return,
        };
    }
}

pub(super) async fn next_record(
    mut notices: broadcast::Receiver<Notice>,
    lease: LeaseId,
) -> Option<(Result<LogRecord, RuntimeError>, broadcast::Receiver<Notice>)> {
    loop {
        match notices.recv().await.ok()? {
            Notice::Written(of, record) if of == lease => return Some((Ok(record), notices)),
            Notice::Event(
                _,
                ContainerEvent::Died { lease: of, .. } | ContainerEvent::Removed { lease: of },
            ) if of == lease => return None,
            Notice::Event(..) | Notice::Written(..) | Notice::Down | Notice::Up => {}
        }
    }
}
