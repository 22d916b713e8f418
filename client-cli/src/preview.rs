//! What renting an offer would mean, from the exact terms that would be signed.
//!
//! Pure: offer, wishes and balance in, lines for people and an object for programs out.

use crate::failure::{Code, Failure};
use crate::image::Resolved;
use crate::printer::Object;
use crate::session::Broker;
use crate::view::{cores_in_words, lasts, portion_in_words, ram_in_words};
use protocol::ids::HostId;
use protocol::machine::ContainerNetwork;
use protocol::offer::Offer;
use protocol::order::Order;
use protocol::terms::{Need, Prices, compute_due, storage_due};
use protocol::units::{MicroUsd, PricePerHour, Seconds};
use protocol::usage::Balance;
use serde_json::json;

const HOUR: Seconds = Seconds(3600);
const DAY: Seconds = Seconds(86_400);

/// Everything that a preview shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preview<'a> {
    /// What would be signed.
    pub order: &'a Order,
    /// The offer it is about.
    pub offer: &'a Offer,
    /// How many of its GPUs.
    pub gpus: u16,
    /// Whose offer it is.
    pub host: HostId,
    /// The broker it would be sent to.
    pub broker: &'a Broker,
    /// The image, with its size.
    pub image: &'a Resolved,
    /// The renter's money with that broker, if it said.
    pub balance: Option<Balance>,
    /// How many offers matched.
    pub matching: u32,
}

