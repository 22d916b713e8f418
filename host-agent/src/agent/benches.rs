//! What benchmarks gave, and when they are run again: only while nobody has anything of the machine, and a lease that
//! comes has it to itself at once. The figures are kept in a file that the owner's command writes too.

use super::desk::Desk;
use super::events::Done;
use crate::bench::file::{ResultsError, Turn, load, save};
use crate::bench::{Plan, Run, Watch, run};
use crate::core::bench::{Outcome, Part, due, merged, with_measures};
use crate::core::offer::Listed;
use crate::hardware::{Hardware, Measured, seat};
use crate::runtime::Runtime;
use protocol::ids::BrokerId;
use protocol::machine::Machine;
use protocol::units::Millis;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How soon what the owner's command found is offered.
const LOOK_PERIOD: Millis = Millis(5_000);
/// After a run that failed, or was stopped, the next is not tried before.
const PAUSE: Millis = Millis(3_600_000);

/// What is known of benchmarks.
#[derive(Debug)]
pub(super) struct Benches {
    results: Vec<Outcome>,
    looking: bool,
    next_look: Millis,
    /// The file could not be read when it was looked at last.
    is_lost: bool,
    running: Option<Arc<Watch>>,
    next_run: Millis,
}

impl Benches {
    /// Whether one is under way.
    pub(super) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(super) const fn new(now: Millis) -> Self {
        Self {
            results: Vec::new(),
            looking: false,
            next_look: now,
            is_lost: false,
            running: None,
            next_run: now,
        }
    }

    /// The offers with what was measured of them, and what drivers said of the GPUs that were `found`.
    pub(super) fn offered(&self, listed: Vec<Listed>, found: Option<&Measured>) -> Vec<Listed> {
        let said = found.map_or_else(Vec::new, |found| seat::said(&found.seats));
        with_measures(listed, &merged(&self.results, &said))
    }

    /// Ends the run that is under way, if there is one.
    pub(super) fn stop(&self) {
        if let Some(watch) = &self.running {
            watch.stop();
        }
    }
}

/// What a run of its own accord ended with.
pub(super) type Benched = Result<Run, String>;

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Looks at the file when that is due, and stops a run that is in a lease's way.
    pub(super) fn look_at_benches(&mut self) {
        if !self.is_idle() {
            self.benches.stop();
        }
        let now = self.now().monotonic;
        if self.benches.looking || now < self.benches.next_look {
            return;
        }
        self.benches.looking = true;
        self.benches.next_look = now.plus(LOOK_PERIOD);
        let folder = self.folder.clone();
        self.tasks.spawn(async move {
            let read = tokio::task::spawn_blocking(move || load(&folder)).await;
            Done::Results(match read {
                Ok(read) => read.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            })
        });
    }

    /// The file was looked at.
    pub(super) fn results_read(&mut self, read: Result<Vec<Outcome>, String>) {
        self.benches.looking = false;
        match read {
            Ok(results) => {
                self.benches.is_lost = false;
                if self.benches.results != results {
                    tracing::info!(results = results.len(), "the machine's benchmarks");
                    self.benches.results = results;
                    self.derive_offers();
                    self.announce_soon();
                }
            }
            Err(reason) => {
                if !std::mem::replace(&mut self.benches.is_lost, true) {
                    tracing::warn!(
                        reason,
                        "the benchmarks cannot be read, so offers go on as they were"
                    );
                }
            }
        }
        self.bench_if_due();
    }

    fn bench_if_due(&mut self) {
        let (Some(every), now) = (self.config.bench_every, self.now()) else {
            return;
        };
        let parts = due(&self.benches.results, every, now.wall);
        let free = self.benches.running.is_none() && now.monotonic >= self.benches.next_run;
        if parts.is_empty() || !free || self.draining || !self.is_idle() {
            return;
        }
        let Some(machine) = &self.standing.machine else {
            return;
        };
        let plan = self.plan(parts, machine);
        let watch = Watch::new(|_, _| {});
        self.benches.running = Some(Arc::clone(&watch));
        let names: Vec<&str> = plan.parts.iter().map(|part| part.name()).collect();
        tracing::info!(
            parts = names.join(" "),
            "benchmarks are old, and are run again"
        );
        let (node, folder) = (self.node.clone(), self.folder.clone());
        self.tasks.spawn(async move {
            let ran = match take_turn(&folder).await {
                Ok(turn) => {
                    let ran = run(&plan, Some(&node), &watch).await;
                    let kept = keep(folder, &ran.outcomes).await;
                    drop(turn);
                    kept.map(|()| ran)
                }
                Err(error) => Err(error),
            };
            Done::Benched(ran.map_err(|error| error.to_string()))
        });
    }

    fn plan(&self, parts: BTreeSet<Part>, machine: &Machine) -> Plan {
        let mut plan = Plan::new(parts, self.folder.clone());
        plan.data_root = match self.engine.state() {
            Ok(facts) => Ok(PathBuf::from(&facts.data_root)),
            Err(reason) => Err(reason.clone()),
        };
        plan.disk.reserve = self.config.disk_reserve.0;
        plan.gpus = machine.gpus.to_vec();
        let known: Vec<BrokerId> = self.brokers.keys().copied().collect();
        plan.brokers = known
            .into_iter()
            .filter(|broker| self.is_connected(*broker))
            .collect();
        plan
    }

    /// A run of its own accord ended.
    pub(super) fn benched(&mut self, ran: &Benched) {
        self.benches.running = None;
        self.benches.next_look = Millis(0);
        match ran {
            Ok(run) => {
                for (part, error) in &run.failed {
                    tracing::info!(part = part.name(), %error, "no benchmark");
                }
                if run.failed.is_empty() {
                    return;
                }
            }
            Err(reason) => tracing::info!(reason, "no benchmarks"),
        }
        self.benches.next_run = self.now().monotonic.plus(PAUSE);
    }

    /// Whether nobody has anything of the machine, and none of it is being cleaned or reset.
    fn is_idle(&self) -> bool {
        let mut records = self.leases.records().values();
        records.all(|record| record.state.held().is_empty())
            && self.care.health.unclean().next().is_none()
            && self.care.health.drain().is_none()
    }
}

async fn take_turn(folder: &Path) -> Result<Turn, ResultsError> {
    let folder = folder.to_owned();
    let taken = tokio::task::spawn_blocking(move || Turn::take(&folder)).await;
    taken.unwrap_or(Err(ResultsError::UnderWay { pid: None }))
}

/// Keeps results beside those that are there by now.
async fn keep(folder: PathBuf, outcomes: &[Outcome]) -> Result<(), ResultsError> {
    if outcomes.is_empty() {
        return Ok(());
    }
    let outcomes = outcomes.to_vec();
    let kept = tokio::task::spawn_blocking(move || {
        let all = merged(&load(&folder)?, &outcomes);
        save(&folder, &all)
    });
    // A task that broke off kept nothing: then the next run does.
    kept.await.unwrap_or(Ok(()))
}
