//! The rules of the market, held to their numbers and to their tables.

mod announcing;
mod bids;
mod convert;
mod failed_terms;
mod hearing;
mod honest;
mod kinds;
mod lifecycle;
mod money;
mod observer;
mod outbid;
mod parties;
mod play;
mod portions;
mod proofs;
mod refusals;
mod replay;
mod reversal;
mod ripening;
mod slices;
mod time;
mod vectors;
pub(crate) mod world;
