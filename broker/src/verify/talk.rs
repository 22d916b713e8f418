//! One proof over one tunnel: the prover is started in the container, and the verifier speaks with it through the
//! pipes of `exec`, as any renter's program would.
//!
//! ```text
//! open: tunnel, exec, the prover's first word      nothing is asked yet: whoever fails here failed no proof
//! converse: challenge … rows                       late over a living tunnel is late; a tunnel that breaks is not
//! ```
//!
//! Must not judge.

use crate::clock::Stopwatch;
use audit::conversation::{Heard, OPENING_MAX, Plan};
use audit::frame::{self, Frames};
use audit::message::Answer;
use audit::transcript::Transcript;
use audit::verifier::{Next, Verifier};
use ed25519_dalek::SigningKey;
use protocol::bounded::{Blob, List, Text};
use protocol::ids::{HostId, LeaseId, MessageId};
use protocol::net::frames::{MessageReader, read_message, write_message};
use protocol::net::{Multiaddr, Node, Tunnel};
use protocol::signed::{Envelope, Signed};
use protocol::tunnel::{Downward, Exec, Opening, OpeningReply, Purpose, TunnelRequest, Upward};
use protocol::units::{Millis, Seconds, Timestamp};
use std::time::Duration;
use tokio::io::{ReadHalf, WriteHalf};
use tokio::time::timeout;

/// How long connecting to a host may take: through a relay it is three handshakes.
const CONNECT: Duration = Duration::from_secs(20);
/// After a deadline passed it is waited for so long whether the tunnel breaks: a cut network is noticed after at most
/// 38 s. If it does, the answer was late because it could not come.
const LINGER: Duration = Duration::from_secs(45);
const VALIDITY: Seconds = Seconds(60);

/// How a host is reached.
#[derive(Debug, Clone, Default)]
pub(super) struct Ways {
    /// Through relays, where every renter looks alike.
    pub(super) relayed: Vec<Multiaddr>,
    /// Directly, where this machine's address is seen: only when there is no other way.
    pub(super) direct: Vec<Multiaddr>,
}

/// Where the container of a proof is reached.
#[derive(Debug)]
pub(super) struct Door<'a> {
    /// The node of the renter whom nobody knows.
    pub(super) node: &'a Node,
    /// Its key.
    pub(super) key: &'a SigningKey,
    /// The host.
    pub(super) host: HostId,
    /// The ways to it.
    pub(super) ways: Ways,
    /// The lease.
    pub(super) lease: LeaseId,
    /// By the broker's clock.
    pub(super) now: Timestamp,
}

/// A prover that said its first word.
#[derive(Debug)]
pub(super) struct Opened {
    from_host: MessageReader<ReadHalf<Tunnel>>,
    to_host: WriteHalf<Tunnel>,
    frames: Frames,
    first: Answer,
}

/// How a conversation ended.
#[derive(Debug)]
pub(super) enum Talked {
    /// By its own rules.
    Over(Transcript),
    /// The tunnel broke; what was heard until then, and silence.
    Broken(Transcript),
}

/// Starts the prover and waits for its first word.
///
/// # Errors
/// Why there is none, in words for the log.
pub(super) async fn open(door: &Door<'_>, command: &[&str]) -> Result<Opened, String> {
    let host = door.host.into();
    let Ways { relayed, direct } = door.ways.clone();
    if let Err(error) = door.node.connect(host, relayed, CONNECT).await {
        tracing::debug!(%error, "a host is not reached through a relay");
        let connected = door.node.connect(host, direct, CONNECT).await;
        connected.map_err(|error| error.to_string())?;
    }
    let mut tunnel = door
        .node
        .open_tunnel(host, CONNECT)
        .await
        .map_err(|error| error.to_string())?;
    write_message(&mut tunnel, &opening(door, command)?)
        .await
        .map_err(|error| error.to_string())?;
    let reply = timeout(CONNECT, read_message::<OpeningReply, _>(&mut tunnel)).await;
    match reply.map_err(|_| "the host did not answer the request for a tunnel".to_owned())? {
        Ok(Some(OpeningReply::Open)) => {}
        Ok(Some(OpeningReply::Refused(refusal))) => return Err(refusal.to_string()),
        Ok(None) => return Err("the host closed the tunnel without an answer".to_owned()),
        Err(error) => return Err(error.to_string()),
    }
    let (reader, to_host) = tokio::io::split(tunnel);
    let (mut from_host, mut frames) = (MessageReader::new(reader), Frames::new());
    let first = timeout(
        Duration::from_millis(OPENING_MAX.0),
        first_word(&mut from_host, &mut frames),
    );
    let first = first
        .await
        .map_err(|_| "the prover did not start in time".to_owned())??;
    Ok(Opened {
        from_host,
        to_host,
        frames,
        first,
    })
}

fn opening(door: &Door<'_>, command: &[&str]) -> Result<Opening, String> {
    let words: Result<Vec<Text<4096>>, _> = command.iter().map(|word| Text::new(*word)).collect();
    let command = words
        .and_then(List::new)
        .map_err(|error| error.to_string())?;
    let request = TunnelRequest {
        lease: door.lease,
        purpose: Purpose::Exec(Exec {
            command,
            terminal: None,
            environment: List::default(),
        }),
    };
    let envelope = Envelope {
        audience: door.host.into(),
        message_id: MessageId::from_bytes(rand::random()),
        issued: door.now,
        validity: VALIDITY,
    };
    let signed = Signed::sign(request, door.key, envelope).map_err(|error| error.to_string())?;
    Ok(signed.signed().clone())
}

