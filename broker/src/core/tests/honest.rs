//! Honest hosts: they accept what they are offered, run what they should, stop what has to go, and sign what
//! ran.
//!
//! Must not know what is charged.

use super::world::World;
use protocol::ids::LeaseId;
use protocol::lease::{ContainerState, Meters, Phase, StopReason};
use protocol::units::Millis;

/// How often hosts report and time passes, in seconds.
const EVERY: u64 = 10;

impl World {
    /// Hosts do at once what there is to do for them.
    pub(crate) fn follow(&mut self) {
        for _ in 0..100 {
            let live: Vec<LeaseId> = self.live();
            if !live.into_iter().any(|lease| self.react(lease)) {
                return;
            }
        }
        panic!("hosts have always more to do");
    }

    fn live(&self) -> Vec<LeaseId> {
        let leases = self.desk.market().live_leases();
        leases.map(|lease| lease.id).collect()
    }

    fn react(&mut self, lease: LeaseId) -> bool {
        match self.phase(lease) {
            Phase::Offered => self.grant(lease).map(drop).unwrap(),
            Phase::Accepted | Phase::Preparing => self.says(lease, ContainerState::Running),
            Phase::Noticed(_, by) if self.now >= by => {
                self.says(lease, ContainerState::Stopped(StopReason::Vacated));
            }
            Phase::Closing(_) => self.says(lease, ContainerState::Gone),
            Phase::Resting
            | Phase::Clearing(_)
            | Phase::Running
            | Phase::Noticed(..)
            | Phase::Suspect
            | Phase::Paused(_)
            | Phase::Closed(_) => return false,
        }
        true
    }

    /// A report with the meter as it is.
    fn says(&mut self, lease: LeaseId, state: ContainerState) {
        let meters = Meters {
            running: Millis(self.ran.get(&lease).copied().unwrap_or(0)),
            ..Meters::default()
        };
        let report = self.report_command(lease, state, meters);
        self.handle(report).unwrap();
    }

    /// So many seconds pass, with every container that runs running through them.
    pub(crate) fn pass(&mut self, seconds: u64) {
        let mut left = seconds;
        self.follow();
        while left > 0 {
            let step = left.min(EVERY);
            left -= step;
            self.wait(step);
            for lease in self.live() {
                let phase = self.phase(lease);
                if matches!(phase, Phase::Running | Phase::Noticed(..)) {
                    *self.ran.entry(lease).or_default() += step * 1000;
                    self.says(lease, ContainerState::Running);
                } else if matches!(phase, Phase::Paused(_)) {
                    self.says(lease, ContainerState::Stopped(StopReason::Asked));
                }
            }
            self.announce();
            self.tick();
            self.follow();
        }
    }

    /// Until so many seconds after the start.
    pub(crate) fn until(&mut self, second: u64) {
        let passed = self.now.since(super::world::START).0 / 1000;
        self.pass(second - passed);
    }
}
