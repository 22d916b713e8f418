//! Whole proofs, with the reference device, devices that cheat, and cards whose times are modelled.
#![cfg(test)]

mod cards;
mod cheats;
mod forged;
mod play;
