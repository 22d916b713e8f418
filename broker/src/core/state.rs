//! The hard state as bytes: one bounded record after the other, in one order, so that two equal markets
//! have equal bytes.
//!
//! Must not know where the bytes are kept.

use crate::core::lease::Lease;
use crate::core::ledger::Account;
use crate::core::market::Market;
use crate::core::payment::{Note, Payment};
use crate::core::proofs::standing::Standing;
use crate::core::reliability::Kept;
use crate::core::rest::Resting;
use crate::core::seen::Seen;
use protocol::codec::{self, CodecError};
use protocol::ids::{BrokerId, DepositId, HostId, OrderId, PaymentId, RenterId};
use protocol::reliability::Outcome;
use protocol::units::{MicroUsd, Timestamp};
use serde::{Deserialize, Serialize};

/// One record, of a lease borrowed or owned. Variants are only ever added at the end.
#[derive(Debug, Serialize, Deserialize)]
enum Record<L> {
    /// The first one.
    Head {
        broker: BrokerId,
        events: u64,
        last_number: u64,
        last_at: Timestamp,
    },
    /// A deposit.
    Deposit {
        id: DepositId,
        renter: RenterId,
        amount: MicroUsd,
    },
    /// A balance, as debits less credits.
    Balance { account: Account, balance: i64 },
    /// A lease.
    Lease(L),
    /// A statement that had its effect.
    Seen(Seen),
    /// A move of a host's money.
    Payment(PaymentId, Payment),
    /// A host that may take no leases.
    Suspended(HostId, Note),
    /// An order that waits, or waited.
    Resting(Box<Resting>),
    /// What is known of a host.
    Host(Box<Kept>),
    /// What came of a lease of the host before.
    Outcome(Box<Outcome>),
    /// A renter who has the broker's money for a proof.
    Funded(OrderId, RenterId),
    /// What is known of a device by proof.
    Proved(Box<Standing>),
}

/// Why bytes are not a market.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// A record cannot be read or written.
    #[error("record {index}: {source}")]
    Record {
        /// Which, from 0.
        index: usize,
        /// Why not.
        source: CodecError,
    },
    /// The bytes end inside a record, or do not begin with a head.
    #[error("the bytes are cut off or do not begin as they should")]
    Cut,
}

impl Market {
    /// How many records the state takes.
    #[must_use]
    pub fn size(&self) -> usize {
        1 + self.deposits.len()
            + self.ledger.len()
            + self.leases.len()
            + self.seen.len()
            + self.rests.len()
            + self.payments.len()
            + self.suspended.len()
            + self.reliability.size()
            + self.proofs.size()
    }

    /// The state as bytes.
    ///
    /// # Errors
    /// When a record is larger than a message may be, which an order's own bound rules out.
    pub fn encode(&self) -> Result<Vec<u8>, StateError> {
        let Self {
            broker,
            events,
            last_number,
            last_at,
            ..
        } = *self;
        let mut writer = Writer::default();
        writer.put(&Record::Head {
            broker,
            events,
            last_number,
            last_at,
        })?;
        for (id, (renter, amount)) in &self.deposits {
            writer.put(&Record::Deposit {
                id: *id,
                renter: *renter,
                amount: *amount,
            })?;
        }
        for (account, balance) in self.ledger.iter() {
            writer.put(&Record::Balance {
                account: *account,
                balance,
            })?;
        }
        // Before the leases, which have their refunds in them.
        for (id, payment) in self.payments() {
            writer.put(&Record::Payment(id, payment.clone()))?;
        }
        for (host, why) in &self.suspended {
            writer.put(&Record::Suspended(*host, why.clone()))?;
        }
        for lease in self.leases() {
            writer.put(&Record::Lease(lease))?;
        }
        for seen in self.seen.iter() {
            writer.put(&Record::Seen(seen))?;
        }
        for rest in self.rests() {
            writer.put(&Record::Resting(Box::new(rest.clone())))?;
        }
        for kept in self.reliability.kept() {
            writer.put(&Record::Host(Box::new(kept)))?;
        }
        for outcome in self.reliability.outcomes() {
            writer.put(&Record::Outcome(Box::new(outcome.clone())))?;
        }
        for (order, renter) in self.proofs.funded() {
            writer.put(&Record::Funded(order, renter))?;
        }
        for standing in self.proofs.iter() {
            writer.put(&Record::Proved(Box::new(standing.clone())))?;
        }
        Ok(writer.bytes)
    }

    /// The market that `bytes` are the state of.
    ///
    /// # Errors
    /// When they are not one.
    pub fn decode(bytes: &[u8]) -> Result<Self, StateError> {
        let mut reader = Reader { bytes, index: 0 };
        let Some(Record::Head {
            broker,
            events,
            last_number,
            last_at,
        }) = reader.next()?
        else {
            return Err(StateError::Cut);
        };
        let mut market = Self::new(broker);
        market.events = events;
        market.last_number = last_number;
        market.last_at = last_at;
        while let Some(record) = reader.next()? {
            match record {
                Record::Head { .. } => return Err(StateError::Cut),
                Record::Deposit { id, renter, amount } => {
                    market.add_deposit(id, renter, amount);
                }
                Record::Balance { account, balance } => market.ledger.restore(account, balance),
                Record::Lease(lease) => market.insert(lease),
                Record::Seen(seen) => market.seen.insert(seen),
                Record::Payment(id, payment) => market.pay(id, payment),
                Record::Suspended(host, why) => market.suspend(host, Some(why)),
                Record::Resting(rest) => market.insert_rest(*rest),
                Record::Host(kept) => market.reliability.restore(*kept),
                Record::Outcome(outcome) => market.reliability.restore_outcome(*outcome),
                Record::Funded(order, renter) => market.proofs.restore_funded(order, renter),
                Record::Proved(standing) => market.proofs.restore(*standing),
            }
        }
        Ok(market)
    }
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    index: usize,
}

impl Writer {
    fn put(&mut self, record: &Record<&Lease>) -> Result<(), StateError> {
        let index = self.index;
        let bytes = codec::encode(record).map_err(|source| StateError::Record { index, source })?;
        // A message is far smaller than 4 GiB.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&bytes);
        self.index += 1;
        Ok(())
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    index: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Result<Option<Record<Box<Lease>>>, StateError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let (length, rest) = self.bytes.split_first_chunk::<4>().ok_or(StateError::Cut)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| StateError::Cut)?;
        let (record, rest) = rest.split_at_checked(length).ok_or(StateError::Cut)?;
        self.bytes = rest;
        let index = self.index;
        self.index += 1;
        let record =
            codec::decode(record).map_err(|source| StateError::Record { index, source })?;
        Ok(Some(record))
    }
}
