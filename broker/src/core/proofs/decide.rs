//! Deciding about proofs: the broker's money for a renter of its own, that money back, and verdicts.
//!
//! A proof is paid for out of the renter's account that has the broker's own key: the operator deposits there as for
//! any renter. Must not change anything.

use crate::core::desk::{Decision, Desk, Reply};
use crate::core::event::{Event, Fact, Kept};
use crate::core::ledger::{Account, Transfer};
use crate::core::order::bad_value;
use ed25519_dalek::SigningKey;
use protocol::ids::{Digest, OrderId, PublicKey, RenterId};
use protocol::message::Rejection;
use protocol::signed::Verified;
use protocol::units::{MicroUsd, Timestamp};
use protocol::verify::Verdict;

/// What is wanted for a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofOrder {
    /// Money for the renter who is to order this.
    Fund {
        /// The order that it is for: a repeat has no second effect.
        order: OrderId,
        /// Who orders.
        renter: RenterId,
        /// How much.
        amount: MicroUsd,
    },
    /// All that is left of it, once the lease is over.
    Reclaim {
        /// The order that it was for.
        order: OrderId,
    },
    /// What the broker found.
    Prove(Box<Verified<Verdict>>),
}

/// The key of the renter who orders `order` for a proof: a new one for each, which only the broker can make, and
/// makes again after a restart.
#[must_use]
pub fn renter_key(broker: &SigningKey, order: OrderId) -> SigningKey {
    let mut secret = b"feira renter of a proof 1".to_vec();
    secret.extend_from_slice(broker.as_bytes());
    secret.extend_from_slice(order.as_bytes());
    SigningKey::from_bytes(Digest::of(&secret).as_bytes())
}

impl Desk {
    /// The account that proofs are paid from.
    #[must_use]
    pub fn proof_account(&self) -> RenterId {
        RenterId::from(PublicKey::from(self.market.broker()))
    }

    pub(in crate::core) fn decide_proof(
        &self,
        now: Timestamp,
        order: ProofOrder,
    ) -> Result<Decision, Rejection> {
        match order {
            ProofOrder::Fund {
                order,
                renter,
                amount,
            } => self.fund(now, order, renter, amount),
            ProofOrder::Reclaim { order } => self.reclaim(now, order),
            ProofOrder::Prove(verdict) => self.prove(now, *verdict),
        }
    }

    fn fund(
        &self,
        now: Timestamp,
        order: OrderId,
        renter: RenterId,
        amount: MicroUsd,
    ) -> Result<Decision, Rejection> {
        match self.market.proofs.renter(order) {
            Some(known) if known == renter => return Ok(Decision::answer(Reply::Noted)),
            Some(_) => return Err(Rejection::IdReused),
            None => {}
        }
        if amount <= MicroUsd::ZERO {
            return Err(bad_value("amount", "it must be more than nothing"));
        }
        let available = self.market.available(self.proof_account());
        if available < amount {
            return Err(Rejection::NotEnoughMoney {
                available,
                needed: amount,
            });
        }
        let transfer = Transfer::default().moving(
            Account::RenterAvailable(self.proof_account()),
            Account::RenterAvailable(renter),
            amount,
        );
        let fact = Fact::Funded {
            order,
            renter,
            amount,
        };
        Ok(noted(now, fact, transfer))
    }

    fn reclaim(&self, now: Timestamp, order: OrderId) -> Result<Decision, Rejection> {
        let Some(renter) = self.market.proofs.renter(order) else {
            return Ok(Decision::answer(Reply::Noted));
        };
        if self.market.live_leases_of(renter.into()).next().is_some() {
            return Err(bad_value("order", "its lease is not over"));
        }
        let amount = self.market.available(renter);
        let transfer = Transfer::default().moving(
            Account::RenterAvailable(renter),
            Account::RenterAvailable(self.proof_account()),
            amount,
        );
        let fact = Fact::Reclaimed {
            order,
            renter,
            amount,
        };
        Ok(noted(now, fact, transfer))
    }

    fn prove(&self, now: Timestamp, verdict: Verified<Verdict>) -> Result<Decision, Rejection> {
        if verdict.signer() != PublicKey::from(self.market.broker()) {
            return Err(Rejection::NotTheSigner);
        }
        let body = verdict.body();
        let device = super::standing::device(&body.device);
        let known = self.market.proofs.get(body.host, &device);
        if known.is_some_and(|known| known.verdict.body().at >= body.at) {
            return Ok(Decision::answer(Reply::Noted));
        }
        let fact = Fact::Proved(Box::new(Kept::from(verdict)));
        Ok(noted(now, fact, Transfer::default()))
    }
}

fn noted(at: Timestamp, fact: Fact, transfer: Transfer) -> Decision {
    let event = Event {
        at,
        fact,
        entries: transfer.entries(),
    };
    Decision::events(vec![event], Reply::Noted)
}
