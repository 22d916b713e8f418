//! The engine of the model: what it does when it is asked for some work, and how containers end.

use super::{Model, START};
use crate::core::reconcile::{Observed, Outcome};
use crate::core::traffic::Crossed;
use crate::core::work::Work;
use protocol::ids::LeaseId;
use protocol::units::{Bytes, Timestamp};

impl Model {
    /// What the engine does when it is asked for this.
    pub(super) fn effect(&mut self, lease: LeaseId, work: Work) -> Outcome {
        match work {
            Work::Prepare => {
                if let Some(Observed::Running { started_at, .. }) = self.engine.get(&lease) {
                    return Outcome::Started(*started_at);
                }
                let run = self.records[&lease].state.run();
                assert!(
                    self.starts.insert((lease, run)),
                    "{lease:?} started twice in run {run}"
                );
                self.second += 1;
                let started_at = Timestamp(START + self.second * 1000);
                let crossed = Crossed::default();
                self.engine.insert(
                    lease,
                    Observed::Running {
                        started_at,
                        crossed,
                    },
                );
                Outcome::Started(started_at)
            }
            Work::Notify => {
                if matches!(self.engine.get(&lease), Some(Observed::Running { .. })) {
                    let told = self.told.entry(lease).or_insert(self.second);
                    // Told again after a restart: the first time counts.
                    *told = (*told).min(self.second);
                }
                Outcome::Told
            }
            Work::Recall => {
                self.told.remove(&lease);
                Outcome::Recalled
            }
            Work::Stop { .. } => {
                let seen = match self.engine.get(&lease) {
                    Some(Observed::Running {
                        started_at,
                        crossed,
                    }) => Some((*started_at, *crossed)),
                    Some(Observed::Created | Observed::Paused { .. } | Observed::Exited { .. })
                    | None => None,
                };
                self.exit(lease, 143);
                Outcome::Stopped(seen)
            }
            Work::Remove { .. } => {
                self.exit(lease, 137);
                Outcome::Removed(match self.engine.remove(&lease) {
                    Some(Observed::Exited {
                        started_at,
                        finished_at,
                        ..
                    }) => Some((started_at, finished_at)),
                    Some(
                        Observed::Created | Observed::Running { .. } | Observed::Paused { .. },
                    )
                    | None => None,
                })
            }
        }
    }

    pub(super) fn exit(&mut self, lease: LeaseId, code: i32) {
        self.told.remove(&lease);
        if let Some(Observed::Running {
            started_at,
            crossed,
        }) = self.engine.get(&lease).copied()
        {
            add(self.crossed.entry(lease).or_default(), crossed);
            let finished_at = Timestamp(START + self.second * 1000);
            let out_of_memory = false;
            let exited = Observed::Exited {
                disk_full: false,
                code,
                out_of_memory,
                started_at,
                finished_at,
            };
            *self.ran.entry(lease).or_default() += finished_at.since(started_at).0;
            self.engine.insert(lease, exited);
        }
    }
}

pub(super) fn one_way(bytes: u64) -> Crossed {
    Crossed {
        uploaded: Bytes(bytes),
        downloaded: Bytes(bytes / 2),
    }
}

pub(super) fn add(sum: &mut Crossed, more: Crossed) {
    sum.uploaded.0 += more.uploaded.0;
    sum.downloaded.0 += more.downloaded.0;
}
