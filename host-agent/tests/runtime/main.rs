//! The runtime and the tunnels on a real engine, with images of a real registry.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod access;
mod engine;
mod gpus;
mod leaving;
mod life;
mod pull;
mod renter;
mod restart;
mod sandbox;
mod written;
