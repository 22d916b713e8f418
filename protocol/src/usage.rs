//! What was used and what it cost: amounts by component, receipts, statements of account.

use crate::bounded::{List, Text};
use crate::ids::{Digest, HostId, LeaseId, OfferId, RenterId};
use crate::job::PinnedImage;
use crate::lease::{EndCause, Meters};
use crate::order::LeaseName;
use crate::signed::Statement;
use crate::terms::{ContractKind, Prices, Rates, fee_of, reserved, storage_due, traffic_due};
use crate::units::{BasisPoints, Bytes, MicroUsd, Millis, PricePerHour, Timestamp};
use serde::{Deserialize, Serialize};

/// What something cost, by component, from the start of its lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amounts {
    /// For running.
    pub compute: MicroUsd,
    /// For the disk.
    pub storage: MicroUsd,
    /// For bytes that left the container.
    pub upload: MicroUsd,
    /// For bytes that reached it.
    pub download: MicroUsd,
}

impl Amounts {
    /// All components together.
    #[must_use]
    pub fn total(&self) -> MicroUsd {
        self.compute
            .saturating_add(self.storage)
            .saturating_add(self.upload)
            .saturating_add(self.download)
    }
}

/// What a lease used, as billed: cumulative from its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// How long it ran.
    pub running: Millis,
    /// How long its disk was kept.
    pub stored: Millis,
    /// Bytes that left the container.
    pub uploaded: Bytes,
    /// Bytes that reached it.
    pub downloaded: Bytes,
}

/// A prepaid term: its compute is paid in advance and earned as time passes; disk and traffic are charged
/// as they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// How long.
    pub days: u16,
    /// What was prepaid.
    pub prepaid: MicroUsd,
    /// The discount that was given on it.
    pub discount: BasisPoints,
    /// What an hour of it would have cost on demand, all GPUs together.
    pub rate: PricePerHour,
    /// When it began: the first moment of running; none before.
    pub begins: Option<Timestamp>,
    /// How long the disk had been kept ([`Usage::stored`]) when it began. What was kept since then is the time
    /// that is earned; what is missing of the time that passed, the host was away.
    pub from: Millis,
    /// How long the host was not heard of it so far: a term fails beyond a fiftieth of it.
    pub down: Millis,
    /// What the host earned of it so far, the broker's part included.
    pub earned: MicroUsd,
    /// What the renter got back of it, and what was kept of the rest as the price of an early cancel.
    pub refunded: MicroUsd,
    /// See `refunded`: the host's and the broker's part of a claw-back.
    pub clawed_back: (MicroUsd, MicroUsd),
    /// What the renter got of the host's bond.
    pub from_bond: MicroUsd,
}

impl Term {
    /// What is earned of it with `usage`: `floor(prepaid × used / term)`, the broker's part included.
    #[must_use]
    pub fn due(&self, usage: &Usage) -> MicroUsd {
        let used = Millis(usage.stored.0.saturating_sub(self.from.0));
        match self.begins {
            Some(_) => reserved::earned(self.prepaid, self.days, used),
            None => MicroUsd::ZERO,
        }
    }

    /// What of it went to the host and the broker's fee.
    #[must_use]
    pub fn for_host(&self) -> MicroUsd {
        self.earned.saturating_add(self.clawed_back.0)
    }

    /// What the renter spent of it.
    #[must_use]
    pub fn spent(&self) -> MicroUsd {
        self.for_host().saturating_add(self.clawed_back.1)
    }

    /// What of it is neither spent nor given back.
    #[must_use]
    pub fn left(&self) -> MicroUsd {
        self.prepaid
            .saturating_sub(self.spent())
            .saturating_sub(self.refunded)
    }
}

/// What `usage` costs at `prices`, compute at `rates`, with `disk`: each component rounded down, cumulatively.
#[must_use]
pub fn amounts_due(prices: &Prices, rates: &Rates, disk: Bytes, usage: &Usage) -> Amounts {
    Amounts {
        compute: rates.due(usage.running),
        storage: storage_due(prices.storage, disk, usage.stored),
        upload: traffic_due(prices.upload, usage.uploaded),
        download: traffic_due(prices.download, usage.downloaded),
    }
}

