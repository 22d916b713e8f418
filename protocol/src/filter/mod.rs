//! Search expressions: what a renter wants of an offer, parsed and checked once, evaluated alike by broker
//! and client.
//!
//! A [`Filter`] that exists is well formed, also one that came over the wire: every term's test fits its
//! field, so evaluation has no errors. Must not know where offers are kept, or how many there are.

mod distance;
mod evaluate;
mod explain;
mod facts;
mod field;
mod model;
mod number;
mod numbers;
mod parse;
mod problem;
mod profile;
mod show;
mod table;
mod value;

pub use evaluate::{Failed, Prepared, compare};
pub use explain::Explanation;
pub use facts::{Fact, Facts, Rank};
pub use field::{Field, FieldInfo, Kind, NotKnown, Unfound, Unit, fields, find_field};
pub use model::{ModelName, gigabytes_as_sold};
pub use parse::parse_sort;
pub use problem::{EXPRESSION_BYTES_MAX, ParseError, ParseProblem};
pub use value::ValueProblem;

use crate::bounded::{List, Text};
use crate::units::MicroUsd;
use serde::{Deserialize, Serialize};

/// Most terms of one filter.
pub const TERMS_MAX: usize = 32;
/// Most values of one list.
pub const VALUES_MAX: usize = 32;

/// All terms must hold, of whole GPUs unless one of them is about `partition`. Written as
/// `gpu_name=RTX_4090 num_gpus>=2 dph_total<0.5`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// The terms, in the order in which they were written.
    pub terms: List<Term, TERMS_MAX>,
}

/// One condition on one field, whose test fits that field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TermAsSent")]
pub struct Term {
    field: Field,
    test: Test,
}

/// What must hold of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Test {
    /// Compared with one value.
    Compare(Comparison, Value),
    /// One of these.
    In(List<Value, VALUES_MAX>),
    /// None of these.
    NotIn(List<Value, VALUES_MAX>),
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

/// A value in the field's base unit ([`Unit`] says which); no floats.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Value {
    /// A number of base units.
    Number(i64),
    /// A text in the form that [`Term::new`] gives it: one case, `_` for spaces.
    Text(Text<64>),
    /// Yes or no.
    Flag(bool),
    /// A version: up to four numbers, missing ones zero.
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

/// Which end comes first. What is not known comes last either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Direction {
    /// The smallest.
    Ascending,
    /// The largest.
    Descending,
}

/// What one term did to a search that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elimination {
    /// Index of the term in the filter.
    pub term: u8,
    /// Offers that fail this term.
    pub eliminated: u32,
    /// Offers that would match if this term alone were taken away.
    pub without_it: u32,
    /// The lowest all-in price of an hour among those.
    pub cheapest: Option<MicroUsd>,
}

impl Term {
    /// A term, with its values in the field's own form.
    ///
    /// # Errors
    /// When the comparison or a value does not fit the field.
    pub fn new(field: Field, test: Test) -> Result<Self, ValueProblem> {
        let kind = field.info().kind;
        let test = match test {
            Test::Compare(comparison, value) => {
                if !comparison.is_equality() && !kind.is_ordered() {
                    return Err(ValueProblem::NoOrder { field });
                }
                Test::Compare(comparison, value::checked(field, value)?)
            }
            Test::In(values) => Test::In(checked_list(field, values)?),
            Test::NotIn(values) => Test::NotIn(checked_list(field, values)?),
        };
        if field == Field::Partition && !profile::is_sound(&test) {
            let text = profile::EITHER.to_owned();
            return Err(ValueProblem::Wrong { field, text });
        }
        Ok(Self { field, test })
    }

    /// A comparison with a value as a person writes it, in the field's own unit.
    ///
    /// # Errors
    /// When the comparison or the value does not fit the field.
    pub fn compare(
        field: Field,
        comparison: Comparison,
        value: &str,
    ) -> Result<Self, ValueProblem> {
        Self::new(field, Test::Compare(comparison, value::read(field, value)?))
    }

    /// One of some values as a person writes them.
    ///
    /// # Errors
    /// When there are none or too many, or one does not fit the field.
    pub fn one_of(field: Field, values: &[&str]) -> Result<Self, ValueProblem> {
        let read: Result<Vec<_>, _> = values.iter().map(|text| value::read(field, text)).collect();
        let values = List::new(read?).map_err(|_| ValueProblem::TooManyValues)?;
        Self::new(field, Test::In(values))
    }

    /// What it is about.
    #[must_use]
    pub const fn field(&self) -> Field {
        self.field
    }

    /// What must hold.
    #[must_use]
    pub const fn test(&self) -> &Test {
        &self.test
    }
}

impl Filter {
    /// A filter of these terms.
    ///
    /// # Errors
    /// When there are more than [`TERMS_MAX`].
    pub fn of(terms: Vec<Term>) -> Result<Self, ParseProblem> {
        Ok(Self {
            terms: List::new(terms).map_err(|_| ParseProblem::TooManyTerms)?,
        })
    }
}

impl Comparison {
    /// Whether it asks for sameness alone, which every field has.
    #[must_use]
    pub const fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }
}

/// A term as it crosses the wire, before its test is held against its field.
#[derive(Deserialize)]
struct TermAsSent {
    field: Field,
    test: Test,
}

impl TryFrom<TermAsSent> for Term {
    type Error = ValueProblem;

    fn try_from(sent: TermAsSent) -> Result<Self, ValueProblem> {
        let checked = Self::new(sent.field, sent.test.clone())?;
        // One condition has one form, so that it has one digest and is shown as it was sent.
        if checked.test != sent.test {
            return Err(ValueProblem::OtherForm { field: sent.field });
        }
        Ok(checked)
    }
}

fn checked_list(
    field: Field,
    values: List<Value, VALUES_MAX>,
) -> Result<List<Value, VALUES_MAX>, ValueProblem> {
    if values.is_empty() {
        return Err(ValueProblem::NoValues { field });
    }
    let checked: Result<Vec<_>, _> = values
        .into_vec()
        .into_iter()
        .map(|value| value::checked(field, value))
        .collect();
    List::new(checked?).map_err(|_| ValueProblem::TooManyValues)
}
