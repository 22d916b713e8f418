//! The host agent: measures its machine, offers it to brokers, and runs what renters ordered.
//!
//! ```text
//!   main ─▶ commands ─▶ agent ─▶ runtime, access, hardware, journal ─▶ the machine
//!                         │
//!                         ▼
//!                       core ─▶ protocol's pure half        core never points back
//! ```
//!
//! The program is a thin shell over [`commands::run`]; tests start [`agent::Agent`]s.

pub mod args;
pub mod commands;
pub mod program;

pub mod agent;
pub mod core;

pub mod access;
pub mod bench;
pub mod hardware;
pub mod journal;
pub mod runtime;

pub mod admin;
pub mod clock;
pub mod config;
pub mod metrics;
pub mod version;
pub mod wishes;
