//! Whose ids this broker has met: those on its books, and those who said who they are since it was started.
//!
//! An id has no check of its own, so one that nobody ever used is more likely a slip of the finger than a stranger.
//! Must not decide anything about money.

use crate::core::desk::Desk;
use protocol::ids::{HostId, PublicKey, RenterId};
use std::collections::{BTreeSet, VecDeque};

/// Most of those who are remembered without being on the books.
const GREETED_MAX: usize = 65_536;

/// Who greeted since the start, the newest of them. A connection proves that its key is somebody's.
#[derive(Debug, Default)]
pub(super) struct Greeted {
    parties: BTreeSet<PublicKey>,
    in_order: VecDeque<PublicKey>,
}

impl Greeted {
    fn note(&mut self, party: PublicKey) {
        if !self.parties.insert(party) {
            return;
        }
        self.in_order.push_back(party);
        if self.in_order.len() > GREETED_MAX
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.parties.remove(&oldest);
        }
    }
}

impl Desk {
    /// Somebody connected and asked who this broker is.
    pub fn greet(&mut self, party: PublicKey) {
        self.greeted.note(party);
    }

    /// Whether this party is on the books, offers something, or greeted.
    #[must_use]
    pub fn knows(&self, party: PublicKey) -> bool {
        let (renter, host) = (RenterId::from(party), HostId::from(party));
        // Its own account is the one that proofs of hardware are paid from.
        party == PublicKey::from(self.market.broker())
            || self.greeted.parties.contains(&party)
            || self.market.renters().contains(&renter)
            || self.market.leases_of(party).next().is_some()
            || self.book.heard_at(host).is_some()
            || self.market.reliability().hosts().any(|known| known == host)
            || self.market.has_account(host)
            || self.is_suspended(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(number: u32) -> PublicKey {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        PublicKey::from_bytes(bytes)
    }

    #[test]
    fn the_newest_of_those_who_greeted_are_remembered() {
        let mut greeted = Greeted::default();
        let most = u32::try_from(GREETED_MAX).unwrap();
        for number in 0..=most {
            greeted.note(party(number));
            greeted.note(party(most));
        }
        assert!(!greeted.parties.contains(&party(0)));
        assert!(greeted.parties.contains(&party(1)) && greeted.parties.contains(&party(most)));
        assert_eq!(greeted.in_order.len(), GREETED_MAX);
        assert_eq!(greeted.parties.len(), GREETED_MAX);
    }
}
