//! What the command line, the environment and the configuration file mean together.
//!
//! Precedence: flag, then environment, then the user's file. This is the only place that reads the
//! environment; it opens no connection and no key.

mod environment;
mod file;

pub(crate) use environment::VARIABLES;
pub use environment::{Environment, Folders};
pub(crate) use file::{ConfigFile, Limits};

use crate::args::{ColorWhen, Everywhere};
use crate::failure::{Code, Failure};
use crate::printer::{Format, Verbosity};
use protocol::ids::BrokerId;
use protocol::net::{Multiaddr, parse_address, peer_of_address};
use protocol::units::MicroUsd;
use std::path::PathBuf;

/// Everything a command needs to know about how it was called.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Brokers to ask, in order, each with all its known addresses.
    pub brokers: Vec<BrokerAddresses>,
    /// The key file.
    pub key: PathBuf,
    /// Where things are kept.
    pub folders: Folders,
    /// The configuration file.
    pub config_path: PathBuf,
    /// What the configuration file says.
    pub config: ConfigFile,
    /// Whether questions may be asked.
    pub may_ask: bool,
    /// What a budget is when none is given.
    pub budget_default: Option<MicroUsd>,
    /// `TERM`, for terminals in containers.
    pub terminal_kind: String,
    /// What `FEIRA_LOG` asks to be logged.
    pub log: Option<String>,
}

/// A broker and where it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BrokerAddresses {
    /// Its key.
    pub id: BrokerId,
    /// Addresses, each ending in its key.
    pub addresses: Vec<Multiaddr>,
}

/// How the answer is shown: known before the configuration file is read, since its errors are shown too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appearance {
    /// The form of answers.
    pub format: Format,
    /// How much is said.
    pub verbosity: Verbosity,
    /// What the flags say of colours.
    pub color: Option<ColorWhen>,
}

impl Appearance {
    /// From flags and environment.
    pub(crate) fn of(everywhere: &Everywhere, environment: &Environment) -> Result<Self, Failure> {
        let from_environment = environment.choice::<Format>("FEIRA_OUTPUT")?;
        let flagged = if everywhere.json {
            Some(Format::Json)
        } else {
            everywhere.output
        };
        let color = match everywhere.color {
            Some(when) => Some(when),
            None => environment.choice::<ColorWhen>("FEIRA_COLOR")?,
        };
        let verbosity = match (everywhere.quiet, everywhere.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        };
        // Who wants little said and no form in particular gets ids, one a line.
        let unasked = match verbosity {
            Verbosity::Quiet => Format::Id,
            Verbosity::Normal | Verbosity::Verbose => Format::default(),
        };
        let format = flagged.or(from_environment).unwrap_or(unasked);
        Ok(Self {
            format,
            verbosity,
            color,
        })
    }

    /// Whether a stream takes colours.
    pub(crate) fn colour(self, environment: &Environment, is_terminal: bool) -> bool {
        match self.color {
            Some(ColorWhen::Always) => true,
            Some(ColorWhen::Never) => false,
            Some(ColorWhen::Auto) | None => environment.allows_colour(is_terminal),
        }
    }
}

impl Settings {
    /// Reads the configuration file and puts all sources together.
    ///
    /// `can_ask` says whether a question could be seen and answered.
    pub(crate) fn resolve(
        everywhere: &Everywhere,
        environment: &Environment,
        can_ask: bool,
    ) -> Result<Self, Failure> {
        let folders = environment.folders()?;
        let config_path = folders.config.join("config.toml");
        let config = ConfigFile::read(&config_path)?;
        let brokers = brokers(everywhere, environment, &config)?;
        let key = everywhere
            .key
            .clone()
            .or_else(|| environment.path("FEIRA_KEY"))
            .or_else(|| config.key.clone())
            .unwrap_or_else(|| folders.data.join("keys").join("default"));
        let refuses = everywhere.no_input || environment.is_set("FEIRA_NO_INPUT");
        Ok(Self {
            brokers,
            key,
            may_ask: can_ask && !refuses && !environment.is_set("CI"),
            budget_default: config.limits.budget_usd,
            terminal_kind: environment.get("TERM").unwrap_or("xterm").to_owned(),
            log: environment.get("FEIRA_LOG").map(str::to_owned),
            config,
            config_path,
            folders,
        })
    }

    /// The brokers, or what to do when there are none.
    pub(crate) fn brokers(&self) -> Result<&[BrokerAddresses], Failure> {
        if self.brokers.is_empty() {
            return Err(Failure::new(Code::NoBrokers, "no broker is configured")
                .help("feira init --broker /ip4/…/tcp/7700/p2p/12D3KooW…"));
        }
        Ok(&self.brokers)
    }
}

fn brokers(
    everywhere: &Everywhere,
    environment: &Environment,
    config: &ConfigFile,
) -> Result<Vec<BrokerAddresses>, Failure> {
    if !everywhere.broker.is_empty() {
        return gather(&everywhere.broker, "--broker", Code::BadValue);
    }
    if let Some(listed) = environment.get("FEIRA_BROKER") {
        let texts: Vec<_> = listed
            .split([',', ' '])
            .filter(|text| !text.is_empty())
            .collect();
        return gather(&texts, "FEIRA_BROKER", Code::BadEnvironment);
    }
    gather(
        &config.brokers,
        "brokers in the configuration file",
        Code::BadConfig,
    )
}

/// Addresses grouped by broker, in the order in which brokers first appear.
pub(crate) fn gather<T: AsRef<str>>(
    texts: &[T],
    source: &str,
    code: Code,
) -> Result<Vec<BrokerAddresses>, Failure> {
    let mut brokers: Vec<BrokerAddresses> = Vec::new();
    for text in texts {
        let wrong = |reason: String| {
            Failure::new(code, format!("{source}: {reason}"))
                .help("a broker's address is like /ip4/203.0.113.7/tcp/7700/p2p/12D3KooW…")
        };
        let address = parse_address(text.as_ref()).map_err(|error| wrong(error.to_string()))?;
        let peer = peer_of_address(&address).map_err(|error| wrong(error.to_string()))?;
        let id = BrokerId::from(peer);
        match brokers.iter_mut().find(|known| known.id == id) {
            Some(known) if known.addresses.contains(&address) => {}
            Some(known) => known.addresses.push(address),
            None => brokers.push(BrokerAddresses {
                id,
                addresses: vec![address],
            }),
        }
    }
    Ok(brokers)
}

#[cfg(test)]
mod tests;
