//! What can be wrong with a search expression, where, and what to do about it.

use super::Comparison;
use super::field::{NotKnown, find_field};
use super::value::ValueProblem;

/// Longest expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 4096;

/// Where an expression cannot be read, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (at character {at})")]
pub struct ParseError {
    /// Number of the character, from 1.
    pub at: usize,
    /// What is wrong there.
    #[source]
    pub problem: ParseProblem,
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseProblem {
    /// There is no such field.
    #[error("unknown field '{name}'")]
    UnknownField {
        /// What was written.
        name: String,
        /// The field that was perhaps meant.
        similar: Option<&'static str>,
    },
    /// The field exists elsewhere, and cannot be answered here.
    #[error("'{name}' cannot be searched by: {}", .known.why)]
    NotKnown {
        /// What was written.
        name: String,
        /// Why not, and what to use.
        known: &'static NotKnown,
    },
    /// A field's name is wanted here.
    #[error("a field was expected, not '{found}'")]
    NoField {
        /// What is there.
        found: String,
    },
    /// There is a field and nothing to do with it.
    #[error("'{field}' needs an operator and a value, like {field}=…")]
    NoOperator {
        /// The field.
        field: String,
    },
    /// An operator that does not exist.
    #[error("unknown operator '{operator}': there are < <= = != >= > in notin")]
    UnknownOperator {
        /// What was written.
        operator: String,
    },
    /// Nothing behind an operator.
    #[error("'{field}' has an operator and no value behind it")]
    NoValue {
        /// The field.
        field: String,
    },
    /// A list without end.
    #[error("the list is not closed: ']' is missing")]
    OpenList,
    /// A quoted text without end.
    #[error("the quoted text is not closed: {quote} is missing")]
    OpenQuote {
        /// The quote it began with.
        quote: char,
    },
    /// Values with commas and without brackets.
    #[error("several values are written as a list: {field} in [{values}]")]
    BareList {
        /// The field.
        field: String,
        /// What was written.
        values: String,
    },
    /// A list where one value is wanted.
    #[error("a list goes with in and notin, not with '{operator}'")]
    ListNotWanted {
        /// The operator.
        operator: Comparison,
    },
    /// A value that does not fit.
    #[error(transparent)]
    Value(#[from] ValueProblem),
    /// Too many terms.
    #[error("more than {} conditions", super::TERMS_MAX)]
    TooManyTerms,
    /// Too many keys to sort by.
    #[error("more than 4 fields to sort by")]
    TooManyKeys,
    /// Too long altogether.
    #[error("the expression is longer than {EXPRESSION_BYTES_MAX} bytes")]
    TooLong,
}

impl ParseProblem {
    /// What to do about it, in words, if there is something.
    #[must_use]
    pub fn tip(&self) -> Option<String> {
        match self {
            Self::UnknownField {
                similar: Some(name),
                ..
            } => {
                let field = find_field(name).ok()?;
                let info = field.info();
                let others: Vec<&str> = std::iter::once(info.name)
                    .chain(info.aliases.iter().copied())
                    .filter(|other| other != name)
                    .collect();
                let also = if others.is_empty() {
                    String::new()
                } else {
                    format!(" (here also: {})", others.join(", "))
                };
                Some(format!("a similar field exists: '{name}'{also}"))
            }
            Self::NotKnown { known, .. } => known
                .instead
                .map(|name| format!("'{name}' comes nearest to it")),
            Self::UnknownField { similar: None, .. }
            | Self::NoField { .. }
            | Self::NoOperator { .. }
            | Self::UnknownOperator { .. }
            | Self::NoValue { .. }
            | Self::OpenList
            | Self::OpenQuote { .. }
            | Self::BareList { .. }
            | Self::ListNotWanted { .. }
            | Self::Value(_)
            | Self::TooManyTerms
            | Self::TooManyKeys
            | Self::TooLong => None,
        }
    }
}