/// The broker's account of one lease, final when `ended` is there. Whoever has it can check every sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The lease.
    pub lease: LeaseId,
    /// Its name.
    pub name: LeaseName,
    /// Who pays.
    pub renter: RenterId,
    /// Who is paid.
    pub host: HostId,
    /// What was rented.
    pub offer: OfferId,
    /// How.
    pub kind: ContractKind,
    /// What ran.
    pub image: PinnedImage,
    /// How many GPUs; 0 for a machine without one.
    pub gpus: u16,
    /// Disk kept.
    pub disk: Bytes,
    /// Prices of all GPUs together, frozen at the order but for a bid.
    pub prices: Prices,
    /// The hourly rates, by running time. A stretch that was waived has the rate 0; so has all of a prepaid
    /// term.
    pub rates: Rates,
    /// The prepaid term, if there is one.
    pub term: Option<Term>,
    /// When it was ordered.
    pub ordered_at: Timestamp,
    /// When it first ran.
    pub started_at: Option<Timestamp>,
    /// When it ended and why; absent on an interim receipt.
    pub ended: Option<(Timestamp, EndCause)>,
    /// What was used, as billed.
    pub usage: Usage,
    /// What that costs; `budget` may have capped the last component.
    pub amounts: Amounts,
    /// The sum of `amounts`, and what was spent of a prepaid term.
    pub total: MicroUsd,
    /// What the operator gave back of it later.
    pub refunded: MicroUsd,
    /// The renter's limit.
    pub budget: MicroUsd,
    /// The broker's part.
    pub fee_rate: BasisPoints,
    /// The broker's part of what is left of `total` after refunds.
    pub fee: MicroUsd,
    /// The host's part of it.
    pub host_share: MicroUsd,
    /// The last meters that the host signed.
    pub meters: Meters,
    /// Digest of the host's report that they rest on.
    pub report: Option<Digest>,
    /// Digests of the renter's order and the host's grant.
    pub order: Digest,
    /// See `order`.
    pub grant: Option<Digest>,
}

impl Statement for Receipt {
    const TYPE: &'static str = "receipt/v2";
}

/// What a receipt's sums should be and are not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// A component is more than the usage costs at the prices.
    #[error("{component} is {stated}; {usage} at the agreed price cost {due}")]
    Overcharged {
        /// Which component.
        component: &'static str,
        /// What the receipt says.
        stated: MicroUsd,
        /// What it should be at most.
        due: MicroUsd,
        /// What was used, in words.
        usage: String,
    },
    /// The billed running time is more than the host signed.
    #[error("{billed_ms} ms were billed; the host's signed meter says {metered_ms} ms")]
    Overmetered {
        /// Billed.
        billed_ms: u64,
        /// Metered.
        metered_ms: u64,
    },
    /// The sums do not add up.
    #[error("{what} is {stated}, and should be {due}")]
    Sum {
        /// Which sum.
        what: &'static str,
        /// What the receipt says.
        stated: MicroUsd,
        /// What it should be.
        due: MicroUsd,
    },
}

