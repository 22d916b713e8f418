//! Counts the GPUs, gives each a task of its own, and passes on what they say and are told.

use super::process::{CallError, Launch, Process, wrong_answer};
use super::supervisor::Found;
use super::unit::{ORDERS, Order, Unit, UnitSeen};
use super::{DEADLINE, Timing, known};
use host_nvml::facts::Identity;
use host_nvml::fault::Fault;
use host_nvml::library::Which;
use host_nvml::news::{GpuNews, GpuState};
use host_nvml::wire::{Answer, Ask};
use protocol::bounded::Text;
use protocol::machine::GPUS_MAX;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// What was looked for and found.
#[derive(Debug)]
enum Look {
    /// How many GPUs there are.
    Count(Result<u32, CallError>),
    /// Which one of them is.
    Identity(Result<Identity, CallError>),
}

/// A GPU that was found.
#[derive(Debug)]
struct Known {
    orders: mpsc::Sender<Order>,
    /// What it told last; nothing before its first answer or miss.
    seen: Option<UnitSeen>,
}

/// All GPUs, as one task sees them.
pub(super) struct Overseer {
    launch: Launch,
    timing: Timing,
    news: mpsc::Sender<GpuNews>,
    tell: mpsc::Sender<UnitSeen>,
    told: mpsc::Receiver<UnitSeen>,
    say: watch::Sender<Option<Found>>,
    /// By UUID.
    units: BTreeMap<Text<64>, Known>,
    looks: JoinSet<Look>,
    tasks: JoinSet<()>,
    /// Why there are none, as the last look found.
    whole: Option<CallError>,
    /// How many there are, as the last look found.
    count: u32,
    /// How many of them said which they are, in the look that is under way.
    identified: u32,
    /// How many did not, in the last whole look.
    unreadable: u32,
    next: Instant,
    failed: u32,
}

impl Overseer {
    /// One that has not looked yet. GPUs speak to `news`, what is known goes to `say`.
    pub(super) fn new(
        launch: Launch,
        timing: Timing,
        news: mpsc::Sender<GpuNews>,
        say: watch::Sender<Option<Found>>,
    ) -> Self {
        let (tell, told) = mpsc::channel(GPUS_MAX);
        Self {
            launch,
            timing,
            news,
            tell,
            told,
            say,
            units: BTreeMap::new(),
            looks: JoinSet::new(),
            tasks: JoinSet::new(),
            whole: None,
            count: 0,
            identified: 0,
            unreadable: 0,
            next: Instant::now(),
            failed: 0,
        }
    }

