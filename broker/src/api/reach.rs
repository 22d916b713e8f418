//! How a renter reaches the host of its lease: the host's own addresses, then circuits through this broker.

use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, HostId};
use protocol::lease::Access;
use protocol::net::{Multiaddr, circuit_address};

/// Adds circuits to `host` through `broker`, which is reached at `addresses`. Those of this machine alone
/// come last: only a renter beside the broker can use them.
pub(super) fn add_circuits(
    access: &mut Access,
    broker: BrokerId,
    host: HostId,
    addresses: &[Multiaddr],
) {
    let (near, far): (Vec<_>, Vec<_>) = addresses.iter().partition(|address| is_loopback(address));
    let circuits = far.into_iter().chain(near).filter_map(|address| {
        Text::new(circuit_address(address, broker.into(), host.into()).to_string()).ok()
    });
    let direct = std::mem::take(&mut access.addresses).into_vec();
    access.addresses = List::first(direct.into_iter().chain(circuits));
}

fn is_loopback(address: &Multiaddr) -> bool {
    let text = address.to_string();
    text.starts_with("/ip4/127.") || text.starts_with("/ip6/::1/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::SigningKey;
    use protocol::ids::PublicKey;
    use protocol::net::{parse_address, peer_id_of};

    fn key(seed: u8) -> PublicKey {
        PublicKey::from_bytes(
            SigningKey::from_bytes(&[seed; 32])
                .verifying_key()
                .to_bytes(),
        )
    }

    #[test]
    fn direct_addresses_come_first_and_the_brokers_own_machine_last() {
        let (broker, host) = (key(1), key(2));
        let (b, h) = (peer_id_of(&broker), peer_id_of(&host));
        let direct = Text::new(format!("/ip4/198.51.100.9/tcp/7701/p2p/{h}")).unwrap();
        let mut access = Access {
            addresses: List::first([direct.clone()]),
        };
        let own = [
            "/ip4/127.0.0.1/tcp/7700",
            "/ip4/198.51.100.1/udp/7700/quic-v1",
        ];
        let own = own.map(|address| parse_address(address).unwrap());
        add_circuits(&mut access, broker.into(), host.into(), &own);
        let found: Vec<String> = access.addresses.iter().map(ToString::to_string).collect();
        let expected = [
            direct.to_string(),
            format!("/ip4/198.51.100.1/udp/7700/quic-v1/p2p/{b}/p2p-circuit/p2p/{h}"),
            format!("/ip4/127.0.0.1/tcp/7700/p2p/{b}/p2p-circuit/p2p/{h}"),
        ];
        assert_eq!(found, expected);
    }
}
