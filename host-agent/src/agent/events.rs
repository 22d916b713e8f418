//! The loop: one closed enum of everything that can happen, and what is due after each of it. Its own work's
//! ends come first, then the engine, then its owner, then brokers and renters. Nothing here waits for the
//! world; only the journal is waited for.

use super::AgentError;
use super::benches::Benched;
use super::desk::Desk;
use super::disks::Left;
use super::health::next_heard;
use super::jobs::Ended;
use super::saying::Answer;
use super::sight::Checked;
use super::slicing::Cut;
use crate::admin::serve::Asked;
use crate::core::bench::Outcome;
use crate::core::meter::Moment;
use crate::core::slices::Divisibles;
use crate::hardware::Hardware;
use crate::runtime::{Container, ContainerEvent, EventWatch, Runtime};
use gpu_health::input::Input;
use protocol::ids::{BrokerId, LeaseId};
use protocol::lease::Progress;
use protocol::net::{NodeEvent, NodeEvents};
use protocol::units::Millis;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// What is due by time alone is looked for this often.
const TICK: Duration = Duration::from_millis(200);

/// The end of a task that the loop started, other than a job.
#[derive(Debug)]
pub(super) enum Done {
    /// All containers, as of the sight with this number.
    Sight {
        number: u64,
        begun: Moment,
        found: Result<Vec<Container>, String>,
    },
    /// How much more each lease may write, as of a look that began then.
    Disks { began: Millis, left: Left },
    /// Engine and machine.
    Checked(Box<Checked>),
    /// What benchmarks gave, as their file says.
    Results(Result<Vec<Outcome>, String>),
    /// Benchmarks that were run again.
    Benched(Benched),
    /// A broker's answer.
    Sent(Box<Sent>),
    /// How GPUs are divided, as of a look that began at that turn; nothing when the driver did not say.
    Divisibles(u64, Option<Divisibles>),
    /// Something about slices was done, or refused.
    Cut(Box<Cut>),
    /// A scrub or a reset of a GPU ended.
    Care(Box<Input>),
}

/// A message to a broker, and its answer.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) to: BrokerId,
    pub(super) what: What,
    pub(super) answer: Answer,
}

/// What a message was about.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Offers,
    Grant(LeaseId),
    Refusal(LeaseId),
    Report(LeaseId),
    Unknown(LeaseId),
    Progress(LeaseId),
}

/// Everything that can happen.
enum Event {
    Stop,
    Job(Ended),
    Done(Done),
    /// A task or the engine's watch broke off, which is a fault of this program.
    Broke(String),
    Step(Progress),
    Engine(ContainerEvent),
    Gpu(Input),
    Owner(Asked),
    Node(NodeEvent),
    VisitOver,
    Tick,
}

/// Whom the loop hears.
pub(super) struct Ears {
    pub(super) inbound: NodeEvents,
    pub(super) questions: mpsc::Receiver<Asked>,
    /// What is heard of GPUs.
    pub(super) heard: Option<mpsc::Receiver<Input>>,
}

