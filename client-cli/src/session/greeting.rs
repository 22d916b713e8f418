//! The first words with brokers: all are connected at once and asked who they are, and who is silent is said
//! in short. Whether one can work with those that answered is the session's business.

use super::{Broker, CONNECT, Silent};
use crate::clock::{self, Stopwatch};
use crate::failure::{Code, Failure};
use crate::settings::BrokerAddresses;
use backon::{ExponentialBuilder, Retryable};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use protocol::message::{self, BrokerReply, BrokerRequest};
use protocol::net::{Multiaddr, Node, PeerRefusal, RequestError};
use protocol::units::Millis;
use std::collections::BTreeMap;
use std::time::Duration;

/// Tries after the first when a broker hangs up: about three seconds in all.
const TRIES: usize = 4;
/// What a broker that keeps hanging up most likely has.
const MANY: &str = "it closed the connection; it may have too many";

/// Greets all at once. Those that answer and those that do not, each in configured order; once one has
/// answered the others have `late`.
pub(super) async fn greet_all(
    node: &Node,
    brokers: &[BrokerAddresses],
    late: Option<Duration>,
) -> (Vec<Broker>, Vec<Silent>) {
    let mut waiting: FuturesUnordered<_> = brokers
        .iter()
        .enumerate()
        .map(|(index, broker)| async move { (index, greet(node, broker).await) })
        .collect();
    let mut heard = BTreeMap::new();
    while let Some((index, greeting)) = waiting.next().await {
        let is_first = greeting.is_ok();
        heard.insert(index, greeting);
        if is_first && late.is_some() {
            break;
        }
    }
    let others = async {
        while let Some((index, greeting)) = waiting.next().await {
            heard.insert(index, greeting);
        }
    };
    // Whoever is not heard by then is said to be silent below.
    let _ = tokio::time::timeout(late.unwrap_or(CONNECT), others).await;
    let (mut answered, mut silent) = (Vec::new(), Vec::new());
    for (index, broker) in brokers.iter().enumerate() {
        match heard.remove(&index) {
            Some(Ok(broker)) => answered.push(broker),
            Some(Err(reason)) => silent.push(reason),
            None => silent.push(Silent {
                id: broker.id,
                address: first_address(broker),
                reason: "silent for a second after another answered".to_owned(),
            }),
        }
    }
    (answered, silent)
}

fn first_address(broker: &BrokerAddresses) -> String {
    let first = broker.addresses.first();
    first.map(ToString::to_string).unwrap_or_default()
}

/// Why a broker was not greeted.
#[derive(Debug)]
enum Trial {
    /// It hung up: with many programs of one key at once it takes some of them a moment later.
    HungUp(Silent),
    /// Another try would bring nothing.
    Over(Silent),
}

/// Greets a broker, again when it hung up.
async fn greet(node: &Node, broker: &BrokerAddresses) -> Result<Broker, Silent> {
    let backoff = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(200))
        .with_max_times(TRIES)
        .with_jitter();
    let greeted = (|| greet_once(node, broker))
        .retry(backoff)
        .when(|trial| matches!(trial, Trial::HungUp(_)))
        .await;
    greeted.map_err(|trial| match trial {
        Trial::HungUp(silent) | Trial::Over(silent) => silent,
    })
}

