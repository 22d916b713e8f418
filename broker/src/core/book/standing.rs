//! How a host and its hardware stand with the broker: told to the book, which shows and searches it.
//!
//! Must not work it out.

use super::Book;
use protocol::ids::HostId;
use protocol::offer::Offer;
use protocol::reliability::Score;
use protocol::verify::VerificationLevel;

impl Book {
    /// Says how reliable a host is whose offers these are now. Offers that are new, or not what they were, are
    /// those of an unknown host until it is said again.
    pub fn rate(&mut self, host: HostId, score: &Score) {
        let offers = self.hosts.get(&host).map(|entry| &entry.offers);
        for offer in offers.into_iter().flatten() {
            if let Some(listing) = self.listings.get_mut(offer) {
                listing.hazard = score.hazard_in_billion_hours();
                for (slot, facts) in listing.slots.iter().zip(&mut listing.portions) {
                    if facts.reliability() == score.ppm {
                        continue;
                    }
                    let before = facts.clone();
                    facts.set_reliability(score.ppm);
                    self.portions.update(*slot, &before, facts);
                }
            }
        }
    }

    /// Says how far the hardware of a host's offers is proved now: `level` is asked of each. Offers that are new,
    /// or not what they were, are not proved until it is said again.
    pub fn verify(&mut self, host: HostId, level: impl Fn(&Offer) -> VerificationLevel) {
        let offers = self.hosts.get(&host).map(|entry| &entry.offers);
        for offer in offers.into_iter().flatten() {
            if let Some(listing) = self.listings.get_mut(offer) {
                let level = level(listing.offer());
                if listing.verification == level {
                    continue;
                }
                listing.verification = level;
                for (slot, facts) in listing.slots.iter().zip(&mut listing.portions) {
                    let before = facts.clone();
                    facts.set_verification(&listing.verification);
                    self.portions.update(*slot, &before, facts);
                }
            }
        }
    }
}
