//! An engine that is not there: the same trait, in memory, for tests of what uses it.
//!
//! It keeps containers as an engine does, across any number of agents: a test drops an agent at any step,
//! starts another over the same [`SimRuntime`], and sees what that adopts. Each step can be told to be slow,
//! to fail, or to stop for ever before or after it took effect ([`Behaviour`]). Its programs hear SIGTERM and go
//! on: one that ends for it is ended by the test.

mod engine;
mod exec;
mod hearing;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use protocol::ids::{HostId, LeaseId};
use protocol::job::PinnedImage;
use protocol::lease::{Problem, ProblemKind, Stage};
use protocol::operator::rfc3339;
use protocol::tunnel::WindowSize;
use protocol::units::{Bytes, Seconds, Timestamp};
use tokio::sync::mpsc;

use super::exec::{ExecError, ExecHandle, ExecSession, ExecSpec, ExecState, Signal};
use super::gpus::way::Injection;
use super::logs::{self, LogQuery, LogRecord, LogRecords, LogStream};
use super::sandbox::{check_size, container_body, problem};
use super::{
    Container, ContainerEvent, ContainerId, ContainerSpec, EngineFacts, EventWatch, Exit,
    ImageConfig, PullProgress, PulledImage, RunState, Runtime, RuntimeError, StartedAt, Traffic,
};
use engine::{Engine, facts};

/// Size of every image.
pub const IMAGE_BYTES: Bytes = Bytes(5_000_000);

/// What every container has written.
const WRITTEN_BYTES: Bytes = Bytes(4096);

/// What an agent asks of an engine, as far as a test may bend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// [`Runtime::containers`].
    List,
    /// [`Runtime::pull`].
    Pull,
    /// [`Runtime::create`].
    Create,
    /// [`Runtime::start`].
    Start,
    /// [`Runtime::terminate`].
    Terminate,
    /// [`Runtime::stop`].
    Stop,
    /// [`Runtime::remove`].
    Remove,
    /// [`Runtime::save_logs`].
    SaveLogs,
}

/// What happens the next time that a step is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behaviour {
    /// It takes so much longer.
    Delay(Duration),
    /// It fails with this kind of problem, and nothing happened.
    Fail(ProblemKind),
    /// It never answers, and nothing happened: where a test kills the agent.
    HangBefore,
    /// It never answers, and it did happen: where a test kills the agent.
    HangAfter,
}

/// One host's view of an engine in memory. Clones share the engine.
#[derive(Debug, Clone)]
pub struct SimRuntime {
    engine: Arc<Engine>,
    host: HostId,
    now: fn() -> Timestamp,
}

impl SimRuntime {
    /// A new engine, used by `host`, whose clock is `now`.
    #[must_use]
    pub fn new(host: HostId, now: fn() -> Timestamp) -> Self {
        Self {
            engine: Arc::new(Engine::default()),
            host,
            now,
        }
    }

    /// The same engine as another host's agent sees it.
    #[must_use]
    pub fn of_host(&self, host: HostId) -> Self {
        Self {
            host,
            ..self.clone()
        }
    }

    /// What happens the next time that `step` is asked for; several are used up in order.
    pub fn script(&self, step: Step, behaviour: Behaviour) {
        self.engine
            .with(|state| state.script.entry(step).or_default().push_back(behaviour));
    }

    /// The steps that were asked for, in order.
    #[must_use]
    pub fn steps(&self) -> Vec<(Step, Option<LeaseId>)> {
        self.engine.with(|state| state.steps.clone())
    }

    /// How often a container was started for `lease`.
    #[must_use]
    pub fn starts(&self, lease: LeaseId) -> usize {
        self.engine
            .with(|state| state.starts.get(&lease).copied().unwrap_or(0))
    }

    /// The main process of the container ends by itself.
    pub fn end(&self, lease: LeaseId, code: i32, out_of_memory: bool) {
        let finished = (self.now)();
        self.engine.end(lease, code, out_of_memory, finished);
    }

    /// So much crosses the network of a container that runs. It counts from zero with each start.
    pub fn cross(&self, lease: LeaseId, uploaded: Bytes, downloaded: Bytes) {
        self.engine.cross(lease, uploaded, downloaded);
    }

    /// Somebody else removes the container.
    pub fn vanish(&self, lease: LeaseId) {
        self.engine.remove(lease);
    }

