//! One GPU and the process that asks about it.
//!
//! ```text
//!            answers                     hangs, crashes, errs
//!   start ─────────▶ Ready ────────────────────────────────▶ Unknown ─┐
//!                      ▲  │ lost, or not there                 │ ▲     │ after a pause that
//!                      │  └──────────▶ Gone ◀──────────────────┘ └─────┘ doubles each time
//!                      └───────────────┴── answers again
//! ```
//!
//! It never waits for another GPU, and no other waits for it.

use super::process::{CallError, Launch, Process, wrong_answer};
use super::{DEADLINE, MIG_DEADLINE, Timing, reset};
use crate::clock;
use host_nvml::event::GpuEvent;
use host_nvml::facts::{Description, Identity};
use host_nvml::fault::Fault;
use host_nvml::library::Which;
use host_nvml::news::{GpuNews, GpuState};
use host_nvml::sample::GpuSample;
use host_nvml::wire::{Answer, Ask, Frame};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// Orders that may wait for one GPU.
pub(super) const ORDERS: usize = 16;
/// A process that was told to die is given so long before a reset, which it would stand in the way of.
const DEATH: Duration = Duration::from_secs(1);

/// What can be done with a GPU.
#[derive(Debug)]
pub(super) enum Order {
    /// Ask the library.
    Ask(Ask, oneshot::Sender<Result<Answer, CallError>>),
    /// Reset it with this program.
    Reset(PathBuf, oneshot::Sender<Result<(), CallError>>),
    /// See whether it is still there: begin with a new process.
    Verify,
}

/// What the others know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnitSeen {
    pub(super) identity: Identity,
    /// As it was last described.
    pub(super) description: Option<Box<Description>>,
    pub(super) state: GpuState,
}

pub(super) struct Unit {
    launch: Launch,
    timing: Timing,
    seen: UnitSeen,
    process: Option<Process>,
    /// When it is asked next, or when the next process is started.
    next: Instant,
    /// Starts in a row that failed.
    failed: u32,
    news: mpsc::Sender<GpuNews>,
    tell: mpsc::Sender<UnitSeen>,
}

impl Unit {
    /// A GPU that was found, with the process that found it.
    pub(super) fn new(
        launch: Launch,
        timing: Timing,
        identity: Identity,
        news: mpsc::Sender<GpuNews>,
        tell: mpsc::Sender<UnitSeen>,
    ) -> Self {
        let state = GpuState::Unknown {
            reason: "not asked yet".to_owned(),
        };
        Self {
            launch,
            timing,
            seen: UnitSeen {
                identity,
                description: None,
                state,
            },
            process: None,
            next: Instant::now(),
            failed: 0,
            news,
            tell,
        }
    }

