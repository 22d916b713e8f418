//! The host agent: measures its machine, offers it to brokers, and runs what renters ordered.
//!
//! ```text
//!   main ─▶ commands ─▶ agent ─▶ runtime, access, hardware, journal ─▶ the machine
//!                         │
//!                         ▼
//!                       core ─▶ protocol's pure half        core never points back
//! ```

pub mod core;

pub mod hardware;
pub mod journal;
pub mod runtime;

pub mod clock;
