//! A preview as people read it.

use super::{DAY, HOUR, Preview};
use crate::view::{apart_in_words, offered_in_words, slice_in_words};
use crate::view::{clock_time, cores_in_words, lasts, ram_in_words, unit};
use protocol::machine::ContainerNetwork;
use protocol::offer::Partition;
use protocol::order::Target;
use protocol::terms::{Deal, Prices, compute_due, storage_due};
use protocol::units::{MicroUsd, Millis, PricePerHour, Seconds, Timestamp};
use protocol::verify::VerificationLevel;

type Line = (String, String);

impl Preview<'_> {
    /// One sentence, for those who agreed before they were shown: kind and price are always said.
    pub(crate) fn sentence(&self) -> String {
        let (gpus, most) = (self.number_in_words(), self.order.budget);
        let what = match self.fixed() {
            Some(offer) => format!("{} of {}", gpus, offer.id.short()),
            None => gpus,
        };
        let hourly = self.hourly();
        let unit = unit(self.order.gpus);
        match self.order.deal {
            Deal::OnDemand => {
                format!("Renting {what} on demand at {hourly}/h all in, at most {most}")
            }
            Deal::Bid { limit, until } => format!(
                "Bidding for {what}: on demand once {unit} is at most {limit}, until {}, at most {most}",
                clock_time(until)
            ),
            Deal::Interruptible { bid, until, .. } => format!(
                "Bidding for {what}: interruptible, {bid} for {unit} while it runs, waiting until {}, at most {most}",
                clock_time(until)
            ),
            Deal::Reserved {
                days, prepay_max, ..
            } => {
                format!(
                    "Renting {what} reserved for {days} days, {prepay_max} prepaid, at most {most}"
                )
            }
        }
    }

    /// How many GPUs, or which slice.
    fn number_in_words(&self) -> String {
        match self.slice() {
            Some(slice) => format!("1 slice {}", slice.profile),
            None => gpus_in_words(self.order.gpus),
        }
    }

    /// The slice that is rented, where the order names its offer.
    fn slice(&self) -> Option<&Partition> {
        self.fixed().and_then(|offer| offer.partition.as_ref())
    }

    /// What people should be told before they agree to hardware of which the broker has no proof.
    pub(crate) fn doubt(&self) -> Option<String> {
        let known = self.known?;
        match &known.verification {
            VerificationLevel::Verified { .. } => None,
            VerificationLevel::Unverified | VerificationLevel::Withdrawn { .. } => Some(format!(
                "the hardware is {}",
                proof_in_words(&known.verification)
            )),
        }
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut line = |label: &str, value: String| lines.push((label.to_owned(), value));
        line("Offer", self.offer_in_words());
        line("GPU", self.gpu_in_words());
        if let Some(slice) = self.slice() {
            line("Slice", slice_in_words(slice));
            line("", apart_in_words(slice.isolation).to_owned());
        }
        if let Some(known) = self.known {
            line("Hardware", proof_in_words(&known.verification));
        }
        line("Machine", self.machine_in_words());
        line("Image", self.image_in_words());
        line("Kind", self.kind_in_words());
        for (label, value) in self.deal_in_words() {
            line(label, value);
        }
        line("Price", self.price_in_words());
        line("", self.traffic_in_words());
        let within = self.offer().map_or_else(String::new, |offer| {
            format!("within {}; ", offer.limits.start_within)
        });
        line(
            "Starts",
            format!("{within}billed from when it runs, a failed start costs $0.00"),
        );
        line("Stopped", self.stopped_in_words());
        line("Ends", self.ends_in_words());
        line("Money", self.money_in_words());
        line(
            "Privacy",
            "the host's owner can read what is in the container".to_owned(),
        );
        line(
            "",
            "the broker too reads the command and the variables (--env)".to_owned(),
        );
        lines
    }

    fn offer_in_words(&self) -> String {
        let broker = self.broker.title();
        let host = self
            .known
            .map_or_else(String::new, |known| known.host().short());
        match (&self.order.target, self.offer()) {
            (Target::Offer { .. }, Some(offer)) => {
                let of = match self.matching {
                    0 | 1 => String::new(),
                    several => format!(", best of {several}"),
                };
                format!(
                    "{} of host {host}{of}, with broker {broker}",
                    offer.id.short()
                )
            }
            (Target::Any(filter), Some(offer)) => format!(
                "any that meets {filter}: {} now, best {} of host {host}; with broker {broker}",
                self.matching,
                offer.id.short()
            ),
            (Target::Any(filter), None) => {
                format!("any that comes to meet {filter}: none does now; with broker {broker}")
            }
            (Target::Offer { offer, .. }, None) => {
                format!("{}, with broker {broker}", offer.short())
            }
        }
    }

    fn gpu_in_words(&self) -> String {
        match self.offer() {
            Some(offer) => offered_in_words(offer, self.order.gpus),
            None => gpus_in_words(self.order.gpus),
        }
    }

    fn machine_in_words(&self) -> String {
        let order = self.order;
        let Some(offer) = self.offer() else {
            return format!(
                "CPUs and RAM in proportion to its GPUs, {} disk",
                order.disk
            );
        };
        let held = if offer.machine.disk_enforced {
            "enforced"
        } else {
            "watched"
        };
        let network = match offer.machine.network {
            ContainerNetwork::None => "no network, reached through feira",
            ContainerNetwork::Bridge => "network with a way out",
        };
        let (cpus, ram, ..) = offer.proportion(order.gpus);
        format!(
            "{} vCPU, {} RAM, {} disk ({held}); {network}",
            cores_in_words(order.cpu_millicores.unwrap_or(cpus)),
            ram_in_words(order.ram.unwrap_or(ram)),
            order.disk
        )
    }

    fn image_in_words(&self) -> String {
        let digest = self.order.job.image.digest();
        let short = digest.get(..19).unwrap_or(&digest);
        let size = self
            .image
            .size
            .map_or_else(String::new, |size| format!(", {size} to pull at most"));
        let tag = self
            .image
            .tag
            .as_ref()
            .map_or_else(String::new, |tag| format!(":{tag}"));
        format!("{}{tag} = {short}…{size}", self.order.job.image.name)
    }

    fn kind_in_words(&self) -> String {
        let until = self.offer().and_then(|offer| offer.limits.until);
        let promised = until.map_or_else(String::new, |until| {
            format!(
                "; the host promises to be there until {}",
                clock_time(until)
            )
        });
        let unit = unit(self.order.gpus);
        let kind = match self.order.deal {
            Deal::OnDemand => "on demand: these terms until it ends".to_owned(),
            Deal::Bid { limit, .. } => {
                format!(
                    "on demand, as soon as {unit} is at most {limit}; you pay what is asked then"
                )
            }
            Deal::Interruptible { .. } => {
                "interruptible: you pay your bid while it runs, and only then".to_owned()
            }
            Deal::Reserved { days, .. } => {
                format!("reserved for {days} days: prepaid, and nobody can push you out")
            }
        };
        format!("{kind}{promised}")
    }

    /// What the kind has beside a price.
    fn deal_in_words(&self) -> Vec<(&'static str, String)> {
        match self.order.deal {
            Deal::OnDemand => Vec::new(),
            Deal::Bid { limit, until } => vec![
                ("Now", self.now_in_words(limit, "the lowest price")),
                ("Waits", self.waits_in_words(until)),
            ],
            Deal::Interruptible {
                bid,
                until,
                fallback,
            } => vec![
                ("Now", self.now_in_words(bid, "what has to be bid")),
                ("Waits", self.waits_in_words(until)),
                ("If outbid", self.outbid_in_words(fallback)),
            ],
            Deal::Reserved { .. } => self.term_in_words(),
        }
    }

    fn now_in_words(&self, bid: PricePerHour, what: &str) -> String {
        let Some(needed) = self.needed() else {
            return "nothing that it could run on; the bid waits".to_owned();
        };
        let floor = self.offer().and_then(|offer| offer.sales.floor);
        let floor = floor
            .filter(|_| matches!(self.order.deal, Deal::Interruptible { .. }))
            .map_or_else(String::new, |floor| format!(", of at least {floor}"));
        let outcome = if bid < needed {
            "the bid waits"
        } else {
            "the bid wins"
        };
        let ask = self.offer().map(|offer| offer.prices.compute);
        let dear = match (self.order.deal, ask) {
            (Deal::Interruptible { .. }, Some(ask)) if bid >= ask => {
                format!("; on demand it costs {ask}, and nobody could push you out")
            }
            _ => String::new(),
        };
        format!(
            "{what} for {} is {needed}{floor}: {outcome}{dear}",
            unit(self.order.gpus)
        )
    }

    fn waits_in_words(&self, until: Timestamp) -> String {
        let left = about(until.since(self.now));
        format!("for its first start until {} ({left})", clock_time(until))
    }

    fn outbid_in_words(&self, fallback: Option<PricePerHour>) -> String {
        let notice = self.offer().map_or_else(
            || "the offer's notice".to_owned(),
            |offer| offer.limits.notice.to_string(),
        );
        let stop = format!("SIGTERM, {notice}, then stopped; disk kept, resumes by itself");
        match fallback {
            None => stop,
            Some(price) => {
                let unit = unit(self.order.gpus);
                format!("on demand while {unit} is at most {price}; else {stop}")
            }
        }
    }

    fn term_in_words(&self) -> Vec<(&'static str, String)> {
        let (Some((_, quote)), Some([now, half, end])) = (self.quote(), self.refunds()) else {
            return Vec::new();
        };
        let prepaid = format!(
            "{} = {} on demand less {}; that is {} for running",
            quote.prepaid, quote.on_demand, quote.discount, quote.hourly
        );
        let back = format!("{now} now, {half} at half of the term, {end} at its end");
        vec![
            ("Prepaid", prepaid),
            ("Cancelled", format!("gives back {back}")),
        ]
    }

    fn price_in_words(&self) -> String {
        let prices: Prices = self.prices();
        let each = compute_due(self.each(), HOUR.millis());
        let compute = match (self.order.gpus, self.quote()) {
            (_, Some((_, quote))) => format!("{} (prepaid)", quote.hourly.amount()),
            (0 | 1, None) => each.to_string(),
            (several, None) => format!("{several} × {each}"),
        };
        let disk = storage_due(prices.storage, self.order.disk, HOUR.millis());
        let hourly = self.hourly();
        let daily = MicroUsd(hourly.0.saturating_mul(24));
        let fee = self.broker.info.fee;
        let most = match (&self.order.target, self.order.deal) {
            (Target::Any(_), _) => format!("; never more than {}", self.order.price_max),
            (Target::Offer { .. }, _) => String::new(),
        };
        format!(
            "{compute} + disk {disk} = {hourly}/h, {daily}/day{most}; of it {fee} to the broker"
        )
    }

    fn traffic_in_words(&self) -> String {
        let prices = self.ask();
        if self.offer().is_none() {
            return "disk and traffic at what the host asks then".to_owned();
        }
        if prices.upload.0 == 0 && prices.download.0 == 0 {
            return "traffic is free".to_owned();
        }
        format!("traffic: up {}, down {}", prices.upload, prices.download)
    }

    fn stopped_in_words(&self) -> String {
        let day = storage_due(self.ask().storage, self.order.disk, DAY.millis());
        if self.quote().is_some() {
            return format!("{day}/day for the disk; the term goes on, and keeps its place");
        }
        if self.offer().is_none() {
            return "only the disk is billed; the machine is freed for others".to_owned();
        }
        format!("{day}/day for the disk; the machine is freed for others")
    }

    fn ends_in_words(&self) -> String {
        let order = self.order;
        let way_out = format!("or: feira end {}", order.name);
        if let Some((days, _)) = self.quote() {
            return format!("after {days} days, at {} in all, {way_out}", order.budget);
        }
        let lasts = lasts(order.budget, self.hourly());
        let after = lasts.map_or_else(String::new, |time| format!(" ({time})"));
        let most = order.duration_max;
        let most = most.map_or_else(String::new, |time| format!(", after {time} of running"));
        format!("at {}{after}{most}, {way_out}", order.budget)
    }

    fn money_in_words(&self) -> String {
        let hold = self.hold();
        let does = match self.order.deal {
            Deal::OnDemand => "held to start",
            Deal::Bid { .. } | Deal::Interruptible { .. } => "held while it waits and runs",
            Deal::Reserved { .. } => "taken to start: what is prepaid, and an hour of disk",
        };
        match self.balance {
            Some(balance) => format!("{hold} of your {} is {does}", balance.available),
            None => format!("{hold} is {does}"),
        }
    }
}

/// A time that began a moment ago, to the next second.
const fn about(time: Millis) -> Seconds {
    time.plus(Millis(999)).seconds()
}

/// How far the broker has proof of the hardware.
pub(super) fn proof_in_words(level: &VerificationLevel) -> String {
    match level {
        VerificationLevel::Verified { at, .. } => {
            format!("proved to the broker on {}", clock_time(*at))
        }
        VerificationLevel::Unverified => {
            "not proved: the broker has its host's word for it".to_owned()
        }
        VerificationLevel::Withdrawn { reason, at } => {
            format!("not proved since {}: {reason}", clock_time(*at))
        }
    }
}

/// GPUs of which only the number is known.
fn gpus_in_words(gpus: u16) -> String {
    match gpus {
        0 => "a machine without GPUs".to_owned(),
        1 => "1 GPU".to_owned(),
        several => format!("{several} GPUs"),
    }
}
