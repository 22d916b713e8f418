//! The broker's event loop. It takes what happens in a fixed order of precedence (its own finished work, the
//! market's end, being told to stop, the network) and gives each request to a task of its own.
//!
//! Must not wait for anything but events: whatever takes time is in a task.

use super::ServerError;
use crate::api::Api;
use crate::config::Limits;
use crate::market::{MarketError, MarketThread};
use protocol::net::{Node, NodeEvent, NodeEvents};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long the network may take to close.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);

/// What serves, put together.
pub(super) struct Parts {
    pub(super) api: Api,
    pub(super) node: Node,
    pub(super) thread: MarketThread,
    pub(super) services: JoinSet<()>,
    pub(super) limits: Limits,
}

/// Everything that a running broker owns.
pub(super) struct EventLoop {
    api: Api,
    node: Node,
    thread: MarketThread,
    services: JoinSet<()>,
    limits: Limits,
    events: NodeEvents,
    stop: CancellationToken,
}

/// What can happen to a running broker.
enum Happening {
    /// A request was answered, or a service ended.
    Finished,
    /// The market's thread ended.
    MarketEnded(Result<(), MarketError>),
    /// The broker is told to stop.
    Stop,
    /// Something came over the network.
    Arrived(Box<NodeEvent>),
    /// The network ended.
    NetworkEnded,
}

impl EventLoop {
    pub(super) fn new(parts: Parts, events: NodeEvents, stop: CancellationToken) -> Self {
        let Parts {
            api,
            node,
            thread,
            services,
            limits,
        } = parts;
        Self {
            api,
            node,
            thread,
            services,
            limits,
            events,
            stop,
        }
    }

    /// Serves until it is told to stop, then drains and closes.
    pub(super) async fn run(mut self) -> Result<(), ServerError> {
        let mut requests = JoinSet::new();
        let ended = loop {
            match self.next(&mut requests).await {
                Happening::Finished => {}
                Happening::Arrived(event) => self.take(*event, &mut requests),
                Happening::Stop => break Ok(()),
                Happening::MarketEnded(Ok(())) => break Err(ServerError::MarketEnded),
                Happening::MarketEnded(Err(error)) => break Err(ServerError::Market(error)),
                Happening::NetworkEnded => break Err(ServerError::NetworkEnded),
            }
        };
        self.stop.cancel();
        let drained = tokio::time::timeout(self.limits.drain, self.finish(&mut requests)).await;
        if drained.is_err() {
            tracing::warn!(unanswered = requests.len(), "the time to answer is over");
        }
        requests.shutdown().await;
        self.close(ended).await
    }

    async fn next(&mut self, requests: &mut JoinSet<()>) -> Happening {
        tokio::select! {
            biased;
            Some(finished) = requests.join_next(), if !requests.is_empty() => report(finished.err()),
            Some(finished) = self.services.join_next(), if !self.services.is_empty() => report(finished.err()),
            ended = self.thread.stopped() => Happening::MarketEnded(ended),
            () = self.stop.cancelled() => Happening::Stop,
            // While as many are answered as is allowed, the network's own queue fills and then says so.
            event = self.events.recv(), if requests.len() < self.limits.requests_in_flight => match event {
                Some(event) => Happening::Arrived(Box::new(event)),
                None => Happening::NetworkEnded,
            },
        }
    }

    fn take(&self, event: NodeEvent, requests: &mut JoinSet<()>) {
        match event {
            NodeEvent::Request {
                peer,
                bytes,
                responder,
            } => {
                let api = self.api.clone();
                requests.spawn(async move {
                    let answer = api.answer(peer, &bytes).await;
                    if let Err(error) = responder.reply(answer) {
                        tracing::debug!(peer = %peer.short(), %error, "an answer came too late");
                    }
                });
            }
            // Nothing in a broker is reached by a tunnel; the relay passes them on by itself.
            NodeEvent::Tunnel { tunnel, .. } => drop(tunnel),
        }
    }

    /// Answers what is in hand and tells whoever still asks that the broker stops.
    async fn finish(&mut self, requests: &mut JoinSet<()>) {
        while !requests.is_empty() {
            tokio::select! {
                biased;
                _ = requests.join_next() => {}
                event = self.events.recv(), if requests.len() < self.limits.requests_in_flight => match event {
                    Some(event) => self.take(event, requests),
                    None => while requests.join_next().await.is_some() {},
                },
            }
        }
    }

    async fn close(mut self, ended: Result<(), ServerError>) -> Result<(), ServerError> {
        self.node.shutdown(CLOSE_DEADLINE).await;
        self.api.market.shutdown().await;
        let stopped = match &ended {
            // It has ended already.
            Err(ServerError::Market(_) | ServerError::MarketEnded) => Ok(()),
            Ok(()) | Err(ServerError::NetworkEnded | ServerError::Broken { .. }) => {
                self.thread.stopped().await
            }
        };
        self.services.shutdown().await;
        ended.and(stopped.map_err(ServerError::Market))
    }
}

/// A task that broke off is a mistake of ours; the others go on.
fn report(broken: Option<tokio::task::JoinError>) -> Happening {
    if let Some(error) = broken {
        tracing::error!(%error, "a task of the broker broke off");
    }
    Happening::Finished
}
