//! Proofs of hardware: which offer is put to the proof next, what is known of each device, and how far an offer is
//! proved by that. The proof itself is carried out by `verify`, as an ordinary lease of a renter whom nobody knows.
//!
//! ```text
//! schedule: who is next ─▶ (verify: lease, conversation, judgement) ─▶ a signed verdict ─▶ standing ─▶ level
//! ```
//!
//! Must not speak with anybody.

pub mod classes;
pub mod level;
pub mod schedule;
pub mod standing;

mod decide;
mod looking;

pub use decide::{ProofOrder, renter_key};
pub(in crate::core) use looking::host_proved;
pub use looking::{Assignment, DISK, Float, ProofRow, ProofRules, Proving};
