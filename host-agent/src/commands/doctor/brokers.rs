//! The brokers and the clock: who can be reached, how fast, and how far their clocks are from this one.
//!
//! It asks under a key made for the occasion: under the host's own, a broker would take this for the agent.

use super::{Check, Place};
use crate::agent::exchange;
use crate::clock;
use crate::config::{BrokerAddress, Config};
use ed25519_dalek::SigningKey;
use protocol::ids::PublicKey;
use protocol::message::{BrokerInfo, BrokerReply, BrokerRequest};
use protocol::net::{Identity, Node, NodeConfig};
use protocol::operator::chain;
use protocol::signed::CLOCK_SKEW_MAX;
use protocol::units::{Millis, Seconds};
use rand::Rng;
use std::time::Duration;

const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// A clock further off than this costs trust before it costs leases.
const SKEW_FINE: Seconds = Seconds(5);

/// One check for each broker, and one for the clock.
pub(super) async fn checks(place: &Place, config: &Config) -> Vec<Check> {
    if config.brokers.is_empty() {
        let fix = place.command("init --broker ADDRESS");
        return vec![Check::warn(
            "brokers",
            "none is set, so nobody will see this host",
            fix,
        )];
    }
    let mut secret = [0; 32];
    rand::rng().fill_bytes(&mut secret);
    let visitor = Identity::from_signing_key(SigningKey::from_bytes(&secret));
    let (node, _events) = match Node::start(&visitor, NodeConfig::renter()).await {
        Ok(started) => started,
        Err(error) => {
            return vec![Check::fail(
                "brokers",
                chain(&error),
                "look at the network's settings",
            )];
        }
    };
    let mut checks = Vec::new();
    for known in &config.brokers {
        checks.extend(broker(&node, known).await);
    }
    checks
}

async fn broker(node: &Node, known: &BrokerAddress) -> Vec<Check> {
    let key = PublicKey::from(known.broker);
    let short = known.broker.short();
    if let Err(error) = node
        .connect(key, known.addresses.clone(), CONNECT_DEADLINE)
        .await
    {
        let list: Vec<String> = known.addresses.iter().map(ToString::to_string).collect();
        let fix = format!(
            "is it up, and does a firewall let this through? {}",
            list.join(", ")
        );
        return vec![Check::fail(
            "broker",
            format!("{short} cannot be reached: {error}"),
            fix,
        )];
    }
    let asked = clock::monotonic();
    match exchange(node, known.broker, &BrokerRequest::Info).await {
        Ok(BrokerReply::Info(info)) => {
            let took = Millis(clock::monotonic().0.saturating_sub(asked.0));
            let name = &info.name;
            let found = format!(
                "{short} \"{name}\" answers in {} ms, takes {}",
                took.0, info.fee
            );
            vec![Check::ok("broker", found), skew(&info, took)]
        }
        Ok(_) => {
            let found = format!("{short} answers another question than was asked");
            vec![Check::fail("broker", found, "is it another version?")]
        }
        Err(reason) => vec![Check::fail(
            "broker",
            format!("{short} does not answer: {reason}"),
            "try again",
        )],
    }
}

/// How far this clock is from the broker's, as far as a round trip of `took` lets it be known.
fn skew(info: &BrokerInfo, took: Millis) -> Check {
    let now = clock::wall();
    let apart = now
        .since(info.now)
        .0
        .max(info.now.since(now).0)
        .saturating_sub(took.0);
    let found = format!(
        "{}.{} s from the broker's",
        apart / 1000,
        apart % 1000 / 100
    );
    let fix = "timedatectl set-ntp true";
    if apart > CLOCK_SKEW_MAX.millis().0 {
        return Check::fail(
            "clock",
            format!("{found}: its messages would be refused"),
            fix,
        );
    }
    if apart > SKEW_FINE.millis().0 {
        return Check::warn("clock", found, fix);
    }
    Check::ok("clock", found)
}
