//! The way to a broker and back. The broker decides how often it is measured.

use super::{BenchError, Watch};
use crate::clock;
use crate::core::bench::{Outcome, Part};
use protocol::bounded::Text;
use protocol::ids::{BrokerId, PublicKey};
use protocol::machine::Quantity;
use protocol::net::{Direction, Node};
use std::sync::Arc;

/// Measures the way to each broker, in both directions. A broker that gives no measurement hides no other.
pub(super) async fn measure(
    brokers: &[BrokerId],
    node: Option<&Node>,
    watch: &Arc<Watch>,
) -> Result<Vec<Outcome>, BenchError> {
    let node = node.ok_or(BenchError::NoBroker)?;
    let mut outcomes = Vec::new();
    let mut failed = None;
    let count = u32::try_from(brokers.len()).unwrap_or(u32::MAX);
    for (number, broker) in (0_u32..).zip(brokers) {
        let portion = (number, count);
        match of_broker(*broker, node, watch, portion).await {
            Ok(both) => outcomes.extend(both),
            Err(stopped) if stopped.is_stop() => return Err(stopped),
            Err(error) => failed = Some(error),
        }
    }
    if outcomes.is_empty() {
        return Err(failed.unwrap_or(BenchError::NoBroker));
    }
    Ok(outcomes)
}

async fn of_broker(
    broker: BrokerId,
    node: &Node,
    watch: &Arc<Watch>,
    (number, count): (u32, u32),
) -> Result<[Outcome; 2], BenchError> {
    let one = async |direction, quantity, half: u32| {
        let say = |done: u16| {
            let all = (number * 2 + half) * 1000 + u32::from(done);
            let part = all.checked_div(count * 2).unwrap_or(1000).min(1000);
            watch.say(Part::Network, u16::try_from(part).unwrap_or(1000));
        };
        let measuring = node.measure_speed(PublicKey::from(broker), direction, say);
        let speed = tokio::select! {
            speed = measuring => speed.map_err(|source| BenchError::Network {
                broker: broker.short(),
                source,
            })?,
            () = watch.until_stopped() => return Err(BenchError::Stopped),
        };
        say(1000);
        Ok(Outcome {
            quantity,
            value: speed.kilobits_per_second(),
            method: Text::cut("feira-speed"),
            version: 1,
            at: clock::wall(),
            on: broker.to_string(),
            software: false,
        })
    };
    Ok([
        one(Direction::Down, Quantity::Download, 0).await?,
        one(Direction::Up, Quantity::Upload, 1).await?,
    ])
}
