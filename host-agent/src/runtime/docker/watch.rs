//! What happens to this host's containers: the engine's events, taken up again after every gap, with the
//! full list after each; and the disks of those that run, measured now and then.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use bollard::errors::Error;
use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptionsBuilder;
use futures::{Stream, StreamExt};
use protocol::ids::LeaseId;
use protocol::units::{Bytes, Seconds, Timestamp};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::super::sandbox::{LABEL_DISK, LABEL_HOST, LABEL_LEASE, container_name};
use super::super::{Container, ContainerEvent, Exit, RunState, RuntimeError};
use super::{DockerRuntime, disk, lifecycle};

const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(5);
/// Measuring takes at most this part of the time: after a walk of a minute the next is ten minutes away.
const DISK_REST_FACTOR: u32 = 10;
/// A full disk is not a time for grace; a second lets a program end its last write.
const DISK_STOP_GRACE: Seconds = Seconds(1);
const SIGKILL_CODE: i32 = 128 + 9;

/// Watches until the reader of `events` is gone.
pub(super) async fn run(runtime: DockerRuntime, events: mpsc::Sender<ContainerEvent>) {
    let disks = watch_disks(runtime.clone(), events.clone());
    let _disks = AbortOnDropHandle::new(tokio::spawn(disks));
    loop {
        let reason = tokio::select! {
            reason = follow(&runtime, &events) => reason,
            () = events.closed() => return,
        };
        tracing::debug!(reason, "the engine's events broke off");
        if events
            .send(ContainerEvent::EngineLost { reason })
            .await
            .is_err()
        {
            return;
        }
        if !wait_for_engine(&runtime, &events).await {
            return;
        }
    }
}

/// Tries until the engine answers; false when nobody listens any more.
async fn wait_for_engine(runtime: &DockerRuntime, events: &mpsc::Sender<ContainerEvent>) -> bool {
    let delays = ExponentialBuilder::default()
        .with_min_delay(RETRY_FIRST)
        .with_max_delay(RETRY_LAST)
        .with_jitter()
        .without_max_times()
        .build();
    for delay in delays {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = events.closed() => return false,
        }
        if runtime.docker.ping().await.is_ok() {
            return true;
        }
    }
    true
}

/// Subscribes, lists, and passes events on until the stream breaks; why it did.
async fn follow(runtime: &DockerRuntime, events: &mpsc::Sender<ContainerEvent>) -> String {
    match try_follow(runtime, events).await {
        Ok(()) => "the engine ended the stream of events".to_owned(),
        Err(error) => error.to_string(),
    }
}

async fn try_follow(
    runtime: &DockerRuntime,
    events: &mpsc::Sender<ContainerEvent>,
) -> Result<(), RuntimeError> {
    // The engine repeats what happened since its own time now, so nothing falls between stream and list.
    let info = runtime
        .docker
        .info()
        .await
        .map_err(runtime.failed("say the time"))?;
    let mut stream = pin!(subscribe(runtime, info.system_time));
    let listed = lifecycle::list(runtime).await?;
    if events.send(ContainerEvent::Listed(listed)).await.is_err() {
        return Ok(());
    }
    let mut memory = OutOfMemory::default();
    while let Some(message) = stream.next().await {
        let message = message.map_err(runtime.failed("go on with its events"))?;
        if let Some(event) = memory.read(&message)
            && events.send(event).await.is_err()
        {
            return Ok(());
        }
    }
    Ok(())
}

fn subscribe(
    runtime: &DockerRuntime,
    since: Option<String>,
) -> impl Stream<Item = Result<EventMessage, Error>> {
    let label = format!("{LABEL_HOST}={}", runtime.host);
    let filters = HashMap::from([
        ("type".to_owned(), vec!["container".to_owned()]),
        ("label".to_owned(), vec![label]),
    ]);
    let mut options = EventsOptionsBuilder::default().filters(&filters);
    if let Some(since) = since.as_deref().and_then(engine_time) {
        options = options.since(&since);
    }
    runtime.docker.events(Some(options.build()))
}

/// The engine's text for a moment as it wants it back: seconds and nanoseconds.
fn engine_time(text: &str) -> Option<String> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(format!(
        "{}.{:09}",
        time.as_second(),
        time.subsec_nanosecond()
    ))
}

/// The engine says separately that the kernel killed for memory and that a container ended, and its own flag
/// is for the first process alone. A container that then ends by SIGKILL ended by it.
#[derive(Debug, Default)]
struct OutOfMemory {
    killed_in: BTreeSet<LeaseId>,
}

impl OutOfMemory {
    fn read(&mut self, message: &EventMessage) -> Option<ContainerEvent> {
        let labels = message.actor.as_ref()?.attributes.as_ref()?;
        let lease: LeaseId = labels.get(LABEL_LEASE)?.parse().ok()?;
        let nanoseconds = message
            .time_nano
            .and_then(|time| u64::try_from(time).ok())?;
        let at = Timestamp(nanoseconds / 1_000_000);
        match message.action.as_deref()? {
            "start" => {
                self.killed_in.remove(&lease);
                Some(ContainerEvent::Started { lease, at })
            }
            "oom" => {
                self.killed_in.insert(lease);
                None
            }
            "die" => {
                let code = labels
                    .get("exitCode")
                    .and_then(|code| code.parse().ok())
                    .unwrap_or(-1);
                let out_of_memory = self.killed_in.remove(&lease) && code == SIGKILL_CODE;
                let exit = Exit {
                    code,
                    out_of_memory,
                    started: Timestamp(0),
                    finished: at,
                };
                Some(ContainerEvent::Died { lease, exit })
            }
            "pause" => Some(ContainerEvent::Paused { lease }),
            "destroy" => Some(ContainerEvent::Removed { lease }),
            _ => None,
        }
    }
}

