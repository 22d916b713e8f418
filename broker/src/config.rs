//! What `broker.toml` and the environment say, read once, checked, and never looked at again.
//!
//! A mistake in the file is an error that names the file, the line and the field; an unknown field is a
//! mistake. Must not start anything.

mod proofs;
mod template;

pub use template::{difference, template};

use crate::core::settings::MarketSettings;
use crate::verify::ProofConfig;
use protocol::bounded::Text;
use protocol::net::{Multiaddr, parse_address};
use protocol::operator::{MetricsAddress, SettingsError};
use protocol::units::{BasisPoints, Seconds};
use serde::Deserialize;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a broker listens unless it is told otherwise.
pub const DEFAULT_LISTEN: [&str; 2] = ["/ip4/0.0.0.0/tcp/7700", "/ip4/0.0.0.0/udp/7700/quic-v1"];
/// Where the metrics page is unless it is told otherwise.
pub const DEFAULT_METRICS: &str = "127.0.0.1:9640";
/// What a broker is called unless it is told otherwise.
pub const DEFAULT_NAME: &str = "a feira broker";

/// Longest time of the market's rules: nobody means more than a year.
const TIME_MAX: Seconds = Seconds(366 * 86_400);
/// Most connections, requests a second, and requests at once: beyond them a machine is out of ports or memory.
const COUNT_MAX: u64 = 65_536;
/// Longest that a stopping broker waits: service managers kill what takes longer.
const DRAIN_MAX_S: u64 = 240;

/// All settings of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What renters see as its name.
    pub name: Text<63>,
    /// Where it listens.
    pub listen: Vec<Multiaddr>,
    /// Under which addresses others reach it; those it listens at when empty.
    pub announce: Vec<Multiaddr>,
    /// Where the metrics page is.
    pub metrics: MetricsAddress,
    /// The operator's socket; in the data folder when absent.
    pub admin_socket: Option<PathBuf>,
    /// The rules of the market that an operator chooses.
    pub market: MarketSettings,
    /// How much it takes on at once.
    pub limits: Limits,
    /// How it puts hardware to the proof, if it does.
    pub proofs: Option<ProofConfig>,
}

/// How much a broker takes on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections with all peers.
    pub connections: u32,
    /// Requests a second that one peer may send on average.
    pub requests_per_second: NonZeroU32,
    /// Requests being answered at once, those that wait for a lease to change included.
    pub requests_in_flight: usize,
    /// Requests that wait for a lease to change.
    pub watches: usize,
    /// How long a stopping broker waits for what it is doing.
    pub drain: Duration,
}

/// The file as it is written: flat, each field optional, nothing else allowed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    name: Option<String>,
    listen: Option<Vec<String>>,
    announce: Vec<String>,
    metrics: Option<String>,
    admin_socket: Option<PathBuf>,
    fee_bps: Option<u16>,
    accept_within_s: Option<u64>,
    suspect_after_s: Option<u64>,
    lost_after_s: Option<u64>,
    hold_s: Option<u64>,
    top_up_every_s: Option<u64>,
    low_balance_s: Option<u64>,
    stop_below_s: Option<u64>,
    meter_every_s: Option<u64>,
    disk_keep_s: Option<u64>,
    disk_keep_unpaid_s: Option<u64>,
    dispute_s: Option<u64>,
    dispute_trusted_s: Option<u64>,
    min_run_s: Option<u64>,
    connections: Option<u32>,
    requests_per_second: Option<NonZeroU32>,
    requests_in_flight: Option<usize>,
    watches: Option<usize>,
    drain_s: Option<u64>,
    proof_images: Vec<String>,
    proof_every_s: Option<u64>,
    proof_stands_s: Option<u64>,
    proof_first_within_s: Option<u64>,
    proofs_at_once: Option<u16>,
    proofs_per_hour: Option<u16>,
    proof_keep_s: Option<u64>,
    proof_classes: Vec<proofs::ClassFile>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            // Above a renter's busiest command and a host's reports of eight leases.
            requests_per_second: NonZeroU32::MIN.saturating_add(49),
            requests_in_flight: 1024,
            watches: 512,
            drain: Duration::from_secs(10),
        }
    }
}

impl Config {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// The first mistake in it, by line and field.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = SettingsError::read(path)?;
        Self::parse(path, &text)
    }

    /// Checks `text`, which is what the file at `path` holds.
    ///
    /// # Errors
    /// The first mistake in it, by line and field.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SettingsError> {
        let file: File = SettingsError::fields(path, text)?;
        file.check()
            .map_err(|(field, problem)| SettingsError::wrong_value(path, text, field, problem))
    }
}