impl Preview<'_> {
    /// The prices of its GPUs together.
    fn prices(&self) -> Prices {
        self.offer.prices.of_gpus(self.gpus)
    }

    /// All in, while it runs.
    pub(crate) fn hourly(&self) -> MicroUsd {
        self.prices().all_in_hour(Need::disk(self.order.disk))
    }

    /// What is held at the start: an hour, or the whole budget if that is less.
    pub(crate) fn hold(&self) -> MicroUsd {
        self.hourly().min(self.order.budget)
    }

    /// Finds what the broker would refuse, before anything is signed.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let (order, limits) = (self.order, &self.offer.limits);
        let hourly = self.hourly();
        if hourly > order.price_max.amount() {
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
            return Err(Failure::new(Code::BeyondOffer, what)
                .help(format!("ask for less: --disk {}", limits.disk_max.gb())));
        }
        if let (Some(asked), Some(most)) = (order.duration_max, limits.duration_max)
            && asked > most
        {
            let what = format!("the offer allows {most}, not {asked}");
            return Err(Failure::new(Code::BeyondOffer, what).help("ask for less: --for"));
        }
        if let Some(size) = self.image.size.filter(|size| *size > order.disk) {
            let what = format!("the image's layers are {size}, the disk {}", order.disk);
            return Err(Failure::new(Code::ImageTooBig, what)
                .help(format!("ask for more: --disk {}", size.gb() * 2 + 1)));
        }
        Ok(())
    }

    /// Finds that the money does not cover the start.
    pub(crate) fn check_money(&self) -> Result<(), Failure> {
        match self.balance {
            Some(balance) if balance.available < self.hold() => {
                let (needed, available) = (self.hold(), balance.available);
                let what = format!("{needed} is held to start; {available} is available");
                Err(Failure::new(Code::NotEnoughMoney, what)
                    .help("see how to top up: feira balance"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// For people and programs.
    pub(crate) fn object(&self) -> Object {
        let mut lines = Vec::new();
        let mut line = |label: &str, value: String| lines.push((label.to_owned(), value));
        line("Offer", self.offer_in_words());
        line("GPU", portion_in_words(&self.offer.share.gpus, self.gpus));
        line("Machine", self.machine_in_words());
        line("Image", self.image_in_words());
        line("Kind", "on demand: these terms until it ends".to_owned());
        line("Price", self.price_in_words());
        line("", self.traffic_in_words());
        let within = self.offer.limits.start_within;
        line(
            "Starts",
            format!("within {within}; billed from when it runs, a failed start costs $0.00"),
        );
        let day = storage_due(self.offer.prices.storage, self.order.disk, DAY.millis());
        line(
            "Stopped",
            format!("{day}/day for the disk; the machine is freed for others"),
        );
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
        Object {
            id: self.offer.id.to_string(),
            lines,
            json: self.json(),
        }
    }

    fn offer_in_words(&self) -> String {
        let of = match self.matching {
            0 | 1 => String::new(),
            several => format!(", best of {several}"),
        };
        let host = self.host.short();
        format!(
            "{} of host {host}{of}, with broker {}",
            self.offer.id.short(),
            self.broker.title()
        )
    }

    fn machine_in_words(&self) -> String {
        let share = &self.offer.share;
        let held = if self.offer.machine.disk_enforced {
            "enforced"
        } else {
            "watched"
        };
        let network = match self.offer.machine.network {
            ContainerNetwork::None => "no network, reached through feira",
            ContainerNetwork::Bridge => "network with a way out",
        };
        format!(
            "{} vCPU, {} RAM, {} disk ({held}); {network}",
            cores_in_words(share.cpu_millicores),
            ram_in_words(share.ram),
            self.order.disk
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

    fn price_in_words(&self) -> String {
        let prices = self.prices();
        let compute = compute_due(prices.compute, HOUR.millis());
        let disk = storage_due(prices.storage, self.order.disk, HOUR.millis());
        let hourly = self.hourly();
        let daily = MicroUsd(hourly.0.saturating_mul(24));
        let fee = self.broker.info.fee;
        format!("{compute} + disk {disk} = {hourly}/h, {daily}/day; of it {fee} to the broker")
    }

    fn traffic_in_words(&self) -> String {
        let prices = &self.offer.prices;
        if prices.upload.0 == 0 && prices.download.0 == 0 {
            return "traffic is free".to_owned();
        }
        format!("traffic: up {}, down {}", prices.upload, prices.download)
    }

    fn ends_in_words(&self) -> String {
        let lasts = lasts(self.order.budget, self.hourly());
        let after = lasts.map_or_else(String::new, |time| format!(" ({time})"));
        let most = self.order.duration_max;
        let most = most.map_or_else(String::new, |time| format!(", after {time} of running"));
        format!(
            "at {}{after}{most}, or: feira end {}",
            self.order.budget, self.order.name
        )
    }

    fn money_in_words(&self) -> String {
        let hold = self.hold();
        match self.balance {
            Some(balance) => format!("{hold} of your {} is held to start", balance.available),
            None => format!("{hold} is held to start"),
        }
    }

    fn json(&self) -> serde_json::Value {
        let order = self.order;
        let words = |list: &Option<protocol::bounded::List<protocol::bounded::Text<4096>, 64>>| {
            list.as_ref()
                .map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        json!({
            "schema": "feira.order/1",
            "offer": self.offer.id.to_string(),
            "gpus": self.gpus,
            "host": self.host.to_string(),
            "broker": self.broker.id.to_string(),
            "kind": "on_demand",
            "name": order.name.as_str(),
            "image": order.job.image.to_string(),
            "image_bytes": self.image.size.map(|size| size.0),
            "entrypoint": words(&order.job.entrypoint),
            "command": words(&order.job.command),
            "environment": order.job.environment.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(),
            "disk_bytes": order.disk.0,
            "price_usd_per_hour": self.hourly().decimal(),
            "price_max_usd_per_hour": order.price_max.amount().decimal(),
            "budget_usd": order.budget.decimal(),
            "hold_usd": self.hold().decimal(),
            "available_usd": self.balance.map(|balance| balance.available.decimal()),
            "max_seconds": order.duration_max.map(|most| most.0),
            "start_within_seconds": self.offer.limits.start_within.0,
            "fee_basis_points": self.broker.info.fee.0,
        })
    }
}

/// The ceiling of an order whose typist agreed to exactly this price.
pub(crate) fn ceiling_of(hourly: MicroUsd) -> PricePerHour {
    PricePerHour(u64::try_from(hourly.0).unwrap_or(0))
}

#[cfg(test)]
mod tests;
