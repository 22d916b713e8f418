//! The market as a deterministic simulation: the broker's real core under a virtual clock, with renters and
//! hosts that do what a scenario says, and no network.
//!
//! ```text
//! scenario (JSON) ─▶ Scenario ─▶ City: steps, hosts' heartbeats and the desk's own moments, in one order
//!                                  │  every input goes through Desk::handle, announce and tick
//!                                  ▼
//!                                events ─▶ lines of JSON, and a summary at the end
//! ```
//!
//! The same scenario gives the same lines on every machine. Must not decide anything about the market.

mod actors;
mod city;
mod doing;
mod hosting;
mod lines;
mod recorder;
mod scenario;
mod slices;
mod steps;
mod summary;
#[cfg(test)]
mod tests;

pub use city::{Broken, City};
pub use scenario::{BadScenario, Scenario};
