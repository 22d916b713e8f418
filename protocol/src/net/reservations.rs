//! Circuits this node has asked of relays: which listener stands for which, and who waits for it.
//! Asking again after a loss is the link's work, not done here.

use std::collections::HashMap;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use futures::{FutureExt, future};
use libp2p::Multiaddr;
use libp2p::core::transport::ListenerId;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A circuit on a relay. Dropping it gives the circuit up.
#[derive(Debug)]
pub(crate) struct Reservation {
    /// Where this node can be dialled through the relay.
    pub(crate) address: Multiaddr,
    lost: oneshot::Receiver<()>,
    _given_up: DropGuard,
}

impl Reservation {
    /// Waits until the relay, or the connection to it, is gone.
    pub(crate) async fn lost(&mut self) {
        // Only ever ends by the sender's being dropped.
        let _ = (&mut self.lost).await;
    }
}

/// Why a relay gave no circuit, in its own words.
pub(crate) type Refused = String;

/// Who waits for a circuit that has been asked for.
pub(crate) type Waiting = oneshot::Sender<Result<Reservation, Refused>>;

enum State {
    Asked(Waiting),
    /// The sender is only ever dropped.
    Held(#[expect(dead_code, reason = "dropping it is the message")] oneshot::Sender<()>),
}

/// All circuits asked for or held, by the swarm's listener.
pub(crate) struct Reservations {
    states: HashMap<ListenerId, State>,
    given_up: FuturesUnordered<BoxFuture<'static, ListenerId>>,
}

impl Reservations {
    pub(crate) fn new() -> Self {
        let given_up = FuturesUnordered::new();
        // One that never ends: an empty set would say at once that nothing will ever come.
        given_up.push(future::pending().boxed());
        Self {
            states: HashMap::new(),
            given_up,
        }
    }

    pub(crate) fn asked(&mut self, listener: ListenerId, waiting: Waiting) {
        self.states.insert(listener, State::Asked(waiting));
    }

    /// The relay granted it. A relay with several addresses says so several times; the first counts.
    pub(crate) fn granted(&mut self, listener: ListenerId, address: &Multiaddr) {
        if !matches!(self.states.get(&listener), Some(State::Asked(_))) {
            return;
        }
        let (held, lost) = oneshot::channel();
        let Some(State::Asked(waiting)) = self.states.insert(listener, State::Held(held)) else {
            return;
        };
        let token = CancellationToken::new();
        self.given_up.push(
            token
                .clone()
                .cancelled_owned()
                .map(move |()| listener)
                .boxed(),
        );
        // If nobody waits any more, the reservation is dropped here, which gives it up again.
        let _ = waiting.send(Ok(Reservation {
            address: address.clone(),
            lost,
            _given_up: token.drop_guard(),
        }));
    }

    /// The listener is gone: refused, or lost after it had been granted.
    pub(crate) fn closed(&mut self, listener: ListenerId, reason: &Result<(), std::io::Error>) {
        if let Some(State::Asked(waiting)) = self.states.remove(&listener) {
            let reason = match reason {
                Ok(()) => "the connection to the relay closed".to_owned(),
                Err(error) => error.to_string(),
            };
            // Nobody may be waiting any more.
            let _ = waiting.send(Err(reason));
        }
    }

    /// The next circuit that its holder has dropped.
    pub(crate) async fn next_given_up(&mut self) -> Option<ListenerId> {
        self.given_up.next().await
    }
}
