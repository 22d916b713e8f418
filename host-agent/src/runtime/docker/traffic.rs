//! What crossed a container's network, by the engine's own reading of its interfaces: the engine finds them by
//! the container and not by a number that another process may have by now.

use bollard::models::{ContainerInspectResponse, ContainerStatsResponse};
use bollard::query_parameters::StatsOptionsBuilder;
use futures::{StreamExt, pin_mut};
use protocol::units::Bytes;

use super::super::{ContainerId, RuntimeError, Traffic};
use super::{DockerRuntime, failures};

/// Whether the container has a network beside its own loopback.
pub(super) fn has_network(found: &ContainerInspectResponse) -> bool {
    let mode = found
        .host_config
        .as_ref()
        .and_then(|config| config.network_mode.as_deref());
    mode != Some("none")
}

/// The counters since its start; zero when it is not there any more.
pub(super) async fn ask(
    runtime: &DockerRuntime,
    container: &ContainerId,
) -> Result<Traffic, RuntimeError> {
    let options = StatsOptionsBuilder::default()
        .stream(false)
        .one_shot(true)
        .build();
    let said = runtime.docker.stats(&container.0, Some(options));
    pin_mut!(said);
    match said.next().await {
        Some(Ok(stats)) => Ok(sum(&stats)),
        None => Ok(Traffic::default()),
        Some(Err(error)) if failures::status(&error) == Some(404) => Ok(Traffic::default()),
        Some(Err(error)) => Err(runtime.failed("read the container's counters")(error)),
    }
}

fn sum(stats: &ContainerStatsResponse) -> Traffic {
    let interfaces = stats.networks.iter().flat_map(|networks| networks.values());
    interfaces.fold(Traffic::default(), |sum, interface| {
        let plus = |sum: Bytes, bytes: Option<u64>| Bytes(sum.0.saturating_add(bytes.unwrap_or(0)));
        Traffic {
            uploaded: plus(sum.uploaded, interface.tx_bytes),
            downloaded: plus(sum.downloaded, interface.rx_bytes),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::ContainerNetworkStats;
    use std::collections::HashMap;

    #[test]
    fn what_is_sent_is_uploaded_and_all_interfaces_count() {
        let interface = |sent, received| ContainerNetworkStats {
            tx_bytes: Some(sent),
            rx_bytes: Some(received),
            ..ContainerNetworkStats::default()
        };
        let networks = HashMap::from([
            ("eth0".to_owned(), interface(5, 70)),
            ("eth1".to_owned(), interface(1, 2)),
        ]);
        let stats = ContainerStatsResponse {
            networks: Some(networks),
            ..ContainerStatsResponse::default()
        };
        let traffic = Traffic {
            uploaded: Bytes(6),
            downloaded: Bytes(72),
        };
        assert_eq!(sum(&stats), traffic);
        assert_eq!(sum(&ContainerStatsResponse::default()), Traffic::default());
    }
}
