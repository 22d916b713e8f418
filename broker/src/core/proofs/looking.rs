//! The desk's part in proofs: it keeps the schedule told of what is listed and the book of what is proved, and looks
//! which of the offers that are due is idle.
//!
//! Must not record anything.

use super::classes::Classes;
use super::level::{STANDS, last_proof, level};
use super::schedule::{Known, Look, Outcome, Rules, Schedule};
use crate::core::charge;
use crate::core::desk::Desk;
use crate::core::event::Fact;
use crate::core::lease::Lease;
use protocol::bounded::{List, Text};
use protocol::ids::{Digest, HostId, LeaseId, OfferId, OrderId, RenterId};
use protocol::machine::{Gpu, Vendor};
use protocol::message::Rejection;
use protocol::offer::{Offer, ResourceName};
use protocol::signed::Signed;
use protocol::terms::{ContractKind, Need};
use protocol::units::{Bytes, MicroUsd, Seconds, Timestamp};
use protocol::verify::{Parameters, VERDICTS_MAX, Verdict, VerificationLevel};

/// The disk that a proof is ordered with: what `feira rent` asks for unless it is told otherwise.
pub const DISK: Bytes = Bytes(10_000_000_000);

/// What a renter of a proof has beyond what is held for an hour.
const SPARE: MicroUsd = MicroUsd(100_000);

/// What proofs go by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofRules {
    /// The operator's numbers.
    pub rules: Rules,
    /// The classes of hardware.
    pub classes: Classes,
    /// The seed of chance; secret.
    pub seed: [u8; 32],
}

/// The schedule, and the classes that it is for.
#[derive(Debug)]
pub struct Proving {
    schedule: Schedule,
    classes: Classes,
}

/// A proof that is to be made now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Whose hardware.
    pub host: HostId,
    /// The offer as it is listed.
    pub offer: Box<Offer>,
    /// What a renter agrees to who orders it.
    pub terms: Digest,
    /// How many of its GPUs: all that are idle, as far as they are sold together.
    pub gpus: u16,
    /// What an hour of that costs, all in.
    pub hour: MicroUsd,
    /// What its renter has to have, so that the lease can be held for and some is left.
    pub fund: MicroUsd,
    /// The class that it is held to.
    pub class: Text<48>,
    /// What that class has to do.
    pub parameters: Parameters,
}

/// The broker's money that a renter of a proof has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Float {
    /// The order that it was for.
    pub order: OrderId,
    /// Who has it.
    pub renter: RenterId,
    /// The lease that is not over, if there is one.
    pub lease: Option<LeaseId>,
}

/// How an offer stands with proofs, as the operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofRow {
    /// Which offer.
    pub offer: OfferId,
    /// How far it is proved.
    pub level: VerificationLevel,
    /// Why it cannot be put to the proof, if it cannot.
    pub unprovable: Option<String>,
    /// When it is put to the proof next, if this broker does that.
    pub due: Option<Timestamp>,
    /// Whether a proof goes on.
    pub is_under_way: bool,
}

impl Desk {
    /// Begins to schedule proofs.
    pub fn prove_by(&mut self, now: Timestamp, rules: ProofRules) {
        let ProofRules {
            rules,
            classes,
            seed,
        } = rules;
        self.proving = Some(Proving {
            schedule: Schedule::new(rules, seed),
            classes,
        });
        let hosts: Vec<HostId> = self.book.hosts().collect();
        for host in hosts {
            self.note_proofs(now, host);
        }
    }

    /// The next proof to begin, if one may.
    pub fn next_proof(&mut self, now: Timestamp) -> Option<Assignment> {
        let Proving {
            mut schedule,
            classes,
        } = self.proving.take()?;
        let found = schedule.next(now, |offer| self.look(now, offer, &classes));
        self.proving = Some(Proving { schedule, classes });
        found
    }

