//! The agent as its brokers, its owner and its engine see it: over a real network, on an engine that is not
//! there, killed wherever it hurts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod broker;
mod world;

mod benches;
mod card;
mod faults;
mod gpus;
mod health;
mod leaving;
mod lives;
mod owner;
mod restarts;
mod slices;