/// Connects to a broker and asks who it is.
async fn greet_once(node: &Node, broker: &BrokerAddresses) -> Result<Broker, Trial> {
    let address = first_address(broker);
    let silent = |reason: String| Silent {
        id: broker.id,
        address: address.clone(),
        reason,
    };
    let peer = broker.id.into();
    node.connect(peer, broker.addresses.clone(), CONNECT)
        .await
        .map_err(|error| {
            let reason = in_short(&error.to_string(), &broker.addresses);
            if hung_up(&reason) {
                Trial::HungUp(silent(reason))
            } else {
                Trial::Over(silent(reason))
            }
        })?;
    let request = message::encode(&BrokerRequest::Info)
        .map_err(|error| Trial::Over(silent(error.to_string())))?;
    let watch = Stopwatch::start();
    let bytes = node
        .request(peer, request, CONNECT)
        .await
        .map_err(|error| match error {
            RequestError::ConnectionClosed | RequestError::Unreachable => {
                Trial::HungUp(silent(MANY.to_owned()))
            }
            RequestError::Busy {
                reason: reason @ PeerRefusal::TooManyConnections,
            } => Trial::HungUp(silent(reason.to_string())),
            RequestError::Busy { .. }
            | RequestError::Malformed { .. }
            | RequestError::NodeStopped
            | RequestError::Refused { .. }
            | RequestError::TimedOut { .. }
            | RequestError::TooBig { .. }
            | RequestError::TooManyInFlight { .. }
            | RequestError::Unsupported => Trial::Over(silent(error.to_string())),
        })?;
    let Millis(latency) = watch.elapsed();
    match message::decode::<BrokerReply>(&bytes) {
        Ok(BrokerReply::Info(info)) => Ok(Broker {
            id: broker.id,
            addresses: broker.addresses.clone(),
            info,
            latency: Duration::from_millis(latency),
            heard_at: clock::now(),
        }),
        Ok(BrokerReply::Refused(rejection)) => Err(Trial::Over(silent(rejection.to_string()))),
        Ok(_) => {
            let reason = "it does not answer as a broker does".to_owned();
            Err(Trial::Over(silent(reason)))
        }
        Err(error) => {
            let reason = format!("its answer cannot be read: {error}");
            Err(Trial::Over(silent(reason)))
        }
    }
}

/// Whether somebody was there and hung up, in the words of the network's errors.
fn hung_up(reason: &str) -> bool {
    let lower = reason.to_lowercase();
    [
        "reset by peer",
        "end of file",
        "connection closed",
        "broken pipe",
    ]
    .iter()
    .any(|words| lower.contains(words))
}

/// Nobody to work with: which broker and why, and the command that shows more.
pub(super) fn none_answers(silent: &[Silent]) -> Failure {
    let each = |silent: &Silent| format!("{}: {}", silent.address, silent.reason);
    let failure = match silent {
        [only] => Failure::new(
            Code::NoBrokerAnswers,
            format!("no broker answers: {}", each(only)),
        ),
        several => {
            let all: Vec<_> = several.iter().map(each).collect();
            let what = format!("no broker answers: {}", all.join("; "));
            Failure::new(Code::NoBrokerAnswers, what)
        }
    };
    failure.help("feira doctor")
}

/// Why connecting failed, without the addresses, which are said beside it, and without the system's numbers.
fn in_short(reason: &str, addresses: &[Multiaddr]) -> String {
    let mut text = reason.trim_start_matches("could not connect: ").to_owned();
    for address in addresses {
        text = text.replace(&format!("{address}: "), "");
    }
    if let Some((before, number)) = text.rsplit_once(" (os error ")
        && number.trim_end_matches(')').parse::<u32>().is_ok()
    {
        text = before.to_owned();
    }
    if text.starts_with("no records found") {
        return "the name in its address is not known".to_owned();
    }
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => format!("{}{}", first.to_lowercase(), characters.as_str()),
        None => "it cannot be reached".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::ids::BrokerId;

    #[test]
    fn a_broker_that_is_down_is_named_once_with_its_reason() {
        let address = "/ip4/127.0.0.1/tcp/17700";
        let addresses = [protocol::net::parse_address(address).unwrap()];
        let reason = format!("could not connect: {address}: Connection refused (os error 111)");
        let reason = in_short(&reason, &addresses);
        assert_eq!(reason, "connection refused");
        let silent = |address: &str| Silent {
            id: BrokerId::from_bytes([5; 32]),
            address: address.to_owned(),
            reason: reason.clone(),
        };
        let one = none_answers(&[silent(address)]);
        assert_eq!(
            (one.what(), one.help_lines()),
            (
                "no broker answers: /ip4/127.0.0.1/tcp/17700: connection refused",
                ["feira doctor".to_owned()].as_slice()
            )
        );
        let two = none_answers(&[silent(address), silent("/ip4/192.0.2.1/tcp/7700")]);
        assert!(two.what().contains("192.0.2.1") && two.what().contains(address));
        assert_eq!(two.help_lines(), ["feira doctor"]);
    }
}