/// Where events come from, beside the desk's own tasks.
struct Sources {
    ears: Ears,
    engine: EventWatch,
    tick: Interval,
    stop: CancellationToken,
}

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Turns until it is told to stop, or the journal fails.
    pub(super) async fn run(
        mut self,
        ears: Ears,
        stop: CancellationToken,
        beat: watch::Sender<u64>,
    ) -> Result<(), AgentError> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let engine = self.runtime.watch();
        let mut sources = Sources {
            ears,
            engine,
            tick,
            stop,
        };
        loop {
            let event = self.next(&mut sources).await;
            if matches!(event, Event::Stop) {
                break;
            }
            self.handle(event).await?;
            self.turn().await?;
            beat.send_modify(|beats| *beats = beats.wrapping_add(1));
        }
        self.leave().await
    }

    /// Every arm waits for something that can be given up without loss.
    async fn next(&mut self, sources: &mut Sources) -> Event {
        tokio::select! {
            biased;
            () = sources.stop.cancelled() => Event::Stop,
            Some(ended) = self.jobs.set.join_next() => match ended {
                Ok(ended) => Event::Job(ended),
                Err(error) => Event::Broke(error.to_string()),
            },
            Some(done) = self.tasks.join_next() => match done {
                Ok(done) => Event::Done(done),
                Err(error) => Event::Broke(error.to_string()),
            },
            Some(step) = self.jobs.progress.recv() => Event::Step(step),
            event = sources.engine.next() => match event {
                Some(event) => Event::Engine(event),
                None => Event::Broke("the watch of the engine ended".to_owned()),
            },
            input = next_heard(&mut sources.ears.heard) => Event::Gpu(input),
            _ = sources.tick.tick() => Event::Tick,
            Some(asked) = sources.ears.questions.recv() => Event::Owner(asked),
            event = sources.ears.inbound.recv() => match event {
                Some(event) => Event::Node(event),
                None => Event::Broke("the network node ended".to_owned()),
            },
            Some(_) = self.visits.join_next() => Event::VisitOver,
        }
    }

    async fn handle(&mut self, event: Event) -> Result<(), AgentError> {
        match event {
            Event::Job(ended) => self.job_ended(ended).await?,
            Event::Done(Done::Sight {
                number,
                begun,
                found,
            }) => self.sighted(number, begun, found).await?,
            Event::Done(Done::Checked(found)) => self.checked(*found),
            Event::Done(Done::Sent(sent)) => self.answered(*sent),
            Event::Done(Done::Disks { began, left }) => self.disks_seen(began, left),
            Event::Done(Done::Divisibles(turn, found)) => self.slices_seen(turn, found),
            Event::Done(Done::Cut(cut)) => self.cut_ended(*cut).await?,
            Event::Done(Done::Results(read)) => self.results_read(read),
            Event::Done(Done::Benched(ran)) => self.benched(&ran),
            Event::Broke(reason) => return Err(AgentError::Broke { reason }),
            Event::Step(progress) => self.stepped(progress),
            Event::Engine(event) => self.engine_said(event),
            Event::Gpu(input) => self.heard(input).await?,
            Event::Done(Done::Care(input)) => self.heard(*input).await?,
            Event::Owner((request, reply)) => self.owner_asked(request, reply).await?,
            Event::Node(NodeEvent::Request {
                peer,
                bytes,
                responder,
            }) => {
                self.asked(peer, &bytes, responder).await?;
            }
            Event::Node(NodeEvent::Tunnel {
                peer,
                relayed,
                tunnel,
            }) => {
                tracing::debug!(%peer, relayed, "a tunnel is open");
                let access = Arc::clone(&self.access);
                self.visits
                    .spawn(async move { access.serve_tunnel(tunnel, peer).await });
            }
            // A stop ends the loop before it is handled.
            Event::Stop | Event::VisitOver | Event::Tick => {}
        }
        Ok(())
    }

    /// What follows from whatever happened.
    async fn turn(&mut self) -> Result<(), AgentError> {
        self.tally();
        self.look_at_links();
        self.care().await?;
        self.go_on().await?;
        self.look_if_due();
        self.look_at_disks_if_due();
        self.look_at_benches();
        self.align_slices().await?;
        self.align_jobs();
        self.talk_if_due().await?;
        self.announce_if_due();
        self.prune().await
    }

    /// Takes leave: no more goals, offers withdrawn, stops and removals finished if they can be in time.
    async fn leave(mut self) -> Result<(), AgentError> {
        let deadline = self.config.periods.drain;
        self.draining = true;
        self.jobs.cancel_preparations();
        self.disks.give_up();
        self.benches.stop();
        self.announce_soon();
        self.announce_if_due();
        let result = match tokio::time::timeout(deadline, self.drain()).await {
            Ok(result) => result,
            Err(_) => {
                tracing::warn!("some work did not end in time; the next start goes on with it");
                Ok(())
            }
        };
        self.jobs.cancel_all();
        self.visits.shutdown().await;
        self.tasks.shutdown().await;
        self.jobs.set.shutdown().await;
        self.brokers.clear();
        self.node.shutdown(Duration::from_secs(2)).await;
        self.journal.close().await;
        result
    }

    /// Waits for its own work alone.
    async fn drain(&mut self) -> Result<(), AgentError> {
        loop {
            tokio::select! {
                Some(ended) = self.jobs.set.join_next() => if let Ok(ended) = ended {
                    self.job_ended(ended).await?;
                },
                Some(done) = self.tasks.join_next() => match done {
                    Ok(Done::Sight { number, begun, found }) => self.sighted(number, begun, found).await?,
                    Ok(Done::Sent(sent)) => self.answered(*sent),
                    Ok(Done::Cut(cut)) => self.cut_ended(*cut).await?,
                    Ok(
                        Done::Checked(_)
                        | Done::Disks { .. }
                        | Done::Divisibles(..)
                        | Done::Results(_)
                        | Done::Benched(_)
                        | Done::Care(_),
                    )
                    | Err(_) => {}
                },
                else => return Ok(()),
            }
            self.talk_if_due().await?;
            // One announcement a broker is under way at a time: the last one may have had to wait.
            self.announce_if_due();
        }
    }
}
