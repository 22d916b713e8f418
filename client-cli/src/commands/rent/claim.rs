//! Which kind of contract was asked for, with its own price and time. A forgotten price is no other kind: what
//! was not typed is refused, never filled in.

use crate::args::{RentArgs, WorkArgs};
use crate::commands::search::Candidate;
use crate::failure::{Code, Failure};
use crate::preview::ceiling_of;
use protocol::terms::{ContractKind, Deal, Need, Prices, reserved};
use protocol::units::{
    Bytes, MicroUsd, PRICE_MAX, PricePerGbMonth, PricePerHour, Seconds, Timestamp,
};

/// How long a bid waits when nothing is said.
const WAIT: Seconds = Seconds(24 * 3600);
/// Longest that one may wait: a year.
const WAIT_MAX: Seconds = Seconds(365 * 24 * 3600);
/// What a GB-month of disk may cost where no offer is known yet and no ceiling was typed.
const DISK_ALLOWED: PricePerGbMonth = PricePerGbMonth(300_000);

/// A kind of contract, before any offer is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The host's price, now.
    OnDemand,
    /// The host's price, once it is at most `limit`.
    Bid {
        /// Most for a GPU and hour.
        limit: PricePerHour,
        /// How long to wait for it.
        wait: Seconds,
    },
    /// One's own price, while nobody bids more.
    Interruptible {
        /// For a GPU and hour.
        bid: PricePerHour,
        /// How long to wait for the first start.
        wait: Seconds,
        /// The host's price up to which it goes on on demand.
        fallback: Option<PricePerHour>,
    },
    /// A prepaid term.
    Reserved {
        /// How long.
        days: u16,
    },
}

impl Claim {
    /// What was typed, and how long it may run at most.
    pub(crate) fn of(arguments: &RentArgs) -> Result<(Self, Option<Seconds>), Failure> {
        let (deal, work) = (&arguments.deal, &arguments.work);
        if let Some(days) = deal.reserve {
            if work.duration.is_some() || work.max_hours.is_some() {
                let what = format!(
                    "a term of {days} days ends by itself: --for and --max-hours say another time"
                );
                return Err(Failure::new(Code::BadValue, what));
            }
            return Ok((Self::Reserved { days }, None));
        }
        if let Some(limit) = deal.bid {
            let wait = wait(work)?;
            return Ok((Self::Bid { limit, wait }, work.hours()));
        }
        if let Some(bid) = deal.interruptible {
            return Ok((
                Self::interruptible(bid, deal.fallback, wait(work)?)?,
                work.hours(),
            ));
        }
        if work.duration.is_some() && work.max_hours.is_some() {
            let what = "--for and --max-hours both say how long it may run";
            return Err(Failure::new(Code::BadValue, what).help("give one of them"));
        }
        Ok((Self::OnDemand, work.duration.or_else(|| work.hours())))
    }

    /// An interruptible lease at this bid.
    pub(crate) fn interruptible(
        bid: PricePerHour,
        fallback: Option<PricePerHour>,
        wait: Seconds,
    ) -> Result<Self, Failure> {
        if let Some(fallback) = fallback.filter(|price| *price < bid) {
            let what = format!("the fallback of {fallback} is less than the bid of {bid}");
            return Err(Failure::new(Code::BadValue, what)
                .help("the fallback is the most to pay on demand rather than be pushed out"));
        }
        Ok(Self::Interruptible {
            bid,
            wait,
            fallback,
        })
    }

    /// How it is contracted.
    pub(crate) const fn kind(&self) -> ContractKind {
        match self {
            Self::OnDemand => ContractKind::OnDemand,
            Self::Bid { .. } => ContractKind::Bid,
            Self::Interruptible { .. } => ContractKind::Interruptible,
            Self::Reserved { .. } => ContractKind::Reserved,
        }
    }

    /// What to look for: a bid that waits buys on demand.
    pub(super) const fn searched(&self) -> ContractKind {
        match self {
            Self::OnDemand | Self::Bid { .. } => ContractKind::OnDemand,
            Self::Interruptible { .. } => ContractKind::Interruptible,
            Self::Reserved { .. } => ContractKind::Reserved,
        }
    }

    /// Whether it may wait for an offer that is not there yet.
    pub(super) const fn waits(&self) -> bool {
        matches!(self, Self::Bid { .. } | Self::Interruptible { .. })
    }

    /// What is signed; a term needs the offer that it is quoted for.
    pub(crate) fn deal(&self, now: Timestamp, quoted: MicroUsd) -> Deal {
        match *self {
            Self::OnDemand => Deal::OnDemand,
            Self::Bid { limit, wait } => Deal::Bid {
                limit,
                until: now.after(wait.millis()),
            },
            Self::Interruptible {
                bid,
                wait,
                fallback,
            } => Deal::Interruptible {
                bid,
                until: now.after(wait.millis()),
                fallback,
            },
            Self::Reserved { days } => Deal::Reserved {
                days,
                prepay_max: quoted,
            },
        }
    }

