//! Opens tunnels to the host of a lease: connect directly or through the broker, ask, and hear yes or no.
//!
//! What flows through an open tunnel is the business of `exec` and `logs`.

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::view::Held;
use protocol::ids::PublicKey;
use protocol::net::frames::{MessageError, MessageReader, read_message, write_message};
use protocol::net::{Multiaddr, Tunnel, TunnelError, parse_address};
use protocol::tunnel::{Opening, OpeningReply, Purpose, TunnelRequest};
use std::time::Duration;
use tokio::io::{ReadHalf, WriteHalf};

/// How long connecting to a host may take: through a relay it is three handshakes.
const CONNECT: Duration = Duration::from_secs(15);
/// How long the host may take to say yes or no.
const ANSWER: Duration = Duration::from_secs(20);

/// An open tunnel.
#[derive(Debug)]
pub(crate) struct Open {
    /// What comes from the host.
    pub from_host: MessageReader<ReadHalf<Tunnel>>,
    /// What goes to it.
    pub to_host: WriteHalf<Tunnel>,
    /// Whether a broker carries it.
    pub relayed: bool,
}

/// Opens a tunnel to the host of a lease.
pub(crate) async fn open(
    context: &Context,
    held: &Held,
    purpose: Purpose,
) -> Result<Open, Failure> {
    let node = context.session_with(held.broker).await?.node();
    let host = PublicKey::from(held.view.host);
    node.connect(host, addresses(held), CONNECT)
        .await
        .map_err(|error| unreachable_host(held, &error.to_string()))?;
    let mut tunnel = node
        .open_tunnel(host, CONNECT)
        .await
        .map_err(|error| of_tunnel(held, &error))?;
    let relayed = tunnel.relayed();
    let request = TunnelRequest {
        lease: held.view.id,
        purpose,
    };
    let opening: Opening = context.sign(host, request)?.signed().clone();
    let asking = async {
        write_message(&mut tunnel, &opening).await?;
        read_message::<OpeningReply, _>(&mut tunnel).await
    };
    let reply = match tokio::time::timeout(ANSWER, asking).await {
        Ok(reply) => reply.map_err(|error| broken(held, &error))?,
        Err(_) => return Err(unreachable_host(held, "it did not answer within 20 s")),
    };
    match reply {
        Some(OpeningReply::Open) => {
            let (reader, to_host) = tokio::io::split(tunnel);
            Ok(Open {
                from_host: MessageReader::new(reader),
                to_host,
                relayed,
            })
        }
        Some(OpeningReply::Refused(refusal)) => {
            Err(Failure::of_tunnel_refusal(&refusal, &held.view.name))
        }
        None => Err(unreachable_host(
            held,
            "it closed the tunnel without an answer",
        )),
    }
}

/// Where the host can be reached, best first. What cannot be read is left out: the broker passes on what the
/// host said.
fn addresses(held: &Held) -> Vec<Multiaddr> {
    held.view
        .access
        .addresses
        .iter()
        .filter_map(|text| parse_address(text).ok())
        .collect()
}

fn unreachable_host(held: &Held, reason: &str) -> Failure {
    let what = format!("the host of {} cannot be reached: {reason}", held.view.name);
    Failure::new(Code::HostUnreachable, what)
        .help(format!(
            "see how the lease stands: feira show {}",
            held.view.name
        ))
        .help("try the way there: feira doctor")
}

fn of_tunnel(held: &Held, error: &TunnelError) -> Failure {
    unreachable_host(held, &error.to_string())
}

/// The tunnel broke, or brought something that is no message.
pub(crate) fn broken(held: &Held, error: &MessageError) -> Failure {
    let what = format!("the connection to {} broke: {error}", held.view.name);
    Failure::new(Code::TunnelBroken, what).help(format!(
        "see how the lease stands: feira show {}",
        held.view.name
    ))
}
