//! The canonical text of a filter: what it says when it is printed, and what reads back as itself.

use super::field::{Field, Kind, Unit};
use super::number::show_scaled;
use super::{Comparison, Direction, Filter, SortKey, Term, Test, Value};
use std::fmt;

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{term}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field();
        match self.test() {
            Test::Compare(comparison, value) => {
                write!(f, "{}{comparison}{}", field.name(), shown(field, value))
            }
            Test::In(values) => write!(f, "{} in {}", field.name(), list(field, values)),
            Test::NotIn(values) => write!(f, "{} notin {}", field.name(), list(field, values)),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::AtLeast => ">=",
            Self::More => ">",
        })
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for SortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.direction {
            Direction::Ascending => "",
            Direction::Descending => "-",
        };
        write!(f, "{}{sign}", self.field.name())
    }
}

fn list(field: Field, values: &[Value]) -> String {
    let shown: Vec<String> = values.iter().map(|value| shown(field, value)).collect();
    format!("[{}]", shown.join(","))
}

fn shown(field: Field, value: &Value) -> String {
    match value {
        Value::Number(number) => match field.info().kind {
            Kind::Number(unit) => shown_number(unit, *number),
            Kind::Flag
            | Kind::Version
            | Kind::Capability
            | Kind::Choice(_)
            | Kind::Profile
            | Kind::Model
            | Kind::Words
            | Kind::Id(_) => number.to_string(),
        },
        Value::Text(text) => {
            if text.contains(['[', ']', ',', '=', '<', '>', '!']) {
                format!("\"{text}\"")
            } else {
                text.to_string()
            }
        }
        Value::Flag(flag) => flag.to_string(),
        Value::Version(version) => shown_version(version),
    }
}

fn shown_number(unit: Unit, number: i64) -> String {
    // What is no decimal number of the unit is shown in base units: `3600s`, `1b`.
    show_scaled(number, unit.scale()).unwrap_or_else(|| {
        let base = unit.suffixes().iter().find(|(_, scale)| *scale == 1);
        format!("{number}{}", base.map_or("", |(suffix, _)| suffix))
    })
}

/// At least two numbers, and no zeros behind them.
fn shown_version(version: &[u32; 4]) -> String {
    let used = 4 - version.iter().rev().take_while(|part| **part == 0).count();
    let parts: Vec<String> = version
        .iter()
        .take(used.max(2))
        .map(u32::to_string)
        .collect();
    parts.join(".")
}
