//! Opens tunnels to the host of a lease: connect directly or through the broker, ask, and hear yes or no.
//!
//! What flows through an open tunnel is the business of `exec` and `logs`.

use crate::clock::Stopwatch;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::stages::in_seconds;
use crate::view::Held;
use protocol::ids::PublicKey;
use protocol::net::frames::{MessageError, MessageReader, read_message, write_message};
use protocol::net::{Multiaddr, Tunnel, parse_address};
use protocol::tunnel::{Opening, OpeningReply, Purpose, TunnelRefusal, TunnelRequest};
use protocol::units::Millis;
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
    let Some((host, _)) = held.view.place else {
        return Err(Failure::of_tunnel_refusal(
            &TunnelRefusal::NotRunning,
            &held.view.name,
        ));
    };
    let host = PublicKey::from(host);
    let watch = Stopwatch::start();
    // The reasons are addresses and words of the network's: for those who ask why.
    let silent = |reason: String| {
        context.printer.detail(&reason);
        silent_host(held, watch.elapsed())
    };
    node.connect(host, addresses(held), CONNECT)
        .await
        .map_err(|error| silent(error.to_string()))?;
    let mut tunnel = node
        .open_tunnel(host, CONNECT)
        .await
        .map_err(|error| silent(error.to_string()))?;
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
        Err(_) => return Err(silent_host(held, watch.elapsed())),
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
        None => {
            let name = &held.view.name;
            let what = format!("the host of {name} closed the tunnel without an answer");
            Err(unreachable_host(held, what))
        }
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

fn silent_host(held: &Held, after: Millis) -> Failure {
    let what = format!(
        "the host of {} does not answer ({})",
        held.view.name,
        in_seconds(after)
    );
    unreachable_host(held, what)
}

fn unreachable_host(held: &Held, what: String) -> Failure {
    Failure::new(Code::HostUnreachable, what)
        .help(format!(
            "see how the lease stands: feira show {}",
            held.view.name
        ))
        .help("try the way there: feira doctor (why: the same command with -v)")
}

/// The tunnel broke, or brought something that is no message.
pub(crate) fn broken(held: &Held, error: &MessageError) -> Failure {
    let what = format!("the connection to {} broke: {error}", held.view.name);
    Failure::new(Code::TunnelBroken, what).help(format!(
        "see how the lease stands: feira show {}",
        held.view.name
    ))
}
