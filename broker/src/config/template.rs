//! The `broker.toml` that `init` writes: every setting with its default and what it means.

use super::proofs::usual;
use super::{Config, DEFAULT_LISTEN, DEFAULT_METRICS, DEFAULT_NAME, Limits};
use crate::args::Init;
use crate::core::settings::MarketSettings;
use protocol::operator::MetricsAddress;
use protocol::units::Seconds;

/// The file for a new broker: what was typed, and the defaults for the rest.
#[must_use]
pub fn template(init: &Init) -> String {
    format!(
        "{}{}{}{}",
        network_part(init),
        market_part(init),
        limits_part(),
        proofs_part()
    )
}

fn network_part(init: &Init) -> String {
    let listen = if init.listen.is_empty() {
        list(&DEFAULT_LISTEN)
    } else {
        list(&init.listen)
    };
    let metrics = match init.metrics {
        Some(metrics) => format!("metrics = {}", quoted(&metrics.to_string())),
        None => format!("# metrics = {}", quoted(DEFAULT_METRICS)),
    };
    format!(
        "\
# Settings of a feira broker. `feira-broker doctor` checks them; `feira-broker run` reads them at its start.

# What renters see as this broker's name.
name = {name}

# Where to listen, for TCP and for QUIC. Open these ports in your firewall.
listen = {listen}

# Under which addresses others reach this broker, when that is not where it listens: behind a fixed address
# translation, or by name. Hosts and renters use these; renters reach hosts behind NAT through them.
# announce = [\"/ip4/203.0.113.7/tcp/7700\", \"/dns4/broker.example/tcp/7700\"]
announce = {announce}

# Metrics for Prometheus at /metrics, and /healthz and /readyz. Loopback only: the page has no login.
# Unless set, {usual}, or another port when that one is taken; `feira-broker status` says which.
{metrics}

# The socket through which `feira-broker status` and the like reach the running broker; in the data folder
# unless set. Only this user and root are let in.
# admin_socket = \"/run/feira-broker/admin.sock\"

",
        name = quoted(init.name.as_deref().unwrap_or(DEFAULT_NAME)),
        announce = list(&init.announce),
        usual = DEFAULT_METRICS,
    )
}

fn market_part(init: &Init) -> String {
    let market = MarketSettings::default();
    let fee = init.fee_bps.unwrap_or(market.fee.0);
    let mut text = format!(
        "\
# Your part of every charge, in hundredths of a percent: 300 is 3 %. Frozen in each lease when it is made.
fee_bps = {fee}

# Times, in seconds.
"
    );
    for (name, value, meaning) in times(&market) {
        text.push_str(&format!("# {meaning}\n{name} = {}\n", value.0));
    }
    text
}

/// The times of the market: name, default and meaning.
const fn times(market: &MarketSettings) -> [(&'static str, Seconds, &'static str); 13] {
    [
        (
            "accept_within_s",
            market.accept_within,
            "A host has so long to accept a lease.",
        ),
        (
            "suspect_after_s",
            market.suspect_after,
            "A host that is silent for so long is not paid for the silence.",
        ),
        (
            "lost_after_s",
            market.lost_after,
            "A host that is silent for so long loses its leases.",
        ),
        (
            "hold_s",
            market.hold,
            "So much running time is held on a renter's balance for each lease, and filled up",
        ),
        ("top_up_every_s", market.top_up_every, "again so often."),
        (
            "low_balance_s",
            market.low_balance,
            "A renter is warned when the money lasts for less than this,",
        ),
        (
            "stop_below_s",
            market.stop_below,
            "and its leases are stopped when it lasts for less than this.",
        ),
        (
            "meter_every_s",
            market.meter_every,
            "How often a running meter is written to the journal.",
        ),
        (
            "disk_keep_s",
            market.disk_keep,
            "The disk of a stopped lease is kept for so long,",
        ),
        (
            "disk_keep_unpaid_s",
            market.disk_keep_unpaid,
            "or for so long when the money ran out, or somebody else took the resource.",
        ),
        (
            "min_run_s",
            market.min_run,
            "An interruptible lease cannot be outbid so long after it began to run.",
        ),
        (
            "dispute_s",
            market.dispute,
            "What a host earned is pending for so long, in case it has to be given back,",
        ),
        (
            "dispute_trusted_s",
            market.dispute_trusted,
            "or for so long when it carries its leases through, with a score of 0.97 or more.",
        ),
    ]
}

