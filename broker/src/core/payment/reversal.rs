//! Taking a deposit back that went to the wrong renter, or was typed with a wrong amount.
//!
//! Must not take what the renter has spent or has held: what of it is free goes back to the operator's cash.

use super::{Note, payment};
use crate::core::decision::{Decision, Reply};
use crate::core::desk::Desk;
use crate::core::event::{Event, Fact};
use crate::core::ledger::{Account, Transfer};
use crate::core::order::bad_value;
use crate::core::payment::{NO_SUCH, PaymentKind};
use protocol::ids::{DepositId, PaymentId};
use protocol::message::Rejection;
use protocol::units::{MicroUsd, Timestamp};

/// A deposit to be reversed, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reversal {
    /// Chosen by the operator: a repeat has no second effect.
    pub id: PaymentId,
    /// Which deposit.
    pub deposit: DepositId,
    /// How much of it; nothing for all that was not reversed before.
    pub amount: Option<MicroUsd>,
    /// Why.
    pub note: Note,
}

impl Desk {
    /// Decides about a reversal: never more than the deposit was, nor than its renter has free.
    pub(super) fn reverse(
        &self,
        now: Timestamp,
        reversal: Reversal,
    ) -> Result<Decision, Rejection> {
        let Reversal {
            id,
            deposit,
            amount,
            note,
        } = reversal;
        let what = PaymentKind::DepositReversed(deposit);
        if let Some(known) = self.market.payment(id) {
            let is_same = known.what == what && amount.is_none_or(|asked| asked == known.amount);
            return if is_same {
                Ok(Decision::answer(Reply::PaymentBefore(id)))
            } else {
                Err(Rejection::IdReused)
            };
        }
        let (renter, deposited) = self
            .market
            .deposit(&deposit)
            .ok_or_else(|| bad_value("deposit", NO_SUCH))?;
        let left = deposited.saturating_sub(self.reversed(deposit));
        let amount = amount.unwrap_or(left);
        if left <= MicroUsd::ZERO {
            return Err(bad_value("deposit", "all of it was reversed before"));
        }
        if amount <= MicroUsd::ZERO || amount > left {
            let text = format!("more than nothing, and {left} of the deposit can be reversed");
            return Err(bad_value("amount", &text));
        }
        let free = self.market.available(renter);
        if amount > free {
            let text = format!(
                "{amount} are to go back and {free} of the renter's money are free: the rest is spent or held"
            );
            return Err(bad_value("amount", &text));
        }
        let account = Account::RenterAvailable(renter);
        let event = Event {
            at: now,
            fact: Fact::Paid {
                id,
                payment: Box::new(payment(now, what, amount, note)),
            },
            entries: Transfer::default()
                .moving(account, Account::Cash, amount)
                .entries(),
        };
        Ok(Decision::events(vec![event], Reply::Payment(id)))
    }

    /// How much of a deposit was reversed.
    fn reversed(&self, deposit: DepositId) -> MicroUsd {
        let of_it = self
            .market
            .payments()
            .filter(|(_, payment)| payment.what == PaymentKind::DepositReversed(deposit));
        of_it.fold(MicroUsd::ZERO, |sum, (_, payment)| {
            sum.saturating_add(payment.amount)
        })
    }
}
