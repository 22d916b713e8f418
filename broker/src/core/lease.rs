//! A lease as the broker keeps it: what was frozen at the match, and where it stands.
//!
//! The market alone changes a lease, by applying events; what may follow what is decided in `order`,
//! `lease_command`, `report` and `check`.

mod state;

pub use self::state::State;
use crate::core::charge;
use crate::core::event::{Kept, Match};
use crate::core::meter::Meter;
use crate::core::ripening::Mark;
use protocol::codec;
use protocol::ids::{Digest, HostId, LeaseId, OfferId, OrderId, RenterId};
use protocol::job::PinnedImage;
use protocol::lease::{Award, Grant, PauseCause, Vacate, Want};
use protocol::offer::{Partition, Share};
use protocol::order::{LeaseName, Order};
use protocol::signed::Draft;
use protocol::terms::{ContractKind, Limits, Prices, Rates};
use protocol::units::{BasisPoints, Bytes, MicroUsd, Millis, PricePerHour, Seconds, Timestamp};
use protocol::usage::{Amounts, Term, Usage};
use serde::{Deserialize, Serialize};

/// What was frozen at the match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// The order's id.
    pub order: OrderId,
    /// Digest of the order as it was signed.
    pub order_digest: Digest,
    /// The lease's name.
    pub name: LeaseName,
    /// Who pays.
    pub renter: RenterId,
    /// Who is paid.
    pub host: HostId,
    /// What was rented.
    pub offer: OfferId,
    /// How; a conversion changes it.
    pub kind: ContractKind,
    /// The bid for each GPU and hour, if it is interruptible; the renter may change it.
    pub bid: Option<PricePerHour>,
    /// What it rather pays on demand than be pushed out.
    pub fallback: Option<PricePerHour>,
    /// What runs.
    pub image: PinnedImage,
    /// Disk kept.
    pub disk: Bytes,
    /// What is leased.
    pub share: Share,
    /// Which slice of a GPU that is; nothing when it is whole.
    pub partition: Option<Partition>,
    /// Prices, of all GPUs together; a bid and a conversion change the compute part.
    pub prices: Prices,
    /// The hourly rates, by running time.
    pub rates: Rates,
    /// The broker's part.
    pub fee: BasisPoints,
    /// Most that it may cost.
    pub budget: MicroUsd,
    /// Longest time to run.
    pub duration_max: Option<Seconds>,
    /// What the host promised.
    pub limits: Limits,
    /// The broker's number of the order: earlier is smaller.
    pub number: u64,
    /// When.
    pub ordered_at: Timestamp,
}

/// The signed statements that a lease rests on, as long as the host may need them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Papers {
    /// While there may be a container.
    Whole {
        /// The renter's order.
        order: Box<Kept<Order>>,
        /// The broker's award.
        award: Box<Draft<Award>>,
    },
    /// After the end: what an order's body was, to know a repeat from another order of the same id.
    Filed {
        /// Digest of the order's body.
        body: Digest,
    },
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Its id.
    pub id: LeaseId,
    /// What was frozen.
    pub contract: Contract,
    /// What it rests on.
    pub papers: Papers,
    /// The host's acceptance, if it accepted.
    pub grant: Option<Kept<Grant>>,
    /// Where it stands.
    pub state: State,
    /// Since when.
    pub since: Timestamp,
    /// Which run of the container: 1, and one more with each resume.
    pub run: u32,
    /// When it first ran, if it did.
    pub started_at: Option<Timestamp>,
    /// Its meter, as journalled last.
    pub meter: Meter,
    /// What it was charged so far.
    pub charged: Amounts,
    /// Its prepaid term, if it has one.
    pub term: Option<Term>,
    /// How long it had run when its present run began.
    pub run_from: Millis,
    /// What the operator gave back of it; never more than it was charged.
    pub refunded: MicroUsd,
    /// What its host earned by which time before refunds, as far as it is pending.
    pub marks: Vec<Mark>,
    /// What of it is not pending any more, and was free before what was given back of it.
    pub matured: MicroUsd,
    /// Whether the renter was warned that the money does not last.
    pub low_balance: bool,
}

impl Lease {
    /// The lease that a match makes.
    #[must_use]
    pub fn of_match(matched: Match, at: Timestamp) -> Self {
        let Match {
            order,
            award,
            share,
            partition,
            bid,
            fallback,
            term,
            clear_by,
            limits,
            duration_max,
            accept_by,
            start_by,
        } = matched;
        let (body, terms) = (order.body(), award.body());
        let contract = Contract {
            order: body.id,
            order_digest: terms.order,
            name: body.name.clone(),
            renter: terms.renter,
            host: terms.host,
            offer: terms.offer.0,
            kind: terms.kind,
            bid,
            fallback,
            image: body.job.image.clone(),
            disk: body.disk,
            share,
            partition,
            prices: terms.prices,
            rates: Rates::flat(term.map_or(terms.prices.compute, |_| PricePerHour(0))),
            fee: terms.fee,
            // A prepaid term comes out of the same budget.
            budget: body
                .budget
                .saturating_sub(term.map_or(MicroUsd::ZERO, |term| term.prepaid)),
            duration_max,
            limits,
            number: terms.number,
            ordered_at: terms.matched_at,
        };
        Self {
            id: terms.lease,
            contract,
            papers: Papers::Whole {
                order: Box::new(order),
                award: Box::new(award),
            },
            grant: None,
            state: clear_by.map_or(
                State::Offered {
                    accept_by,
                    start_by,
                },
                |until| State::Clearing { until },
            ),
            since: at,
            run: 1,
            started_at: None,
            meter: Meter::new(at),
            charged: Amounts::default(),
            term,
            run_from: Millis(0),
            refunded: MicroUsd::ZERO,
            marks: Vec::new(),
            matured: MicroUsd::ZERO,
            low_balance: false,
        }
    }

