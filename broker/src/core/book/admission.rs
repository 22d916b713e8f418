//! What may be in the book: a host's own, sound offers that name this broker.
//!
//! Must not look at other hosts' offers, or at what is free.

use mig::name::{SliceName, is_well_formed};
use protocol::bounded::Text;
use protocol::catalogue::{Implausible, plausible};
use protocol::ids::{BrokerId, HostId, OfferId, PublicKey};
use protocol::message::Rejection;
use protocol::offer::{OFFERS_MAX, Offer, ResourceName, WHOLE_MACHINE, offer_id, parent};
use protocol::signed::Verified;
use std::collections::BTreeMap;

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
    /// An offer claims what no GPU of its model can keep.
    #[error("offer {}: {problem}", offer.short())]
    Implausible {
        /// The offer.
        offer: OfferId,
        /// The claim, with both numbers.
        problem: Implausible,
    },
    /// Two offers sell the same thing.
    #[error("'{resource}' is sold by {} and by {}", first.short(), second.short())]
    SoldTwice {
        /// What.
        resource: ResourceName,
        /// One of the offers.
        first: OfferId,
        /// The other.
        second: OfferId,
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
            | BookRefusal::BadOffer { .. }
            | BookRefusal::Implausible { .. }
            | BookRefusal::SoldTwice { .. } => Self::BadValue {
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
    let has_its_gpus = share.gpus.iter().all(|gpu| {
        let mut names = share.resources.iter();
        names.any(|name| parent(name) == gpu.uuid.as_str()) && body.machine.gpus.contains(gpu)
    });
    if let Some(problem) = slices_problem(body) {
        return Err(BookRefusal::BadOffer { offer: id, problem });
    }
    let problems = [
        (share.resources.is_empty(), "it sells no resource"),
        (
            !share.resources.iter().all(|name| is_well_formed(name)),
            "a resource's name could be taken for a slice's, and is none",
        ),
        (
            !share
                .gpus
                .is_sorted_by(|left, right| left.model == right.model),
            "its GPUs are not all of one model",
        ),
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
        None => plausible(body).map_err(|problem| BookRefusal::Implausible { offer: id, problem }),
    }
}

/// Whether the offers of one list sell each thing once. A GPU and slices of it may stand beside each other, and so may
/// slices that overlap: whoever comes first gets one of them, and what that excludes is not to be had meanwhile.
pub(super) fn check_together(offers: &[Verified<Offer>]) -> Result<(), BookRefusal> {
    let mut sold: BTreeMap<&str, OfferId> = BTreeMap::new();
    for body in offers.iter().map(Verified::body) {
        for resource in &*body.share.resources {
            let beside = if resource.as_str() == WHOLE_MACHINE {
                sold.first_key_value()
            } else {
                sold.get_key_value(WHOLE_MACHINE)
            };
            let same = sold.get_key_value(resource.as_str()).or(beside);
            if let Some((name, first)) = same {
                return Err(BookRefusal::SoldTwice {
                    resource: Text::cut(name),
                    first: *first,
                    second: body.id,
                });
            }
            sold.insert(resource, body.id);
        }
    }
    Ok(())
}

/// What is wrong with the names of what an offer sells: whole GPUs and slices are not mixed, and a slice is of one of
/// its GPUs.
fn slices_problem(offer: &Offer) -> Option<&'static str> {
    let names = &offer.share.resources;
    let Some(partition) = &offer.partition else {
        let is_whole = |name: &str| !name.contains('/');
        return (!names.iter().all(|name| is_whole(name)))
            .then_some("it sells slices and does not say which");
    };
    let slices: Result<Vec<SliceName<'_>>, _> =
        names.iter().map(|name| SliceName::parse(name)).collect();
    let Ok(slices) = slices else {
        return Some("a resource of an offer of slices is not the name of one");
    };
    let (size, axis) = partition.memory_slices;
    let is_of_it = |slice: &SliceName<'_>| {
        let mut gpus = offer.share.gpus.iter();
        slice.profile() == partition.profile.as_str()
            && slice.size() == size
            && slice.start() + slice.size() <= axis
            && gpus.any(|gpu| gpu.uuid.as_str() == slice.gpu())
    };
    let problems = [
        (
            !slices.iter().all(is_of_it),
            "a slice is of another profile, size or GPU than the offer says",
        ),
        (
            names.iter().any(|name| name.as_str() == WHOLE_MACHINE),
            "a machine cannot be cut into slices",
        ),
        (
            partition.multiprocessors.0 > partition.multiprocessors.1,
            "a slice has more multiprocessors than its GPU",
        ),
        (
            offer.share.gpus.iter().any(|gpu| partition.vram > gpu.vram),
            "a slice has more memory than its GPU",
        ),
    ];
    let found = problems.into_iter().find(|(is_so, _)| *is_so);
    found.map(|(_, problem)| problem)
}
