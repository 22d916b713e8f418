//! The language of search expressions, Vast's: `field op value …`, with lists, quoted texts and words for
//! operators.
//!
//! Reading is total: whatever the text, the answer is a filter or an error that says where and what. What
//! Vast lets pass with a warning (an unknown field, a value that is none) is an error here.

use super::field::{Field, Unfound, find_field};
use super::problem::{EXPRESSION_BYTES_MAX, ParseError, ParseProblem};
use super::profile::EITHER;
use super::value::{self, ValueProblem};
use super::{Comparison, Direction, Filter, SortKey, Term, Test, VALUES_MAX, Value};
use crate::bounded::List;
use std::str::FromStr;

impl FromStr for Filter {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut reader = Reader { text, at: 0 };
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(reader.error(0, ParseProblem::TooLong));
        }
        let mut terms = Vec::new();
        while reader.skip_blanks() {
            let start = reader.at;
            terms.extend(reader.term()?);
            if terms.len() > super::TERMS_MAX {
                return Err(reader.error(start, ParseProblem::TooManyTerms));
            }
        }
        Self::of(terms).map_err(|problem| reader.error(0, problem))
    }
}

/// Keys to sort by: fields with commas between, each with `-` behind it for the largest first.
///
/// # Errors
/// When one is not a field, or there are more than four.
pub fn parse_sort(text: &str) -> Result<List<SortKey, 4>, ParseError> {
    let reader = Reader { text, at: 0 };
    let mut keys = Vec::new();
    let mut at = 0;
    for part in text.split(',') {
        let (name, direction) = match part.trim() {
            name if name.ends_with('-') => (&name[..name.len() - 1], Direction::Descending),
            name => (name.strip_suffix('+').unwrap_or(name), Direction::Ascending),
        };
        let field = known_field(name.trim()).map_err(|problem| reader.error(at, problem))?;
        keys.push(SortKey { field, direction });
        at += part.len() + 1;
    }
    List::new(keys).map_err(|_| reader.error(0, ParseProblem::TooManyKeys))
}

fn known_field(name: &str) -> Result<Field, ParseProblem> {
    find_field(name).map_err(|unfound| match unfound {
        Unfound::NotKnown(known) => ParseProblem::NotKnown {
            name: name.to_owned(),
            known,
        },
        Unfound::Unknown(similar) => ParseProblem::UnknownField {
            name: name.to_owned(),
            similar,
        },
    })
}

/// What stands between a field and its value.
#[derive(Clone, Copy)]
enum Operator {
    Compare(Comparison),
    In,
    NotIn,
}

impl Operator {
    fn named(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "<" | "lt" => Self::Compare(Comparison::Less),
            "<=" | "=<" | "lte" | "le" => Self::Compare(Comparison::AtMost),
            "=" | "==" | "eq" => Self::Compare(Comparison::Equal),
            "!=" | "<>" | "neq" | "ne" => Self::Compare(Comparison::NotEqual),
            ">=" | "=>" | "gte" | "ge" => Self::Compare(Comparison::AtLeast),
            ">" | "gt" => Self::Compare(Comparison::More),
            "in" => Self::In,
            "notin" | "nin" => Self::NotIn,
            _ => return None,
        })
    }
}

