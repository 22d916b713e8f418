//! All NVIDIA GPUs of the machine, as the agent asks and tells them. It decides nothing about leases, and no GPU
//! waits for another.

use super::overseer::Overseer;
use super::process::{CallError, Launch, wrong_answer};
use super::unit::{ORDERS, Order, UnitSeen};
use super::{Nvidia, Timing};
use host_nvml::facts::Description;
use host_nvml::library::ResetFacts;
use host_nvml::news::GpuNews;
use host_nvml::slices::{Instance, MigMode, Profile};
use host_nvml::wire::{Answer, Ask};
use protocol::bounded::Text;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
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
pub(super) struct Found {
    pub(super) nvidia: Nvidia,
    pub(super) units: BTreeMap<Text<64>, UnitSeen>,
}

impl Supervisor {
    /// Begins to look. What it hears of the GPUs comes out of the receiver; without anyone at it, nothing is
    /// kept.
    #[must_use]
    pub fn start(launch: Launch, timing: Timing) -> (Self, mpsc::Receiver<GpuNews>) {
        let (news, listener) = mpsc::channel(NEWS);
        let (say, found) = watch::channel(None);
        let (orders, ordered) = mpsc::channel(ORDERS);
        let task = tokio::spawn(Overseer::new(launch, timing, news, say).run(ordered));
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
        let Answer::MigMode(mode) = self.ask(gpu, Ask::MigMode).await? else {
            return Err(wrong_answer());
        };
        Ok(mode)
    }

    /// Divides it, or makes it whole; what is not current then waits for a reset.
    ///
    /// # Errors
    /// When it is in use, when it takes a reset, or the GPU does not answer.
    pub async fn set_mig_mode(&self, gpu: &Text<64>, divided: bool) -> Result<MigMode, CallError> {
        let Answer::MigMode(mode) = self.ask(gpu, Ask::SetMigMode { divided }).await? else {
            return Err(wrong_answer());
        };
        Ok(mode)
    }

    /// What it can be cut into, also while it is whole.
    ///
    /// # Errors
    /// When it cannot be divided, or the GPU does not answer.
    pub async fn profiles(&self, gpu: &Text<64>) -> Result<Vec<Profile>, CallError> {
        let Answer::Profiles(profiles) = self.ask(gpu, Ask::Profiles).await? else {
            return Err(wrong_answer());
        };
        Ok(profiles)
    }

    /// What it is cut into.
    ///
    /// # Errors
    /// When it cannot be divided, or the GPU does not answer.
    pub async fn instances(&self, gpu: &Text<64>) -> Result<Vec<Instance>, CallError> {
        let Answer::Instances(instances) = self.ask(gpu, Ask::Instances).await? else {
            return Err(wrong_answer());
        };
        Ok(instances)
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
        let Answer::Instance(instance) = self
            .ask(gpu, Ask::CreateInstance { profile, start })
            .await?
        else {
            return Err(wrong_answer());
        };
        Ok(*instance)
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
        let Answer::Done = self.ask(gpu, Ask::DestroyInstance { gpu_instance }).await? else {
            return Err(wrong_answer());
        };
        Ok(())
    }

    /// Who uses it, and what else a reset or a change of its mode depends on.
    ///
    /// # Errors
    /// When the GPU does not answer.
    pub async fn reset_facts(&self, gpu: &Text<64>) -> Result<ResetFacts, CallError> {
        let Answer::ResetFacts(facts) = self.ask(gpu, Ask::ResetFacts).await? else {
            return Err(wrong_answer());
        };
        Ok(*facts)
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

fn not_known(gpu: &Text<64>) -> CallError {
    CallError::NotAsked(format!(
        "{} is not known, or too much waits for it",
        gpu.as_str()
    ))
}
