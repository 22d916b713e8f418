//! The rules of the market, pure: no socket, file, clock, environment, task or lock; `now` and keys are
//! arguments.
//!
//! ```text
//! Command ─▶ desk: decide ─▶ Event ─▶ (the caller records it) ─▶ market: apply ─▶ view ─▶ Answer
//!              │     └─ order, command, report, check       decides, and changes nothing
//!              └─ book, meters ahead of the journal         soft: gone after a restart, and rebuilt
//! ```
//!
//! Every kind of contract is an order that becomes an event that makes a lease. Bids, interruptible and
//! reserved contracts join as variants of [`protocol::terms::ContractKind`], decide in a file of their own
//! beside `order`, and keep their resting bids in [`market::Market`]; meters, charges and ledger serve them
//! as they are.

pub mod settings;

pub mod command;
pub mod event;

pub mod ledger;

pub mod charge;
pub mod meter;

pub mod lease;
pub mod market;
pub mod rest;
pub mod seen;
pub mod state;

pub mod book;

mod check;
mod decision;
pub mod desk;
mod lease_command;
mod order;
mod report;
mod settle;
mod soft;
mod term;

pub mod goal;
pub mod overview;
pub mod view;

pub use market::Market;

#[cfg(test)]
pub(crate) mod tests;
