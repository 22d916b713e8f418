//! What `host.toml` and the environment say, read once and checked. A mistake in the file is an error that
//! names the file, the line and the field; an unknown field is a mistake. It starts nothing.

pub mod template;

use crate::metrics::serve::USUAL_PORT;
use crate::wishes::{self, Wishes};
use protocol::ids::BrokerId;
use protocol::net::{Multiaddr, parse_address, peer_of_address};
use protocol::offer::BROKERS_MAX;
use protocol::operator::{MetricsAddress, SettingsError};
use protocol::units::{Bytes, Seconds};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where Docker listens unless it is told otherwise.
pub const DEFAULT_ENGINE: &str = "/var/run/docker.sock";

/// The least time between benchmarks that run by themselves.
const BENCH_EVERY_MIN: Seconds = Seconds(86_400);

/// All settings of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The brokers it lists with.
    pub brokers: Vec<BrokerAddress>,
    /// Where it listens for direct connections; nowhere behind NAT.
    pub listen: Vec<Multiaddr>,
    /// Under which addresses renters reach it directly.
    pub announce: Vec<Multiaddr>,
    /// The engine's socket.
    pub engine: PathBuf,
    /// Another file than `libnvidia-ml.so.1` to load.
    pub nvml: Option<PathBuf>,
    /// Where the page for Prometheus is.
    pub metrics: MetricsAddress,
    /// The owner's socket; in the data folder when absent.
    pub admin_socket: Option<PathBuf>,
    /// Disk that is never given to leases.
    pub disk_reserve: Bytes,
    /// How long logs are kept after a lease's end.
    pub logs_kept: Seconds,
    /// How often things are done.
    pub periods: Periods,
    /// How old benchmarks may be before an idle machine runs them again; never when absent.
    pub bench_every: Option<Seconds>,
    /// What is offered when the command line does not say otherwise.
    pub offer: Wishes,
}

/// A broker and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerAddress {
    /// Who it is.
    pub broker: BrokerId,
    /// Where to dial it.
    pub addresses: Vec<Multiaddr>,
}

/// How often things are done. The defaults are the market's; shorter ones are for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Periods {
    /// All offers are signed and said again.
    pub announce: Duration,
    /// Each lease's state and meters are signed and said again.
    pub report: Duration,
    /// What was not answered is said again.
    pub resend: Duration,
    /// Leases and containers are compared without a cause.
    pub reconcile: Duration,
    /// The machine is measured again.
    pub measure: Duration,
    /// How long a stopping agent waits for what it is doing.
    pub drain: Duration,
}

impl Default for Periods {
    fn default() -> Self {
        Self {
            announce: Duration::from_secs(20),
            report: Duration::from_secs(10),
            resend: Duration::from_secs(2),
            reconcile: Duration::from_secs(5),
            measure: Duration::from_secs(20),
            drain: Duration::from_secs(10),
        }
    }
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    brokers: Vec<String>,
    #[serde(default)]
    listen: Vec<String>,
    #[serde(default)]
    announce: Vec<String>,
    engine: Option<PathBuf>,
    nvml: Option<PathBuf>,
    metrics: Option<String>,
    admin_socket: Option<PathBuf>,
    #[serde(default = "default_disk_reserve_gb")]
    disk_reserve_gb: u64,
    #[serde(default = "default_logs_kept_days")]
    logs_kept_days: u64,
    #[serde(default)]
    periods: PeriodsSection,
    #[serde(default)]
    bench: BenchSection,
    /// Its keys are the flags of `list`.
    #[serde(default)]
    offer: toml::Table,
}

/// When benchmarks are run again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BenchSection {
    every: String,
}

impl Default for BenchSection {
    fn default() -> Self {
        Self {
            every: "7d".to_owned(),
        }
    }
}

/// Seconds between things.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PeriodsSection {
    announce_s: u64,
    report_s: u64,
    reconcile_s: u64,
    drain_s: u64,
}

