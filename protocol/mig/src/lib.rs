//! Slices of a GPU as goods: which there are, where they fit, what they cost, what they are called.
//!
//! Pure: no socket, file, clock, environment, task or lock. The driver on the host is the authority on
//! what its GPU can be cut into; the tables in here let a broker check what a host says.

pub mod name;

pub mod chip;
pub mod layout;

pub mod board;
pub mod lost;
pub mod plan;
pub mod price;

pub mod amd;
