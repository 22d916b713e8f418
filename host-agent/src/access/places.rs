//! How many tunnels there may be, and which requests were seen. It takes `now` as an argument and keeps
//! everything in bounded memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use protocol::ids::{LeaseId, MessageId, PublicKey};
use protocol::units::Timestamp;

/// Most tunnels at once.
pub const TUNNELS_MAX: usize = 512;
/// Most tunnels of one lease at once.
pub const LEASE_TUNNELS_MAX: usize = 64;
/// Most requests that are remembered. At 16 a second, sustained, they are forgotten by age before this.
pub const SEEN_MAX: usize = 16_384;

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPlace {
    /// All places of this lease or of this host are taken, or too many requests came of late.
    TooMany,
    /// The request was used before.
    Replayed,
}

/// The places of one host. Shared by its tunnels; each holds its [`Place`].
#[derive(Debug, Default)]
pub struct Places {
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    by_lease: BTreeMap<LeaseId, usize>,
    all: usize,
    /// Seen requests with the moment at which each may be forgotten.
    seen: BTreeMap<(PublicKey, MessageId), Timestamp>,
    /// The same by that moment.
    by_age: BTreeMap<(Timestamp, PublicKey, MessageId), ()>,
}

/// What one accepted request holds: dropped when its tunnel ends.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    lease: LeaseId,
}

/// A verified request as far as places go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Who signed it.
    pub signer: PublicKey,
    /// Its id.
    pub message: MessageId,
    /// When its id may be forgotten.
    pub forgettable_at: Timestamp,
    /// Where it wants to.
    pub lease: LeaseId,
}

impl Places {
    /// Takes a place for `request`, once.
    ///
    /// # Errors
    /// When there is none, or the request was used before.
    pub fn take(self: &Arc<Self>, request: Request, now: Timestamp) -> Result<Place, NoPlace> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.forget(now);
        if taken.seen.contains_key(&(request.signer, request.message)) {
            return Err(NoPlace::Replayed);
        }
        let of_lease = taken.by_lease.get(&request.lease).copied().unwrap_or(0);
        let full = taken.all >= TUNNELS_MAX || of_lease >= LEASE_TUNNELS_MAX;
        if full || taken.seen.len() >= SEEN_MAX {
            return Err(NoPlace::TooMany);
        }
        taken.all += 1;
        taken.by_lease.insert(request.lease, of_lease + 1);
        taken.remember(request);
        Ok(Place {
            places: Arc::clone(self),
            lease: request.lease,
        })
    }

    /// How many tunnels there are.
    #[must_use]
    pub fn open(&self) -> usize {
        self.taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .all
    }

    fn give_back(&self, lease: LeaseId) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all = taken.all.saturating_sub(1);
        let left = taken
            .by_lease
            .get(&lease)
            .copied()
            .unwrap_or(0)
            .saturating_sub(1);
        if left == 0 {
            taken.by_lease.remove(&lease);
        } else {
            taken.by_lease.insert(lease, left);
        }
    }
}

impl Taken {
    fn remember(&mut self, request: Request) {
        let Request {
            signer,
            message,
            forgettable_at,
            ..
        } = request;
        self.seen.insert((signer, message), forgettable_at);
        self.by_age.insert((forgettable_at, signer, message), ());
    }

    fn forget(&mut self, now: Timestamp) {
        while let Some((&(at, signer, message), ())) = self.by_age.first_key_value() {
            if at > now {
                return;
            }
            self.by_age.pop_first();
            self.seen.remove(&(signer, message));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.give_back(self.lease);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64, lease: u8) -> Request {
        let mut message = [0; 16];
        message[..8].copy_from_slice(&number.to_le_bytes());
        Request {
            signer: PublicKey::from_bytes([1; 32]),
            message: MessageId::from_bytes(message),
            forgettable_at: Timestamp(1000),
            lease: LeaseId::from_bytes([lease; 16]),
        }
    }

    #[test]
    fn a_request_is_good_once_until_it_is_forgotten() {
        let places = Arc::new(Places::default());
        drop(places.take(request(1, 1), Timestamp(5)).unwrap());
        assert_eq!(
            places.take(request(1, 1), Timestamp(999)).unwrap_err(),
            NoPlace::Replayed
        );
        assert!(places.take(request(1, 1), Timestamp(1000)).is_ok());
    }

    #[test]
    fn a_lease_has_64_places_and_a_host_512() {
        let places = Arc::new(Places::default());
        let mut held = Vec::new();
        for lease in 0..8 {
            for number in 0..64 {
                let number = u64::from(lease) * 64 + number;
                held.push(places.take(request(number, lease), Timestamp(0)).unwrap());
            }
            let over = places.take(request(9999, lease), Timestamp(0)).unwrap_err();
            assert_eq!(over, NoPlace::TooMany);
        }
        assert_eq!(places.open(), 512);
        assert_eq!(
            places.take(request(9999, 9), Timestamp(0)).unwrap_err(),
            NoPlace::TooMany
        );
        held.pop();
        assert!(places.take(request(9999, 7), Timestamp(0)).is_ok());
    }

    #[test]
    fn memory_of_requests_is_bounded() {
        let places = Arc::new(Places::default());
        for number in 0..16_384 {
            drop(places.take(request(number, 1), Timestamp(0)).unwrap());
        }
        assert_eq!(
            places.take(request(16_384, 1), Timestamp(0)).unwrap_err(),
            NoPlace::TooMany
        );
        assert!(places.take(request(16_384, 1), Timestamp(1000)).is_ok());
    }
}
