//! The operator's moves of hosts' money: bonds, refunds, payouts, and hosts that may take no leases.
//!
//! Every one has an id that the operator chooses or was given; with the same id and content it has one
//! effect. Must not touch what a renter ordered.

mod record;
mod reversal;

pub use self::record::{Payment, PaymentKind, Payout};
pub use self::reversal::Reversal;
use crate::core::command::Answer;
use crate::core::desk::{Decision, Desk, Reply};
use crate::core::event::{Event, Fact};
use crate::core::lease::Lease;
use crate::core::ledger::{Account, Transfer};
use crate::core::order::bad_value;
use protocol::bounded::Text;
use protocol::ids::{HostId, LeaseId, PaymentId};
use protocol::message::Rejection;
use protocol::terms::fee_of;
use protocol::units::{MicroUsd, Timestamp};

/// Words of the operator's.
pub type Note = Text<128>;

/// What is wrong with an id that names nothing here.
pub const NO_SUCH: &str = "there is none of that id";

/// What an operator wants done with a host's money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoneyOrder {
    /// A host deposited a bond.
    Bond {
        /// Chosen by the operator: a repeat has no second effect.
        id: PaymentId,
        /// Whose.
        host: HostId,
        /// How much.
        amount: MicroUsd,
        /// For the books.
        note: Note,
    },
    /// A host's bond, or a part of it, was given back to it.
    ReturnBond {
        /// As above.
        id: PaymentId,
        /// Whose.
        host: HostId,
        /// How much.
        amount: MicroUsd,
        /// For the books.
        note: Note,
    },
    /// A renter gets back a part of what a lease cost.
    Refund {
        /// As above.
        id: PaymentId,
        /// Of which lease.
        lease: LeaseId,
        /// How much.
        amount: MicroUsd,
        /// Why.
        note: Note,
    },
    /// Makes a payout of all that is free for each host that has none open.
    MakePayouts {
        /// Less than this is left for later.
        minimum: MicroUsd,
    },
    /// A payout was paid.
    Paid {
        /// Which.
        id: PaymentId,
        /// The bank's, or the chain's, name of the transfer.
        note: Note,
    },
    /// A payout is not paid, and its money is free for the next one.
    DropPayout {
        /// Which.
        id: PaymentId,
        /// Why.
        note: Note,
    },
    /// A deposit, or a part of it, is taken back.
    Reverse(Reversal),
    /// A host may take no leases from now on, or may again.
    Suspend {
        /// Which.
        host: HostId,
        /// Why; nothing lifts it.
        why: Option<Note>,
    },
}

impl Desk {
    pub(super) fn decide_money(
        &self,
        now: Timestamp,
        order: MoneyOrder,
    ) -> Result<Decision, Rejection> {
        match order {
            MoneyOrder::Bond {
                id,
                host,
                amount,
                note,
            } => self.decide_payment(now, id, payment(now, PaymentKind::Bond(host), amount, note)),
            MoneyOrder::ReturnBond {
                id,
                host,
                amount,
                note,
            } => {
                let what = PaymentKind::BondReturned(host);
                self.decide_payment(now, id, payment(now, what, amount, note))
            }
            MoneyOrder::Refund {
                id,
                lease,
                amount,
                note,
            } => {
                let what = PaymentKind::Refund(lease);
                self.decide_payment(now, id, payment(now, what, amount, note))
            }
            MoneyOrder::MakePayouts { minimum } => Ok(self.make_payouts(now, minimum)),
            MoneyOrder::Paid { id, note } => self.close_payout(now, id, Payout::Paid(now), note),
            MoneyOrder::DropPayout { id, note } => {
                self.close_payout(now, id, Payout::Dropped(now), note)
            }
            MoneyOrder::Reverse(reversal) => self.reverse(now, reversal),
            MoneyOrder::Suspend { host, why } => {
                let fact = Fact::Suspended { host, why };
                Ok(Decision::events(vec![Event::bare(now, fact)], Reply::Noted))
            }
        }
    }

