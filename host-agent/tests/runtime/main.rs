//! The runtime and the tunnels on a real engine, with images of a real registry.

mod access;
mod engine;
mod life;
mod pull;
mod restart;
mod sandbox;
