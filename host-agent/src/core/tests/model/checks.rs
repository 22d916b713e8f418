//! What must hold after every step, and what must hold in the end.

use super::engine::add;
use super::{Model, at};
use crate::core::lease::{LeaseRecord, State};
use crate::core::reconcile::Observed;
use crate::core::work::Work;
use protocol::lease::Want;
use std::collections::BTreeMap;

/// The notice of the world's offer, in seconds.
const NOTICE: u64 = 120;

impl Model {
    pub(super) fn check(&self) {
        let mut running = BTreeMap::new();
        for (lease, container) in &self.engine {
            if matches!(container, Observed::Running { .. }) {
                let other = running.insert(self.offer_of[lease], lease);
                assert!(
                    other.is_none(),
                    "{lease:?} and {other:?} run on one resource"
                );
            }
        }
        for record in self.leases.records().values() {
            let may_go = record.want == Want::End || self.vanished.contains(&record.lease);
            let gone = matches!(record.state, State::Gone { .. });
            assert!(!gone || may_go, "{:?} was given up", record.lease);
            let now = at(self.second).wall;
            let current = match self.engine.get(&record.lease) {
                Some(Observed::Running { started_at, .. }) => now.since(*started_at).0,
                Some(Observed::Created | Observed::Paused { .. } | Observed::Exited { .. })
                | None => 0,
            };
            let ran = self.ran.get(&record.lease).copied().unwrap_or(0) + current;
            assert!(record.running().0 <= ran, "{:?} ran {ran} ms", record.lease);
            self.check_traffic(record);
            self.check_notice(record);
        }
    }

    /// No byte is counted that did not cross.
    fn check_traffic(&self, record: &LeaseRecord) {
        let mut crossed = self.crossed.get(&record.lease).copied().unwrap_or_default();
        if let Some(Observed::Running { crossed: now, .. }) = self.engine.get(&record.lease) {
            add(&mut crossed, *now);
        }
        let counted = record.traffic.total();
        assert!(
            counted.uploaded <= crossed.uploaded && counted.downloaded <= crossed.downloaded,
            "{:?}: {counted:?} of {crossed:?}",
            record.lease
        );
    }

    /// A container that was told to go and is wanted no longer than its notice is stopped by nothing but its end.
    fn check_notice(&self, record: &LeaseRecord) {
        let Some(Work::Stop { .. }) = self.jobs.get(&record.lease) else {
            return;
        };
        let run = record.state.run();
        let is_leaving = matches!(record.want, Want::Vacate(vacate) if vacate.run == run);
        let is_running = matches!(record.state, State::Running { .. });
        if is_leaving && is_running {
            let heard = self.heard[&(record.lease, run)];
            assert!(
                self.second >= heard + NOTICE,
                "{:?} was stopped {} s after its notice",
                record.lease,
                self.second - heard
            );
        }
    }

    pub(super) fn check_settled(&self) {
        let mut wanted = BTreeMap::new();
        for broker in &self.brokers {
            wanted.extend(
                broker
                    .wanted
                    .iter()
                    .map(|(lease, goal)| (*lease, goal.want)),
            );
        }
        for lease in self.engine.keys() {
            let want = wanted.get(lease).copied();
            assert!(
                want.is_some_and(|want| want != Want::End),
                "{lease:?} was to be gone: {want:?}"
            );
        }
        for (lease, want) in wanted {
            let runs = matches!(self.engine.get(&lease), Some(Observed::Running { .. }));
            let Some(record) = self.leases.record(lease) else {
                assert!(!runs, "{lease:?} runs without a record");
                continue;
            };
            let says_running = matches!(record.state, State::Running { .. });
            assert_eq!(runs, says_running, "{lease:?} {:?}", record.state);
            match want {
                // It may have ended, failed, lost its resource or vanished; it never hangs in between.
                Want::Run(_) => assert!(!matches!(record.state, State::Preparing { .. })),
                Want::Stop => assert!(!runs),
                // It was told, and goes when its notice is over, which `settle` waits for.
                Want::Vacate(_) => assert!(!runs, "{lease:?} did not go"),
                Want::End => assert!(matches!(record.state, State::Gone { .. })),
            }
        }
    }
}
