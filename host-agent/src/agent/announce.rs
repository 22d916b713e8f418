//! The offers: signed again every few seconds and at once when they change, said to every broker that is
//! connected. What is not said again is withdrawn by itself. An offer is said while leases have some of it, or all:
//! its broker sells the rest, and takes bids for what can be won.

use super::desk::{Desk, millis};
use super::events::{Done, Sent, What};
use super::saying::ask;
use super::signing::{OFFER_VALIDITY, sign};
use crate::core::offer::Listed;
use crate::hardware::Hardware;
use crate::runtime::Runtime;
use protocol::bounded::{List, Text};
use protocol::codec::CodecError;
use protocol::ids::{BrokerId, LeaseId};
use protocol::message::{Announcement, BrokerRequest};
use protocol::net::LinkState;
use protocol::offer::{Offer, RESOURCES_MAX, ResourceName, parent};
use protocol::signed::{ANYONE, Signed};
use protocol::units::{Bytes, Millis};
use std::collections::{BTreeMap, BTreeSet};

/// Less free disk than this, and nothing is offered.
const DISK_MIN: Bytes = Bytes::from_gb(1);

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// The offers changed: every broker hears them with the next turn of the loop.
    pub(super) fn announce_soon(&mut self) {
        for broker in self.brokers.values_mut() {
            broker.next_announce = Millis(0);
        }
    }

    /// Notes which brokers are connected; one that is connected again hears everything again.
    pub(super) fn look_at_links(&mut self) {
        for (id, broker) in &mut self.brokers {
            let is_up = matches!(broker.link.state(), LinkState::Up { .. });
            if is_up && !broker.was_up {
                tracing::info!(broker = %id.short(), "connected");
                broker.next_announce = Millis(0);
                self.talks.say_all_again(*id, &self.leases);
            }
            if !is_up && broker.was_up {
                tracing::warn!(broker = %id.short(), "the connection is lost; trying again");
            }
            broker.was_up = is_up;
        }
    }

    pub(super) fn is_connected(&self, broker: BrokerId) -> bool {
        self.brokers
            .get(&broker)
            .is_some_and(|broker| broker.was_up)
    }

    /// Says the offers to every broker that is due.
    pub(super) fn announce_if_due(&mut self) {
        let now = self.now().monotonic;
        let period = millis(self.config.periods.announce);
        let due: Vec<BrokerId> = self
            .brokers
            .iter()
            .filter(|(_, broker)| {
                broker.was_up && !broker.announcing && now >= broker.next_announce
            })
            .map(|(id, _)| *id)
            .collect();
        if due.is_empty() {
            return;
        }
        let offers = match self.signed_offers() {
            Ok(offers) => offers,
            Err(error) => {
                tracing::error!(%error, "the offers cannot be signed");
                return;
            }
        };
        for id in due {
            if let Some(broker) = self.brokers.get_mut(&id) {
                broker.announcing = true;
                broker.next_announce = now.plus(period);
            }
            let offers = offers
                .iter()
                .filter(|(listed, _)| self.has_room_for(id, listed));
            let offers = offers.map(|(_, signed)| signed.clone()).collect();
            self.announce(id, offers);
        }
    }

    fn announce(&mut self, to: BrokerId, offers: Vec<Signed<Offer>>) {
        let withheld = self.withheld_from(to);
        let node = self.node.clone();
        let announced = self.config.announce.clone();
        self.tasks.spawn(async move {
            let direct = if announced.is_empty() {
                node.listen_addresses().await
            } else {
                announced
            };
            // An address too long for its place cannot be dialled anyway.
            let addresses = direct
                .iter()
                .filter_map(|address| Text::new(address.to_string()).ok());
            let announcement = Announcement {
                offers: List::first(offers),
                addresses: List::first(addresses),
                withheld,
            };
            let answer = ask(&node, to, &BrokerRequest::Announce(announcement)).await;
            Done::Sent(Box::new(Sent {
                to,
                what: What::Offers,
                answer,
            }))
        });
    }

    /// The offers, signed now; none while nothing can be leased.
    fn signed_offers(&mut self) -> Result<Vec<(Listed, Signed<Offer>)>, CodecError> {
        if self.draining
            || self.care.health.drain().is_some()
            || !self.engine.is_up()
            || self.disk_for_leases() < DISK_MIN
        {
            return Ok(Vec::new());
        }
        self.sequence = self.sequence.saturating_add(1).max(self.now().wall.0);
        let offers = self.standing.offers.iter();
        offers
            .map(|listed| {
                let offer = Offer {
                    sequence: self.sequence,
                    ..listed.offer.clone()
                };
                let signed = sign(&self.identity, offer, ANYONE, OFFER_VALIDITY)?;
                Ok((listed.clone(), signed))
            })
            .collect()
    }

    /// Whether a broker may hope for anything of an offer: it knows which of it its own leases have, and bids may
    /// push those out; what another broker's leases have is nothing to it.
    fn has_room_for(&self, broker: BrokerId, listed: &Listed) -> bool {
        let is_others = |lease: LeaseId| {
            self.leases
                .record(lease)
                .is_some_and(|record| record.broker != broker)
        };
        let resources: &[ResourceName] = &listed.offer.share.resources;
        resources.iter().any(|resource| {
            let mut holders = self.leases.capacity().holders(resource);
            !holders.any(is_others)
        })
    }

    /// What of this host a broker cannot sell now: what other brokers' leases have, and what is not fit.
    fn withheld_from(&self, broker: BrokerId) -> List<ResourceName, RESOURCES_MAX> {
        let is_others = |lease: LeaseId| {
            self.leases
                .record(lease)
                .is_some_and(|record| record.broker != broker)
        };
        let held = self.leases.capacity().held();
        let of_others = held.filter(|(_, lease)| is_others(*lease));
        let of_others = of_others.map(|(name, _)| name.clone());
        let all: BTreeSet<ResourceName> = of_others
            .chain(self.slicing.withheld())
            .chain(self.unhealthy())
            .collect();
        List::first(all)
    }

    /// The leases that have some of an offer's resources, each with how many of them.
    pub(super) fn holders_of(&self, listed: &Listed) -> BTreeMap<LeaseId, usize> {
        let mut holders = BTreeMap::new();
        let sold = &listed.offer.share.resources;
        let is_of_it = |name: &str| sold.iter().any(|sold| sold.as_str() == name);
        for (name, lease) in self.leases.capacity().held() {
            // Slices of a GPU that is offered whole too have a part of it.
            if is_of_it(name) || is_of_it(parent(name)) {
                *holders.entry(lease).or_default() += 1;
            }
        }
        holders
    }
}
