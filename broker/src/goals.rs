//! Says to each connected host what should be true of its leases: at once when that changes, and again
//! every few seconds, so that a lost message costs one period. At most one goal to a host is on its way.
//!
//! Must not decide what should be true; the market derives that.

use crate::core::goal::Awards;
use crate::market::{MarketHandle, Notice};
use crate::metrics::Metrics;
use protocol::ids::{HostId, PublicKey};
use protocol::message::{self, HostReply, HostRequest, Rejection};
use protocol::net::{Node, RequestError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, broadcast, mpsc};
use tokio::task::JoinSet;

/// A goal that did not change is said again after this long.
const PERIOD: Duration = Duration::from_secs(5);
/// A host has this long to note a goal.
const DEADLINE: Duration = Duration::from_secs(10);
/// Goals on their way to all hosts together.
const PUSHES_MAX: usize = 64;
/// Hosts seen, on their way to the task.
const QUEUE: usize = 1024;
/// Hosts that are kept in mind; many more than connect.
const HOSTS_MAX: usize = 16_384;
/// A host that is missing in this many periods in a row is gone, not just reconnecting.
const ABSENT_MAX: u8 = 2;

/// Where to say that a host was heard.
#[derive(Debug, Clone)]
pub(crate) struct Goals {
    seen: mpsc::Sender<HostId>,
}

/// The task that owns what is known of each host's connection.
#[derive(Debug)]
pub(crate) struct GoalPusher {
    node: Node,
    market: MarketHandle,
    metrics: Arc<Metrics>,
    notices: broadcast::Receiver<Notice>,
    seen: mpsc::Receiver<HostId>,
    hosts: BTreeMap<HostId, Host>,
    pushes: JoinSet<(HostId, Awards, Outcome)>,
    places: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Host {
    pushing: bool,
    /// What it was told last; on its way with the goal while one is.
    awards: Awards,
    /// The goal changed while one was on its way.
    again: bool,
    /// Periods in a row in which it was not connected.
    absent: u8,
}

/// What came of a goal that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Noted,
    Refused,
    Unreachable,
    Busy,
    NoAnswer,
    Stopping,
}

impl Outcome {
    const fn label(self) -> &'static str {
        match self {
            Self::Noted => "noted",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Busy => "busy",
            Self::NoAnswer => "no_answer",
            Self::Stopping => "stopping",
        }
    }
}

impl Goals {
    /// A host said something: it is a host, and it is there. Told again with its next message when there is
    /// no room now.
    pub(crate) fn seen(&self, host: HostId) {
        let _ = self.seen.try_send(host);
    }
}

impl GoalPusher {
    pub(crate) fn new(
        node: Node,
        market: MarketHandle,
        metrics: Arc<Metrics>,
        notices: broadcast::Receiver<Notice>,
    ) -> (Goals, Self) {
        let (sender, seen) = mpsc::channel(QUEUE);
        let pusher = Self {
            node,
            market,
            metrics,
            notices,
            seen,
            hosts: BTreeMap::new(),
            pushes: JoinSet::new(),
            places: Arc::new(Semaphore::new(PUSHES_MAX)),
        };
        (Goals { seen: sender }, pusher)
    }

    /// Pushes goals until the market ends.
    pub(crate) async fn run(mut self) {
        let mut period = tokio::time::interval(PERIOD);
        loop {
            tokio::select! {
                biased;
                Some(done) = self.pushes.join_next(), if !self.pushes.is_empty() => match done {
                    Ok((host, awards, outcome)) => self.pushed(host, awards, outcome),
                    Err(error) => self.push_broke(&error),
                },
                notice = self.notices.recv() => match notice {
                    Ok(Notice::Goal { host }) => self.push_if_known(host),
                    Ok(Notice::Lease { .. }) => {}
                    Err(broadcast::error::RecvError::Lagged(_)) => self.push_all(),
                    Err(broadcast::error::RecvError::Closed) => return,
                },
                seen = self.seen.recv() => match seen {
                    Some(host) => self.host_seen(host),
                    None => return,
                },
                _ = period.tick() => self.say_again().await,
            }
        }
    }

