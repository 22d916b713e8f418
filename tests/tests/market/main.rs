//! The whole market with the real programs and the real engine, as their users type it: bids, interruptible
//! leases, prepaid terms, what operators do with money, and what is refused.

#![cfg(test)]

mod bad_input;
mod contracts;
mod operator;
mod outbid;
mod play;
mod reserved;
