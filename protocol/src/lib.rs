//! What Feira's programs say to each other, and the rules that more than one of them must compute alike.
//!
//! Everything outside [`net`] is pure: no socket, file, clock, environment, task or lock; `now` and
//! randomness are arguments. [`net`] (feature `net`) is the one libp2p node that all programs use;
//! [`operator`] (feature `operator`) is what the programs that run all day have in common around it.

pub mod ids;
pub mod units;
pub mod whole;

pub mod abridged;
pub mod bounded;
pub mod codec;
pub mod signed;

pub mod machine;
pub mod terms;

pub mod catalogue;
pub mod cost;
pub mod filter;
pub mod job;
pub mod offer;
pub mod order;

pub mod lease;
pub mod reliability;
pub mod usage;
pub mod verify;

pub mod message;
pub mod names;
pub mod tunnel;

#[cfg(feature = "net")]
pub mod net;

#[cfg(feature = "operator")]
pub mod operator;
