//! The `host.toml` that `init` writes, and how a broker is added to one that is there. It writes no file.

use std::fmt::Write;

/// The line that opens the list of brokers, where another one is put in.
const LIST: &str = "brokers = [";

/// A file with these brokers, every other setting at its default and explained.
#[must_use]
pub fn text(brokers: &[String]) -> String {
    let mut list = String::new();
    for broker in brokers {
        // Writing to a text cannot fail.
        let _ = writeln!(list, "    \"{broker}\",");
    }
    format!(
        r#"# Settings of feira-host. `feira-host doctor` checks them; the agent reads them when it starts.

# The brokers this host lists with: their addresses, each ending in /p2p/ and the broker's key.
{LIST}
{list}]

# Where to listen for renters that connect directly, like "/ip4/0.0.0.0/udp/7701/quic-v1".
# None is needed: renters then reach this host through its brokers.
# listen = []

# Addresses at which renters reach what listens, when they are not the ones it listens at.
# announce = []

# The container engine's socket.
# engine = "/var/run/docker.sock"

# Another file than libnvidia-ml.so.1 to ask about GPUs.
# nvml = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"

# Metrics for Prometheus at /metrics, GPUs under the names of NVIDIA's exporter, which is usually at port 9400.
# Loopback only: the page has no login. Another free port is taken when this one is not.
# metrics = "127.0.0.1:9641"

# Where `feira-host status` and the others reach the agent; in the data folder when not set.
# admin_socket = "/run/feira-host/admin.sock"

# Disk that is never given to leases, in GB.
# disk_reserve_gb = 10

# How long a lease's logs are kept after its end, in days.
# logs_kept_days = 7

# What `feira-host list` offers when it is not told otherwise: its flags, with _ for -.
# [offer]
# price = 0.35              # US dollars for each GPU and hour
# floor = 0.10              # interruptible leases to bids from this much on
# max_discount = 40         # prepaid terms, at most so many percent off
# chunks = "any"            # or "powers-of-two", or "whole"
# min_gpus = 1
# min_duration = "1h"
# max_duration = "30d"
# until = 2027-03-01        # promised end
# notice = 120              # seconds
# storage_price = 0.10      # for a GB and month
# upload_price = 0.00       # for a GB
# download_price = 0.00

# How old benchmarks may be before an idle machine runs them again; the first are run by `feira-host bench`.
# [bench]
# every = "7d"         # or "never"

# [periods]
# announce_s = 20      # offers are signed again
# report_s = 10        # each lease's meters are signed again
# reconcile_s = 5      # leases and containers are compared
# drain_s = 10         # a stopping agent waits for what it is doing
"#
    )
}

/// `text` with one more broker in its list; nothing when it has no list of the form that `init` writes.
#[must_use]
pub fn with_broker(text: &str, broker: &str) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = lines.iter().position(|line| line.trim_end() == LIST)?;
    lines.insert(at + 1, format!("    \"{broker}\","));
    lines.push(String::new());
    Some(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_is_added_to_what_init_wrote_and_to_nothing_else() {
        let one = text(&["/ip4/1.2.3.4/tcp/7700/p2p/a".to_owned()]);
        let two = with_broker(&one, "/ip4/5.6.7.8/tcp/7700/p2p/b").unwrap();
        let file: toml::Table = two.parse().unwrap();
        assert_eq!(file["brokers"].as_array().unwrap().len(), 2);
        assert!(two.ends_with('\n') && two.contains("# disk_reserve_gb = 10"));
        assert_eq!(with_broker("brokers = [\"x\"]\n", "y"), None);
    }
}
