//! Every rule of the host agent: who holds which resource, what a broker's goal asks for, what each
//! lease's container should be doing, what is offered and what is metered.
//!
//! Nothing here reads a clock, a file, a socket or the engine; `now` is an argument, and what should
//! change comes back as [`leases::Change`]s that are on disk before they are applied.
//!
//! * [`lease`]: the record of one lease, with the drawing of its states.
//! * [`capacity`]: resources, their epochs and their holders.
//! * [`leases`]: all records together; how a change is applied.
//! * [`award`]: whether a match that a broker sent may be believed.
//! * [`goal`]: what a broker's goal changes.
//! * [`reconcile`]: what the containers that are there change. [`work`]: what to do about the difference.
//! * [`report`]: what is said to the broker about each lease.
//! * [`notice`]: when a container that has to go was told, and when it is stopped.
//! * [`health`]: what a fault of a GPU stops, and what is not leased for one.
//! * [`tally`]: how much of the time each GPU was leased.
//! * [`meter`], [`traffic`]: how long a container ran, and what crossed its network interfaces.
//! * [`offer`]: what is sold, at what price. [`slices`]: which GPUs are sold in slices, and what is done for it.

pub mod lease;

pub mod capacity;
pub mod leases;

pub mod award;
pub mod goal;
pub mod health;
pub mod notice;
pub mod reconcile;
pub mod report;
pub mod work;

pub mod bench;
pub mod meter;
pub mod offer;
pub mod tally;
pub mod traffic;

pub mod slices;

mod room;
mod sold;

#[cfg(test)]
pub(crate) mod tests;