    /// Whether `order` is the one that this lease came from, perhaps signed again.
    #[must_use]
    pub fn came_from(&self, order: &Order) -> bool {
        match &self.papers {
            Papers::Whole { order: own, .. } => own.body() == order,
            Papers::Filed { body } => *body == body_digest(order),
        }
    }

    /// Puts away what only a host with a container needs.
    pub(crate) fn file_papers(&mut self) {
        if let Papers::Whole { order, .. } = &self.papers {
            self.papers = Papers::Filed {
                body: body_digest(order.body()),
            };
        }
    }

    /// What its host should do about it.
    #[must_use]
    pub fn want(&self) -> Want {
        match self.state {
            // It ran before, and its disk waits for the next run.
            State::Clearing { .. } if self.started_at.is_some() => Want::Stop,
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Accepted { .. }
            | State::Preparing { .. }
            | State::Running
            | State::Suspect { .. } => Want::Run(self.run),
            State::Noticed { ref cause, by } => Want::Vacate(Vacate {
                run: self.run,
                by,
                outbid: matches!(cause, PauseCause::Outbid),
            }),
            State::Paused { .. } => Want::Stop,
            State::Closing { .. } | State::Closed { .. } => Want::End,
        }
    }

    /// What `usage` costs it.
    #[must_use]
    pub fn charge_for(&self, usage: &Usage) -> Amounts {
        self.charge_at(&self.contract.rates, usage)
    }

    /// What `usage` costs it at other rates.
    #[must_use]
    pub fn charge_at(&self, rates: &Rates, usage: &Usage) -> Amounts {
        let Contract {
            prices,
            disk,
            budget,
            ..
        } = &self.contract;
        charge::charged(prices, rates, *disk, usage, *budget)
    }

    /// What host and broker share of it so far.
    #[must_use]
    pub fn shared(&self) -> MicroUsd {
        Self::shared_of(&self.charged, self.term.as_ref(), self.refunded)
    }

    /// What was charged and earned of a lease before anything was given back.
    #[must_use]
    pub fn gross_of(charged: &Amounts, term: Option<&Term>) -> MicroUsd {
        charged
            .total()
            .saturating_add(term.map_or(MicroUsd::ZERO, Term::for_host))
    }

    /// What host and broker share: what was charged and earned, less what was given back. The broker's part of
    /// it is the fee, always of what remains.
    #[must_use]
    pub fn shared_of(charged: &Amounts, term: Option<&Term>, refunded: MicroUsd) -> MicroUsd {
        Self::gross_of(charged, term)
            .saturating_sub(refunded)
            .max(MicroUsd::ZERO)
    }

    /// Notes that less was charged than the operator gave back, when a stretch of it was waived: the same money
    /// does not come back twice.
    pub(crate) fn bound_refunds(&mut self) {
        let gross = Self::gross_of(&self.charged, self.term.as_ref());
        self.refunded = self.refunded.min(gross);
    }

    /// What `time` of it costs in its present state.
    #[must_use]
    pub fn burn(&self, time: Seconds) -> MicroUsd {
        match self.state {
            State::Paused { .. } => self.burn_stored(time),
            State::Closing { .. } | State::Closed { .. } => MicroUsd::ZERO,
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Accepted { .. }
            | State::Preparing { .. }
            | State::Running
            | State::Noticed { .. }
            | State::Suspect { .. } => self.burn_running(time),
        }
    }

    /// What `time` of running costs, the disk included.
    #[must_use]
    pub fn burn_running(&self, time: Seconds) -> MicroUsd {
        // What is paid in advance costs nothing more; what was waived of a run costs again in the next.
        let rate = match self.term {
            Some(_) => PricePerHour(0),
            None => self.contract.prices.compute,
        };
        charge::running_cost(&self.contract.prices, rate, self.contract.disk, time)
    }

    /// What `time` of keeping the disk costs.
    #[must_use]
    pub fn burn_stored(&self, time: Seconds) -> MicroUsd {
        charge::storing_cost(&self.contract.prices, self.contract.disk, time)
    }
}

/// What tells one order's body from another's. An order that was decoded is small enough to be encoded.
fn body_digest(order: &Order) -> Digest {
    Digest::of(&codec::encode(order).unwrap_or_default())
}