impl Default for PeriodsSection {
    fn default() -> Self {
        Self {
            announce_s: 20,
            report_s: 10,
            reconcile_s: 5,
            drain_s: 10,
        }
    }
}

const fn default_disk_reserve_gb() -> u64 {
    10
}

const fn default_logs_kept_days() -> u64 {
    7
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
        let wrong =
            |field: &str, problem: String| SettingsError::wrong_value(path, text, field, problem);
        let addresses = |field: &'static str, list: &[String]| {
            let parsed = list.iter().map(|address| parse_address(address));
            parsed
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| wrong(field, error.to_string()))
        };
        let brokers = grouped(&file.brokers).map_err(|problem| wrong("brokers", problem))?;
        let listen = addresses("listen", &file.listen)?;
        let announce = addresses("announce", &file.announce)?;
        let periods = periods(&file.periods).map_err(|(field, problem)| wrong(field, problem))?;
        let bench_every = bench_every(&file.bench).map_err(|problem| wrong("every", problem))?;
        let metrics =
            metrics(file.metrics.as_deref()).map_err(|problem| wrong("metrics", problem))?;
        let offer =
            Wishes::of_table(&file.offer).map_err(|(field, problem)| wrong(&field, problem))?;
        Ok(Self {
            brokers,
            listen,
            announce,
            engine: file
                .engine
                .or_else(engine_of_environment)
                .unwrap_or_else(|| DEFAULT_ENGINE.into()),
            nvml: file.nvml,
            metrics,
            admin_socket: file.admin_socket,
            disk_reserve: Bytes::from_gb(file.disk_reserve_gb),
            logs_kept: Seconds(file.logs_kept_days.saturating_mul(86_400)),
            periods,
            bench_every,
            offer,
        })
    }
}

/// The page has no login, so it is on this machine alone.
fn metrics(text: Option<&str>) -> Result<MetricsAddress, String> {
    let Some(text) = text else {
        return Ok(MetricsAddress::Usual);
    };
    let address: SocketAddr = text.parse().map_err(|_| {
        format!("'{text}' is not an address and a port, like 127.0.0.1:{USUAL_PORT}")
    })?;
    if address.ip().is_loopback() {
        return Ok(MetricsAddress::At(address));
    }
    Err(format!(
        "{text} can be reached from other machines, and the page has no login: use 127.0.0.1:{}",
        address.port()
    ))
}

/// Broker addresses, those of one broker together.
fn grouped(list: &[String]) -> Result<Vec<BrokerAddress>, String> {
    let mut brokers: Vec<BrokerAddress> = Vec::new();
    for text in list {
        let (broker, address) = broker_address(text)?;
        match brokers.iter_mut().find(|known| known.broker == broker) {
            Some(known) => known.addresses.push(address),
            None => brokers.push(BrokerAddress {
                broker,
                addresses: vec![address],
            }),
        }
    }
    if brokers.len() > BROKERS_MAX {
        return Err(format!(
            "{} brokers; {BROKERS_MAX} are allowed",
            brokers.len()
        ));
    }
    Ok(brokers)
}

/// A broker's address as it is typed.
///
/// # Errors
/// What is wrong with it.
pub fn broker_address(text: &str) -> Result<(BrokerId, Multiaddr), String> {
    let address = parse_address(text).map_err(|error| error.to_string())?;
    let key = peer_of_address(&address).map_err(|error| error.to_string())?;
    Ok((BrokerId::from(key), address))
}

/// More often than daily, and the machine would rather be measured than leased.
fn bench_every(section: &BenchSection) -> Result<Option<Seconds>, String> {
    if section.every == "never" {
        return Ok(None);
    }
    let every = wishes::length(&section.every)?;
    if every < BENCH_EVERY_MIN {
        return Err(format!(
            "{} is less than a day; or say \"never\"",
            section.every
        ));
    }
    Ok(Some(every))
}

