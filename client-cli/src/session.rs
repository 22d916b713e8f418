//! The brokers one talks to in a run of the program: connected at once, asked one by one or together.
//!
//! It moves requests and answers and knows how to repeat them; it decides nothing about leases. Every request
//! here may be repeated: reads change nothing, and an order or command sent twice has one effect.

mod greeting;

use crate::clock;
use crate::failure::{Code, Failure};
use crate::printer::Printer;
use crate::settings::BrokerAddresses;
use backon::{ExponentialBuilder, Retryable};
use futures::future::join_all;
use greeting::{greet_all, none_answers};
use protocol::ids::BrokerId;
use protocol::message::{self, BrokerInfo, BrokerReply, BrokerRequest, Rejection};
use protocol::net::{Identity, Multiaddr, Node, NodeConfig, NodeEvents, RequestError};
use protocol::units::Timestamp;
use std::time::Duration;

/// How long a broker may take to be connected and to say who it is.
const CONNECT: Duration = Duration::from_secs(5);
/// How long brokers that are silent are still waited for when another has answered.
const LATE: Duration = Duration::from_secs(1);
/// How long a broker may take to answer.
const ANSWER: Duration = Duration::from_secs(15);
/// Tries of one request, the first included.
const TRIES: usize = 4;
/// How long the node may take to say goodbye.
const GOODBYE: Duration = Duration::from_millis(300);

/// The connected brokers.
#[derive(Debug)]
pub(crate) struct Session {
    node: Node,
    brokers: Vec<Broker>,
    silent: Vec<Silent>,
    /// Nobody may ask a renter anything; while this is held, who tries is refused by the node's own bounds.
    _events: NodeEvents,
}

/// A broker that answered.
#[derive(Debug, Clone)]
pub(crate) struct Broker {
    /// Its key.
    pub id: BrokerId,
    /// All its addresses.
    pub addresses: Vec<Multiaddr>,
    /// What it says of itself.
    pub info: BrokerInfo,
    /// How long its answer took.
    pub latency: Duration,
    /// By this machine's clock, when the answer was there.
    pub heard_at: Timestamp,
}

impl Broker {
    /// What it is called: its own word for itself, and its key.
    pub(crate) fn title(&self) -> String {
        if self.info.name.is_empty() {
            return self.id.short();
        }
        format!("{} ({})", self.info.name, self.id.short())
    }

    /// How far its clock is ahead of this machine's (positive) or behind, in milliseconds, taking the
    /// answer to have travelled for half of the latency.
    pub(crate) fn clock_ahead_ms(&self) -> i64 {
        let half = i64::try_from(self.latency.as_millis() / 2).unwrap_or(i64::MAX);
        let theirs = i64::try_from(self.info.now.0).unwrap_or(i64::MAX);
        let ours = i64::try_from(self.heard_at.0).unwrap_or(i64::MAX);
        theirs.saturating_add(half).saturating_sub(ours)
    }
}

/// A broker that did not answer.
#[derive(Debug, Clone)]
pub(crate) struct Silent {
    /// Its key.
    pub id: BrokerId,
    /// Where it was looked for.
    pub address: String,
    /// What went wrong.
    pub reason: String,
}

/// Why a try of a request brought nothing.
#[derive(Debug)]
enum Trouble {
    /// Another try may bring something.
    Passing(Failure),
    /// It will not.
    Lasting(Failure),
}

impl Session {
    /// Starts a node and connects to all of `brokers` at once. A broker that does not answer is said on
    /// stderr and left out.
    pub(crate) async fn start(
        identity: &Identity,
        brokers: &[BrokerAddresses],
        printer: &Printer,
    ) -> Result<Self, Failure> {
        let session = Self::connect(identity, brokers, Some(LATE)).await?;
        if session.brokers.is_empty() {
            return Err(none_answers(&session.silent));
        }
        for silent in &session.silent {
            printer.warn(&format!(
                "broker {} does not answer: {}",
                silent.address, silent.reason
            ));
        }
        Ok(session)
    }

    /// As [`Self::start`], also when no broker answers; each is waited for as long as one is waited for alone.
    pub(crate) async fn try_all(
        identity: &Identity,
        brokers: &[BrokerAddresses],
    ) -> Result<Self, Failure> {
        Self::connect(identity, brokers, None).await
    }