    /// A proof is over. Gives back whether a break counts as the host's failure.
    pub fn proof_over(&mut self, now: Timestamp, offer: OfferId, outcome: Outcome) -> bool {
        let proving = self.proving.as_mut();
        proving.is_some_and(|proving| proving.schedule.over(now, offer, outcome))
    }

    /// The operator asks for a proof of these offers: of one, or of all of a host.
    ///
    /// # Errors
    /// When there is none, it cannot be proved, or this broker makes no proofs.
    pub fn ask_proof(
        &mut self,
        now: Timestamp,
        host: Option<HostId>,
        offer: Option<OfferId>,
    ) -> Result<Vec<OfferId>, Rejection> {
        let refused = |why: &str| Err(Rejection::TooMany(Text::cut(why)));
        let wall = self.wall(now);
        let of_host = host
            .into_iter()
            .flat_map(|host| self.book.host_offers(host, wall));
        let one = offer.and_then(|offer| self.book.get(offer, wall));
        let listed: Vec<Offer> = of_host
            .chain(one)
            .map(|listing| listing.offer().clone())
            .collect();
        let Some(proving) = self.proving.as_mut() else {
            return refused("this broker makes no proofs: name `proof_images` in broker.toml");
        };
        if listed.is_empty() {
            return Err(Rejection::OfferGone);
        }
        let mut asked = Vec::new();
        let mut why = String::new();
        for offer in &listed {
            match proving.classes.find(offer) {
                Ok(_) => {
                    proving.schedule.ask(now, offer.id);
                    asked.push(offer.id);
                }
                Err(error) => why = error.to_string(),
            }
        }
        if asked.is_empty() {
            return refused(&why);
        }
        Ok(asked)
    }

    /// The last verdicts on a host's devices, newest first.
    #[must_use]
    pub fn verdicts(&self, host: HostId) -> List<Signed<Verdict>, VERDICTS_MAX> {
        let mut known: Vec<_> = self.market.proofs.of_host(host).collect();
        known.sort_by_key(|(_, standing)| std::cmp::Reverse(standing.verdict.body().at));
        List::first(
            known
                .into_iter()
                .map(|(_, standing)| standing.verdict.signed().clone()),
        )
    }

    /// The renters of proofs who have money of the broker's.
    #[must_use]
    pub fn floats(&self) -> Vec<Float> {
        let float = |(order, renter): (OrderId, RenterId)| Float {
            order,
            renter,
            lease: self
                .market
                .live_leases_of(renter.into())
                .map(|lease: &Lease| lease.id)
                .next(),
        };
        self.market.proofs.funded().map(float).collect()
    }

    /// How the offers of a host stand with proofs.
    #[must_use]
    pub fn proof_rows(&self, now: Timestamp, host: HostId) -> Vec<ProofRow> {
        let schedule = self.proving.as_ref().map(|proving| &proving.schedule);
        let classes = Classes::default();
        let classes = self
            .proving
            .as_ref()
            .map_or(&classes, |proving| &proving.classes);
        let listings = self.book.host_offers(host, self.wall(now));
        listings
            .map(|listing| {
                let offer = listing.offer();
                ProofRow {
                    offer: offer.id,
                    level: listing.verification().clone(),
                    unprovable: classes.find(offer).err().map(|error| error.to_string()),
                    due: schedule.and_then(|schedule| schedule.due(offer.id)),
                    is_under_way: schedule.is_some_and(|schedule| schedule.is_under_way(offer.id)),
                }
            })
            .collect()
    }

    /// The resources that a lease of an assignment got.
    #[must_use]
    pub fn resources_of(&self, lease: LeaseId) -> Vec<ResourceName> {
        let lease = self.market.lease(lease);
        lease.map_or_else(Vec::new, |lease| lease.contract.share.resources.to_vec())
    }