/// Which field, and what is wrong with it.
type Wrong = (&'static str, String);

impl File {
    fn check(self) -> Result<Config, Wrong> {
        let name = self.name.as_deref().unwrap_or(DEFAULT_NAME);
        let name = Text::new(name).map_err(|error| ("name", error.to_string()))?;
        let listen = self
            .listen
            .clone()
            .unwrap_or_else(|| DEFAULT_LISTEN.map(str::to_owned).to_vec());
        let listen = addresses("listen", &listen)?;
        if listen.is_empty() {
            return Err((
                "listen",
                "at least one address to listen at is needed".to_owned(),
            ));
        }
        let announce = addresses("announce", &self.announce)?;
        let metrics = match &self.metrics {
            Some(text) => MetricsAddress::At(loopback(text)?),
            None => MetricsAddress::Usual,
        };
        let (market, limits, proofs) = (self.market()?, self.limits()?, self.proofs()?);
        Ok(Config {
            name,
            listen,
            announce,
            metrics,
            admin_socket: self.admin_socket,
            market,
            limits,
            proofs,
        })
    }

    fn market(&self) -> Result<MarketSettings, Wrong> {
        let usual = MarketSettings::default();
        let fee = self.fee_bps.map_or(usual.fee, BasisPoints);
        if fee > BasisPoints::WHOLE {
            return Err((
                "fee_bps",
                format!("{} is more than the whole, which is 10000", fee.0),
            ));
        }
        let market = MarketSettings {
            fee,
            accept_within: time("accept_within_s", self.accept_within_s, usual.accept_within)?,
            suspect_after: time("suspect_after_s", self.suspect_after_s, usual.suspect_after)?,
            lost_after: time("lost_after_s", self.lost_after_s, usual.lost_after)?,
            hold: time("hold_s", self.hold_s, usual.hold)?,
            top_up_every: time("top_up_every_s", self.top_up_every_s, usual.top_up_every)?,
            low_balance: time("low_balance_s", self.low_balance_s, usual.low_balance)?,
            stop_below: time("stop_below_s", self.stop_below_s, usual.stop_below)?,
            meter_every: time("meter_every_s", self.meter_every_s, usual.meter_every)?,
            disk_keep: time("disk_keep_s", self.disk_keep_s, usual.disk_keep)?,
            disk_keep_unpaid: time(
                "disk_keep_unpaid_s",
                self.disk_keep_unpaid_s,
                usual.disk_keep_unpaid,
            )?,
            dispute: time("dispute_s", self.dispute_s, usual.dispute)?,
            dispute_trusted: time(
                "dispute_trusted_s",
                self.dispute_trusted_s,
                usual.dispute_trusted,
            )?,
            min_run: time("min_run_s", self.min_run_s, usual.min_run)?,
        };
        let suspect = market.suspect_after;
        if market.lost_after < suspect {
            let problem = format!("a host cannot be lost before it is suspect, after {suspect}");
            return Err(("lost_after_s", problem));
        }
        if market.dispute_trusted > market.dispute {
            let problem = format!("it is at most `dispute_s`, {}", market.dispute);
            return Err(("dispute_trusted_s", problem));
        }
        if market.stop_below <= suspect {
            let problem = format!(
                "it must be longer than `suspect_after_s`, {suspect}: what ran must be paid for"
            );
            return Err(("stop_below_s", problem));
        }
        Ok(market)
    }

    fn limits(&self) -> Result<Limits, Wrong> {
        let usual = Limits::default();
        let limits = Limits {
            connections: self.connections.unwrap_or(usual.connections),
            requests_per_second: self
                .requests_per_second
                .unwrap_or(usual.requests_per_second),
            requests_in_flight: self.requests_in_flight.unwrap_or(usual.requests_in_flight),
            watches: self.watches.unwrap_or(usual.watches),
            drain: self.drain_s.map_or(usual.drain, Duration::from_secs),
        };
        let counts = [
            (
                "connections",
                Some(u64::from(limits.connections)),
                COUNT_MAX,
            ),
            (
                "requests_per_second",
                Some(u64::from(limits.requests_per_second.get())),
                COUNT_MAX,
            ),
            (
                "requests_in_flight",
                u64::try_from(limits.requests_in_flight).ok(),
                COUNT_MAX,
            ),
            ("watches", u64::try_from(limits.watches).ok(), COUNT_MAX),
            ("drain_s", Some(limits.drain.as_secs()), DRAIN_MAX_S),
        ];
        for (field, count, most) in counts {
            if !count.is_some_and(|count| (1..=most).contains(&count)) {
                return Err((field, format!("it must be between 1 and {most}")));
            }
        }
        if limits.requests_in_flight <= limits.watches {
            let problem = format!(
                "it must be more than `watches`, {}, which are part of it",
                limits.watches
            );
            return Err(("requests_in_flight", problem));
        }
        Ok(limits)
    }
}

fn addresses(field: &'static str, list: &[String]) -> Result<Vec<Multiaddr>, Wrong> {
    let parsed = list.iter().map(|address| parse_address(address));
    parsed
        .collect::<Result<_, _>>()
        .map_err(|error| (field, error.to_string()))
}

fn time(field: &'static str, set: Option<u64>, usual: Seconds) -> Result<Seconds, Wrong> {
    match set {
        Some(0) => Err((field, "it must be at least one second".to_owned())),
        Some(seconds) if seconds > TIME_MAX.0 => Err((
            field,
            format!("{seconds} is more than a year, {}", TIME_MAX.0),
        )),
        Some(seconds) => Ok(Seconds(seconds)),
        None => Ok(usual),
    }
}

fn loopback(text: &str) -> Result<SocketAddr, Wrong> {
    let wrong = |problem| Err(("metrics", problem));
    let Ok(address) = text.parse::<SocketAddr>() else {
        return wrong(format!(
            "`{text}` is not an IP address and port like {DEFAULT_METRICS}"
        ));
    };
    if !address.ip().is_loopback() {
        return wrong(format!(
            "{address} can be reached from other machines and the page has no login; use 127.0.0.1 and a proxy of yours"
        ));
    }
    Ok(address)
}

#[cfg(test)]
mod tests;
