//! The agent's edge to NVIDIA's library, with the stand-in library loaded as the real one is, in real processes:
//! what is read, what is told, and what happens when a GPU hangs, crashes its process, or goes away.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod machine;
mod reading;
mod slices;
mod trouble;
