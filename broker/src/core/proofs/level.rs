//! How far the hardware of an offer is proved.
//!
//! All devices of an offer count: it is verified when each of them is, from the oldest of their proofs on, and not
//! any more when one is not. A slice is proved by a proof of its whole GPU as well, whichever was later.

use super::standing::{Proofs, Standing};
use protocol::ids::HostId;
use protocol::offer::Offer;
use protocol::units::{Seconds, Timestamp};
use protocol::verify::{Finding, VerificationLevel, Withdrawal, hardware};

/// For how long a proof stands, unless the operator says otherwise.
pub const STANDS: Seconds = Seconds(3 * 24 * 3600);

/// How far the hardware of `offer` is proved at `now`, when a proof stands for `stands`.
#[must_use]
pub fn level(
    proofs: &Proofs,
    (host, offer): (HostId, &Offer),
    now: Timestamp,
    stands: Seconds,
) -> VerificationLevel {
    let mut shown: Option<VerificationLevel> = None;
    for device in devices(offer) {
        let of_it = of_device(proofs, host, offer, device)
            .map_or(VerificationLevel::Unverified, |standing| {
                of_standing(standing, offer, now, stands)
            });
        shown = Some(match shown {
            None => of_it,
            Some(before) => weaker(before, of_it),
        });
    }
    shown.unwrap_or(VerificationLevel::Unverified)
}

/// When any device of the offer was last put to the proof; nothing when none was.
#[must_use]
pub fn last_proof(proofs: &Proofs, host: HostId, offer: &Offer) -> Option<Timestamp> {
    let known = devices(offer).filter_map(|device| of_device(proofs, host, offer, device));
    known.map(|standing| standing.verdict.body().at).max()
}

/// The devices that an offer sells or sells slices of.
fn devices(offer: &Offer) -> impl Iterator<Item = &str> {
    let gpus = offer.share.gpus.iter().map(|gpu| gpu.uuid.as_str());
    let machine = offer.share.resources.iter().map(|name| name.as_str());
    gpus.chain(machine.filter(|_| offer.share.gpus.is_empty()))
}

/// The last that is known of a device: of the whole, or of slices of the offer's kind.
fn of_device<'a>(
    proofs: &'a Proofs,
    host: HostId,
    offer: &Offer,
    device: &str,
) -> Option<&'a Standing> {
    let slice = offer.partition.as_ref().and_then(|slice| {
        let name = format!("{device}/{}", slice.profile);
        proofs.get(host, &name)
    });
    let known = proofs.get(host, device).into_iter().chain(slice);
    known.max_by_key(|standing| standing.verdict.body().at)
}

fn of_standing(
    standing: &Standing,
    offer: &Offer,
    now: Timestamp,
    stands: Seconds,
) -> VerificationLevel {
    let verdict = standing.verdict.body();
    let withdrawn = |reason, at| VerificationLevel::Withdrawn { reason, at };
    if let Finding::Rejected(flaw) = &verdict.finding {
        return withdrawn(Withdrawal::Failed(flaw.clone()), verdict.at);
    }
    if let Some((at, fault)) = &standing.fault {
        return withdrawn(Withdrawal::Fault(fault.clone()), *at);
    }
    if hardware(offer, &verdict.device) != Some(verdict.hardware) {
        return withdrawn(Withdrawal::Changed, now);
    }
    let until = verdict.at.after(stands.millis());
    if now >= until {
        return withdrawn(Withdrawal::Stale, until);
    }
    VerificationLevel::Verified {
        at: verdict.at,
        verdict: standing.verdict.digest(),
    }
}

/// Of two devices' levels the one that both have.
fn weaker(one: VerificationLevel, other: VerificationLevel) -> VerificationLevel {
    use VerificationLevel::{Unverified, Verified, Withdrawn};
    match (one, other) {
        (withdrawn @ Withdrawn { .. }, _) | (_, withdrawn @ Withdrawn { .. }) => withdrawn,
        (Unverified, _) | (_, Unverified) => Unverified,
        (Verified { at, verdict }, Verified { at: later, .. }) if at <= later => {
            Verified { at, verdict }
        }
        (Verified { .. }, later) => later,
    }
}
