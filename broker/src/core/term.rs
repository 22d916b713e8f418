//! Prepaid terms: what one costs, what is earned of it as time passes, and what becomes of the rest.
//!
//! A term is earned while its lease's disk is kept and its host is heard ([`protocol::usage::Usage::stored`]
//! since it began), whether the container runs or its renter stopped it; not while a GPU that failed by its host
//! keeps it from running. Must not move money but by making
//! entries.

use crate::core::desk::Desk;
use crate::core::lease::{Lease, State};
use crate::core::ledger::{Account, Transfer};
use crate::core::meter::Meter;
use protocol::bounded::Text;
use protocol::ids::HostId;
use protocol::lease::{Detail, EndCause, Party};
use protocol::message::Rejection;
use protocol::offer::Offer;
use protocol::terms::{Limits, reserved};
use protocol::units::{MicroUsd, Millis, Seconds, Timestamp};
use protocol::usage::Term;

/// A host that is silent for longer in a row has failed the term.
pub(super) const SILENCE_MAX: Seconds = Seconds(3600);
/// A host that was away for more than this part of the term has failed it: one in fifty.
const DOWN_PART: u64 = 50;

impl Desk {
    /// The term that `days` of `gpus` GPUs of `offer` are, priced now.
    ///
    /// # Errors
    /// When the offer sells none, none that long, or at a higher price than the renter agreed to.
    pub(super) fn term_of(
        &self,
        now: Timestamp,
        offer: &Offer,
        gpus: u16,
        days: u16,
        prepay_max: MicroUsd,
    ) -> Result<Term, Rejection> {
        let most = offer
            .sales
            .discount_max
            .ok_or_else(|| not_sold("its host sells no prepaid terms"))?;
        if days == 0 || days > reserved::DAYS_MAX {
            return Err(not_sold("a term is from 1 to 365 days"));
        }
        check_length(now, &offer.limits, days)?;
        let rate = offer.prices.of_gpus(gpus).compute;
        let quote = reserved::quote(rate, days, most);
        if quote.prepaid > prepay_max {
            return Err(Rejection::PrepayAboveLimit {
                price: quote.prepaid,
                allowed: prepay_max,
            });
        }
        Ok(Term {
            days,
            prepaid: quote.prepaid,
            discount: quote.discount,
            rate,
            begins: None,
            from: Millis(0),
            down: Millis(0),
            earned: MicroUsd::ZERO,
            refunded: MicroUsd::ZERO,
            clawed_back: (MicroUsd::ZERO, MicroUsd::ZERO),
            from_bond: MicroUsd::ZERO,
        })
    }

    /// The lease's term when it is in the state `to`, with its meter there.
    pub(super) fn term_after(
        &self,
        now: Timestamp,
        lease: &Lease,
        to: &State,
        meter: &Meter,
    ) -> Option<Term> {
        let mut term = earning(lease, meter)?;
        if !lease.state.is_open() {
            return Some(term);
        }
        if matches!(to, State::Running) && term.begins.is_none() {
            term.begins = Some(now);
            term.from = meter.usage.stored;
        }
        if matches!(lease.state, State::Suspect { .. }) {
            term.down = self.down(now, lease, &term);
        }
        let cause = match to {
            State::Closing { cause, .. } | State::Closed { cause } => cause,
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Accepted { .. }
            | State::Preparing { .. }
            | State::Running
            | State::Noticed { .. }
            | State::Suspect { .. }
            | State::Paused { .. } => return Some(term),
        };
        if lease.state.host_fault().is_some() && cause.party() == Party::Renter {
            // Who waits no longer for a GPU that failed breaks nothing off.
            term.refunded = term.left();
            return Some(term);
        }
        Some(self.broken_off(lease.contract.host, term, meter, cause))
    }

    /// The term after its lease ended: by its renter, by its host, or by nobody's fault.
    fn broken_off(&self, host: HostId, mut term: Term, meter: &Meter, cause: &EndCause) -> Term {
        let left = term.left();
        let used = Millis(meter.usage.stored.0.saturating_sub(term.from.0));
        let is_over = matches!(cause, EndCause::TermOver);
        match cause.party() {
            Party::Renter if !is_over && term.begins.is_some() => {
                let cancel = reserved::cancel(term.rate, term.prepaid, term.days, used);
                term.refunded = cancel.refund;
                term.clawed_back = (cancel.host, cancel.broker);
            }
            Party::Host if term.begins.is_some() => {
                let bond = self.market.ledger().balance(&Account::HostBond(host));
                term.refunded = left;
                term.from_bond = reserved::penalty(left, bond);
            }
            Party::Renter | Party::Host | Party::Broker | Party::Market => term.refunded = left,
        }
        term
    }