fn periods(section: &PeriodsSection) -> Result<Periods, (&'static str, String)> {
    let seconds = [
        ("announce_s", section.announce_s, 60),
        ("report_s", section.report_s, 60),
        ("reconcile_s", section.reconcile_s, 60),
        ("drain_s", section.drain_s, 240),
    ];
    for (field, value, most) in seconds {
        // Offers are valid for 90 s, and a broker takes a host for gone after as long.
        if !(1..=most).contains(&value) {
            return Err((field, format!("{value} is not between 1 and {most}")));
        }
    }
    Ok(Periods {
        announce: Duration::from_secs(section.announce_s),
        report: Duration::from_secs(section.report_s),
        reconcile: Duration::from_secs(section.reconcile_s),
        drain: Duration::from_secs(section.drain_s),
        ..Periods::default()
    })
}

/// Docker's own variable, where it names a socket of this machine.
#[expect(
    clippy::disallowed_methods,
    reason = "this file is where the environment is read"
)]
fn engine_of_environment() -> Option<PathBuf> {
    let host = std::env::var("DOCKER_HOST").ok()?;
    host.strip_prefix("unix://").map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("host.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_template_is_accepted_and_says_the_defaults() {
        let config = parse(&template::text(&[])).unwrap();
        assert_eq!(config.periods, Periods::default());
        assert_eq!(config.disk_reserve, Bytes::from_gb(10));
        assert_eq!(config.logs_kept, Seconds(604_800));
        assert!(config.brokers.is_empty() && config.listen.is_empty());
        assert_eq!(config.offer, Wishes::default());
        assert_eq!(config.bench_every, Some(Seconds(604_800)));
    }

    #[test]
    fn benchmarks_are_run_again_when_the_owner_says() {
        let every = |text: &str| {
            let config = parse(&format!("[bench]\nevery = \"{text}\"\n"));
            config.map(|config| config.bench_every)
        };
        assert_eq!(every("30d"), Ok(Some(Seconds(2_592_000))));
        assert_eq!(every("never"), Ok(None));
        assert_eq!(
            every("2h").unwrap_err(),
            "host.toml, line 2, field `every`: 2h is less than a day; or say \"never\""
        );
        assert!(every("soon").unwrap_err().contains("is not a time"));
    }

    #[test]
    fn the_metrics_page_is_on_this_machine_alone() {
        let page = |text: &str| parse(&format!("metrics = \"{text}\"\n")).map(|it| it.metrics);
        let wanted = MetricsAddress::At("127.0.0.1:9400".parse().unwrap());
        assert_eq!(page("127.0.0.1:9400"), Ok(wanted));
        assert_eq!(
            parse("").map(|config| config.metrics),
            Ok(MetricsAddress::Usual)
        );
        assert!(page("0.0.0.0:9400").unwrap_err().contains("no login"));
        assert!(page("here").unwrap_err().contains("127.0.0.1:9641"));
    }

    #[test]
    fn a_mistake_is_named_by_line_and_field() {
        let unknown = parse("brokers = []\nbroker = \"x\"\n").unwrap_err();
        assert!(
            unknown.starts_with("host.toml, line 2, field `broker`: unknown field"),
            "{unknown}"
        );
        let kind = parse("disk_reserve_gb = \"ten\"\n").unwrap_err();
        assert!(
            kind.starts_with("host.toml, line 1, field `disk_reserve_gb`: "),
            "{kind}"
        );
        let broker = parse("\nbrokers = [\"nowhere\"]\n").unwrap_err();
        assert!(
            broker.starts_with("host.toml, line 2, field `brokers`: "),
            "{broker}"
        );
        let floor = parse("[offer]\nprice = 1\nfloor = -1\n").unwrap_err();
        assert!(
            floor.starts_with("host.toml, line 3, field `floor`: a price is nothing or more"),
            "{floor}"
        );
        let flag = parse("[offer]\nflor = 1\n").unwrap_err();
        assert!(
            flag.starts_with("host.toml, line 2, field `flor`: unknown field"),
            "{flag}"
        );
        let period = parse("[periods]\nreport_s = 0\n").unwrap_err();
        assert_eq!(
            period,
            "host.toml, line 2, field `report_s`: 0 is not between 1 and 60"
        );
    }
}