impl Receipt {
    /// Checks every sum from usage and prices alone.
    ///
    /// # Errors
    /// The first sum that is wrong.
    pub fn check(&self) -> Result<(), ReceiptError> {
        let due = amounts_due(&self.prices, &self.rates, self.disk, &self.usage);
        let components = [
            (
                "compute",
                self.amounts.compute,
                due.compute,
                format!("{} ms", self.usage.running.0),
            ),
            (
                "storage",
                self.amounts.storage,
                due.storage,
                format!("{} ms", self.usage.stored.0),
            ),
            (
                "upload",
                self.amounts.upload,
                due.upload,
                self.usage.uploaded.to_string(),
            ),
            (
                "download",
                self.amounts.download,
                due.download,
                self.usage.downloaded.to_string(),
            ),
        ];
        for (component, stated, due, usage) in components {
            if stated > due || stated < MicroUsd::ZERO {
                return Err(ReceiptError::Overcharged {
                    component,
                    stated,
                    due,
                    usage,
                });
            }
        }
        if self.usage.running > self.meters.running {
            return Err(ReceiptError::Overmetered {
                billed_ms: self.usage.running.0,
                metered_ms: self.meters.running.0,
            });
        }
        let used = due.total().min(self.budget);
        self.check_term()?;
        let (prepaid, clawed_back) = self.term.map_or_else(Default::default, |term| {
            (term.for_host(), term.clawed_back.1)
        });
        let shared = used.saturating_add(prepaid);
        let total = shared.saturating_add(clawed_back);
        let left = shared.saturating_sub(self.refunded);
        let fee = fee_of(left, self.fee_rate);
        let sums = [
            ("the total", self.total, total),
            ("the sum of the parts", self.amounts.total(), used),
            ("the broker's fee", self.fee, fee),
            (
                "the host's share",
                self.host_share,
                left.saturating_sub(fee),
            ),
        ];
        for (what, stated, due) in sums {
            if stated != due {
                return Err(ReceiptError::Sum { what, stated, due });
            }
        }
        Ok(())
    }
}

impl Receipt {
    /// Checks the sums of a prepaid term: what was earned by the time that was used, and that nothing of what
    /// was prepaid is left over when the lease is over.
    fn check_term(&self) -> Result<(), ReceiptError> {
        let Some(term) = &self.term else {
            return Ok(());
        };
        let wrong = |what, stated, due| Err(ReceiptError::Sum { what, stated, due });
        let due = term.due(&self.usage);
        if term.earned > due {
            return wrong("what was earned of the term", term.earned, due);
        }
        let given = term.spent().saturating_add(term.refunded);
        let is_whole = if self.ended.is_some() {
            given == term.prepaid
        } else {
            given <= term.prepaid
        };
        if is_whole {
            Ok(())
        } else {
            wrong("what became of the prepaid term", given, term.prepaid)
        }
    }
}

/// A renter's money with one broker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// Free to spend.
    pub available: MicroUsd,
    /// Held for open leases and resting bids.
    pub held: MicroUsd,
    /// Prepaid for terms, and not used up.
    pub prepaid: MicroUsd,
    /// Spent in all so far.
    pub spent: MicroUsd,
    /// What the open leases cost an hour now.
    pub burn_per_hour: MicroUsd,
}

/// A host's money with one broker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earnings {
    /// Earned, not yet free to pay out.
    pub pending: MicroUsd,
    /// Free to pay out.
    pub available: MicroUsd,
    /// Paid out so far.
    pub paid_out: MicroUsd,
    /// Its bond, which stands for refunds.
    pub bond: MicroUsd,
    /// The broker's fees on it.
    pub fees: MicroUsd,
    /// Leases that ran.
    pub leases: u32,
    /// Time that they ran, as billed.
    pub running: Millis,
}

/// One line of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementLine {
    /// Number of the journal's event: what to ask the operator about.
    pub event: u64,
    /// When.
    pub at: Timestamp,
    /// The lease it is about.
    pub lease: Option<LeaseId>,
    /// What happened: `deposit`, `hold`, `charge`, `release`.
    pub what: Text<32>,
    /// What it did to the available balance. A charge is taken from what is held: it is shown where a run
    /// or a lease ends, beside a release of as much more.
    pub amount: MicroUsd,
    /// The available balance after it.
    pub balance: MicroUsd,
}

/// A page of a renter's account: every movement of its available balance, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountStatement {
    /// Whose.
    pub renter: RenterId,
    /// The movements.
    pub lines: List<StatementLine, 500>,
    /// Ask again from here if there is more.
    pub next: Option<u64>,
}

impl Statement for AccountStatement {
    const TYPE: &'static str = "statement/v1";
}
