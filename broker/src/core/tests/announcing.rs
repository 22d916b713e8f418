//! What hosts announce.

use super::world::{Ask, World, host_id, host_key, offer};
use crate::core::command::VerifiedAnnouncement;
use protocol::bounded::{List, Text};
use protocol::ids::MessageId;
use protocol::offer::{Offer, ResourceName};
use protocol::signed::{ANYONE, Envelope, Signed, Verified};
use protocol::units::Seconds;
use std::convert::Infallible;

impl World {
    /// Every host announces all that it offers.
    pub(crate) fn announce(&mut self) {
        let mut hosts: Vec<u8> = self.asks.iter().map(|(host, ..)| *host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        for host in hosts {
            let asks: Vec<_> = self
                .asks
                .iter()
                .filter(|(of, ..)| *of == host)
                .cloned()
                .collect();
            let offers = asks
                .iter()
                .map(|(_, resource, ask)| self.signed_offer(host, resource, ask));
            let offers: Vec<_> = offers.collect();
            let withheld = self.withheld.iter().filter(|(of, _)| *of == host);
            let announcement = VerifiedAnnouncement {
                offers,
                addresses: List::default(),
                withheld: List::first(withheld.map(|(_, name)| name.clone())),
            };
            self.announce_of(host, announcement);
        }
    }

    fn announce_of(&mut self, host: u8, announcement: VerifiedAnnouncement) {
        let Self {
            desk, journal, now, ..
        } = self;
        let result: Result<_, Infallible> =
            desk.announce(*now, host_id(host), announcement, &mut |event| {
                journal.push(event.clone());
                Ok(())
            });
        result.unwrap().unwrap();
    }

    /// A host that offers nothing says where it is.
    pub(crate) fn announce_at(&mut self, host: u8, address: Text<256>) {
        let announcement = VerifiedAnnouncement {
            addresses: List::first([address]),
            ..VerifiedAnnouncement::default()
        };
        self.announce_of(host, announcement);
    }

    fn signed_offer(&self, host: u8, resource: &ResourceName, ask: &Ask) -> Verified<Offer> {
        let envelope = Envelope {
            audience: ANYONE,
            message_id: MessageId::from_bytes([0; 16]),
            issued: self.now.before(self.ahead),
            validity: Seconds(90),
        };
        Signed::sign(
            offer(host, resource, ask, self.now),
            &host_key(host),
            envelope,
        )
        .unwrap()
    }
}
