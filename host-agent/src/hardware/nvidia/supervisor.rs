//! All NVIDIA GPUs of the machine: counts them, gives each its own task and process, and says what is known.
//! It decides nothing about leases, and no GPU waits for another.

use super::process::{CallError, Launch, Process};
use super::unit::{ORDERS, Order, Unit, UnitSeen};
use super::{DEADLINE, Nvidia, Timing, known};
use host_nvml::facts::{Description, Identity};
use host_nvml::fault::Fault;
use host_nvml::library::{ResetFacts, Which};
use host_nvml::news::{GpuNews, GpuState};
use host_nvml::slices::{Instance, MigMode, Profile};
use host_nvml::wire::{Answer, Ask};
use protocol::bounded::Text;
use protocol::machine::GPUS_MAX;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;

/// News that may wait for the listener: a few seconds of samples of a full machine.
const NEWS: usize = 256;
/// The first look: a count, an opening and a description, each with its deadline, and a little.
const FIRST_LOOK: Duration = Duration::from_secs(8);

/// Asks about all GPUs and obeys for each. Dropped, it kills the processes.
#[derive(Debug)]
pub struct Supervisor {
    found: watch::Receiver<Option<Found>>,
    orders: mpsc::Sender<(Text<64>, Order)>,
    _task: AbortOnDropHandle<()>,
}

/// What is known of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    nvidia: Nvidia,
    units: BTreeMap<Text<64>, UnitSeen>,
}

impl Supervisor {
    /// Begins to look. What it hears of the GPUs comes out of the receiver; without anyone at it, nothing is
    /// kept.
    #[must_use]
    pub fn start(launch: Launch, timing: Timing) -> (Self, mpsc::Receiver<GpuNews>) {
        let (news, listener) = mpsc::channel(NEWS);
        let (say, found) = watch::channel(None);
        let (orders, ordered) = mpsc::channel(ORDERS);
        let (tell, told) = mpsc::channel(GPUS_MAX);
        let overseer = Overseer {
            launch,
            timing,
            news,
            tell,
            say,
            units: BTreeMap::new(),
            looks: JoinSet::new(),
            tasks: JoinSet::new(),
            whole: None,
            count: 0,
            identified: 0,
            next: Instant::now(),
            failed: 0,
        };
        let task = tokio::spawn(overseer.run(ordered, told));
        let supervisor = Self {
            found,
            orders,
            _task: AbortOnDropHandle::new(task),
        };
        (supervisor, listener)
    }

    /// What is known now; the first time, once every GPU has answered or missed its deadline.
    pub async fn seen(&self) -> Nvidia {
        let mut found = self.found.clone();
        let first = timeout(FIRST_LOOK, found.wait_for(Option::is_some)).await;
        match first {
            Ok(Ok(found)) => found
                .as_ref()
                .map_or(Nvidia::Hangs, |found| found.nvidia.clone()),
            Ok(Err(_)) | Err(_) => Nvidia::Hangs,
        }
    }

    /// Everything about the GPU of that UUID, as it was last described; nothing for one that never answered.
    #[must_use]
    pub fn description(&self, gpu: &str) -> Option<Description> {
        let found = self.found.borrow();
        let unit = found
            .as_ref()?
            .units
            .values()
            .find(|unit| unit.identity.uuid.as_str() == gpu)?;
        unit.description.as_deref().cloned()
    }

    /// Its MIG mode.
    ///
    /// # Errors
    /// When the library refuses, or the GPU does not answer.
    pub async fn mig_mode(&self, gpu: &Text<64>) -> Result<MigMode, CallError> {
        match self.ask(gpu, Ask::MigMode).await? {
            Answer::MigMode(mode) => Ok(mode),
            other => Err(unexpected(&other)),
        }
    }

    /// Divides it, or makes it whole; what is not current then waits for a reset.
    ///
    /// # Errors
    /// When it is in use, when it takes a reset, or the GPU does not answer.
    pub async fn set_mig_mode(&self, gpu: &Text<64>, divided: bool) -> Result<MigMode, CallError> {
        match self.ask(gpu, Ask::SetMigMode { divided }).await? {
            Answer::MigMode(mode) => Ok(mode),
            other => Err(unexpected(&other)),
        }
    }

    /// What it can be cut into, also while it is whole.
    ///
    /// # Errors
    /// When it cannot be divided, or the GPU does not answer.
    pub async fn profiles(&self, gpu: &Text<64>) -> Result<Vec<Profile>, CallError> {
        match self.ask(gpu, Ask::Profiles).await? {
            Answer::Profiles(profiles) => Ok(profiles),
            other => Err(unexpected(&other)),
        }
    }

    /// What it is cut into.
    ///
    /// # Errors
    /// When it cannot be divided, or the GPU does not answer.
    pub async fn instances(&self, gpu: &Text<64>) -> Result<Vec<Instance>, CallError> {
        match self.ask(gpu, Ask::Instances).await? {
            Answer::Instances(instances) => Ok(instances),
            other => Err(unexpected(&other)),
        }
    }

    /// Cuts a slice of `profile` that begins at memory slice `start`.
    ///
    /// # Errors
    /// When there is no room at that place, or the GPU does not answer.
    pub async fn create_instance(
        &self,
        gpu: &Text<64>,
        profile: u32,
        start: u32,
    ) -> Result<Instance, CallError> {
        match self
            .ask(gpu, Ask::CreateInstance { profile, start })
            .await?
        {
            Answer::Instance(instance) => Ok(*instance),
            other => Err(unexpected(&other)),
        }
    }