async fn first_word(
    from_host: &mut MessageReader<ReadHalf<Tunnel>>,
    frames: &mut Frames,
) -> Result<Answer, String> {
    let mut complaint = String::new();
    loop {
        let down = from_host.next::<Downward>().await;
        match down.map_err(|error| error.to_string())? {
            Some(Downward::Output(bytes)) => {
                frames.push(&bytes);
                match frames.message() {
                    Ok(Some(answer)) => return Ok(answer),
                    Ok(None) => {}
                    Err(error) => return Err(error.to_string()),
                }
            }
            Some(Downward::Errors(bytes)) => {
                complaint = String::from_utf8_lossy(&bytes).trim().to_owned();
            }
            Some(Downward::Exit(code)) => {
                return Err(format!("the prover ended with {code} {complaint}"));
            }
            Some(Downward::Broken(detail)) => return Err(detail.to_string()),
            None => return Err("the host closed the tunnel".to_owned()),
        }
    }
}

/// What is heard next.
enum News {
    Heard(Heard),
    Broke,
}

/// Carries the proof through.
pub(super) async fn converse(opened: Opened, mut verifier: Verifier) -> Talked {
    let Opened {
        mut from_host,
        mut to_host,
        mut frames,
        first,
    } = opened;
    // From its first word on: the provers of one sitting are challenged together, when the last of them is ready.
    let watch = Stopwatch::start();
    let mut news = News::Heard(Heard::Answer(first));
    loop {
        let (heard, broke) = match news {
            News::Heard(heard) => (heard, false),
            News::Broke => (Heard::Silence, true),
        };
        let until = verifier.deadline();
        // Silence is heard at the deadline, however long it was looked for a sign of life after it.
        let at = match heard {
            Heard::Silence => elapsed(watch).min(until),
            Heard::Answer(_) => elapsed(watch),
        };
        match verifier.hear(at, heard) {
            Next::Over(transcript) if broke => return Talked::Broken(transcript),
            Next::Over(transcript) => return Talked::Over(transcript),
            Next::Say(ask) => {
                let said = frame::encode(&ask)
                    .ok()
                    .and_then(|bytes| Blob::new(bytes).ok());
                let written = match said {
                    Some(bytes) => write_message(&mut to_host, &Upward::Input(bytes)).await,
                    None => Ok(()),
                };
                if written.is_err() {
                    news = News::Broke;
                    continue;
                }
            }
            Next::Wait => {}
        }
        news = listen(&mut from_host, &mut frames, watch, verifier.deadline()).await;
    }
}

/// The next message, the deadline, or the tunnel's end.
async fn listen(
    from_host: &mut MessageReader<ReadHalf<Tunnel>>,
    frames: &mut Frames,
    watch: Stopwatch,
    deadline: Millis,
) -> News {
    loop {
        match frames.message() {
            Ok(Some(answer)) => return News::Heard(Heard::Answer(answer)),
            Ok(None) => {}
            // What came is no message.
            Err(_) => return News::Heard(Heard::Silence),
        }
        let left = Duration::from_millis(deadline.0.saturating_sub(elapsed(watch).0));
        let down = match timeout(left, from_host.next::<Downward>()).await {
            Ok(down) => down,
            Err(_) => {
                let later = timeout(LINGER, from_host.next::<Downward>()).await;
                return match later {
                    // It lives: it was late, or nothing more comes over a tunnel that answers pings.
                    Err(_)
                    | Ok(Ok(Some(Downward::Output(_) | Downward::Errors(_) | Downward::Exit(_)))) => {
                        News::Heard(Heard::Silence)
                    }
                    Ok(Ok(Some(Downward::Broken(_)) | None) | Err(_)) => News::Broke,
                };
            }
        };
        match down {
            Ok(Some(Downward::Output(bytes))) => frames.push(&bytes),
            Ok(Some(Downward::Errors(bytes))) => {
                tracing::debug!(
                    "the prover says: {}",
                    String::from_utf8_lossy(&bytes).trim()
                );
            }
            // The prover ended although the tunnel lives.
            Ok(Some(Downward::Exit(_))) => return News::Heard(Heard::Silence),
            Ok(Some(Downward::Broken(_)) | None) | Err(_) => return News::Broke,
        }
    }
}

fn elapsed(watch: Stopwatch) -> Millis {
    Millis(u64::try_from(watch.elapsed().as_millis()).unwrap_or(u64::MAX))
}

/// What a verifier chooses, at random.
pub(super) fn plan(device: &str, parameters: protocol::verify::Parameters) -> Plan {
    Plan {
        challenge: audit::message::Challenge {
            id: MessageId::from_bytes(rand::random()),
            device: Text::cut(device),
            parameters,
            seed: audit::message::Seed(rand::random()),
        },
        nonce: audit::message::Nonce(rand::random()),
        secret: rand::random(),
    }
}