fn limits_part() -> String {
    let limits = Limits::default();
    format!(
        "
# Connections with hosts and renters at once.
connections = {connections}
# Requests a second of one peer, on average.
requests_per_second = {requests_per_second}
# Requests being answered at once; each may take 256 KiB of memory.
requests_in_flight = {requests_in_flight}
# Of these, those that wait for a lease to change.
watches = {watches}
# How long a stopping broker waits for what it is doing, in seconds.
drain_s = {drain_s}
",
        connections = limits.connections,
        requests_per_second = limits.requests_per_second,
        requests_in_flight = limits.requests_in_flight,
        watches = limits.watches,
        drain_s = limits.drain.as_secs(),
    )
}

fn proofs_part() -> String {
    let (rules, keep) = usual();
    format!(
        "
# Proofs of hardware: an idle GPU is rented like by anybody, without its host's knowing, has to show what its model
# can do, and is paid for from the account that `feira-broker doctor` names. Made only where images with the prover
# are named, each by its digest (`scripts/images.sh REGISTRY prover` makes one); one of them is drawn for each proof.
# proof_images = [\"registry.example/prover@sha256:…\"]
proof_images = []
# The least time between two proofs of one GPU, in seconds; the next comes at a random moment up to twice as late.
proof_every_s = {every}
# A GPU is shown as verified for so long after a proof.
proof_stands_s = {stands}
# A new offer is put to the proof at a random moment within this.
proof_first_within_s = {first_within}
# Proofs at once, and in any hour.
proofs_at_once = {at_once}
proofs_per_hour = {per_hour}
# Transcripts of proofs, which anybody can check again, are kept for so long.
proof_keep_s = {keep}
# Classes of hardware of your own, before those that the program has: times that you measured on cards.
# [[proof_classes]]
# name = \"RTX 4090\"
# models = [\"NVIDIA GeForce RTX 4090\"]
# memory_min_gb = 22
# tile_side = 8192
# inner = 53760
# tiles = 329
# rounds = 40
# audits = 64
# fill_max_ms = 14000
# pass_max_ms = 3200
",
        every = rules.every.0,
        stands = rules.stands.0,
        first_within = rules.first_within.0,
        at_once = rules.at_once,
        per_hour = rules.per_hour,
        keep = keep.0,
    )
}

/// Which flag says otherwise than `config`; nothing when none does.
#[must_use]
pub fn difference(config: &Config, init: &Init) -> Option<&'static str> {
    let other_listen = !init.listen.is_empty() && init.listen != config.listen;
    let other_announce = !init.announce.is_empty() && init.announce != config.announce;
    let other_fee = init.fee_bps.is_some_and(|fee| fee != config.market.fee.0);
    let other_name = init
        .name
        .as_deref()
        .is_some_and(|name| name != config.name.as_str());
    let other_metrics = init
        .metrics
        .is_some_and(|metrics| MetricsAddress::At(metrics) != config.metrics);
    let flags = [
        (other_listen, "--listen"),
        (other_announce, "--announce"),
        (other_fee, "--fee-bps"),
        (other_name, "--name"),
        (other_metrics, "--metrics"),
    ];
    flags
        .into_iter()
        .find_map(|(differs, flag)| differs.then_some(flag))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn list<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(|item| quoted(&item.to_string())).collect();
    format!("[{}]", items.join(", "))
}