    /// Tells the book how far the offers of a host are proved, and the schedule that they are listed.
    pub(in crate::core) fn note_proofs(&mut self, now: Timestamp, host: HostId) {
        let is_known = self.market.proofs.of_host(host).next().is_some();
        if is_known {
            let (wall, stands) = (self.wall(now), self.stands());
            let proofs = &self.market.proofs;
            self.book
                .verify(host, |offer| level(proofs, (host, offer), wall, stands));
        }
        let Some(mut proving) = self.proving.take() else {
            return;
        };
        for listing in self.book.host_offers(host, self.wall(now)) {
            let last = last_proof(&self.market.proofs, host, listing.offer());
            let is_verified = matches!(listing.verification(), VerificationLevel::Verified { .. });
            let known = Known {
                last: last.map(|last| self.book_time(last)),
                holds: is_verified || last.is_none(),
            };
            proving.schedule.listed(now, listing.offer().id, known);
        }
        self.proving = Some(proving);
    }

    /// What an event says of a host's hardware is shown at once.
    pub(in crate::core) fn show_proofs_after(&mut self, now: Timestamp, host: Option<HostId>) {
        if let Some(host) = host {
            self.note_proofs(now, host);
        }
    }

    fn stands(&self) -> Seconds {
        self.proving
            .as_ref()
            .map_or(STANDS, |proving| proving.schedule.rules().stands)
    }

    fn look(
        &self,
        now: Timestamp,
        offer: OfferId,
        classes: &Classes,
    ) -> Look<(HostId, Assignment)> {
        let Some(listing) = self.book.get(offer, self.wall(now)) else {
            return Look::Gone;
        };
        let (host, offer) = (listing.host(), listing.offer());
        if self.market.suspended(host).is_some() {
            return Look::Busy;
        }
        let (Ok((class, parameters)), Some(terms)) = (classes.find(offer), listing.terms()) else {
            return Look::Unprovable;
        };
        let mut counts: Vec<u16> = offer.counts().collect();
        counts.reverse();
        // A prover finds one of several GPUs by its UUID, which only NVIDIA's driver knows.
        let is_nvidia = |gpu: &Gpu| gpu.vendor == Vendor::Nvidia;
        if !offer.share.gpus.iter().all(is_nvidia) {
            counts.retain(|gpus| *gpus <= 1);
        }
        if counts.is_empty() {
            return Look::Unprovable;
        }
        let is_idle = |gpus: &u16| {
            let available = self.available(now, ContractKind::OnDemand, listing, *gpus);
            available.is_some_and(|available| !available.pushes_out)
        };
        let Some(gpus) = counts.into_iter().find(is_idle) else {
            return Look::Busy;
        };
        let prices = offer.prices.of_gpus(gpus);
        let hour = prices.all_in_hour(Need::disk(DISK));
        let held = charge::running_cost(&prices, prices.compute, DISK, self.settings.hold);
        let assignment = Assignment {
            host,
            offer: Box::new(offer.clone()),
            terms,
            gpus,
            hour,
            fund: held.max(hour).saturating_add(SPARE),
            class,
            parameters,
        };
        Look::Idle((host, assignment))
    }
}

/// Whose hardware an event says something of, as proofs see it.
pub(in crate::core) fn host_proved(fact: &Fact, lease: Option<&Lease>) -> Option<HostId> {
    match fact {
        Fact::Proved(verdict) => Some(verdict.body().host),
        Fact::Moved(moved) if super::standing::is_fault(moved) => {
            lease.map(|lease| lease.contract.host)
        }
        Fact::Moved(_)
        | Fact::Deposited { .. }
        | Fact::Matched(_)
        | Fact::Granted { .. }
        | Fact::Metered(_)
        | Fact::Held { .. }
        | Fact::Warned { .. }
        | Fact::Commanded(_)
        | Fact::Rested(_)
        | Fact::Lapsed { .. }
        | Fact::Cleared { .. }
        | Fact::RestRebid { .. }
        | Fact::Changed(_)
        | Fact::Paid { .. }
        | Fact::Matured { .. }
        | Fact::Suspended { .. }
        | Fact::Heard(_)
        | Fact::Away(_)
        | Fact::Funded { .. }
        | Fact::Reclaimed { .. } => None,
    }
}