    /// Until nobody can order anything any more.
    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        loop {
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(order) => self.obey(order).await,
                    None => return,
                },
                frame = hear(&mut self.process) => self.heard(frame).await,
                () = sleep_until(self.next) => self.due().await,
            }
        }
    }

    async fn due(&mut self) {
        if self.process.is_some() {
            self.sample().await;
        } else {
            self.revive().await;
        }
    }

    /// Starts a process and sees whether the GPU answers.
    async fn revive(&mut self) {
        match self.begin().await {
            Ok(description) => {
                self.failed = 0;
                self.seen.description = Some(Box::new(description));
                self.become_state(GpuState::Ready).await;
                self.sample().await;
            }
            Err(error) => self.fail(error).await,
        }
    }

    async fn begin(&mut self) -> Result<Description, CallError> {
        let mut process = Process::start(&self.launch)?;
        // By its place on the bus: to find one by its UUID the library wakes others, and hangs with them.
        let which = Which::Pci(self.seen.identity.pci.clone());
        let Answer::Opened(identity) = process.call(Ask::Open(which), DEADLINE).await? else {
            return Err(wrong_answer());
        };
        if identity.uuid != self.seen.identity.uuid {
            // Another card in its slot; the next count finds that one.
            return Err(CallError::Fault(Fault::NotFound));
        }
        let Answer::Description(description) = process.call(Ask::Describe, DEADLINE).await? else {
            return Err(wrong_answer());
        };
        match process.call(Ask::Watch, DEADLINE).await {
            Ok(_) => {}
            Err(CallError::Fault(fault)) if fault != Fault::Lost => {
                tracing::warn!(
                    gpu = %self.seen.identity.uuid.as_str(), %fault,
                    "the driver tells no events of this GPU; its counters are read instead"
                );
            }
            Err(error) => return Err(error),
        }
        self.process = Some(process);
        Ok(*description)
    }

    async fn sample(&mut self) {
        self.next = Instant::now() + self.timing.sample;
        let Some(process) = &mut self.process else {
            return;
        };
        let reading = match process.call(Ask::Sample, DEADLINE).await {
            Ok(Answer::Reading(reading)) => *reading,
            Ok(_) => return self.fail(wrong_answer()).await,
            Err(error) => return self.fail(error).await,
        };
        // A listener that is slow gets the next one.
        let _ = self.news.try_send(GpuNews::Sample(GpuSample {
            gpu: self.seen.identity.uuid.clone(),
            at: clock::wall(),
            reading,
        }));
    }

    async fn heard(&mut self, frame: Option<Frame>) {
        let gpu = self.seen.identity.uuid.clone();
        match frame {
            Some(Frame::Event {
                kind,
                gpu_instance,
                compute_instance,
            }) => {
                let event = GpuEvent {
                    gpu,
                    kind,
                    gpu_instance,
                    compute_instance,
                    at: clock::wall(),
                };
                self.say(GpuNews::Event(event)).await;
            }
            Some(Frame::EventsBroke { fault }) => {
                tracing::error!(
                    gpu = %gpu.as_str(), %fault,
                    "the wait for events of this GPU broke: a new one begins, and its counters are read now"
                );
                let at = clock::wall();
                self.say(GpuNews::EventsBroke { gpu, at }).await;
                self.sample().await;
            }
            // To a question that nobody waits for any more.
            Some(Frame::Answer { .. }) => {}
            None => {
                let ended = CallError::Ended("it said no more".to_owned());
                self.fail(ended).await;
            }
        }
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Ask(ask, reply) => {
                let answer = self.ask(ask).await;
                // Whoever asked may have gone.
                let _ = reply.send(answer);
            }
            Order::Reset(program, reply) => {
                let done = self.reset(program).await;
                let _ = reply.send(done);
            }
            Order::Verify => {
                self.process = None;
                self.next = Instant::now();
            }
        }
    }

    async fn ask(&mut self, ask: Ask) -> Result<Answer, CallError> {
        let Some(process) = &mut self.process else {
            let reason = match &self.seen.state {
                GpuState::Ready => "it is being asked whether it is still there".to_owned(),
                GpuState::Unknown { reason } => reason.clone(),
                GpuState::Gone => "it is gone".to_owned(),
            };
            return Err(CallError::NotAsked(reason));
        };
        let changes_mode = matches!(ask, Ask::SetMigMode { .. });
        let deadline = match ask {
            Ask::SetMigMode { .. } | Ask::CreateInstance { .. } | Ask::DestroyInstance { .. } => {
                MIG_DEADLINE
            }
            Ask::Count
            | Ask::Open(_)
            | Ask::Describe
            | Ask::Sample
            | Ask::Watch
            | Ask::MigMode
            | Ask::Profiles
            | Ask::Instances
            | Ask::ResetFacts => DEADLINE,
        };
        let answer = process.call(ask, deadline).await;
        match &answer {
            Ok(_) if changes_mode => {
                // Handles and device numbers may be others now.
                self.process = None;
                self.next = Instant::now();
            }
            Ok(_) => {}
            // What the library refuses says nothing against the GPU, unless it says that it is lost.
            Err(CallError::Fault(fault)) if *fault != Fault::Lost => {}
            Err(error) => self.fail(error.clone()).await,
        }
        answer
    }

    async fn reset(&mut self, program: PathBuf) -> Result<(), CallError> {
        let Answer::ResetFacts(facts) = self.ask(Ask::ResetFacts).await? else {
            return Err(wrong_answer());
        };
        reset::allowed(&facts)?;
        // Our own process has the device open, and would be in the way.
        if let Some(process) = self.process.take() {
            process.kill(DEATH).await;
        }
        let persistence = facts.persistence.unwrap_or(false);
        let done = reset::run(&program, &self.seen.identity.pci, persistence).await;
        self.next = Instant::now();
        done
    }

    /// The process is of no use any more. The next one is started after a pause.
    async fn fail(&mut self, error: CallError) {
        self.process = None;
        let exponent = self.failed.min(16);
        let pause = self.timing.pause.saturating_mul(1 << exponent);
        self.next = Instant::now() + pause.min(self.timing.pause_max);
        self.failed = self.failed.saturating_add(1);
        let state = match error {
            CallError::Fault(Fault::Lost | Fault::NotFound) => GpuState::Gone,
            CallError::Fault(_)
            | CallError::Hangs(_)
            | CallError::Ended(_)
            | CallError::NotAsked(_) => GpuState::Unknown {
                reason: error.to_string(),
            },
        };
        self.become_state(state).await;
    }

    async fn become_state(&mut self, state: GpuState) {
        let changed = self.seen.state != state;
        self.seen.state = state.clone();
        // Also when only the description is new.
        let _ = self.tell.send(self.seen.clone()).await;
        if !changed {
            return;
        }
        let gpu = self.seen.identity.uuid.clone();
        match &state {
            GpuState::Ready => tracing::info!(gpu = %gpu.as_str(), "the GPU answers"),
            GpuState::Unknown { reason } => {
                tracing::warn!(gpu = %gpu.as_str(), %reason, "the GPU does not answer; it is asked again later");
            }
            GpuState::Gone => {
                tracing::error!(gpu = %gpu.as_str(), "the GPU is gone: look at dmesg; it may take a reboot");
            }
        }
        let at = clock::wall();
        self.say(GpuNews::State { gpu, state, at }).await;
    }

    /// Waits for the listener: what happened is not dropped. Without a listener nothing is kept.
    async fn say(&self, news: GpuNews) {
        let _ = self.news.send(news).await;
    }
}

/// What the process says unasked; waits for ever where there is none.
async fn hear(process: &mut Option<Process>) -> Option<Frame> {
    match process {
        Some(process) => process.hear().await,
        None => std::future::pending().await,
    }
}