/// Measures the disks of running containers for ever.
async fn watch_disks(runtime: DockerRuntime, events: mpsc::Sender<ContainerEvent>) {
    if runtime.facts.disk_quota {
        return;
    }
    let mut limits = BTreeMap::new();
    let mut rest = runtime.disk_every;
    loop {
        tokio::time::sleep(rest).await;
        let began = tokio::time::Instant::now();
        if let Err(error) = measure_all(&runtime, &mut limits, &events).await {
            tracing::debug!(%error, "the containers' disks could not be measured");
        }
        rest = runtime.disk_every.max(began.elapsed() * DISK_REST_FACTOR);
    }
}

async fn measure_all(
    runtime: &DockerRuntime,
    limits: &mut BTreeMap<LeaseId, Bytes>,
    events: &mpsc::Sender<ContainerEvent>,
) -> Result<(), RuntimeError> {
    let containers = lifecycle::list(runtime).await?;
    limits.retain(|lease, _| containers.iter().any(|container| container.lease == *lease));
    let runs = |container: &&Container| matches!(container.state, RunState::Running { .. });
    for container in containers.iter().filter(runs) {
        let lease = container.lease;
        let Some(allowed) = limit_of(runtime, limits, lease).await? else {
            continue;
        };
        let used = disk::used_up_to(runtime, lease, allowed).await?;
        if used > allowed {
            let short = lease.short();
            tracing::debug!(lease = %short, %used, %allowed, "a container wrote more than its disk: stopping it");
            let _closed = events
                .send(ContainerEvent::DiskExceeded {
                    lease,
                    used,
                    allowed,
                })
                .await;
            lifecycle::stop(runtime, lease, DISK_STOP_GRACE).await?;
        }
    }
    Ok(())
}

async fn limit_of(
    runtime: &DockerRuntime,
    limits: &mut BTreeMap<LeaseId, Bytes>,
    lease: LeaseId,
) -> Result<Option<Bytes>, RuntimeError> {
    if let Some(limit) = limits.get(&lease) {
        return Ok(Some(*limit));
    }
    let limit = limit(runtime, lease).await?;
    if let Some(limit) = limit {
        limits.insert(lease, limit);
    }
    Ok(limit)
}

/// What the container may write: on its label, so it holds for containers of an earlier agent too.
pub(super) async fn limit(
    runtime: &DockerRuntime,
    lease: LeaseId,
) -> Result<Option<Bytes>, RuntimeError> {
    let found = lifecycle::look(runtime, &container_name(lease)).await?;
    let labels = found
        .and_then(|found| found.config)
        .and_then(|config| config.labels);
    Ok(labels
        .and_then(|labels| labels.get(LABEL_DISK)?.parse().ok())
        .map(Bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::EventActor;

    fn message(action: &str, code: Option<&str>) -> EventMessage {
        let lease = LeaseId::from_bytes([1; 16]).to_string();
        let mut attributes = HashMap::from([(LABEL_LEASE.to_owned(), lease)]);
        if let Some(code) = code {
            attributes.insert("exitCode".to_owned(), code.to_owned());
        }
        EventMessage {
            action: Some(action.to_owned()),
            actor: Some(EventActor {
                id: None,
                attributes: Some(attributes),
            }),
            time_nano: Some(5_000_000),
            ..EventMessage::default()
        }
    }

    fn died(memory: &mut OutOfMemory, code: &str) -> (i32, bool) {
        match memory.read(&message("die", Some(code))) {
            Some(ContainerEvent::Died { exit, .. }) => (exit.code, exit.out_of_memory),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_kill_for_memory_and_an_end_by_it_belong_together() {
        let mut memory = OutOfMemory::default();
        assert_eq!(memory.read(&message("oom", None)), None);
        assert_eq!(died(&mut memory, "137"), (137, true));
        assert_eq!(died(&mut memory, "137"), (137, false), "once");
        memory.read(&message("oom", None));
        assert_eq!(
            died(&mut memory, "0"),
            (0, false),
            "a child was killed; the program went on"
        );
        memory.read(&message("oom", None));
        memory.read(&message("start", None));
        assert_eq!(died(&mut memory, "137"), (137, false), "a new run");
    }

    #[test]
    fn events_carry_the_engines_time() {
        let lease = LeaseId::from_bytes([1; 16]);
        let event = OutOfMemory::default().read(&message("start", None));
        assert_eq!(
            event,
            Some(ContainerEvent::Started {
                lease,
                at: Timestamp(5)
            })
        );
        assert_eq!(
            OutOfMemory::default().read(&message("exec_create: sh", None)),
            None
        );
    }

    #[test]
    fn the_engine_gets_its_own_time_back() {
        let text = "1970-01-01T01:00:05.000000007+01:00";
        assert_eq!(engine_time(text), Some("5.000000007".to_owned()));
    }
}
