//! Fill, Hold, Audit: the proof that a GPU has the arithmetic, the memory and the bandwidth it is sold for.
//!
//! A verifier sends a seed; the prover fills the device's memory with tiles `D_t = S[(A_t · B_t) mod 251]`,
//! which take 2K operations per byte to make ([`row`], [`substitution`]). Then a fresh key starts rounds, in
//! each of which every row is hashed ([`hash`]) into a tree ([`tree`]) whose root makes the next round's key
//! ([`chain`]). Both steps have a time in which only hardware of the class can do them. At last some rows of
//! some rounds are shown and computed again. A prover that did not hold a part μ of the rows when they were
//! hashed passes with probability at most (1−μ)^s for s rows.
//!
//! All arithmetic is exact in integers, so every device gives the same bits, and comparison is `==`.
//!
//! Pure: no clock, no socket, no file; times and randomness are arguments. A broker speaks through
//! [`verifier`], a prover program through [`prover`]; [`transcript`] is what is kept, and anyone can judge it
//! again. What the proof does not show: that it is one card and not two, that the renter gets the same card an
//! hour later, that it is not relayed to a genuine card elsewhere.

pub mod class;

pub mod frame;
pub mod message;

mod keystream;
pub mod substitution;

pub mod row;

pub mod hash;
pub mod tree;

pub mod chain;

pub mod conversation;
pub mod judge;
pub mod transcript;
pub mod verifier;

pub mod processor;
pub mod prover;

#[cfg(test)]
mod fixtures;
