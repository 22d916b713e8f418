//! Keeps a connection to one broker for ever: dials, notices the loss at once, waits a little longer each time,
//! dials again; and keeps a relay circuit on it where one is wanted. What goes over the connection is not its
//! business.
//!
//! ```text
//! Connecting ──connected──▶ Up ──link stream ends──▶ Down ──after the pause──▶ Connecting
//!      └──────────────────────failed──────────────────▲
//! ```
//! The link is an open stream that says nothing. It keeps the connection from being closed as idle on either side,
//! and its end is the sign that the connection is gone.

use std::fmt;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use libp2p::Multiaddr;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::address::relay_address;
use super::clock;
use super::node::{ConnectError, Node};
use super::streams::{Kind, Opened};
use super::wire::read_answer;
use crate::ids::{BrokerId, PublicKey};

/// A broker that cannot be reached in this time is tried again later.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// A relay answers in milliseconds.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(15);
/// A connection that lasted this long was a good one: the pauses start small again.
const GOOD: Duration = Duration::from_secs(10);
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// Jitter adds as much again at the most, so that a broker that is back is found within ten seconds. A thousand
/// hosts then knock some 130 times a second at a door that is closed, which costs nobody anything.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Whether a circuit is kept on the broker's relay, so that others can reach this node through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReserveRelay {
    /// Yes: for a host.
    Yes,
    /// No: for a renter.
    No,
}

/// How the link is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkState {
    /// Being dialled.
    Connecting,
    /// Connected.
    Up {
        /// Since when.
        since: Instant,
        /// The relay circuit on it.
        circuit: Circuit,
    },
    /// Not connected.
    Down {
        /// Why.
        reason: LinkDown,
        /// When it is dialled again.
        next_try: Instant,
    },
}

/// How the relay circuit of a link is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Circuit {
    /// None was asked for.
    NotWanted,
    /// The relay has been asked, or is asked again soon after a loss.
    Reserving,
    /// Others can dial this node at this address.
    Reserved {
        /// The first address the relay named.
        address: Multiaddr,
    },
    /// The relay said no; it is asked again.
    Refused {
        /// What it said.
        reason: String,
    },
}

impl fmt::Display for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWanted => f.write_str("not wanted"),
            Self::Reserving => f.write_str("asked for"),
            Self::Reserved { address } => write!(f, "{address}"),
            Self::Refused { reason } => write!(f, "refused: {reason}"),
        }
    }
}

/// Why a link is down.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkDown {
    /// The broker could not be dialled.
    #[error(transparent)]
    Connect(ConnectError),
    /// It was connected, but would not hold a link.
    #[error("the broker does not keep the connection: {reason}")]
    NotKept {
        /// What went wrong.
        reason: String,
    },
    /// The connection was lost.
    #[error("the connection was lost")]
    Lost,
}

/// A link that is kept as long as this is held.
#[derive(Debug)]
pub struct LinkHandle {
    broker: PublicKey,
    state: watch::Receiver<LinkState>,
    retry: std::sync::Arc<Notify>,
    _task: AbortOnDropHandle<()>,
}

impl LinkHandle {
    pub(crate) fn start(
        node: Node,
        broker: PublicKey,
        addresses: Vec<Multiaddr>,
        reserve: ReserveRelay,
    ) -> Self {
        let (sender, state) = watch::channel(LinkState::Connecting);
        let retry = std::sync::Arc::new(Notify::new());
        let link = Link {
            node,
            broker,
            addresses,
            reserve,
            state: sender,
            retry: std::sync::Arc::clone(&retry),
        };
        Self {
            broker,
            state,
            retry,
            _task: AbortOnDropHandle::new(tokio::spawn(link.run())),
        }
    }

    /// The broker at the other end.
    #[must_use]
    pub const fn peer(&self) -> PublicKey {
        self.broker
    }

    /// How the link is now.
    #[must_use]
    pub fn state(&self) -> LinkState {
        self.state.borrow().clone()
    }

    /// How the link is, for waiting on changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<LinkState> {
        self.state.clone()
    }

    /// Dials now instead of at the end of the pause.
    pub fn retry_now(&self) {
        self.retry.notify_one();
    }

    /// Waits until the link is up and, where a circuit is wanted, the relay has said yes or no.
    ///
    /// # Errors
    /// The last reason why it was down, when `deadline` has passed.
    pub async fn up(&self, deadline: Duration) -> Result<(), LinkDown> {
        let mut state = self.state.clone();
        let mut last = LinkDown::Connect(ConnectError::TimedOut { after: deadline });
        let settled = state.wait_for(|state| match state {
            LinkState::Up { circuit, .. } => *circuit != Circuit::Reserving,
            LinkState::Down { reason, .. } => {
                last = reason.clone();
                false
            }
            LinkState::Connecting => false,
        });
        match timeout(deadline, settled).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(LinkDown::Connect(ConnectError::NodeStopped)),
            Err(_) => Err(last),
        }
    }
}

struct Link {
    node: Node,
    broker: PublicKey,
    addresses: Vec<Multiaddr>,
    reserve: ReserveRelay,
    state: watch::Sender<LinkState>,
    retry: std::sync::Arc<Notify>,
}