/// A value as it stands in the text.
enum Written<'a> {
    One(&'a str),
    List(Vec<&'a str>),
}

/// A place in a text. `at` is always on the boundary of a character.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn error(&self, byte: usize, problem: ParseProblem) -> ParseError {
        let at = self
            .text
            .get(..byte)
            .map_or(0, |before| before.chars().count())
            + 1;
        ParseError { at, problem }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Whether something other than blanks is left.
    fn skip_blanks(&mut self) -> bool {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        !self.rest().is_empty()
    }

    /// Takes as many characters as `wanted` holds for.
    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// One condition, or nothing where any value will do; that may be said of every field that is known
    /// anywhere, as Vast's users say it to be rid of a default.
    fn term(&mut self) -> Result<Option<Term>, ParseError> {
        let start = self.at;
        let name = self.take(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.'));
        if name.is_empty() {
            let found = self.take(|c| !c.is_whitespace()).to_owned();
            return Err(self.error(start, ParseProblem::NoField { found }));
        }
        let field = known_field(name);
        if let Err(problem @ ParseProblem::UnknownField { .. }) = field {
            return Err(self.error(start, problem));
        }
        self.skip_blanks();
        let operator_at = self.at;
        let operator = self.operator(name)?;
        let value_at = if self.skip_blanks() {
            self.at
        } else {
            self.text.len()
        };
        let written = self.value(name)?;
        if is_any(&written) && !matches!(field, Ok(Field::Partition)) {
            return Ok(None);
        }
        let field = field.map_err(|problem| self.error(start, problem))?;
        let test = if is_any(&written) {
            // Without a word on slices none are looked at, so this is a condition of its own.
            let either = value::read(field, EITHER);
            let either = either.map_err(|problem| self.error(value_at, problem.into()))?;
            Test::Compare(Comparison::Equal, either)
        } else {
            self.test(field, operator, &written, (operator_at, value_at))?
        };
        Term::new(field, test)
            .map(Some)
            .map_err(|problem| self.error(operator_at, problem.into()))
    }

    fn operator(&mut self, field: &str) -> Result<Operator, ParseError> {
        let start = self.at;
        let mut word = self.take(|c| matches!(c, '<' | '=' | '>' | '!' | '~' | ':'));
        if word.is_empty() {
            word = self.take(char::is_alphabetic);
        }
        if word.is_empty() {
            let field = field.to_owned();
            return Err(self.error(start, ParseProblem::NoOperator { field }));
        }
        if word.eq_ignore_ascii_case("not") {
            self.skip_blanks();
            let second = self.take(char::is_alphabetic);
            match second.to_ascii_lowercase().as_str() {
                "in" => return Ok(Operator::NotIn),
                "eq" => return Ok(Operator::Compare(Comparison::NotEqual)),
                _ => {}
            }
        }
        Operator::named(word).ok_or_else(|| {
            let operator = word.to_owned();
            self.error(start, ParseProblem::UnknownOperator { operator })
        })
    }

    fn value(&mut self, field: &str) -> Result<Written<'a>, ParseError> {
        let start = self.at;
        match self.rest().chars().next() {
            None => Err(self.error(
                start,
                ParseProblem::NoValue {
                    field: field.to_owned(),
                },
            )),
            Some('[') => self.list(field).map(Written::List),
            Some(quote @ ('"' | '\'')) => self.quoted(field, quote).map(Written::One),
            Some(_) => {
                let word = self.take(|c| !c.is_whitespace());
                if let Some(values) = word.contains(',').then(|| word.trim_matches(',')) {
                    let (field, values) = (field.to_owned(), values.to_owned());
                    return Err(self.error(start, ParseProblem::BareList { field, values }));
                }
                Ok(Written::One(word))
            }
        }
    }

    fn quoted(&mut self, field: &str, quote: char) -> Result<&'a str, ParseError> {
        let start = self.at;
        self.at += quote.len_utf8();
        let inside = self.take(|c| c != quote);
        if self.rest().is_empty() {
            return Err(self.error(start, ParseProblem::OpenQuote { quote }));
        }
        self.at += quote.len_utf8();
        if inside.trim().is_empty() {
            return Err(self.error(
                start,
                ParseProblem::NoValue {
                    field: field.to_owned(),
                },
            ));
        }
        Ok(inside)
    }

    fn list(&mut self, field: &str) -> Result<Vec<&'a str>, ParseError> {
        let start = self.at;
        self.at += 1;
        let mut values = Vec::new();
        loop {
            if !self.skip_blanks() {
                return Err(self.error(start, ParseProblem::OpenList));
            }
            let before = self.at;
            match self.rest().chars().next() {
                Some(quote @ ('"' | '\'')) => values.push(self.quoted(field, quote)?),
                _ => {
                    let word = self.take(|c| !matches!(c, ',' | ']')).trim();
                    if word.is_empty() && self.rest().starts_with(',') {
                        let field = field.to_owned();
                        return Err(self.error(before, ParseProblem::NoValue { field }));
                    }
                    values.extend(Some(word).filter(|word| !word.is_empty()));
                }
            }
            self.skip_blanks();
            match self.rest().chars().next() {
                Some(',') => self.at += 1,
                Some(']') => {
                    self.at += 1;
                    return Ok(values);
                }
                _ => return Err(self.error(start, ParseProblem::OpenList)),
            }
        }
    }

    fn test(
        &self,
        field: Field,
        operator: Operator,
        written: &Written<'_>,
        (operator_at, value_at): (usize, usize),
    ) -> Result<Test, ParseError> {
        let read = |text: &str| {
            value::read(field, text).map_err(|problem| self.error(value_at, problem.into()))
        };
        let read_all = || {
            let texts: &[&str] = match written {
                Written::One(text) => &[*text],
                Written::List(texts) => texts,
            };
            let values: Result<Vec<Value>, _> = texts.iter().map(|text| read(text)).collect();
            List::<_, VALUES_MAX>::new(values?)
                .map_err(|_| self.error(value_at, ValueProblem::TooManyValues.into()))
        };
        match (operator, written) {
            (Operator::Compare(comparison), Written::One(text)) => {
                Ok(Test::Compare(comparison, read(text)?))
            }
            // A list behind `=` can only mean one of it, and is what several peers write.
            (Operator::In | Operator::Compare(Comparison::Equal), _) => read_all().map(Test::In),
            (Operator::NotIn | Operator::Compare(Comparison::NotEqual), _) => {
                read_all().map(Test::NotIn)
            }
            (Operator::Compare(operator), Written::List(_)) => {
                Err(self.error(operator_at, ParseProblem::ListNotWanted { operator }))
            }
        }
    }
}

fn is_any(written: &Written<'_>) -> bool {
    match written {
        Written::One(text) => value::is_wildcard(text.trim()),
        Written::List(texts) => texts.iter().any(|text| value::is_wildcard(text.trim())),
    }
}
