//! Every request and every answer that crosses the wire between programs: closed enums with a version.
//!
//! Hosts and renters ask their brokers ([`BrokerRequest`]); a broker asks its hosts ([`HostRequest`]) over
//! the connection that the host keeps open. Who asks is known from the connection (noise proves the key);
//! what asks for an effect is signed besides. Variants are only ever added at the end.

mod rejection;

pub use rejection::Rejection;

use crate::bounded::{List, Text};
use crate::codec::{self, CodecError};
use crate::cost::JobProfile;
use crate::filter::{Elimination, Filter, SortKey};
use crate::ids::{BrokerId, Digest, HostId, LeaseId};
use crate::lease::{Goal, Grant, LeaseView, Progress, Refusal, Report};
use crate::offer::{OFFERS_MAX, Offer, RESOURCES_MAX, ResourceName};
use crate::order::{LeaseCommand, Order};
use crate::reliability::HostEvidence;
use crate::signed::Signed;
use crate::terms::{ContractKind, Need};
use crate::units::{BasisPoints, PricePerHour, Seconds, Timestamp};
use crate::usage::{AccountStatement, Balance, Earnings, Receipt};
use crate::verify::{TranscriptPart, VERDICTS_MAX, Verdict, VerificationLevel};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Version of all messages here.
pub const MESSAGE_VERSION: u16 = 3;
/// Most offers in one answer.
pub const FOUND_MAX: usize = 64;
/// Most leases in one answer.
pub const LEASES_MAX: usize = 64;
/// Longest that a broker holds a [`BrokerRequest::Watch`].
pub const WATCH_MAX: Seconds = Seconds(20);

/// A message with its version in front.
#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u16,
    body: T,
}

/// The bytes of a message.
///
/// # Errors
/// When it is larger than a message may be.
pub fn encode<T: Serialize>(body: &T) -> Result<Vec<u8>, CodecError> {
    codec::encode(&Versioned {
        version: MESSAGE_VERSION,
        body,
    })
}

/// The message that `bytes` are.
///
/// # Errors
/// When they are not one of this version.
pub fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let version = bytes
        .get(..2)
        .and_then(|two| two.try_into().ok())
        .map(u16::from_le_bytes);
    if let Some(version) = version.filter(|version| *version != MESSAGE_VERSION) {
        let reason = format!("version {version}; this program speaks {MESSAGE_VERSION}");
        return Err(CodecError::Malformed { reason });
    }
    Ok(codec::decode::<Versioned<T>>(bytes)?.body)
}

/// What a host or a renter asks of a broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BrokerRequest {
    /// Who are you, and what is the time?
    Info,
    /// Which offers match?
    Search(Search),
    /// Rent.
    Order(Signed<Order>),
    /// Stop, resume or end a lease of mine.
    Command(Signed<LeaseCommand>),
    /// My leases, newest first.
    Leases(LeaseScope),
    /// One lease of mine (as renter or host).
    Lease(LeaseId),
    /// One lease of mine, answered when its revision is above `seen` or after `wait`.
    Watch {
        /// The lease.
        lease: LeaseId,
        /// The revision that the asker has.
        seen: u64,
        /// How long to wait at most; over [`WATCH_MAX`] counts as that.
        wait: Seconds,
    },
    /// My money, as a renter.
    Balance,
    /// My account's movements after this event number.
    Statement(u64),
    /// The signed receipt of a lease of mine; interim while it is open.
    Receipt(LeaseId),
    /// All that I, a host, offer now, and where I can be reached.
    Announce(Announcement),
    /// I accept a lease.
    Grant(Signed<Grant>),
    /// I refuse a lease.
    Refuse(Signed<Refusal>),
    /// How a lease stands.
    Report(Signed<Report>),
    /// How far a start is.
    Progress(Progress),
    /// My money, as a host.
    Earnings,
    /// What the broker knows of a host's reliability, signed; of its outcomes those behind `after`.
    HostEvidence {
        /// Which host.
        host: HostId,
        /// Lease and part of the last outcome that the asker has.
        after: Option<(LeaseId, u16)>,
    },
    /// The last verdict on each of a host's devices, signed, newest first.
    Verdicts(HostId),
    /// The transcript of a proof from this byte on.
    Transcript {
        /// [`crate::verify::Verdict::transcript`].
        digest: Digest,
        /// How many bytes the asker has.
        from: u32,
    },
}

