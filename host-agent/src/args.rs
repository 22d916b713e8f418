//! What can be typed after `feira-host`, and nothing about what it means.

use crate::config;
use crate::program::DEFAULT_FOLDER;
use clap::{Args, Parser, Subcommand, ValueEnum};
use protocol::machine::ContainerNetwork;
use protocol::operator::{Completions, LogFormat};
use protocol::units::{AmountError, PricePerGb, PricePerGbMonth, PricePerHour, Seconds};
use std::path::PathBuf;
use std::str::FromStr;

const EXIT_CODES: &str = "\
Exit codes: 0 done · 1 failed · 2 used wrongly or a bad host.toml · 3 not found or not listed yet · \
4 not allowed (key, file permissions, Docker's socket) · 8 the agent, the engine or a broker does not answer

First steps: feira-host init --broker ADDRESS, feira-host doctor, feira-host list --price 0.35, feira-host run";

/// The command line of a machine's owner.
#[derive(Debug, Parser)]
#[command(
    name = "feira-host",
    version,
    about = "Offer this machine on the Feira GPU market and run what renters order",
    after_help = EXIT_CODES,
    arg_required_else_help = true
)]
pub struct Arguments {
    /// Folder with the host's key, settings and journal
    #[arg(long, global = true, value_name = "DIR", env = "FEIRA_HOST_DATA", default_value = DEFAULT_FOLDER)]
    pub data: PathBuf,
    /// Print JSON instead of text and tables
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What an owner can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the folder, the key and host.toml; safe to run again
    Init(Init),
    /// Check the machine, the engine, the brokers and the clock; nothing needs to be listed for it
    Doctor,
    /// Offer the machine at a price, or change the price
    List(List),
    /// Offer nothing any more; leases that run go on
    Unlist,
    /// Run the agent until it is told to stop
    Run(Run),
    /// What the running agent is doing
    Status,
    /// The leases on this machine
    Leases,
    /// What each broker owes this host
    Earnings,
    /// The offers, exactly as they are signed
    ShowOffer,
    /// Print a completion script
    Completions(Completions),
}

/// How a new host is set up.
#[derive(Debug, Args)]
pub struct Init {
    /// Address of a broker to list with, ending in /p2p/ and its key; again for each
    #[arg(long = "broker", value_name = "MULTIADDR", value_parser = broker)]
    pub brokers: Vec<String>,
}

/// What is offered, and for how much.
#[derive(Debug, Args)]
pub struct List {
    /// US dollars for an hour of each GPU, or of the machine when it has none
    #[arg(long, value_name = "USD", allow_hyphen_values = true, value_parser = amount::<PricePerHour>)]
    pub price: PricePerHour,
    /// Needed with --price 0: the machine is given away, and renters pay for disk and traffic alone
    #[arg(long)]
    pub free: bool,
    /// US dollars for a gigabyte of disk for a month
    #[arg(long, value_name = "USD", default_value = "0.10", allow_hyphen_values = true, value_parser = amount::<PricePerGbMonth>)]
    pub storage: PricePerGbMonth,
    /// US dollars for a gigabyte that leaves a container
    #[arg(long, value_name = "USD", default_value = "0", allow_hyphen_values = true, value_parser = amount::<PricePerGb>)]
    pub upload: PricePerGb,
    /// US dollars for a gigabyte that reaches a container
    #[arg(long, value_name = "USD", default_value = "0", allow_hyphen_values = true, value_parser = amount::<PricePerGb>)]
    pub download: PricePerGb,
    /// Longest lease in hours [default: no limit]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=8_784))]
    pub max_hours: Option<u64>,
    /// Largest disk of one lease in GB [default: an equal part of four fifths of what is free]
    #[arg(long, value_name = "GB", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub disk_max: Option<u64>,
    /// From the match until the container runs, pulling included; after it the renter pays nothing
    #[arg(long, value_name = "TIME", default_value = "10m", allow_hyphen_values = true, value_parser = start_within)]
    pub start_within: Seconds,
    /// From the polite signal to the kill when a lease stops
    #[arg(long, value_name = "TIME", default_value = "10s", allow_hyphen_values = true, value_parser = duration)]
    pub stop_grace: Seconds,
    /// Network of containers: none, or a bridge with a way out
    #[arg(long, value_enum, default_value = "none")]
    pub network: Network,
    /// CPU cores to offer in all [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub cpus: Option<u16>,
    /// RAM to offer in all, in GB [default: all but a sixteenth]
    #[arg(long, value_name = "GB", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub ram: Option<u64>,
}

