//! What may be in the book: a host's own, sound offers that name this broker.
//!
//! Must not look at other hosts' offers, or at what is free.

use protocol::bounded::Text;
use protocol::ids::{BrokerId, HostId, OfferId, PublicKey};
use protocol::message::Rejection;
use protocol::offer::{OFFERS_MAX, Offer, offer_id};
use protocol::signed::Verified;

/// Why a list of offers is not taken into the book.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BookRefusal {
    /// An offer is signed by another key than its host's.
    #[error("offer {0} is not signed by the host that announces it")]
    NotTheSigner(OfferId),
    /// An offer's id is not the one that follows from host and resources.
    #[error("offer {0} has not the id of its host and resources")]
    WrongId(OfferId),
    /// An offer appears twice in one list.
    #[error("offer {0} is announced twice")]
    Twice(OfferId),
    /// An offer does not name this broker.
    #[error("offer {0} does not list this broker")]
    NotForThisBroker(OfferId),
    /// An offer contradicts itself.
    #[error("offer {offer}: {problem}")]
    BadOffer {
        /// The offer.
        offer: OfferId,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// More offers than one host may have.
    #[error("{count} offers were announced; a host may have {OFFERS_MAX}")]
    TooManyOffers {
        /// How many were announced.
        count: usize,
    },
    /// The book is full.
    #[error("this broker lists as many offers as it takes on")]
    Full,
}

impl From<BookRefusal> for Rejection {
    fn from(refusal: BookRefusal) -> Self {
        let words = Text::cut(&refusal.to_string());
        match refusal {
            BookRefusal::NotTheSigner(_) => Self::NotTheSigner,
            BookRefusal::TooManyOffers { .. } | BookRefusal::Full => Self::TooMany(words),
            BookRefusal::WrongId(_)
            | BookRefusal::Twice(_)
            | BookRefusal::NotForThisBroker(_)
            | BookRefusal::BadOffer { .. } => Self::BadValue {
                field: Text::cut("offers"),
                problem: words,
            },
        }
    }
}

/// Whether `offer` is `host`'s to announce at `broker`, and makes sense.
pub(super) fn check(
    broker: BrokerId,
    host: HostId,
    offer: &Verified<Offer>,
) -> Result<(), BookRefusal> {
    let body = offer.body();
    let (id, share) = (body.id, &body.share);
    if offer.signer() != PublicKey::from(host) {
        return Err(BookRefusal::NotTheSigner(id));
    }
    if id != offer_id(host, &share.resources) {
        return Err(BookRefusal::WrongId(id));
    }
    if !body.brokers.contains(&broker) {
        return Err(BookRefusal::NotForThisBroker(id));
    }
    let is_rising = share.resources.is_sorted_by(|left, right| left < right);
    let has_its_gpus = share
        .gpus
        .iter()
        .all(|gpu| share.resources.contains(&gpu.uuid) && body.machine.gpus.contains(gpu));
    let problems = [
        (share.resources.is_empty(), "it sells no resource"),
        (!is_rising, "its resources are not in order, or repeat"),
        (
            !has_its_gpus,
            "a GPU of its share is not among its resources and the machine's GPUs",
        ),
        (
            !body.prices.are_sane(),
            "a price is above a million dollars",
        ),
        (share.cpu_millicores == 0, "it gives no CPU time"),
        (
            share.ram.0 == 0 || share.ram > body.machine.ram,
            "its memory is none, or more than there is",
        ),
        (body.limits.disk_max.0 == 0, "it allows no disk"),
    ];
    match problems.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, problem)) => Err(BookRefusal::BadOffer { offer: id, problem }),
        None => Ok(()),
    }
}