    /// A host that connects again hears at once what it should be doing.
    fn host_seen(&mut self, host: HostId) {
        if let Some(known) = self.hosts.get_mut(&host) {
            known.absent = 0;
        } else if self.hosts.len() < HOSTS_MAX {
            tracing::info!(host = %host.short(), "host is here");
            self.hosts.insert(host, Host::default());
            self.push(host);
        }
    }

    async fn say_again(&mut self) {
        let connected: BTreeSet<HostId> = self
            .node
            .connected_peers()
            .await
            .into_iter()
            .map(HostId::from)
            .collect();
        let mut gone = Vec::new();
        for (id, host) in &mut self.hosts {
            host.absent = if connected.contains(id) {
                0
            } else {
                host.absent.saturating_add(1)
            };
            if host.absent >= ABSENT_MAX {
                gone.push(*id);
            }
        }
        for id in gone {
            tracing::info!(host = %id.short(), "host is gone");
            self.hosts.remove(&id);
            self.market.gone(id).await;
        }
        self.push_all();
    }

    fn push_all(&mut self) {
        let here: Vec<HostId> = self
            .hosts
            .iter()
            .filter(|(_, host)| host.absent == 0)
            .map(|(id, _)| *id)
            .collect();
        for host in here {
            self.push(host);
        }
    }

    fn push_if_known(&mut self, host: HostId) {
        if self.hosts.contains_key(&host) {
            self.push(host);
        }
    }

    fn push(&mut self, id: HostId) {
        let Some(host) = self.hosts.get_mut(&id) else {
            return;
        };
        if host.pushing {
            host.again = true;
            return;
        }
        host.pushing = true;
        let (node, market) = (self.node.clone(), self.market.clone());
        let places = Arc::clone(&self.places);
        let mut awards = std::mem::take(&mut host.awards);
        self.pushes.spawn(async move {
            let outcome = match places.acquire_owned().await {
                Ok(_place) => push(&node, &market, id, &mut awards).await,
                Err(_) => Outcome::Stopping,
            };
            (id, awards, outcome)
        });
    }

    fn pushed(&mut self, id: HostId, awards: Awards, outcome: Outcome) {
        self.metrics.goal_sent(outcome.label());
        let Some(host) = self.hosts.get_mut(&id) else {
            return;
        };
        host.pushing = false;
        host.awards = awards;
        if std::mem::take(&mut host.again) {
            self.push(id);
        }
    }

    /// A push that ended without saying which host it was for.
    fn push_broke(&mut self, error: &tokio::task::JoinError) {
        tracing::error!(%error, "a goal broke off");
        for host in self.hosts.values_mut() {
            host.pushing = false;
        }
    }
}

async fn push(node: &Node, market: &MarketHandle, host: HostId, awards: &mut Awards) -> Outcome {
    let goal = match market.goal(host, awards).await {
        Ok(goal) => goal,
        Err(Rejection::ShuttingDown) => return Outcome::Stopping,
        Err(_) => return Outcome::Busy,
    };
    let bytes = match message::encode(&HostRequest::Goal(goal)) {
        Ok(bytes) => bytes,
        Err(error) => {
            tracing::error!(host = %host.short(), %error, "a goal cannot be sent");
            return Outcome::Refused;
        }
    };
    let answer = match node.request(PublicKey::from(host), bytes, DEADLINE).await {
        Ok(answer) => answer,
        Err(error) => return not_answered(&error),
    };
    match message::decode::<HostReply>(&answer) {
        Ok(HostReply::Noted) => Outcome::Noted,
        Ok(HostReply::Refused(reason)) => {
            tracing::debug!(host = %host.short(), %reason, "a host refused its goal");
            Outcome::Refused
        }
        Err(error) => {
            tracing::debug!(host = %host.short(), %error, "a host's answer to its goal is malformed");
            Outcome::Refused
        }
    }
}

fn not_answered(error: &RequestError) -> Outcome {
    match error {
        RequestError::Unreachable => Outcome::Unreachable,
        RequestError::Busy { .. } | RequestError::TooManyInFlight { .. } => Outcome::Busy,
        RequestError::TimedOut { .. } | RequestError::ConnectionClosed => Outcome::NoAnswer,
        RequestError::NodeStopped => Outcome::Stopping,
        RequestError::TooBig { .. }
        | RequestError::Refused { .. }
        | RequestError::Unsupported
        | RequestError::Malformed { .. } => Outcome::Refused,
    }
}
