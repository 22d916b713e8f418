//! Addresses: read from text, taken apart, and put together for a relay circuit. No connection is made here.

use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};

use super::identity::{peer_id_of, public_key_of};
use crate::ids::PublicKey;

/// Why a text is no address of a Feira node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not a multiaddr at all.
    #[error(
        "`{text}` is not a network address ({reason}); write it like /ip4/203.0.113.7/tcp/7700/p2p/12D3KooW…"
    )]
    NotAnAddress {
        /// What was given.
        text: String,
        /// What the parser did not like.
        reason: String,
    },
    /// The address does not say whose it is.
    #[error(
        "`{address}` does not end in /p2p/ and the node's id; copy the whole address that the node prints"
    )]
    NoPeer {
        /// What was given.
        address: Multiaddr,
    },
    /// The id in it is not that of an Ed25519 key.
    #[error("`{peer}` is not the id of an Ed25519 key, which is the only kind used here")]
    ForeignKey {
        /// The id.
        peer: PeerId,
    },
}

/// Reads an address such as `/ip4/203.0.113.7/tcp/7700/p2p/12D3KooW…`.
///
/// # Errors
/// [`AddressError::NotAnAddress`] with the text and the parser's reason.
pub fn parse_address(text: &str) -> Result<Multiaddr, AddressError> {
    text.trim().parse().map_err(
        |error: libp2p::multiaddr::Error| AddressError::NotAnAddress {
            text: text.to_owned(),
            reason: error.to_string(),
        },
    )
}

/// The node that an address leads to: its last `/p2p/` part.
///
/// # Errors
/// When there is no such part, or it does not hold an Ed25519 key.
pub fn peer_of_address(address: &Multiaddr) -> Result<PublicKey, AddressError> {
    let last = address.iter().last();
    let Some(Protocol::P2p(peer)) = last else {
        return Err(AddressError::NoPeer {
            address: address.clone(),
        });
    };
    public_key_of(&peer).map_err(|_| AddressError::ForeignKey { peer })
}

/// Where to dial `host` through the relay of `broker`, whose own address is `broker_address`
/// (with or without its `/p2p/` part).
#[must_use]
pub fn circuit_address(
    broker_address: &Multiaddr,
    broker: PublicKey,
    host: PublicKey,
) -> Multiaddr {
    relay_address(broker_address, broker).with(Protocol::P2p(peer_id_of(&host)))
}

/// Where to ask `broker` for a circuit: `…/p2p/BROKER/p2p-circuit`.
pub(crate) fn relay_address(broker_address: &Multiaddr, broker: PublicKey) -> Multiaddr {
    without_peer(broker_address)
        .with(Protocol::P2p(peer_id_of(&broker)))
        .with(Protocol::P2pCircuit)
}

/// Whether an address goes through a relay.
pub(crate) fn is_relayed(address: &Multiaddr) -> bool {
    address
        .iter()
        .any(|part| matches!(part, Protocol::P2pCircuit))
}

fn without_peer(address: &Multiaddr) -> Multiaddr {
    address
        .iter()
        .take_while(|part| !matches!(part, Protocol::P2p(_)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> PublicKey {
        let signing = ed25519_dalek::SigningKey::from_bytes(&[seed; 32]);
        PublicKey::from_bytes(signing.verifying_key().to_bytes())
    }

    #[test]
    fn a_circuit_goes_through_the_broker_to_the_host() {
        let (broker, host) = (key(1), key(2));
        let (b, h) = (peer_id_of(&broker), peer_id_of(&host));
        let expected = format!("/ip4/198.51.100.1/tcp/7700/p2p/{b}/p2p-circuit/p2p/{h}");
        let bare = parse_address("/ip4/198.51.100.1/tcp/7700").unwrap();
        let named = parse_address(&format!("/ip4/198.51.100.1/tcp/7700/p2p/{b}")).unwrap();
        assert_eq!(circuit_address(&bare, broker, host).to_string(), expected);
        assert_eq!(circuit_address(&named, broker, host).to_string(), expected);
        assert_eq!(
            peer_of_address(&circuit_address(&bare, broker, host)),
            Ok(host)
        );
    }

    #[test]
    fn bad_addresses_say_what_is_wrong() {
        let not = parse_address("broker.example:7700").unwrap_err();
        assert!(
            not.to_string()
                .starts_with("`broker.example:7700` is not a network address"),
            "{not}"
        );
        let bare = parse_address("/ip4/198.51.100.1/tcp/7700").unwrap();
        assert!(matches!(
            peer_of_address(&bare),
            Err(AddressError::NoPeer { .. })
        ));
    }
}