    /// The container writes a line.
    pub fn write(&self, lease: LeaseId, stream: LogStream, line: &str) {
        let at = rfc3339((self.now)());
        let record = LogRecord {
            at,
            stream,
            text: format!("{line}\n").into_bytes(),
        };
        self.engine.write(lease, record);
    }

    /// The engine stops answering. Its containers run on.
    pub fn go_down(&self) {
        self.engine.set_down(true);
    }

    /// It answers again.
    pub fn come_up(&self) {
        self.engine.set_down(false);
    }

    /// Takes the step's next behaviour and does what of it comes before the step; whether to hang after it.
    async fn enter(&self, step: Step, lease: Option<LeaseId>) -> Result<bool, ProblemKind> {
        let behaviour = self.engine.with(|state| {
            state.steps.push((step, lease));
            state
                .script
                .get_mut(&step)
                .and_then(std::collections::VecDeque::pop_front)
        });
        match behaviour {
            None => {}
            Some(Behaviour::Delay(delay)) => tokio::time::sleep(delay).await,
            Some(Behaviour::Fail(kind)) => return Err(kind),
            Some(Behaviour::HangBefore) => std::future::pending().await,
            Some(Behaviour::HangAfter) => return Ok(true),
        }
        if self.engine.is_down() {
            Err(ProblemKind::EngineFailed)
        } else {
            Ok(false)
        }
    }

    async fn enter_stage(&self, step: Step, stage: Stage, lease: LeaseId) -> Result<bool, Problem> {
        let failed = |kind| problem(stage, kind, "the simulated engine was told to fail");
        self.enter(step, Some(lease)).await.map_err(failed)
    }

    async fn enter_call(&self, step: Step, lease: Option<LeaseId>) -> Result<bool, RuntimeError> {
        self.enter(step, lease).await.map_err(|_| unreachable())
    }

    fn check_up(&self) -> Result<(), RuntimeError> {
        if self.engine.is_down() {
            Err(unreachable())
        } else {
            Ok(())
        }
    }
}

fn unreachable() -> RuntimeError {
    RuntimeError::Unreachable {
        socket: "simulation".to_owned(),
        reason: "it was told to be down".to_owned(),
    }
}

async fn hang_if(hang: bool) {
    if hang {
        std::future::pending::<()>().await;
    }
}

impl Runtime for SimRuntime {
    async fn facts(&self) -> Result<EngineFacts, RuntimeError> {
        self.check_up()?;
        Ok(facts())
    }

    async fn containers(&self) -> Result<Vec<Container>, RuntimeError> {
        let hang = self.enter_call(Step::List, None).await?;
        hang_if(hang).await;
        Ok(self.engine.containers(self.host))
    }

    async fn inspect(&self, lease: LeaseId) -> Result<Option<Container>, RuntimeError> {
        self.check_up()?;
        Ok(self
            .engine
            .containers(self.host)
            .into_iter()
            .find(|found| found.lease == lease))
    }

    async fn pull(
        &self,
        image: &PinnedImage,
        disk: Bytes,
        progress: mpsc::Sender<PullProgress>,
    ) -> Result<PulledImage, Problem> {
        let failed = |kind| {
            problem(
                Stage::Pulling,
                kind,
                "the simulated engine was told to fail",
            )
        };
        let hang = self.enter(Step::Pull, None).await.map_err(failed)?;
        check_size(IMAGE_BYTES, disk)?;
        let _full = progress.try_send(PullProgress {
            done: IMAGE_BYTES,
            total: IMAGE_BYTES,
        });
        hang_if(hang).await;
        let config = ImageConfig {
            command: vec!["/bin/demo".to_owned()],
            environment: self.engine.with(|state| state.image_says.clone()),
            ..ImageConfig::default()
        };
        Ok(PulledImage {
            id: image.digest(),
            size: IMAGE_BYTES,
            config,
        })
    }

    async fn create(
        &self,
        spec: &ContainerSpec,
        image: &PulledImage,
    ) -> Result<ContainerId, Problem> {
        let hang = self
            .enter_stage(Step::Create, Stage::Creating, spec.lease)
            .await?;
        container_body(spec, image, &facts(), self.host, &Injection::default())?;
        let id = self.engine.create(spec, self.host);
        hang_if(hang).await;
        Ok(id)
    }