    fn decide_payment(
        &self,
        now: Timestamp,
        id: PaymentId,
        payment: Payment,
    ) -> Result<Decision, Rejection> {
        if let Some(known) = self.market.payment(id) {
            let is_same = (known.what, known.amount) == (payment.what, payment.amount);
            return if is_same {
                Ok(Decision::answer(Reply::PaymentBefore(id)))
            } else {
                Err(Rejection::IdReused)
            };
        }
        if payment.amount <= MicroUsd::ZERO {
            return Err(bad_value("amount", "it must be more than nothing"));
        }
        let (transfer, suspended) = match payment.what {
            PaymentKind::Bond(host) => (self.bond(host, payment.amount)?, None),
            PaymentKind::BondReturned(host) => (self.returned(host, payment.amount)?, None),
            PaymentKind::Refund(lease) => self.refund(lease, payment.amount)?,
            PaymentKind::Payout(..) | PaymentKind::DepositReversed(_) => {
                return Err(bad_value("payment", "it is decided about elsewhere"));
            }
        };
        let mut events = vec![Event {
            at: now,
            fact: Fact::Paid {
                id,
                payment: Box::new(payment),
            },
            entries: transfer.entries(),
        }];
        events.extend(suspended.map(|fact| Event::bare(now, fact)));
        Ok(Decision::events(events, Reply::Payment(id)))
    }

    fn bond(&self, host: HostId, amount: MicroUsd) -> Result<Transfer, Rejection> {
        let cash = self.market.ledger().balance(&Account::Cash);
        if cash.checked_add(amount).is_none() {
            return Err(bad_value(
                "amount",
                "less than the ledger can hold is wanted",
            ));
        }
        Ok(Transfer::default().moving(Account::Cash, Account::HostBond(host), amount))
    }

    /// A bond stands for the terms that were prepaid on the host's machines: it stays while one runs.
    fn returned(&self, host: HostId, amount: MicroUsd) -> Result<Transfer, Rejection> {
        let bond = self.market.ledger().balance(&Account::HostBond(host));
        if amount > bond {
            let text = format!("the host's bond is {bond}");
            return Err(bad_value("amount", &text));
        }
        let mut leases = self.market.live_leases_of(host.into());
        if leases.any(|lease| lease.contract.host == host && lease.term.is_some()) {
            return Err(bad_value(
                "host",
                "a prepaid term on its machine is not over",
            ));
        }
        Ok(Transfer::default().moving(Account::HostBond(host), Account::Cash, amount))
    }

    /// What goes back to a renter: the fee's part so that the fee is always that of what remains, the host's
    /// part from where its money is: earned and pending, free, its bond, and at last the broker's own.
    fn refund(&self, id: LeaseId, amount: MicroUsd) -> Result<(Transfer, Option<Fact>), Rejection> {
        let lease = self.market.lease(id).ok_or(Rejection::UnknownLease)?;
        let shared = lease.shared();
        if amount > shared {
            let text = format!("{shared} of it can be given back");
            return Err(bad_value("amount", &text));
        }
        let rate = lease.contract.fee;
        let fee = fee_of(shared, rate).saturating_sub(fee_of(shared.saturating_sub(amount), rate));
        let (host, renter) = (
            lease.contract.host,
            Account::RenterAvailable(lease.contract.renter),
        );
        let pending = Account::HostPending(id);
        let of_host = amount.saturating_sub(fee);
        let earned = of_host.min(self.market.ledger().balance(&pending));
        let transfer = Transfer::default()
            .moving(Account::BrokerFee, renter, fee)
            .moving(pending, renter, earned);
        let missing = of_host.saturating_sub(earned);
        let (transfer, goodwill) = self.taken_from_host(transfer, host, renter, missing);
        let suspended = (goodwill > MicroUsd::ZERO).then(|| Fact::Suspended {
            host,
            why: Some(Note::cut("its bond did not cover a refund")),
        });
        Ok((transfer, suspended))
    }

    /// Moves `amount` of a host's money that is pending no more: what is free, its bond, and at last the
    /// broker's own. Says how much that was.
    pub(super) fn taken_from_host(
        &self,
        mut transfer: Transfer,
        host: HostId,
        to: Account,
        amount: MicroUsd,
    ) -> (Transfer, MicroUsd) {
        let bond = Account::HostBond(host);
        let sources = [
            (Account::HostAvailable(host), self.free_of(host)),
            (bond, self.market.ledger().balance(&bond)),
        ];
        let mut missing = amount;
        for (account, there) in sources {
            let taken = missing.min(there).max(MicroUsd::ZERO);
            transfer = transfer.moving(account, to, taken);
            missing = missing.saturating_sub(taken);
        }
        let transfer = transfer.moving(Account::BrokerGoodwill, to, missing);
        (transfer, missing)
    }

