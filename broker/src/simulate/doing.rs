//! What can be done in a scenario: the steps of its file.

use protocol::filter::Filter;
use serde::{Deserialize, Deserializer};

/// What is done.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Do {
    /// The operator credits a renter.
    Deposit { renter: String, amount: i64 },
    /// An order on demand.
    Rent(Rent),
    /// A bid: interruptible, or resting until a host's price comes down to it.
    Bid(Bid),
    /// A prepaid term.
    Reserve(Reserve),
    /// A host changes its price.
    SetAsk { host: String, ask_uh: u64 },
    /// A host changes its lowest bid.
    SetFloor { host: String, floor_uh: u64 },
    /// A lease moved so many bytes more.
    Usage {
        order: String,
        #[serde(default)]
        up_bytes: u64,
        #[serde(default)]
        down_bytes: u64,
    },
    /// Something goes wrong with a host.
    Fault {
        host: String,
        kind: FaultKind,
        #[serde(default)]
        for_s: u64,
    },
    /// A renter stops a lease; its disk is kept.
    Stop { order: String },
    /// A renter starts it again.
    Resume { order: String },
    /// A renter ends it.
    Destroy { order: String },
    /// A renter changes its bid.
    ChangeBid { order: String, limit_uh: u64 },
    /// A renter withdraws a bid that rests, or ends a lease early.
    Cancel { order: String },
    /// The operator gives a renter a part of what a lease cost back.
    Refund { order: String, amount: i64 },
    /// The operator pays out all that is free.
    PayOut {},
}

/// What goes wrong with a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// It is not heard for a time.
    Offline,
    /// It takes its offers back and ends its leases.
    Withdraw,
}

/// An order on demand.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rent {
    /// Its name in the scenario.
    pub order: String,
    /// Who rents.
    pub renter: String,
    /// How; on demand is the only way here.
    #[serde(default)]
    pub kind: RentKind,
    /// How many GPUs.
    #[serde(default = "one")]
    pub gpus: u16,
    /// What must hold of the offer.
    #[serde(default, deserialize_with = "filter")]
    pub filter: Filter,
    /// Disk in GB.
    #[serde(default)]
    pub disk_gb: u64,
}

/// How an order on demand is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RentKind {
    /// At the host's price.
    #[default]
    OnDemand,
}

/// A bid.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bid {
    /// Its name in the scenario.
    pub order: String,
    /// Who bids.
    pub renter: String,
    /// Which kind of bid.
    pub kind: BidKind,
    /// For each GPU and hour, in µ$.
    pub limit_uh: u64,
    /// How many GPUs.
    #[serde(default = "one")]
    pub gpus: u16,
    /// What must hold of the offer.
    #[serde(default, deserialize_with = "filter")]
    pub filter: Filter,
    /// Disk in GB.
    #[serde(default)]
    pub disk_gb: u64,
    /// How long it waits; to the end of the scenario when not given.
    pub for_s: Option<u64>,
}

/// Which kind of bid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BidKind {
    /// It runs at its bid until somebody bids more.
    Interruptible,
    /// It waits for the host's price.
    Resting,
}

/// A prepaid term.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// Its name in the scenario.
    pub order: String,
    /// Who reserves.
    pub renter: String,
    /// For how long.
    pub days: u16,
    /// How many GPUs.
    #[serde(default = "one")]
    pub gpus: u16,
    /// What must hold of the offer.
    #[serde(default, deserialize_with = "filter")]
    pub filter: Filter,
    /// Disk in GB.
    #[serde(default)]
    pub disk_gb: u64,
}

impl Do {
    /// The order that it makes.
    pub(super) fn makes(&self) -> Option<&String> {
        match self {
            Self::Rent(rent) => Some(&rent.order),
            Self::Bid(bid) => Some(&bid.order),
            Self::Reserve(reserve) => Some(&reserve.order),
            Self::Deposit { .. }
            | Self::SetAsk { .. }
            | Self::SetFloor { .. }
            | Self::Usage { .. }
            | Self::Fault { .. }
            | Self::Stop { .. }
            | Self::Resume { .. }
            | Self::Destroy { .. }
            | Self::ChangeBid { .. }
            | Self::Cancel { .. }
            | Self::Refund { .. }
            | Self::PayOut {} => None,
        }
    }

    /// The order of another step that it is about.
    pub(super) fn order(&self) -> Option<&String> {
        match self {
            Self::Usage { order, .. }
            | Self::Stop { order }
            | Self::Resume { order }
            | Self::Destroy { order }
            | Self::ChangeBid { order, .. }
            | Self::Cancel { order }
            | Self::Refund { order, .. } => Some(order),
            Self::Deposit { .. }
            | Self::Rent(_)
            | Self::Bid(_)
            | Self::Reserve(_)
            | Self::SetAsk { .. }
            | Self::SetFloor { .. }
            | Self::Fault { .. }
            | Self::PayOut {} => None,
        }
    }

    /// The host that it is about.
    pub(super) fn host(&self) -> Option<&String> {
        match self {
            Self::SetAsk { host, .. } | Self::SetFloor { host, .. } | Self::Fault { host, .. } => {
                Some(host)
            }
            Self::Deposit { .. }
            | Self::Rent(_)
            | Self::Bid(_)
            | Self::Reserve(_)
            | Self::Usage { .. }
            | Self::Stop { .. }
            | Self::Resume { .. }
            | Self::Destroy { .. }
            | Self::ChangeBid { .. }
            | Self::Cancel { .. }
            | Self::Refund { .. }
            | Self::PayOut {} => None,
        }
    }
}

const fn one() -> u16 {
    1
}

fn filter<'de, D: Deserializer<'de>>(from: D) -> Result<Filter, D::Error> {
    let text = String::deserialize(from)?;
    text.parse()
        .map_err(|error| serde::de::Error::custom(format!("filter: {error}")))
}