    async fn start(&self, lease: LeaseId) -> Result<StartedAt, Problem> {
        let hang = self
            .enter_stage(Step::Start, Stage::Starting, lease)
            .await?;
        let missing = || {
            problem(
                Stage::Starting,
                ProblemKind::EngineFailed,
                "there is no such container",
            )
        };
        let since = self.engine.start(lease, (self.now)()).ok_or_else(missing)?;
        hang_if(hang).await;
        Ok(StartedAt(since))
    }

    async fn terminate(&self, lease: LeaseId) -> Result<(), RuntimeError> {
        let hang = self.enter_call(Step::Terminate, Some(lease)).await?;
        hang_if(hang).await;
        Ok(())
    }

    async fn stop(&self, lease: LeaseId, _grace: Seconds) -> Result<(), RuntimeError> {
        let hang = self.enter_call(Step::Stop, Some(lease)).await?;
        // 128 and SIGTERM: what a program that does not catch it ends with.
        self.engine.end(lease, 143, false, (self.now)());
        hang_if(hang).await;
        Ok(())
    }

    async fn remove(&self, lease: LeaseId) -> Result<(), RuntimeError> {
        let hang = self.enter_call(Step::Remove, Some(lease)).await?;
        self.engine.remove(lease);
        hang_if(hang).await;
        Ok(())
    }

    fn watch(&self) -> EventWatch {
        let runtime = self.clone();
        let notices = self.engine.subscribe();
        EventWatch::start(move |events| hearing::forward(runtime, notices, events))
    }

    async fn save_logs(&self, lease: LeaseId, path: &Path) -> Result<(), RuntimeError> {
        let hang = self.enter_call(Step::SaveLogs, Some(lease)).await?;
        if let Some(records) = self.engine.written(lease) {
            let records = futures::stream::iter(records.into_iter().map(Ok));
            logs::save(LogRecords::new(records), path).await?;
        }
        hang_if(hang).await;
        Ok(())
    }

    async fn disk_used(&self, lease: LeaseId) -> Result<Bytes, RuntimeError> {
        self.inspect(lease)
            .await?
            .map(|_| WRITTEN_BYTES)
            .ok_or(RuntimeError::NoContainer)
    }

    async fn disk_left(&self, lease: LeaseId) -> Result<Bytes, RuntimeError> {
        self.check_up()?;
        let disk = self.engine.disk(lease).ok_or(RuntimeError::NoContainer)?;
        let spent = IMAGE_BYTES.0 + WRITTEN_BYTES.0;
        Ok(Bytes(disk.0.saturating_sub(spent)))
    }

    async fn logs(&self, lease: LeaseId, query: LogQuery) -> Result<LogRecords, RuntimeError> {
        self.check_up()?;
        let notices = self.engine.subscribe();
        let written = self
            .engine
            .written(lease)
            .ok_or(RuntimeError::NoContainer)?;
        let skipped = query.tail.map_or(0, |lines| {
            written
                .len()
                .saturating_sub(usize::try_from(lines).unwrap_or(usize::MAX))
        });
        let since = query.since;
        let wanted = move |record: &LogRecord| record.is_since(since);
        let written: Vec<LogRecord> = written.into_iter().skip(skipped).filter(wanted).collect();
        let written = futures::stream::iter(written.into_iter().map(Ok));
        if !query.follow || !self.engine.runs(lease) {
            return Ok(LogRecords::new(written));
        }
        let later =
            futures::stream::unfold(notices, move |notices| hearing::next_record(notices, lease));
        Ok(LogRecords::new(written.chain(later)))
    }

    async fn exec(&self, lease: LeaseId, spec: &ExecSpec) -> Result<ExecSession, ExecError> {
        self.check_up()?;
        if !self.engine.runs(lease) {
            return Err(ExecError::NotRunning);
        }
        exec::start(&self.engine, spec)
    }

    async fn resize_exec(&self, exec: &ExecHandle, size: WindowSize) -> Result<(), RuntimeError> {
        self.engine
            .with(|state| state.sizes.insert(exec.id.clone(), size));
        Ok(())
    }

    async fn signal_exec(&self, exec: &ExecHandle, signal: Signal) -> Result<(), RuntimeError> {
        self.engine.signal(&exec.id, signal);
        Ok(())
    }

    async fn exec_state(&self, exec: &ExecHandle) -> Result<ExecState, RuntimeError> {
        Ok(self
            .engine
            .exec_code(&exec.id)
            .map_or(ExecState::Running, ExecState::Ended))
    }
}

#[cfg(test)]
mod tests;