    /// What a host has free beyond the payouts that are to be paid.
    fn free_of(&self, host: HostId) -> MicroUsd {
        let available = self.market.ledger().balance(&Account::HostAvailable(host));
        let open = self.market.open_payout(host);
        available.saturating_sub(open.map_or(MicroUsd::ZERO, |(_, payment)| payment.amount))
    }

    fn make_payouts(&self, now: Timestamp, minimum: MicroUsd) -> Decision {
        let least = minimum.max(MicroUsd(1));
        let due = self.market.ledger().iter().filter_map(|(account, _)| {
            let Account::HostAvailable(host) = account else {
                return None;
            };
            let amount = self.market.ledger().balance(account);
            let is_due = amount >= least
                && self.market.open_payout(*host).is_none()
                && !self.is_suspended(*host);
            is_due.then_some((*host, amount))
        });
        let number = self.market.events();
        let events = due.zip(0_u64..).map(|((host, amount), index)| {
            let what = PaymentKind::Payout(host, Payout::Open);
            let fact = Fact::Paid {
                id: PaymentId::of_payout(host, number.saturating_add(index)),
                payment: Box::new(payment(now, what, amount, Note::default())),
            };
            Event::bare(now, fact)
        });
        Decision::events(events.collect(), Reply::OpenPayouts)
    }

    fn close_payout(
        &self,
        now: Timestamp,
        id: PaymentId,
        to: Payout,
        note: Note,
    ) -> Result<Decision, Rejection> {
        let known = self.market.payment(id);
        let Some((host, stands, amount)) = known.and_then(|known| match known.what {
            PaymentKind::Payout(host, stands) => Some((host, stands, known.amount)),
            PaymentKind::Bond(_)
            | PaymentKind::BondReturned(_)
            | PaymentKind::Refund(_)
            | PaymentKind::DepositReversed(_) => None,
        }) else {
            return Err(bad_value("payout", NO_SUCH));
        };
        match stands {
            Payout::Open => {}
            Payout::Paid(_) => return Err(bad_value("payout", "it was marked as paid before")),
            Payout::Dropped(_) => return Err(bad_value("payout", "it was dropped before")),
        }
        let transfer = match to {
            Payout::Paid(_) => {
                Transfer::default().moving(Account::HostAvailable(host), Account::Cash, amount)
            }
            Payout::Open | Payout::Dropped(_) => Transfer::default(),
        };
        let what = PaymentKind::Payout(host, to);
        let event = Event {
            at: now,
            fact: Fact::Paid {
                id,
                payment: Box::new(payment(now, what, amount, note)),
            },
            entries: transfer.entries(),
        };
        Ok(Decision::events(vec![event], Reply::Payment(id)))
    }

    /// What a payment's answer is.
    pub(super) fn payment_answer(&self, id: PaymentId, before: bool) -> Answer {
        match self.market.payment(id) {
            Some(payment) => Answer::Payment {
                id,
                payment: Box::new(payment.clone()),
                before,
            },
            None => Answer::Noted,
        }
    }

    /// The payouts that are to be paid.
    pub(super) fn open_payouts(&self) -> Answer {
        let open = self
            .market
            .payments()
            .filter(|(_, payment)| payment.is_open());
        Answer::Payouts(open.map(|(id, payment)| (id, payment.clone())).collect())
    }

    /// Whether a host may take no leases.
    #[must_use]
    pub fn is_suspended(&self, host: HostId) -> bool {
        self.market.suspended(host).is_some()
    }

    /// Refuses what a suspended host would have to take.
    pub(super) fn check_standing(&self, host: HostId) -> Result<(), Rejection> {
        match self.market.suspended(host) {
            Some(why) => Err(Rejection::HostSuspended(why.clone())),
            None => Ok(()),
        }
    }
}

/// What a lease's host earned of it in all, without the fee.
pub(super) fn earned_by_host(lease: &Lease) -> MicroUsd {
    let shared = lease.shared();
    shared.saturating_sub(fee_of(shared, lease.contract.fee))
}

/// The same before anything of it was given back.
pub(super) fn earned_before_refunds(lease: &Lease) -> MicroUsd {
    let gross = Lease::gross_of(&lease.charged, lease.term.as_ref());
    gross.saturating_sub(fee_of(gross, lease.contract.fee))
}

fn payment(at: Timestamp, what: PaymentKind, amount: MicroUsd, note: Note) -> Payment {
    Payment {
        at,
        what,
        amount,
        note,
    }
}
