//! Running a stopped lease again, on its own resources: at once when they are free, and when those who have
//! them have gone if it wins them.
//!
//! Must not change anything.

use crate::core::auction;
use crate::core::capacity::{Claim, Misfit};
use crate::core::desk::Desk;
use crate::core::event::Event;
use crate::core::lease::{Lease, State};
use crate::core::placing::{leases_of, taken_from};
use protocol::bounded::List;
use protocol::ids::LeaseId;
use protocol::message::Rejection;
use protocol::offer::Part;
use protocol::units::{MicroUsd, Timestamp};

impl Desk {
    /// The events with which a stopped lease runs again.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) fn run_again(&self, now: Timestamp, lease: &Lease) -> Result<Vec<Event>, Misfit> {
        let contract = &lease.contract;
        self.check_heard(now, lease)?;
        self.check_money_to_run(now, lease)?;
        let claim = contract.bid.map_or(Claim::Firm, Claim::Bid);
        let mut converts = Vec::new();
        let victims = loop {
            let room = self.room(
                now,
                contract.host,
                &contract.share.resources,
                claim,
                &leases_of(&converts),
            );
            let wanted = contract.share.resources.len();
            let missing = room.missing(wanted).unwrap_or(u16::MAX);
            let victims = match claim {
                Claim::Firm => auction::preempted(&room.victims, missing),
                Claim::Bid(bid) => auction::outbid(&room.victims, missing, bid),
            };
            let fits = victims.filter(|victims| self.fits_beside(now, lease, victims));
            let Some(victims) = fits else {
                return Err(Misfit {
                    converts,
                    ..Misfit::not_now(Rejection::ResourceTaken)
                });
            };
            match self.first_that_pays(now, &victims, &converts) {
                Some(stays) => converts.push(stays),
                // Its own money goes there first.
                None if taken_from(&converts, contract.renter) > MicroUsd::ZERO => {
                    return Err(Misfit {
                        converts,
                        ..Misfit::not_now(Rejection::ResourceTaken)
                    });
                }
                None => break victims,
            }
        };
        let (mut events, clear_by) = self.make_room(now, claim, &victims, &converts);
        let start_by = now.after(contract.limits.start_within.millis());
        let to = clear_by.map_or(State::Preparing { start_by }, |until| State::Clearing {
            until,
        });
        events.push(self.moved(now, lease, to, self.meter_at(now, lease)));
        Ok(events)
    }

    fn check_heard(&self, now: Timestamp, lease: &Lease) -> Result<(), Misfit> {
        let heard = self.book.heard_at(lease.contract.host);
        let silence_max = self.settings.suspect_after.millis();
        if heard.is_none_or(|heard| self.wall(now).since(heard) > silence_max) {
            return Err(Misfit::not_now(Rejection::HostGone));
        }
        Ok(())
    }

    fn check_money_to_run(&self, now: Timestamp, lease: &Lease) -> Result<(), Misfit> {
        let meter = self.meter_at(now, lease);
        // What is charged up to here comes out of the same money.
        let unposted = lease
            .charge_for(&meter.usage)
            .total()
            .saturating_sub(lease.charged.total());
        let needed = self.hold_to_run(lease, &meter).saturating_add(unposted);
        let held = self.market.held(lease.id);
        let available = self.market.available(lease.contract.renter);
        if needed > held.saturating_add(available) {
            let needed = needed.saturating_sub(held).max(MicroUsd::ZERO);
            return Err(Misfit::not_now(Rejection::NotEnoughMoney {
                available,
                needed,
            }));
        }
        Ok(())
    }

    /// Whether CPU time and RAM are there for it when `gone` are; an offer that does not stand is nobody else's.
    fn fits_beside(&self, now: Timestamp, lease: &Lease, gone: &[LeaseId]) -> bool {
        let share = &lease.contract.share;
        let part = Part {
            resources: List::first(share.resources.iter().cloned()),
            cpu_millicores: share.cpu_millicores,
            ram: share.ram,
            shared_memory: share.shared_memory,
        };
        let listing = self.book.get(lease.contract.offer, self.wall(now));
        listing.is_none_or(|listing| {
            self.has_room_beside(now, lease.contract.host, listing.offer(), &part, gone)
        })
    }
}
