//! The rules of the market, held to their numbers and to their tables.

mod lifecycle;
mod money;
mod refusals;
mod replay;
mod vectors;
pub(crate) mod world;
