//! Machines with GPUs, from the driver's library to the receipt: the real broker, agent and renter's program on a real
//! engine, with a stand-in for NVIDIA's libraries alone. What only a GPU can show is in the README.
//!
//! * [`slices`]: slices as goods: priced, rented, cut, ended. [`exclusion`]: a GPU whole or in slices, and for one broker.
//!   [`layouts`]: fixed layouts, restarts, reboots, the plan. [`bids`]: bids and interruptible work on slices.
//! * [`threats`]: rows of the threat model, and which test holds each.
//! * [`complaints`]: what users of other markets complain about, and which test shows that it is not so here.

#![cfg(test)]

mod play;

mod bids;
mod exclusion;
mod layouts;
mod slices;

mod complaints;
mod threats;
