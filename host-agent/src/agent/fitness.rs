//! The health of the GPUs in the words of the owner, and the owner's word that one was checked.

use super::AgentError;
use super::desk::Desk;
use crate::admin::wire::{AdminReply, HealthRow};
use crate::core::offer::Listed;
use crate::hardware::Hardware;
use crate::runtime::Runtime;
use gpu_health::input::{Input, Standing};
use gpu_health::unit::Fitness;
use protocol::offer::ResourceName;

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Every GPU, and every slice that is leased or not clean.
    pub(super) fn health_rows(&self) -> Vec<HealthRow> {
        let standings = self.care.health.standings();
        standings
            .into_iter()
            .map(|standing| {
                let took = self.care.took.get(&standing.resource);
                row(standing, took.map(|took| took.all.0))
            })
            .collect()
    }

    /// Why nothing of an offer can be leased, when all of it is unfit.
    pub(super) fn unfit(&self, listed: &Listed) -> Option<String> {
        let withheld = self.care.health.withheld();
        let why = |name: &ResourceName| {
            let of_it = withheld.get(name);
            of_it.or_else(|| withheld.get(protocol::offer::parent(name)))
        };
        let mut names = listed.offer.share.resources.iter();
        let first = why(listed.offer.share.resources.first()?)?.clone();
        names.all(|name| why(name).is_some()).then_some(first)
    }

    /// The owner has checked the GPU of that name, or the only one whose name begins so.
    pub(super) async fn checked_by_owner(&mut self, name: &str) -> Result<AdminReply, AgentError> {
        let standings = self.care.health.standings();
        let gpus = standings.iter().map(|standing| &standing.resource);
        let named: Vec<&ResourceName> = gpus.filter(|gpu| gpu.starts_with(name)).collect();
        let exact = named.iter().copied().find(|gpu| gpu.as_str() == name);
        let gpu = match (exact, named.as_slice()) {
            (Some(gpu), _) => gpu.clone(),
            (None, [gpu]) => (*gpu).clone(),
            (None, []) => {
                let known: Vec<&str> = standings.iter().map(|it| it.resource.as_str()).collect();
                let known = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                return Ok(AdminReply::Refused(format!(
                    "there is no GPU {name} here; known: {known}"
                )));
            }
            (None, several) => {
                let count = several.len();
                return Ok(AdminReply::Refused(format!(
                    "{count} GPUs begin with {name}: type more of it"
                )));
            }
        };
        let gpu = ResourceName::cut(protocol::offer::parent(&gpu));
        tracing::info!(%gpu, "its owner has checked it");
        self.heard(Input::Checked(gpu)).await?;
        Ok(AdminReply::Done)
    }
}

fn row(standing: Standing, cleaning_ms: Option<u64>) -> HealthRow {
    let state = match standing.fitness {
        Fitness::Fit => "fit",
        Fitness::Finishing { .. } => "finishing",
        Fitness::Quarantined { .. } => "quarantined",
        Fitness::Resetting => "resetting",
        Fitness::Cleaning => "cleaning",
        Fitness::Gone => "gone",
        Fitness::Unknown { .. } => "unknown",
    };
    HealthRow {
        resource: standing.resource.to_string(),
        state: state.to_owned(),
        words: standing.fitness.in_words(),
        waits: standing.until,
        lowered: standing.lowered,
        reset_wanted: standing.reset_wanted,
        cleaning_ms,
    }
}
