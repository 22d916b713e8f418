//! What a host should be doing: as the market says it, and as the host is told, with every award signed.
//!
//! A signature takes longer than all else about an order, and nobody wants one before the host: so whoever tells
//! the host signs, and not the thread that decides. Must not decide what should be true.

use ed25519_dalek::SigningKey;
use protocol::bounded::List;
use protocol::ids::LeaseId;
use protocol::lease::{Award, Goal, LeaseGoal, Want};
use protocol::order::Order;
use protocol::signed::{Draft, Signed};
use protocol::units::Timestamp;
use std::collections::BTreeMap;

/// A [`Goal`] whose awards are not signed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalDraft {
    /// See [`Goal::sequence`].
    pub sequence: u64,
    /// See [`Goal::started_at`].
    pub started_at: Timestamp,
    /// See [`Goal::leases`].
    pub leases: Vec<LeaseGoalDraft>,
}

/// A [`LeaseGoal`] whose award is not signed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseGoalDraft {
    /// The lease.
    pub lease: LeaseId,
    /// The renter's signed order.
    pub order: Signed<Order>,
    /// The broker's match.
    pub award: Draft<Award>,
    /// What should be true.
    pub want: Want,
}

/// The signed awards of the goal that a host was told last: a goal is said again and again.
#[derive(Debug, Default)]
pub struct Awards(BTreeMap<LeaseId, Signed<Award>>);

impl GoalDraft {
    /// The goal, with awards signed with `key`, or taken from `awards`, which is what they are from here on.
    #[must_use]
    pub fn sign(self, key: &SigningKey, awards: &mut Awards) -> Goal {
        let mut known = std::mem::take(&mut awards.0);
        let leases = self.leases.into_iter().map(|goal| {
            let LeaseGoalDraft {
                lease,
                order,
                award,
                want,
            } = goal;
            let same = known.remove(&lease).filter(|known| award.became(known));
            let award = same.unwrap_or_else(|| award.sign(key));
            awards.0.insert(lease, award.clone());
            LeaseGoal {
                lease,
                order,
                award,
                want,
            }
        });
        Goal {
            sequence: self.sequence,
            started_at: self.started_at,
            leases: List::first(leases),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tests::world::{Ask, World, broker_key, host_id};

    #[test]
    fn a_goal_that_is_said_again_is_not_signed_again() {
        let mut world = World::with_a_fee_of_ten_percent();
        world.deposit(0, 100_000_000);
        world.offer(0, Ask::default());
        let order = world.order(0);
        world.place(0, order).unwrap();
        let mut awards = Awards::default();
        let first = world.desk.goal(host_id(0)).sign(&broker_key(), &mut awards);
        let award = &first.leases[0].award;
        assert_eq!(
            award.digest(),
            world.desk.goal(host_id(0)).leases[0].award.digest()
        );
        assert!(award.verify().is_ok());
        // Another key would sign another award, if it were signed.
        let other = SigningKey::from_bytes(&[99; 32]);
        let again = world.desk.goal(host_id(0)).sign(&other, &mut awards);
        assert_eq!(again.leases, first.leases);
        let anew = world
            .desk
            .goal(host_id(0))
            .sign(&other, &mut Awards::default());
        assert_ne!(anew.leases, first.leases);
    }
}
