//! What must hold after every step, and what must hold in the end.

use super::{Model, at};
use crate::core::lease::State;
use crate::core::reconcile::Observed;
use protocol::lease::Want;
use std::collections::BTreeMap;

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
                Some(Observed::Running { started_at }) => now.since(*started_at).0,
                Some(Observed::Created | Observed::Paused { .. } | Observed::Exited { .. })
                | None => 0,
            };
            let ran = self.ran.get(&record.lease).copied().unwrap_or(0) + current;
            assert!(record.running().0 <= ran, "{:?} ran {ran} ms", record.lease);
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
                Want::End => assert!(matches!(record.state, State::Gone { .. })),
            }
        }
    }
}
