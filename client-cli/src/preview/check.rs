//! What a broker would refuse, found before anything is signed.

use super::{DAY, Preview};
use crate::failure::{Code, Failure};
use crate::view::{clock_time, cores_in_words, ram_in_words};
use protocol::offer::Offer;
use protocol::terms::Deal;
use protocol::units::{PricePerHour, Seconds};

impl Preview<'_> {
    /// Finds what the broker would refuse, before anything is signed. `floor` is the lowest that any of the
    /// offers takes bids from, where all of them are known.
    pub(crate) fn check(&self, floor: Option<PricePerHour>) -> Result<(), Failure> {
        if let Some(offer) = self.fixed() {
            self.check_offer(offer)?;
        }
        self.check_bid(floor)?;
        if let Some((days, quote)) = self.quote()
            && quote.prepaid > self.order.budget
        {
            let what = format!(
                "{} is prepaid for {days} days; the budget is {}",
                quote.prepaid, self.order.budget
            );
            return Err(Failure::new(Code::BudgetTooSmall, what)
                .help("raise it, with what disk and traffic will cost: --budget USD"));
        }
        if let Some(size) = self.image.size.filter(|size| *size > self.order.disk) {
            let what = format!(
                "the image's layers are {size}, the disk {}",
                self.order.disk
            );
            return Err(Failure::new(Code::ImageTooBig, what)
                .help(format!("ask for more: --disk {}", size.gb() * 2 + 1)));
        }
        Ok(())
    }

    fn check_offer(&self, offer: &Offer) -> Result<(), Failure> {
        let (order, limits, share) = (self.order, &offer.limits, &offer.share);
        let hourly = self.hourly();
        // A bid that waits may be met by less than its limit.
        let is_exact = !matches!(order.deal, Deal::Bid { .. });
        if is_exact && hourly > order.price_max.amount() {
            let what = format!(
                "the price is {hourly}/h all in; you allow {}",
                order.price_max
            );
            let raise = hourly.decimal();
            return Err(Failure::new(Code::PriceAboveLimit, what)
                .help(format!("raise the ceiling: --max-price {raise}")));
        }
        if order.disk > limits.disk_max {
            let what = format!(
                "the offer allows {} of disk, not {}",
                limits.disk_max, order.disk
            );
            return Err(beyond(what, format!("--disk {}", limits.disk_max.gb())));
        }
        if let Some(cpus) = order
            .cpu_millicores
            .filter(|cpus| *cpus > share.cpu_millicores)
        {
            let most = cores_in_words(share.cpu_millicores);
            let what = format!("the offer has {most} CPUs, not {}", cores_in_words(cpus));
            return Err(beyond(what, format!("--cpus {most}")));
        }
        if let Some(ram) = order.ram.filter(|ram| *ram > share.ram) {
            let what = format!(
                "the offer has {} of RAM, not {}",
                ram_in_words(share.ram),
                ram_in_words(ram)
            );
            return Err(beyond(what, format!("--ram {}", share.ram.gb())));
        }
        self.check_time(offer)
    }

    /// A time that was asked for must fit between the shortest and the longest lease, and before the end that
    /// the host promises.
    fn check_time(&self, offer: &Offer) -> Result<(), Failure> {
        let limits = &offer.limits;
        let (asked, flag) = match self.order.deal {
            Deal::Reserved { days, .. } => {
                (Some(Seconds(u64::from(days) * DAY.0)), "--reserve DAYS")
            }
            Deal::Bid { .. } | Deal::Interruptible { .. } => {
                (self.order.duration_max, "--max-hours HOURS")
            }
            Deal::OnDemand => (self.order.duration_max, "--for TIME"),
        };
        let Some(asked) = asked else {
            return Ok(());
        };
        if let Some(most) = limits.duration_max.filter(|most| asked > *most) {
            let what = format!("the offer allows {most}, not {asked}");
            return Err(beyond(what, flag.to_owned()));
        }
        if asked < limits.duration_min {
            let what = format!(
                "the offer is for {} at least, not {asked}",
                limits.duration_min
            );
            return Err(Failure::new(Code::BeyondOffer, what).help(format!("ask for more: {flag}")));
        }
        match limits.until {
            Some(until) if self.now.after(asked.millis()) > until => {
                let left = until.since(self.now).seconds();
                let what = format!(
                    "the host promises to be there until {}, for {left}; {asked} was asked",
                    clock_time(until)
                );
                Err(beyond(what, flag.to_owned()))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_bid(&self, floor: Option<PricePerHour>) -> Result<(), Failure> {
        let Deal::Interruptible { bid, .. } = self.order.deal else {
            return Ok(());
        };
        let most = self.order.price_max;
        let compute = self.prices().compute;
        if compute > most {
            let what = format!("the bid comes to {compute} for all GPUs; you allow {most} all in");
            return Err(Failure::new(Code::PriceAboveLimit, what)
                .help("raise the ceiling, or leave it out: --max-price"));
        }
        let own = self.fixed().and_then(|offer| offer.sales.floor);
        let Some(floor) = own.or(floor).filter(|floor| bid < *floor) else {
            return Ok(());
        };
        let who = match self.fixed() {
            Some(offer) => format!("the host of {} takes", offer.id.short()),
            None => "the offers that match take".to_owned(),
        };
        let what = format!("{who} bids from {floor} for a GPU on; {bid} was bid");
        let least = floor.amount().decimal();
        Err(Failure::new(Code::BidTooLow, what).help(format!("bid at least {least}")))
    }

    /// Finds that the money does not cover the start.
    pub(crate) fn check_money(&self) -> Result<(), Failure> {
        match self.balance {
            Some(balance) if balance.available < self.hold() => {
                let (needed, available) = (self.hold(), balance.available);
                let does = if self.quote().is_some() {
                    "is prepaid or held"
                } else {
                    "is held"
                };
                let what = format!("{needed} {does} to start; {available} is available");
                Err(Failure::new(Code::NotEnoughMoney, what)
                    .help("see how to top up: feira balance"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn beyond(what: String, flag: String) -> Failure {
    Failure::new(Code::BeyondOffer, what).help(format!("ask for less: {flag}"))
}
