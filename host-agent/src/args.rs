//! What can be typed after `feira-host`, and nothing about what it means.

use crate::config;
use crate::program::DEFAULT_FOLDER;
use crate::wishes::Wishes;
use clap::{Args, Parser, Subcommand, ValueEnum};
use protocol::operator::{Completions, LogFormat};
use std::path::PathBuf;

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
    /// Measure processors, memory, disk, network and GPUs; offers carry what was found
    Bench(Bench),
    /// Offer the machine at a price, or change the price
    List(Box<Wishes>),
    /// Offer nothing any more; leases that run go on
    #[command(visible_alias = "drain")]
    Unlist(Unlist),
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
    /// How the GPUs are cut into slices
    #[command(subcommand)]
    Mig(Mig),
    /// Say that you have checked a GPU and that it is sound: it is tested, and then leased again
    Checked(Checked),
    /// Print a completion script
    Completions(Completions),
    /// Ask the NVIDIA library for the agent, which starts it
    #[command(hide = true)]
    GpuHelper(GpuHelper),
    /// Write one GPU's memory for the agent, which starts it
    #[command(hide = true)]
    GpuScrub,
    /// Measure one GPU for `bench`, which starts it
    #[command(hide = true)]
    BenchGpu(BenchGpu),
}

/// What was checked.
#[derive(Debug, Args)]
pub struct Checked {
    /// Its UUID as `status` shows it, or how that begins
    #[arg(value_name = "GPU")]
    pub gpu: String,
}

/// What the process that asks the NVIDIA library loads.
#[derive(Debug, Args)]
pub struct GpuHelper {
    /// Another file than libnvidia-ml.so.1
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// Another file than the driver's table of the slices' device nodes
    #[arg(long, value_name = "FILE")]
    pub mig_minors: Option<PathBuf>,
}

/// How a new host is set up.
#[derive(Debug, Args)]
pub struct Init {
    /// Address of a broker to list with, ending in /p2p/ and its key; again for each
    #[arg(long = "broker", value_name = "MULTIADDR", value_parser = broker)]
    pub brokers: Vec<String>,
}

/// How a machine leaves the market.
#[derive(Debug, Args)]
pub struct Unlist {
    /// Go though prepaid leases run here: their brokers may refund them, and take from this host's bond
    #[arg(long)]
    pub yes: bool,
}

/// What is measured.
#[derive(Debug, Args)]
pub struct Bench {
    /// Only these parts
    #[arg(value_enum, value_name = "PART")]
    pub parts: Vec<BenchPart>,
    /// Measure nothing: show what was found last
    #[arg(long, conflicts_with_all = ["parts", "software"])]
    pub show: bool,
    /// Measure Vulkan on the CPU too, in the place of a GPU; it is shown and never offered
    #[arg(long)]
    pub software: bool,
}

/// A part of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchPart {
    /// One core, and all of them
    Cpu,
    /// Memory
    Ram,
    /// The disk that the container engine uses
    Disk,
    /// From and to the brokers
    Network,
    /// Every GPU
    Gpu,
}

/// A GPU that a process of its own measures.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct BenchGpu {
    /// The first GPU that NVIDIA's driver shows
    #[arg(long)]
    pub cuda: bool,
    /// The Vulkan device at this address of the PCI bus
    #[arg(long, value_name = "ADDRESS")]
    pub pci: Option<String>,
    /// A Vulkan device that is a program
    #[arg(long)]
    pub software: bool,
}

/// What can be asked about slices.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum Mig {
    /// How the GPUs are cut today, and how the demand of the last day would have them cut
    Plan,
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

fn broker(text: &str) -> Result<String, String> {
    config::broker_address(text).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use protocol::units::{PricePerGb, PricePerHour};

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn amounts_and_times_out_of_range_are_refused_by_the_name_of_their_flag() {
        let refused = |flag: &str, value: &str| {
            let typed = ["feira-host", "list", "--price", "0.35", flag, value];
            Arguments::try_parse_from(typed).unwrap_err().to_string()
        };
        for (flag, value, words) in [
            ("--storage-price", "-1", "a price is nothing or more"),
            ("--upload-price", "-0.02", "a price is nothing or more"),
            ("--floor", "-0.1", "a price is nothing or more"),
            ("--floor", "nan", "not an amount"),
            ("--max-discount", "-4", "is not a percentage"),
            ("--max-discount", "95", "more than 90 %"),
            ("--notice", "20", "30 to 600 seconds"),
            ("--notice", "-30", "is not a time"),
            ("--min-gpus", "0", "invalid value '0'"),
            ("--min-gpus", "-2", "invalid value '-2'"),
            ("--chunks", "half", "powers-of-two"),
            ("--min-duration", "-1h", "is not a time"),
            ("--max-duration", "400d", "more than a year"),
            ("--until", "yesterday", "is not a date"),
            ("--start-within", "0s", "10s is the least"),
            ("--start-within", "-5s", "is not a time"),
            ("--stop-grace", "-5s", "is not a time"),
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
            (list.price, list.upload_price, list.storage_price),
            (Some(PricePerHour(350_000)), Some(PricePerGb(20_000)), None)
        );
        let typed = ["feira-host", "list", "--price", "0.35e1"];
        assert!(Arguments::try_parse_from(typed).is_err());
    }
}
