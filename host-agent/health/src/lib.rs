//! The health of a machine's GPUs, as rules: what an error means, whom it concerns, what has to be done before a GPU
//! may be leased again, and what is done with it between two leases. Nothing here reads a clock, a file or a GPU:
//! [`health::Health::decide`] turns what was heard into acts, and the agent does them.
//!
//! * [`health`]: all of it together. `fitness`: what may be leased. [`input`]: what is heard, and what is to be done. `turn`: a decision while it is made.
//! * [`xid`]: NVIDIA's numbers of errors, as a table. [`log`]: lines of the kernel's log. `strike`: one error, judged.
//!   `verdict`: what the driver itself wants done. `hive`: GPUs that are linked.
//! * [`machine`]: what fails together, and who has what. [`mod@unit`]: what is known of one GPU.
//! * [`between`]: the cleaning between two leases. `tenants`: when it or a test begins. [`reset`]: when a reset may; `resets`: when it does.
//! * [`counters`]: memory errors, compared. [`clocks`]: how fast a GPU runs.

extern crate protocol_pure as protocol;

mod fitness;
pub mod health;
pub mod input;
mod turn;

mod hive;
pub mod log;
mod strike;
mod verdict;
pub mod xid;

pub mod machine;
pub mod unit;

pub mod between;
pub mod reset;
mod resets;
mod tenants;

pub mod clocks;
pub mod counters;

#[cfg(test)]
mod tests;
