//! Whether the ports of addresses are free. Two programs that allow it can share a port, and then each gets
//! a part of the connections; so it is looked at before the network listens.

use protocol::net::Multiaddr;
use std::net::{SocketAddr, TcpListener, UdpSocket};

/// A port that another program has.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}; is another program using that port?")]
pub struct PortTaken {
    /// Where.
    pub address: Multiaddr,
    /// Its port.
    pub port: u16,
    /// What the system said.
    #[source]
    pub source: std::io::Error,
}

/// Tries each address and lets it go again.
///
/// # Errors
/// The first that cannot be had.
pub fn check_free(addresses: &[Multiaddr]) -> Result<(), PortTaken> {
    for address in addresses {
        let Some((transport, socket)) = socket_of(address) else {
            continue;
        };
        let bound = match transport {
            Transport::Tcp => TcpListener::bind(socket).map(drop),
            Transport::Udp => UdpSocket::bind(socket).map(drop),
        };
        bound.map_err(|source| PortTaken {
            address: address.clone(),
            port: socket.port(),
            source,
        })?;
    }
    Ok(())
}

enum Transport {
    Tcp,
    Udp,
}

/// `/ip4/A/tcp/P` and the like; a name is not looked up.
fn socket_of(address: &Multiaddr) -> Option<(Transport, SocketAddr)> {
    let text = address.to_string();
    let mut parts = text.split('/').skip(2);
    let (ip, transport, port) = (parts.next()?, parts.next()?, parts.next()?);
    let socket = SocketAddr::new(ip.parse().ok()?, port.parse().ok()?);
    match transport {
        "tcp" => Some((Transport::Tcp, socket)),
        "udp" => Some((Transport::Udp, socket)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::net::parse_address;

    #[test]
    fn a_port_that_is_listened_at_is_not_free() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let tcp = parse_address(&format!("/ip4/127.0.0.1/tcp/{port}")).unwrap();
        let name = parse_address("/dns4/localhost/tcp/7700").unwrap();
        assert_eq!(
            check_free(&[name.clone(), tcp.clone()]).unwrap_err().port,
            port
        );
        drop(listener);
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = udp.local_addr().unwrap().port();
        let quic = parse_address(&format!("/ip4/127.0.0.1/udp/{port}/quic-v1")).unwrap();
        assert!(check_free(&[tcp, name, quic.clone()]).is_err());
        drop(udp);
        assert!(check_free(&[quic]).is_ok());
    }
}
