//! The rules of the market, held to their numbers and to their tables.

mod hearing;
mod lifecycle;
mod money;
mod observer;
mod parties;
mod play;
mod refusals;
mod replay;
mod time;
mod vectors;
pub(crate) mod world;
