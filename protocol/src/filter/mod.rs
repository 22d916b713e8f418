//! Search expressions: what a renter wants of an offer, parsed and checked once, evaluated alike by broker
//! and client.

use crate::bounded::{List, Text};
use serde::{Deserialize, Serialize};

/// Most terms of one filter.
pub const TERMS_MAX: usize = 32;

/// All terms must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// The terms, in the order in which they were written.
    pub terms: List<Term, TERMS_MAX>,
}

/// One condition on one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// The field.
    pub field: Field,
    /// What must hold of it.
    pub test: Test,
}

/// A field that an offer can be searched and sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Field {
    /// Model of the GPUs, `RTX_4090` form; `none` on a CPU machine.
    GpuName,
    /// Number of GPUs.
    NumGpus,
    /// All-in price of an hour with the asked disk, µ$.
    DphTotal,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `>=`
    AtLeast,
    /// `>`
    More,
}

/// What must hold of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Test {
    /// Compared with one value.
    Compare(Comparison, Value),
    /// One of these.
    In(List<Value, 32>),
    /// None of these.
    NotIn(List<Value, 32>),
}

/// A value in the field's own unit; no floats.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Value {
    /// A number in the field's base unit (bytes, millicores, µ$, …; see the field).
    Number(i64),
    /// A text, compared without case, spaces as `_`.
    Text(Text<64>),
    /// Yes or no.
    Flag(bool),
    /// A version: up to four numbers.
    Version([u32; 4]),
}

/// What to order offers by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SortKey {
    /// The field.
    pub field: Field,
    /// Which end first.
    pub direction: Direction,
}

/// Which end comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Direction {
    /// The smallest.
    Ascending,
    /// The largest.
    Descending,
}

/// What one term did to a search that found nothing (or little).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elimination {
    /// Index of the term in the filter.
    pub term: u8,
    /// Offers that fail this term.
    pub eliminated: u32,
    /// Offers that would match if this term alone were taken away.
    pub without_it: u32,
}
