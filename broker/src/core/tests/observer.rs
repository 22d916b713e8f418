//! An observer who sees only phases, reports and the clock, and says what a lease may be charged at most.
//!
//! Must not look at the meter that it is to judge.

use crate::core::lease::Lease;
use proptest::prelude::*;
use protocol::lease::{Phase, Report};
use protocol::terms::{compute_due, fee_of, storage_due, traffic_due};
use protocol::units::{Bytes, MicroUsd, Millis, Timestamp};
use protocol::usage::Amounts;

/// A longer silence is billed to nobody.
const SILENCE_MAX: Millis = Millis(90_000);

/// What an observer knows of one lease.
#[derive(Debug, Default)]
pub(super) struct Observer {
    /// The highest running time that the host signed.
    pub(super) signed: Millis,
    running: Millis,
    stored: Millis,
    /// Time since the last moment at which anything could be billed: running, and stored.
    open: (Millis, Millis),
    heard: Timestamp,
    sequence: u64,
    phase: Option<Phase>,
    /// Whether the container may be running.
    pub(super) may_run: bool,
    at_suspect: Option<Amounts>,
}

impl Observer {
    /// Time passed while the lease was in that phase.
    pub(super) fn pass(&mut self, passed: Millis, phase: &Phase) {
        match phase {
            Phase::Running | Phase::Noticed(..) => {
                self.open.0 = self.open.0.plus(passed);
                self.open.1 = self.open.1.plus(passed);
            }
            Phase::Paused(_) => self.open.1 = self.open.1.plus(passed),
            Phase::Resting
            | Phase::Clearing(_)
            | Phase::Offered
            | Phase::Accepted
            | Phase::Preparing
            | Phase::Suspect
            | Phase::Closing(_)
            | Phase::Closed(_) => {}
        }
    }

    /// The broker took a report.
    pub(super) fn hear(&mut self, now: Timestamp, report: &Report) {
        if report.sequence > self.sequence {
            self.count(now);
            self.heard = now;
            self.sequence = report.sequence;
        }
    }

    /// A silence that was short enough is billed up to here; a longer one is not.
    fn count(&mut self, now: Timestamp) {
        let (running, stored) = std::mem::take(&mut self.open);
        if now.since(self.heard) <= SILENCE_MAX {
            self.running = self.running.plus(running);
            self.stored = self.stored.plus(stored);
        }
    }

    /// Compares what the lease was charged with what it may be.
    pub(super) fn check(&mut self, now: Timestamp, lease: &Lease) -> Result<(), TestCaseError> {
        let phase = lease.state.phase();
        if self.phase.as_ref() != Some(&phase) {
            self.count(now);
            self.phase = Some(phase.clone());
        }
        match phase {
            Phase::Offered
            | Phase::Accepted
            | Phase::Preparing
            | Phase::Running
            | Phase::Noticed(..)
            | Phase::Suspect => self.may_run = true,
            Phase::Resting | Phase::Clearing(_) | Phase::Paused(_) | Phase::Closed(_) => {
                self.may_run = false;
            }
            // What may run when it is told to end may run until it is gone.
            Phase::Closing(_) => {}
        }
        let (contract, charged) = (&lease.contract, lease.charged);
        let total = charged.total();
        prop_assert!(
            total <= contract.budget,
            "{:?} over {:?}",
            total,
            contract.budget
        );
        let compute = compute_due(contract.prices.compute, self.running.min(self.signed));
        prop_assert!(
            charged.compute <= compute,
            "{:?} over {:?}",
            charged.compute,
            compute
        );
        let storage = storage_due(contract.prices.storage, contract.disk, self.stored);
        prop_assert!(
            charged.storage <= storage,
            "{:?} over {:?}",
            charged.storage,
            storage
        );
        let link = Bytes(self.running.0.saturating_mul(1_250_000));
        prop_assert!(charged.upload <= traffic_due(contract.prices.upload, link));
        if phase == Phase::Suspect {
            let at_first = self.at_suspect.get_or_insert(charged);
            prop_assert_eq!(*at_first, charged, "billed while the host was not heard");
        } else {
            self.at_suspect = None;
        }
        Ok(())
    }
}

/// What the broker and the host have of a lease.
pub(super) fn parts(lease: &Lease) -> (MicroUsd, MicroUsd) {
    let total = lease.charged.total();
    let fee = fee_of(total, lease.contract.fee);
    (fee, total.saturating_sub(fee))
}