    /// Most that a GPU and hour may come to; the host's price where none was typed.
    fn dearest(&self, ask: PricePerHour) -> PricePerHour {
        match *self {
            Self::OnDemand | Self::Reserved { .. } => ask,
            Self::Bid { limit, .. } => limit,
            Self::Interruptible { bid, fallback, .. } => fallback.unwrap_or(bid).max(bid),
        }
    }

    /// Most that an hour may cost all in, when no ceiling was typed: what the price and the disk come to. For
    /// an offer that is not known yet the disk may cost as much as of the best that is known, or
    /// [`DISK_ALLOWED`].
    pub(super) fn ceiling(
        &self,
        gpus: u16,
        disk: Bytes,
        known: Option<&Candidate>,
        is_fixed: bool,
    ) -> PricePerHour {
        let asked = known.map_or_else(Prices::default, |one| one.offer.body().prices);
        let storage = if is_fixed {
            asked.storage
        } else {
            asked.storage.max(DISK_ALLOWED)
        };
        let prices = Prices {
            compute: self.dearest(asked.compute),
            storage,
            ..Prices::default()
        };
        let hourly = prices.of_gpus(gpus).all_in_hour(Need::disk(disk));
        ceiling_of(hourly).min(PricePerHour(PRICE_MAX))
    }
}

/// What the term of a candidate costs in advance.
pub(crate) fn quote_of(candidate: &Candidate, days: u16) -> reserved::Quote {
    let offer = candidate.offer.body();
    let rate = offer.prices.of_gpus(candidate.gpus).compute;
    reserved::quote(rate, days, offer.sales.discount_max.unwrap_or_default())
}

/// How long a bid waits.
fn wait(work: &WorkArgs) -> Result<Seconds, Failure> {
    waited(work.duration)
}

/// How long a bid waits that was given this time, or none.
pub(crate) fn waited(typed: Option<Seconds>) -> Result<Seconds, Failure> {
    let wait = typed.unwrap_or(WAIT);
    if wait > WAIT_MAX {
        let what = format!("a bid waits for {WAIT_MAX} at most, not {wait}");
        return Err(Failure::new(Code::BadValue, what).help("wait for less: --for 30d"));
    }
    Ok(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command};
    use clap::Parser;

    fn typed(words: &str) -> Result<(Claim, Option<Seconds>), Failure> {
        let line = format!("feira rent o-7k3f --image i {words}");
        let arguments = Arguments::try_parse_from(line.split_whitespace()).unwrap();
        let Command::Rent(rent) = arguments.command else {
            panic!("{words}")
        };
        Claim::of(&rent)
    }

    const PRICE: PricePerHour = PricePerHour(220_000);

    // peers 3.1 #1: a forgotten price must not turn a bid into a full-price rental that says nothing.
    #[test]
    fn without_a_price_it_is_on_demand_and_with_one_never() {
        assert_eq!(typed("").unwrap(), (Claim::OnDemand, None));
        let hour = Some(Seconds(3600));
        assert_eq!(typed("--for 1h").unwrap(), (Claim::OnDemand, hour));
        let resting = Claim::Bid {
            limit: PRICE,
            wait: Seconds(21_600),
        };
        assert_eq!(typed("--bid 0.22 --for 6h").unwrap(), (resting, None));
        let (claim, most) = typed("--interruptible 0.22 --max-hours 1").unwrap();
        let wanted = Claim::Interruptible {
            bid: PRICE,
            wait: WAIT,
            fallback: None,
        };
        assert_eq!((claim, most), (wanted, hour));
        let (claim, _) = typed("--reserve 30").unwrap();
        assert_eq!(claim, Claim::Reserved { days: 30 });
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for words in [
            "--for 1h --max-hours 2",
            "--reserve 30 --for 1h",
            "--interruptible 0.22 --fallback 0.21",
            "--bid 0.22 --for 366d",
        ] {
            assert_eq!(typed(words).unwrap_err().code(), Code::BadValue, "{words}");
        }
    }

    #[test]
    fn a_bid_stops_waiting_when_it_was_said() {
        let now = Timestamp(1_000_000);
        let (claim, _) = typed("--bid 0.22 --for 6h").unwrap();
        let deal = Deal::Bid {
            limit: PRICE,
            until: Timestamp(1_000_000 + 6 * 3_600_000),
        };
        assert_eq!(claim.deal(now, MicroUsd::ZERO), deal);
    }

    /// 2 × 400 000, the fallback, and 50 GB at $0.30: 50 × 300 000 × 3600 / 2 592 000 = 20 833.3.
    #[test]
    fn the_ceiling_is_the_dearest_that_was_agreed_to() {
        let (claim, _) = typed("--interruptible 0.22 --fallback 0.40").unwrap();
        let ceiling = claim.ceiling(2, Bytes::from_gb(50), None, false);
        assert_eq!(ceiling, PricePerHour(820_833));
    }
}