    /// How long the host was away of the term, with the silence that goes on now. Time in which the broker
    /// itself was away is nobody's.
    fn down(&self, now: Timestamp, lease: &Lease, term: &Term) -> Millis {
        let State::Suspect { .. } = lease.state else {
            return term.down;
        };
        let since = lease.since.max(self.started_at);
        term.down.plus(now.since(since))
    }

    /// Why a term ends now, if it does.
    pub(super) fn term_check(&self, now: Timestamp, lease: &Lease) -> Option<EndCause> {
        let term = lease.term.as_ref()?;
        let begins = term.begins?;
        let length = reserved::length(term.days);
        if now >= begins.after(length) {
            return Some(EndCause::TermOver);
        }
        if self.down(now, lease, term).0 > length.0 / DOWN_PART {
            let detail = "it was away for more than a fiftieth of the prepaid term";
            return Some(EndCause::HostFailed(Detail::cut(detail)));
        }
        let heard = self.meter(lease).heard.max(self.started_at);
        (now.since(heard) > SILENCE_MAX.millis()).then(|| {
            let detail = "it was away for more than an hour of the prepaid term";
            EndCause::HostFailed(Detail::cut(detail))
        })
    }

    /// When a term is to be looked at next.
    pub(super) fn term_look(&self, now: Timestamp, lease: &Lease) -> Timestamp {
        let never = Timestamp(u64::MAX);
        let Some((term, begins)) = lease
            .term
            .as_ref()
            .and_then(|term| Some((term, term.begins?)))
        else {
            return never;
        };
        let length = reserved::length(term.days);
        let heard = self.meter(lease).heard.max(self.started_at);
        let silent_at = heard.after(SILENCE_MAX.millis()).after(Millis(1));
        let down_at = match lease.state {
            State::Suspect { .. } => {
                let down = self.down(now, lease, term).0;
                now.after(Millis(
                    (length.0 / DOWN_PART)
                        .saturating_sub(down)
                        .saturating_add(1),
                ))
            }
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Accepted { .. }
            | State::Preparing { .. }
            | State::Running
            | State::Noticed { .. }
            | State::Paused { .. }
            | State::Closing { .. }
            | State::Closed { .. } => never,
        };
        begins.after(length).min(silent_at).min(down_at)
    }
}

/// The lease's term with what `meter` says is earned of it.
pub(super) fn earning(lease: &Lease, meter: &Meter) -> Option<Term> {
    let mut term = lease.term?;
    if lease.state.host_fault().is_some() {
        // Its disk is kept, and it cannot run: such time is not of the term.
        let kept = meter.usage.stored.0;
        let kept = Millis(kept.saturating_sub(lease.meter.usage.stored.0));
        term.from = term.from.plus(kept);
    } else if lease.state.is_open() {
        term.earned = term.earned.max(term.due(&meter.usage));
    }
    Some(term)
}

/// The moves of money between a lease's term as it was and as it is now; the host's part still with the fee in
/// it.
pub(super) fn term_moves(transfer: Transfer, lease: &Lease, now: Option<&Term>) -> Transfer {
    let (Some(before), Some(now)) = (&lease.term, now) else {
        return transfer;
    };
    let prepaid = Account::Prepaid(lease.id);
    let free = Account::RenterAvailable(lease.contract.renter);
    let host = Account::HostPending(lease.id);
    let bond = Account::HostBond(lease.contract.host);
    let more = |of: fn(&Term) -> MicroUsd| of(now).saturating_sub(of(before));
    transfer
        .moving(prepaid, host, more(Term::for_host))
        .moving(prepaid, free, more(|term| term.refunded))
        .moving(
            prepaid,
            Account::BrokerClawback,
            more(|term| term.clawed_back.1),
        )
        .moving(bond, free, more(|term| term.from_bond))
}

/// A term must end before the host does.
fn check_length(now: Timestamp, limits: &Limits, days: u16) -> Result<(), Rejection> {
    let asked = Seconds(reserved::length(days).0 / 1000);
    let until = limits.until.map(|until| Seconds(until.since(now).0 / 1000));
    let allowed = [limits.duration_max, until].into_iter().flatten().min();
    match allowed.filter(|allowed| asked > *allowed) {
        Some(allowed) => Err(Rejection::TooLong { asked, allowed }),
        None => Ok(()),
    }
}

fn not_sold(why: &str) -> Rejection {
    Rejection::NotSold(Text::cut(why))
}