impl Link {
    /// Ends only when the node has stopped.
    async fn run(self) {
        let mut pauses = pauses();
        loop {
            self.state.send_replace(LinkState::Connecting);
            let started = clock::now();
            let reason = self.connect_and_hold().await;
            if reason == LinkDown::Connect(ConnectError::NodeStopped) {
                return;
            }
            if reason == LinkDown::Lost && clock::now().duration_since(started) >= GOOD {
                pauses = self::pauses();
            }
            let pause = pauses.next().unwrap_or(PAUSE_MAX);
            let next_try_ms = pause.as_millis();
            tracing::info!(broker = %self.broker_id(), %reason, next_try_ms, "link down");
            self.state.send_replace(LinkState::Down {
                reason,
                next_try: clock::now() + pause,
            });
            tokio::select! {
                () = sleep(pause) => {}
                () = self.retry.notified() => {}
            }
        }
    }

    /// Returns why the link is not, or no longer, up.
    async fn connect_and_hold(&self) -> LinkDown {
        let dialled = self
            .node
            .connect(self.broker, self.addresses.clone(), CONNECT_TIMEOUT)
            .await;
        if let Err(error) = dialled {
            return LinkDown::Connect(error);
        }
        let Opened {
            mut stream,
            connection,
            place,
            ..
        } = match self.node.open(self.broker, Kind::Link).await {
            Some(Ok(opened)) => opened,
            Some(Err(error)) => {
                return LinkDown::NotKept {
                    reason: error.to_string(),
                };
            }
            None => return LinkDown::Connect(ConnectError::NodeStopped),
        };
        let _place = place;
        self.state.send_replace(LinkState::Up {
            since: clock::now(),
            circuit: match self.reserve {
                ReserveRelay::Yes => Circuit::Reserving,
                ReserveRelay::No => Circuit::NotWanted,
            },
        });
        tracing::info!(broker = %self.broker_id(), "link up");
        tokio::select! {
            // The broker writes nothing but a refusal: whatever comes is the end.
            said = read_answer(&mut stream) => match said {
                Ok(Err(refusal)) => {
                    self.node.close(self.broker, connection).await;
                    LinkDown::NotKept { reason: refusal.to_string() }
                }
                Ok(Ok(())) | Err(_) => LinkDown::Lost,
            },
            never = self.keep_circuit() => match never {},
        }
    }

    async fn keep_circuit(&self) -> std::convert::Infallible {
        let relay = match (self.reserve, self.addresses.first()) {
            (ReserveRelay::Yes, Some(address)) => relay_address(address, self.broker),
            (ReserveRelay::Yes, None) | (ReserveRelay::No, _) => std::future::pending().await,
        };
        let mut pauses = pauses();
        let mut said = None;
        loop {
            match timeout(RESERVE_TIMEOUT, self.node.reserve(relay.clone())).await {
                Ok(Some(Ok(mut reservation))) => {
                    let reserved = clock::now();
                    let circuit = Circuit::Reserved {
                        address: reservation.address.clone(),
                    };
                    self.say_once(&mut said, &circuit);
                    self.set_circuit(circuit);
                    reservation.lost().await;
                    // One that is lost at once, as under a clock that is far off, is not asked for in a circle.
                    if clock::now().duration_since(reserved) >= GOOD {
                        pauses = self::pauses();
                        self.say_once(&mut said, &Circuit::Reserving);
                    }
                    self.set_circuit(Circuit::Reserving);
                }
                Ok(Some(Err(reason))) => self.circuit_refused(&mut said, reason),
                Ok(None) => std::future::pending().await,
                Err(_) => {
                    let reason = format!("no answer within {RESERVE_TIMEOUT:?}");
                    self.circuit_refused(&mut said, reason);
                }
            }
            sleep(pauses.next().unwrap_or(PAUSE_MAX)).await;
        }
    }

    fn circuit_refused(&self, said: &mut Option<Circuit>, reason: String) {
        let circuit = Circuit::Refused { reason };
        self.say_once(said, &circuit);
        self.set_circuit(circuit);
    }

    /// Logs a circuit that is not as it was said to be last.
    fn say_once(&self, said: &mut Option<Circuit>, circuit: &Circuit) {
        if said.as_ref() != Some(circuit) {
            tracing::info!(broker = %self.broker_id(), %circuit, "relay circuit");
            *said = Some(circuit.clone());
        }
    }

    fn set_circuit(&self, new: Circuit) {
        tracing::debug!(broker = %self.broker_id(), circuit = %new, "relay circuit");
        self.state.send_modify(|state| {
            if let LinkState::Up { circuit, .. } = state {
                *circuit = new;
            }
        });
    }

    /// The other end as logs name it.
    fn broker_id(&self) -> BrokerId {
        BrokerId::from(self.broker)
    }
}

/// Growing pauses with jitter, so that a broker that comes back does not meet all its hosts in one instant.
fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(PAUSE_MIN)
        .with_max_delay(PAUSE_MAX)
        .with_factor(2.0)
        .with_jitter()
        .without_max_times()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_that_is_back_is_found_within_ten_seconds_however_long_it_was_away() {
        let ours: Vec<Duration> = pauses().take(200).collect();
        // 250 ms, 500 ms, 1 s, 2 s, 4 s, then 5 s, and each with up to as much again of jitter.
        let least = [250, 500, 1000, 2000, 4000].map(Duration::from_millis);
        for (pause, least) in ours.iter().zip(least) {
            assert!((least..=least * 2).contains(pause), "{pause:?}");
        }
        for pause in ours.iter().skip(5) {
            assert!((PAUSE_MAX..=PAUSE_MAX * 2).contains(pause), "{pause:?}");
        }
        assert_eq!(PAUSE_MAX * 2, Duration::from_secs(10));
        // And two hosts that lost it at once do not come back at once.
        let theirs: Vec<Duration> = pauses().take(200).collect();
        assert_ne!(ours, theirs);
    }
}
