//! The rules of the market, pure: no socket, file, clock, environment, task or lock; `now` and keys are
//! arguments.
//!
//! ```text
//! Command ─▶ desk: decide ─▶ Event ─▶ (the caller records it) ─▶ market: apply ─▶ view ─▶ Answer
//!              │     └─ order, command, report, check       decides, and changes nothing
//!              └─ book, meters ahead of the journal         soft: gone after a restart, and rebuilt
//! ```
//!
//! Every kind of contract is an order that becomes an event that makes a lease, now or after it waited:
//!
//! ```text
//! order ─▶ placing: which offer ─▶ capacity: which GPUs ─▶ auction: who goes for them
//!              │                      └─ pools: CPU, RAM, disk; packing: which slice of which GPU
//!              └─ claiming: the match, or an order that waits (rest, waiting)
//! after each event: following ─▶ matching: who is next ─▶ placing, resume; eviction: notice
//! ```

pub mod settings;

pub mod command;
pub mod event;

pub mod ledger;

pub mod charge;
pub mod meter;

pub mod lease;
pub mod market;
pub mod reliability;
pub mod rest;
pub mod seen;
pub mod state;

pub mod book;

mod acquaintance;
mod decision;
pub mod desk;
mod soft;

mod claiming;
mod order;
mod placing;

mod auction;
pub mod available;
mod capacity;
mod eviction;
mod following;
mod matching;
mod packing;
mod pools;
mod resume;
mod settling;
mod waiting;

pub(crate) mod accounts;
mod check;
mod lease_command;
mod rebid;
mod report;
mod settle;
mod term;

pub mod payment;
pub mod proofs;
pub mod ripening;

pub mod goal;
pub mod overview;
mod rest_view;
pub mod view;

pub use market::Market;

#[cfg(test)]
pub(crate) mod tests;
