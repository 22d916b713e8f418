//! The stage for end-to-end tests: real programs as processes, a real engine, a network that can be cut.
//!
//! Nothing here decides what is right; suites under `tests/` do. Everything a [`stage::Stage`] starts is
//! stopped by its process id when it is dropped, and lives under one temporary folder.

#![expect(
    clippy::expect_used,
    reason = "a stage that cannot be set fails the test that asked for it"
)]

pub mod gpu_engine;
pub mod liar;
pub mod machine;
pub mod market;
pub mod programs;
pub mod proxy;
pub mod renter;
pub mod stage;
pub mod world;