/// How the agent runs.
#[derive(Debug, Args)]
pub struct Run {
    /// A file to write the host's id and addresses to, as JSON, once the agent answers
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// How the log on stderr looks
    #[arg(long, value_enum, default_value = "text")]
    pub log_format: LogFormat,
}

/// The network of containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Network {
    /// Loopback only; renters come in through Feira's tunnels
    None,
    /// A bridge with a way out, and no fence yet to this machine's own network
    Bridge,
}

impl From<Network> for ContainerNetwork {
    fn from(network: Network) -> Self {
        match network {
            Network::None => Self::None,
            Network::Bridge => Self::Bridge,
        }
    }
}

fn broker(text: &str) -> Result<String, String> {
    config::broker_address(text).map(|_| text.to_owned())
}

/// The least time for a start: an image that is here needs about a second, one that is not needs its pull.
const START_WITHIN_MIN: Seconds = Seconds(10);

/// A price; clap puts the flag's name before what is wrong with it.
fn amount<T: FromStr<Err = AmountError>>(text: &str) -> Result<T, String> {
    if text.starts_with('-') {
        return Err("a price is nothing or more; renters are not paid for renting".to_owned());
    }
    text.parse().map_err(|error: AmountError| error.to_string())
}

fn start_within(text: &str) -> Result<Seconds, String> {
    let time = duration(text)?;
    if time < START_WITHIN_MIN {
        return Err(format!(
            "no lease could start in {text}; {START_WITHIN_MIN} is the least, 10m leaves room for a large image"
        ));
    }
    Ok(time)
}

/// `90s`, `10m`, `2h`.
fn duration(text: &str) -> Result<Seconds, String> {
    let wrong = || format!("'{text}' is not a time like 90s, 10m or 2h");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return Err(wrong()),
    };
    let digits = text.strip_suffix(unit).unwrap_or(text);
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let seconds = number
        .checked_mul(factor)
        .filter(|seconds| *seconds <= 86_400);
    seconds
        .map(Seconds)
        .ok_or_else(|| format!("'{text}' is more than a day"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("10m"), Ok(Seconds(600)));
        assert_eq!(duration("90s"), Ok(Seconds(90)));
        for wrong in ["", "10", "m", "-1s", "25h", "1.5h", "10µ"] {
            assert!(duration(wrong).is_err(), "{wrong} was accepted");
        }
    }

    #[test]
    fn amounts_and_times_out_of_range_are_refused_by_the_name_of_their_flag() {
        let refused = |flag: &str, value: &str| {
            let typed = ["feira-host", "list", "--price", "0.35", flag, value];
            Arguments::try_parse_from(typed).unwrap_err().to_string()
        };
        for (flag, value, words) in [
            ("--storage", "-1", "a price is nothing or more"),
            ("--upload", "-0.02", "a price is nothing or more"),
            ("--start-within", "0s", "10s is the least"),
            ("--start-within", "-5s", "is not a time"),
            ("--stop-grace", "-5s", "is not a time"),
            ("--max-hours", "-1", "invalid value '-1'"),
        ] {
            let said = refused(flag, value);
            assert!(said.contains(flag) && said.contains(words), "{said}");
        }
        let typed = ["feira-host", "list", "--price", "-1"];
        let said = Arguments::try_parse_from(typed).unwrap_err().to_string();
        assert!(
            said.contains("--price") && said.contains("a price is nothing or more"),
            "{said}"
        );
        let typed = [
            "feira-host",
            "list",
            "--price",
            "1",
            "--start-within",
            "10s",
        ];
        assert!(Arguments::try_parse_from(typed).is_ok());
    }

    #[test]
    fn prices_are_exact() {
        let typed = ["feira-host", "list", "--price", "0.35", "--upload", "0.02"];
        let arguments = Arguments::try_parse_from(typed).unwrap();
        let Command::List(list) = arguments.command else {
            panic!("not list")
        };
        assert_eq!(
            (list.price, list.upload),
            (PricePerHour(350_000), PricePerGb(20_000))
        );
        assert_eq!(list.storage, PricePerGbMonth(100_000));
        let typed = ["feira-host", "list", "--price", "0.35e1"];
        assert!(Arguments::try_parse_from(typed).is_err());
    }
}
