//! The broker: it matches orders with offers, holds the money, meters the leases and keeps the record.
//!
//! ```text
//! main ─▶ commands ─▶ server ─▶ api ─▶ market (one thread) ─▶ core, store      core never points back
//!                       ├─▶ goals, watches     what goes out by itself
//!                       ├─▶ verify ─▶ market   hardware is put to the proof
//!                 │     └─▶ admin, health      the operator's socket, the metrics page
//!                 └─▶ simulate ─▶ core           scenarios, without any of the rest
//! ```
//!
//! The program is a thin shell over [`commands::run`]; tests start [`server::Server`]s.

pub mod args;
pub mod commands;
pub mod program;

pub mod clock;
pub mod config;
pub mod ports;

pub mod server;

pub mod admin;
pub mod api;
mod goals;
mod health;
pub mod metrics;
pub mod verify;
mod watches;

pub mod core;
pub mod market;
pub mod simulate;
pub mod store;
