//! How offers get into the book: a host's whole list at a time.
//!
//! Most lists are the one before, signed anew: of such an offer nothing is looked at again. Must not say what can be
//! had.

use super::{Announced, Book, BookRefusal, Listing, admission};
use protocol::bounded::{List, Text};
use protocol::ids::{HostId, OfferId, PublicKey};
use protocol::offer::{OFFERS_MAX, Offer};
use protocol::signed::Verified;
use protocol::units::Timestamp;
use std::collections::BTreeSet;

impl Book {
    /// Takes `offers` for all that `host` offers from now on. A list that is older than the one that is
    /// there (it was overtaken on its way) changes nothing.
    ///
    /// # Errors
    /// When an offer is not the host's to announce here, or the book is full; then nothing changes.
    pub fn announce(
        &mut self,
        now: Timestamp,
        host: HostId,
        offers: Vec<Verified<Offer>>,
        addresses: List<Text<256>, 8>,
    ) -> Result<Announced, BookRefusal> {
        if offers.len() > OFFERS_MAX {
            return Err(BookRefusal::TooManyOffers {
                count: offers.len(),
            });
        }
        let mut seen = BTreeSet::new();
        let again = offers.iter().map(|offer| self.is_again(host, offer));
        let again: Vec<bool> = again.collect();
        for (offer, is_again) in offers.iter().zip(&again) {
            if !is_again {
                admission::check(self.broker, host, offer)?;
            }
            if !seen.insert(offer.body().id) {
                return Err(BookRefusal::Twice(offer.body().id));
            }
        }
        admission::check_together(&offers)?;
        let known = self.hosts.get(&host);
        let newest = offers.iter().map(|offer| offer.body().sequence).max();
        if known
            .zip(newest)
            .is_some_and(|(known, newest)| newest < known.sequence)
        {
            return Ok(Announced::Stale);
        }
        let before = known.map_or(0, |known| known.offers.len());
        let after = self.listings.len() - before + offers.len();
        if after > self.limits.offers || (known.is_none() && self.hosts.len() >= self.limits.hosts)
        {
            return Err(BookRefusal::Full);
        }
        let offers = offers.into_iter().zip(again).collect();
        self.replace(now, host, offers, addresses);
        Ok(Announced::Replaced)
    }

    /// Whether an offer is in the book already but for its sequence, so that what is known of it is known.
    fn is_again(&self, host: HostId, offer: &Verified<Offer>) -> bool {
        let known = self.listings.get(&offer.body().id);
        known.is_some_and(|known| {
            known.host == host
                && offer.signer() == PublicKey::from(host)
                && known.offer().is_again(offer.body())
        })
    }

    fn replace(
        &mut self,
        now: Timestamp,
        host: HostId,
        offers: Vec<(Verified<Offer>, bool)>,
        addresses: List<Text<256>, 8>,
    ) {
        let known = self.hosts.get(&host).map_or(0, |known| known.offers.len());
        if known != offers.len() || !offers.iter().all(|(_, is_again)| *is_again) {
            self.unsettle(host);
        }
        let mut entry = self.hosts.remove(&host).unwrap_or_default();
        let mut gone = std::mem::take(&mut entry.offers);
        entry.addresses = addresses;
        entry.heard_at = now;
        for (offer, is_again) in offers {
            entry.sequence = entry.sequence.max(offer.body().sequence);
            let id = offer.body().id;
            gone.remove(&id);
            entry.offers.insert(id);
            if is_again {
                self.renew(id, offer);
            } else {
                self.put_listing(id, Listing::new(host, offer));
            }
        }
        for gone in gone {
            self.remove_listing(gone);
        }
        self.hosts.insert(host, entry);
    }

    /// Takes an offer that is in the book already for longer.
    fn renew(&mut self, id: OfferId, offer: Verified<Offer>) {
        if let Some(listing) = self.listings.get_mut(&id) {
            self.by_expiry.remove(&(listing.expires(), id));
            listing.verified = offer;
            self.by_expiry.insert((listing.expires(), id));
        }
    }

    /// Puts a listing in the place of that of the same offer; portions that were there keep their rows.
    fn put_listing(&mut self, id: OfferId, mut listing: Listing) {
        let mut before = self.listings.remove(&id);
        let mut slots = Vec::with_capacity(listing.portions.len());
        if let Some(before) = &before {
            self.by_expiry.remove(&(before.expires(), id));
        }
        for facts in &listing.portions {
            let known = before.as_mut().and_then(|before| {
                let mut known = before.portions.iter();
                let place = known.position(|known| known.gpus() == facts.gpus())?;
                Some((before.slots.remove(place), before.portions.remove(place)))
            });
            slots.push(match known {
                Some((slot, known)) => {
                    self.portions.update(slot, &known, facts);
                    slot
                }
                None => self.portions.insert(id, facts),
            });
        }
        for (slot, facts) in before.iter().flat_map(Listing::rows) {
            self.portions.remove(slot, facts);
        }
        listing.slots = slots;
        self.by_expiry.insert((listing.expires(), id));
        self.listings.insert(id, listing);
    }
}