    async fn connect(
        identity: &Identity,
        brokers: &[BrokerAddresses],
        late: Option<Duration>,
    ) -> Result<Self, Failure> {
        let (node, events) = Node::start(identity, NodeConfig::renter())
            .await
            .map_err(|error| Failure::new(Code::NoBrokerAnswers, error.to_string()))?;
        let (answered, silent) = greet_all(&node, brokers, late).await;
        Ok(Self {
            node,
            brokers: answered,
            silent,
            _events: events,
        })
    }

    /// Those that answered, in configured order.
    pub(crate) fn brokers(&self) -> &[Broker] {
        &self.brokers
    }

    /// Those that did not.
    pub(crate) fn silent(&self) -> &[Silent] {
        &self.silent
    }

    /// One of those that answered.
    pub(crate) fn broker(&self, id: BrokerId) -> Option<&Broker> {
        self.brokers.iter().find(|broker| broker.id == id)
    }

    /// The node, for tunnels.
    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    /// Asks one broker, again when the connection broke or the broker was busy.
    pub(crate) async fn ask(
        &self,
        broker: BrokerId,
        request: &BrokerRequest,
    ) -> Result<BrokerReply, Failure> {
        let mut deadline = ANSWER;
        if let BrokerRequest::Watch { wait, .. } = request {
            deadline += Duration::from_secs(wait.0);
        }
        let bytes = message::encode(request)?;
        let backoff = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(200))
            .with_max_times(TRIES - 1)
            .with_jitter();
        let answer = (|| self.try_once(broker, &bytes, deadline))
            .retry(backoff)
            .when(|trouble| matches!(trouble, Trouble::Passing(_)))
            .await;
        answer.map_err(|trouble| match trouble {
            Trouble::Passing(failure) | Trouble::Lasting(failure) => failure,
        })
    }

    /// Asks all that answered, at once; in configured order.
    pub(crate) async fn ask_all(
        &self,
        request: &BrokerRequest,
    ) -> Vec<(BrokerId, Result<BrokerReply, Failure>)> {
        let asked = self
            .brokers
            .iter()
            .map(|broker| async move { (broker.id, self.ask(broker.id, request).await) });
        join_all(asked).await
    }

    /// Closes the connections.
    pub(crate) async fn close(self) {
        self.node.shutdown(GOODBYE).await;
    }

    async fn try_once(
        &self,
        id: BrokerId,
        bytes: &[u8],
        deadline: Duration,
    ) -> Result<BrokerReply, Trouble> {
        let addresses = self
            .broker(id)
            .map(|broker| broker.addresses.clone())
            .unwrap_or_default();
        let name = id.short();
        self.node
            .connect(id.into(), addresses, CONNECT)
            .await
            .map_err(|error| {
                let what = format!("broker {name} cannot be reached: {error}");
                Trouble::Passing(Failure::new(Code::BrokerFailed, what))
            })?;
        let answer = self.node.request(id.into(), bytes.to_vec(), deadline).await;
        let bytes = answer.map_err(|error| of_request(&name, &error))?;
        match message::decode::<BrokerReply>(&bytes) {
            Ok(BrokerReply::Refused(rejection)) => Err(of_rejection(&rejection)),
            Ok(reply) => Ok(reply),
            Err(error) => {
                let what = format!("the answer of broker {name} cannot be read: {error}");
                Err(Trouble::Lasting(Failure::new(Code::BadReply, what)))
            }
        }
    }
}

fn of_request(broker: &str, error: &RequestError) -> Trouble {
    let what = format!("broker {broker} did not answer: {error}");
    match error {
        RequestError::TooBig { .. } => {
            Trouble::Lasting(Failure::new(Code::MessageTooBig, error.to_string()))
        }
        RequestError::Unsupported | RequestError::Malformed { .. } | RequestError::NodeStopped => {
            Trouble::Lasting(Failure::new(Code::BadReply, what))
        }
        RequestError::Busy { .. } | RequestError::TooManyInFlight { .. } => {
            Trouble::Passing(Failure::new(Code::Busy, what))
        }
        RequestError::Unreachable
        | RequestError::TimedOut { .. }
        | RequestError::ConnectionClosed
        | RequestError::Refused { .. } => Trouble::Passing(Failure::new(Code::BrokerFailed, what)),
    }
}

fn of_rejection(rejection: &Rejection) -> Trouble {
    let failure = Failure::of_rejection(rejection, clock::now());
    if failure.code() == Code::Busy && !matches!(rejection, Rejection::TooMany(_)) {
        return Trouble::Passing(failure);
    }
    Trouble::Lasting(failure)
}