    /// Until nobody can order anything any more.
    pub(super) async fn run(mut self, mut ordered: mpsc::Receiver<(Text<64>, Order)>) {
        loop {
            tokio::select! {
                order = ordered.recv() => match order {
                    Some((gpu, order)) => self.route(&gpu, order),
                    None => return,
                },
                Some(seen) = self.told.recv() => {
                    if let Some(known) = self.units.get_mut(&seen.identity.uuid) {
                        known.seen = Some(seen);
                    }
                    self.publish();
                }
                Some(look) = self.looks.join_next() => match look {
                    Ok(Look::Count(count)) => self.counted(count),
                    Ok(Look::Identity(identity)) => self.identified(identity),
                    Err(_) => self.publish(),
                },
                Some(ended) = self.tasks.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "the task of a GPU broke");
                    }
                }
                () = sleep_until(self.next), if self.looks.is_empty() => {
                    // At least; what it finds says when the next is.
                    self.next = Instant::now() + self.timing.count;
                    self.looks.spawn(count(self.launch.clone()));
                }
            }
        }
    }

    /// To the GPU's own task; dropped with its reply where there is none, which is the answer.
    fn route(&self, gpu: &Text<64>, order: Order) {
        if let Some(known) = self.units.get(gpu) {
            let _ = known.orders.try_send(order);
        }
    }

    fn counted(&mut self, count: Result<u32, CallError>) {
        let count = match count {
            Ok(count) => count,
            Err(error) => {
                self.next = Instant::now() + self.pause_after(&error);
                if self.whole.as_ref() != Some(&error) {
                    tracing::info!(%error, "no NVIDIA GPU can be asked now; it is tried again");
                }
                self.whole = Some(error);
                self.publish();
                return;
            }
        };
        if self.whole.take().is_some() {
            tracing::info!(count, "the NVIDIA driver answers");
        }
        let before = std::mem::replace(&mut self.count, count);
        self.failed = 0;
        if usize::try_from(count).unwrap_or(usize::MAX) > self.units.len() {
            // Each in a process of its own, all at once, so that one that hangs holds up no other.
            self.identified = 0;
            for index in (0..count).take(GPUS_MAX) {
                self.looks.spawn(identify(self.launch.clone(), index));
            }
        } else {
            self.identified = count;
            if count < before {
                self.verify();
            }
        }
        self.publish();
    }

    fn identified(&mut self, identity: Result<Identity, CallError>) {
        match identity {
            Ok(identity) => {
                self.identified = self.identified.saturating_add(1);
                self.add(identity);
            }
            Err(error) => tracing::warn!(%error, "a GPU does not say which it is"),
        }
        self.publish();
    }

    /// One went without a word: each sees for itself whether it is the one.
    fn verify(&self) {
        for known in self.units.values() {
            // One with that much to do is asked anyway.
            let _ = known.orders.try_send(Order::Verify);
        }
    }

    fn add(&mut self, identity: Identity) {
        if self.units.contains_key(&identity.uuid) {
            return;
        }
        if self.units.len() >= GPUS_MAX && !self.forget_one() {
            return;
        }
        let (orders, ordered) = mpsc::channel(ORDERS);
        let uuid = identity.uuid.clone();
        let unit = Unit::new(
            self.launch.clone(),
            self.timing,
            identity,
            self.news.clone(),
            self.tell.clone(),
        );
        self.tasks.spawn(unit.run(ordered));
        self.units.insert(uuid, Known { orders, seen: None });
    }

    /// Makes room for a GPU by forgetting one that is gone; says whether there was one.
    fn forget_one(&mut self) -> bool {
        let gone = self
            .units
            .iter()
            .find(|(_, known)| matches!(&known.seen, Some(seen) if seen.state == GpuState::Gone))
            .map(|(uuid, _)| uuid.clone());
        // Its task ends when nobody can order anything of it any more.
        gone.is_some_and(|gone| self.units.remove(&gone).is_some())
    }

    /// A driver that is not there yet comes within minutes of the boot; software that is not installed comes
    /// with a person.
    fn pause_after(&mut self, error: &CallError) -> Duration {
        if matches!(error, CallError::Fault(Fault::LibraryMissing { .. })) {
            return self.timing.pause_max;
        }
        let pause = self.timing.pause.saturating_mul(1 << self.failed.min(16));
        self.failed = self.failed.saturating_add(1);
        pause.min(self.timing.pause_max)
    }

    /// Says what is known: the first time, once every GPU that was found has answered or missed its deadline.
    fn publish(&mut self) {
        if self.looks.is_empty() {
            self.unreadable = self.count.saturating_sub(self.identified);
        }
        let waits = self.units.values().any(|known| known.seen.is_none());
        let is_first = self.say.borrow().is_none();
        if is_first && (waits || !self.looks.is_empty()) {
            return;
        }
        let units: BTreeMap<Text<64>, UnitSeen> = self
            .units
            .iter()
            .filter_map(|(uuid, known)| Some((uuid.clone(), known.seen.clone()?)))
            .collect();
        let nvidia = match &self.whole {
            Some(error) if units.is_empty() => known::absent(error),
            Some(_) | None => known::ready(units.values(), self.unreadable),
        };
        // Whoever asks reads the newest; there need be nobody.
        self.say.send_replace(Some(Found { nvidia, units }));
    }
}

async fn count(launch: Launch) -> Look {
    let count = async {
        let mut process = Process::start(&launch)?;
        let Answer::Count(count) = process.call(Ask::Count, DEADLINE).await? else {
            return Err(wrong_answer());
        };
        Ok(count)
    };
    Look::Count(count.await)
}

async fn identify(launch: Launch, index: u32) -> Look {
    let identity = async {
        let mut process = Process::start(&launch)?;
        let which = Which::Index(index);
        let Answer::Opened(identity) = process.call(Ask::Open(which), DEADLINE).await? else {
            return Err(wrong_answer());
        };
        Ok(identity)
    };
    Look::Identity(identity.await)
}
