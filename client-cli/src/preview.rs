//! What an order would mean, from the exact terms that would be signed.
//!
//! Pure: order, offer and balance in, lines for people and an object for programs out.

mod check;
mod json;
mod words;

use crate::commands::search::Candidate;
use crate::image::Resolved;
use crate::printer::Object;
use crate::session::Broker;
use protocol::offer::Offer;
use protocol::order::{Order, Target};
use protocol::terms::{Deal, Need, Prices, reserved};
use protocol::units::{BasisPoints, MicroUsd, Millis, PricePerHour, Seconds, Timestamp};
use protocol::usage::Balance;

const HOUR: Seconds = Seconds(3600);
const DAY: Seconds = Seconds(86_400);

/// Everything that a preview shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preview<'a> {
    /// What would be signed.
    pub order: &'a Order,
    /// The offer that is rented; of an order for whichever comes, the best of now, if there is one.
    pub known: Option<&'a Candidate>,
    /// The broker it would be sent to.
    pub broker: &'a Broker,
    /// The image, with its size.
    pub image: &'a Resolved,
    /// The renter's money with that broker, if it said.
    pub balance: Option<Balance>,
    /// How many offers matched.
    pub matching: u32,
    /// By this machine's clock.
    pub now: Timestamp,
}

impl<'a> Preview<'a> {
    fn offer(&self) -> Option<&'a Offer> {
        self.known.map(|known| known.offer.body())
    }

    /// The offer, where the order names it.
    fn fixed(&self) -> Option<&'a Offer> {
        match self.order.target {
            Target::Offer { .. } => self.offer(),
            Target::Any(_) => None,
        }
    }

    /// The host's prices for all GPUs together; nothing is known of them without an offer.
    fn ask(&self) -> Prices {
        self.offer().map_or_else(Prices::default, |offer| {
            offer.prices.of_gpus(self.order.gpus)
        })
    }

    /// What a GPU and hour costs while it runs: what is asked, or the most or the very price that is bid.
    fn each(&self) -> PricePerHour {
        match self.order.deal {
            Deal::OnDemand => self
                .offer()
                .map_or(PricePerHour(0), |offer| offer.prices.compute),
            Deal::Bid { limit, .. } => limit,
            Deal::Interruptible { bid, .. } => bid,
            Deal::Reserved { days, .. } => self.offer().map_or(PricePerHour(0), |offer| {
                reserved::quote(offer.prices.compute, days, most_discount(offer)).hourly
            }),
        }
    }

    /// The prices that it would have: with the bid for what the host asks, or the discounted rate.
    fn prices(&self) -> Prices {
        let whole = Prices {
            compute: self.each(),
            ..self.ask()
        }
        .of_gpus(self.order.gpus);
        match self.quote() {
            Some((_, quote)) => Prices {
                compute: quote.hourly,
                ..whole
            },
            None => whole,
        }
    }

    /// All in, while it runs; of a bid that waits, at its limit.
    pub(crate) fn hourly(&self) -> MicroUsd {
        self.prices().all_in_hour(Need::disk(self.order.disk))
    }

    /// The term and its price, if it is for one.
    fn quote(&self) -> Option<(u16, reserved::Quote)> {
        let Deal::Reserved { days, .. } = self.order.deal else {
            return None;
        };
        let most = self.offer().map_or(BasisPoints(0), most_discount);
        Some((days, reserved::quote(self.ask().compute, days, most)))
    }

    /// What is taken of the balance at the start: an hour or the whole budget if that is less; of a term, what
    /// is prepaid and an hour of its disk.
    pub(crate) fn hold(&self) -> MicroUsd {
        let Some((_, quote)) = self.quote() else {
            return self.hourly().min(self.order.budget);
        };
        let disk = Prices {
            compute: PricePerHour(0),
            ..self.ask()
        };
        let hour = disk.all_in_hour(Need::disk(self.order.disk));
        let beside = self.order.budget.saturating_sub(quote.prepaid);
        quote.prepaid.saturating_add(hour.min(beside))
    }

    /// What an early cancel gives back at the start, at half of the term, and at its end.
    fn refunds(&self) -> Option<[MicroUsd; 3]> {
        let (days, quote) = self.quote()?;
        let whole = reserved::length(days);
        let at = |used| reserved::cancel(self.ask().compute, quote.prepaid, days, used).refund;
        Some([at(Millis(0)), at(Millis(whole.0 / 2)), at(whole)])
    }

    /// What has to be bid for a GPU and hour to run now, as far as it is known.
    fn needed(&self) -> Option<PricePerHour> {
        match self.order.deal {
            Deal::Bid { .. } | Deal::Interruptible { .. } => self.known.map(|known| known.price),
            Deal::OnDemand | Deal::Reserved { .. } => None,
        }
    }

    /// For people and programs.
    pub(crate) fn object(&self) -> Object {
        let offer = self.fixed().map(|offer| offer.id.to_string());
        Object {
            id: offer.unwrap_or_else(|| self.order.id.to_string()),
            lines: self.lines(),
            json: self.json(),
        }
    }
}

fn most_discount(offer: &Offer) -> BasisPoints {
    offer.sales.discount_max.unwrap_or(BasisPoints(0))
}

/// The ceiling of an order whose typist agreed to exactly this price.
pub(crate) fn ceiling_of(hourly: MicroUsd) -> PricePerHour {
    PricePerHour(u64::try_from(hourly.0).unwrap_or(0))
}

#[cfg(test)]
mod tests;