    /// Gives a slice back.
    ///
    /// # Errors
    /// While a process runs in it, when it is not there, or the GPU does not answer.
    pub async fn destroy_instance(
        &self,
        gpu: &Text<64>,
        gpu_instance: u32,
    ) -> Result<(), CallError> {
        match self.ask(gpu, Ask::DestroyInstance { gpu_instance }).await? {
            Answer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Who uses it, and what else a reset or a change of its mode depends on.
    ///
    /// # Errors
    /// When the GPU does not answer.
    pub async fn reset_facts(&self, gpu: &Text<64>) -> Result<ResetFacts, CallError> {
        match self.ask(gpu, Ask::ResetFacts).await? {
            Answer::ResetFacts(facts) => Ok(*facts),
            other => Err(unexpected(&other)),
        }
    }

    /// Resets it with `program`, which is [`super::reset::PROGRAM`] but for tests. The caller has seen that
    /// nothing is leased on it or on what is linked to it.
    ///
    /// # Errors
    /// While a process uses it, when the driver wants a reboot instead, or the program fails.
    pub async fn reset(&self, gpu: &Text<64>, program: PathBuf) -> Result<(), CallError> {
        let (reply, answer) = oneshot::channel();
        self.order(gpu, Order::Reset(program, reply))?;
        answer.await.unwrap_or_else(|_| Err(not_known(gpu)))
    }

    async fn ask(&self, gpu: &Text<64>, ask: Ask) -> Result<Answer, CallError> {
        let (reply, answer) = oneshot::channel();
        self.order(gpu, Order::Ask(ask, reply))?;
        answer.await.unwrap_or_else(|_| Err(not_known(gpu)))
    }

    fn order(&self, gpu: &Text<64>, order: Order) -> Result<(), CallError> {
        self.orders
            .try_send((gpu.clone(), order))
            .map_err(|_| CallError::NotAsked("too much waits for the GPUs".to_owned()))
    }
}

fn unexpected(answer: &Answer) -> CallError {
    CallError::Ended(format!("it answered another question: {answer:?}"))
}

fn not_known(gpu: &Text<64>) -> CallError {
    CallError::NotAsked(format!(
        "{} is not known, or too much waits for it",
        gpu.as_str()
    ))
}

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
    _task: AbortHandle,
}

struct Overseer {
    launch: Launch,
    timing: Timing,
    news: mpsc::Sender<GpuNews>,
    tell: mpsc::Sender<UnitSeen>,
    say: watch::Sender<Option<Found>>,
    /// By UUID.
    units: BTreeMap<Text<64>, Known>,
    looks: JoinSet<Look>,
    tasks: JoinSet<()>,
    /// Why there are none, as the last look found.
    whole: Option<CallError>,
    /// How many there are, as the last look found.
    count: u32,
    /// How many of them said which they are.
    identified: u32,
    next: Instant,
    failed: u32,
}

impl Overseer {
    async fn run(
        mut self,
        mut ordered: mpsc::Receiver<(Text<64>, Order)>,
        mut told: mpsc::Receiver<UnitSeen>,
    ) {
        loop {
            tokio::select! {
                order = ordered.recv() => match order {
                    Some((gpu, order)) => self.route(&gpu, order),
                    None => return,
                },
                Some(seen) = told.recv() => {
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
                Some(_) = self.tasks.join_next() => {}
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
        (self.count, self.failed) = (count, 0);
        if usize::try_from(count).unwrap_or(usize::MAX) > self.units.len() {
            // Each in a process of its own, all at once, so that one that hangs holds up no other.
            self.identified = 0;
            for index in (0..count).take(GPUS_MAX) {
                self.looks.spawn(identify(self.launch.clone(), index));
            }
        } else {
            self.identified = count;
            self.compare(count);
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

    /// Fewer than are believed to be there: one went without a word, and each sees for itself.
    fn compare(&self, count: u32) {
        let present = self
            .units
            .values()
            .filter(|known| !matches!(&known.seen, Some(seen) if seen.state == GpuState::Gone));
        if usize::try_from(count).unwrap_or(usize::MAX) < present.count() {
            for known in self.units.values() {
                let _ = known.orders.try_send(Order::Verify);
            }
        }
    }

    fn add(&mut self, identity: Identity) {
        if self.units.contains_key(&identity.uuid) || self.units.len() >= GPUS_MAX {
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
        let task = self.tasks.spawn(unit.run(ordered));
        self.units.insert(
            uuid,
            Known {
                orders,
                seen: None,
                _task: task,
            },
        );
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

    /// Says what is known, once every GPU that was found has answered or missed its deadline.
    fn publish(&self) {
        let waits = self.units.values().any(|known| known.seen.is_none());
        if waits || !self.looks.is_empty() {
            return;
        }
        let units: BTreeMap<Text<64>, UnitSeen> = self
            .units
            .iter()
            .filter_map(|(uuid, known)| Some((uuid.clone(), known.seen.clone()?)))
            .collect();
        let nvidia = match &self.whole {
            Some(error) if units.is_empty() => known::absent(error),
            Some(_) | None => {
                known::ready(units.values(), self.count.saturating_sub(self.identified))
            }
        };
        // Whoever asks reads the newest; there need be nobody.
        self.say.send_replace(Some(Found { nvidia, units }));
    }
}

async fn count(launch: Launch) -> Look {
    let count = async {
        let mut process = Process::start(&launch)?;
        match process.call(Ask::Count, DEADLINE).await? {
            Answer::Count(count) => Ok(count),
            other => Err(unexpected(&other)),
        }
    };
    Look::Count(count.await)
}

async fn identify(launch: Launch, index: u32) -> Look {
    let identity = async {
        let mut process = Process::start(&launch)?;
        let which = Which::Index(index);
        match process.call(Ask::Open(which), DEADLINE).await? {
            Answer::Opened(identity) => Ok(identity),
            other => Err(unexpected(&other)),
        }
    };
    Look::Identity(identity.await)
}