/// A search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// What must hold.
    pub filter: Filter,
    /// What to order by, most important first; then price, age and id.
    pub sort: List<SortKey, 4>,
    /// What to price with.
    pub need: Need,
    /// Which kind of contract is looked for: what is free for it, and at which price.
    pub kind: ContractKind,
    /// How many offers to answer with at most.
    pub limit: u16,
    /// What is to be done there: then offers are ordered by what that costs until it is done
    /// ([`crate::cost::rank_key`]) before all else, and those where it cannot be done come last.
    pub job: Option<JobProfile>,
}

/// Which leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LeaseScope {
    /// Those that are not over.
    Open,
    /// All.
    All,
}

/// All that a host offers a broker now. What is not in it is withdrawn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// The offers that can be leased now.
    pub offers: List<Signed<Offer>, OFFERS_MAX>,
    /// Addresses at which the host can be dialled directly; none behind NAT.
    pub addresses: List<Text<256>, 8>,
    /// Resources of these offers that cannot be had now, whole or in part: leases of other brokers have them, or
    /// they are not fit.
    pub withheld: List<ResourceName, RESOURCES_MAX>,
}

/// What a broker answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BrokerReply {
    /// To [`BrokerRequest::Info`].
    Info(BrokerInfo),
    /// To [`BrokerRequest::Search`].
    Found(Found),
    /// The lease as it stands: to an order, a command, and whoever asks for one.
    Lease(Box<LeaseView>),
    /// To [`BrokerRequest::Leases`].
    Leases(List<LeaseView, LEASES_MAX>),
    /// To [`BrokerRequest::Balance`].
    Balance(Balance),
    /// To [`BrokerRequest::Statement`].
    Statement(Signed<AccountStatement>),
    /// To [`BrokerRequest::Receipt`].
    Receipt(Signed<Receipt>),
    /// To [`BrokerRequest::Earnings`].
    Earnings(Earnings),
    /// To what hosts say: heard, and on disk where it matters.
    Noted,
    /// No, because.
    Refused(Rejection),
    /// To [`BrokerRequest::HostEvidence`].
    HostEvidence(Box<HostEvidence>),
    /// To [`BrokerRequest::Verdicts`].
    Verdicts(List<Signed<Verdict>, VERDICTS_MAX>),
    /// To [`BrokerRequest::Transcript`].
    Transcript(TranscriptPart),
}

/// Who a broker is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerInfo {
    /// Its key.
    pub broker: BrokerId,
    /// What it calls itself.
    pub name: Text<63>,
    /// Its part of every charge.
    pub fee: BasisPoints,
    /// Its clock: the one that bills.
    pub now: Timestamp,
    /// Offers that it shows now.
    pub offers: u32,
    /// The program's version.
    pub version: Text<32>,
}

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The first of the matching portions of offers.
    pub offers: List<FoundOffer, FOUND_MAX>,
    /// How many match in all.
    pub matching: u32,
    /// How many the broker has that can be leased now.
    pub of: u32,
    /// When nothing matched: what each term did.
    pub eliminated: List<Elimination, 32>,
    /// When nothing matched: the offer that fails the fewest terms, cheapest first.
    pub nearest: Option<FoundOffer>,
    /// How many more there are that nobody can have now, because a lease has them; whatever was asked for.
    pub rented: u32,
}

/// A portion of an offer that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundOffer {
    /// The offer, as its host signed it.
    pub offer: Signed<Offer>,
    /// How many of its GPUs; 0 for a machine without one.
    pub gpus: u16,
    /// What a GPU and hour costs in a lease of the kind that was asked for: the ask, the discounted rate of a
    /// term of 30 days, or what has to be bid to run now.
    pub price: PricePerHour,
    /// Whether somebody would be pushed out for it.
    pub pushes_out: bool,
    /// How probable it is, in millionths, that a lease of 24 hours here is carried through.
    pub reliability: u32,
    /// How often the host fails, in failures in 10⁹ hours; 0 when nothing is known of it.
    pub hazard: u32,
    /// How far the broker has proof of the hardware.
    pub verification: VerificationLevel,
}

/// What a broker asks of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostRequest {
    /// What the host should be doing for this broker.
    Goal(Goal),
}

/// What a host answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostReply {
    /// The goal is noted (what comes of it is reported).
    Noted,
    /// The host does not list with this broker, or the message cannot be read.
    Refused(Text<128>),
}
