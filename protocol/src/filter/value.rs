//! Values of a field: read from what a person wrote, and brought into the one form that is sent and shown.
//!
//! Must not compare anything; that is `evaluate`'s.

use super::Value;
use super::field::{Field, Kind, Unit};
use super::number::{NumberProblem, read_scaled};
use super::profile;
use crate::bounded::Text;

/// Largest number that is compared with, in base units, in either direction.
const NUMBER_MAX: i64 = 1_000_000_000_000_000_000;

/// Why a value or a comparison does not fit its field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueProblem {
    /// Another kind of value is wanted.
    #[error("'{text}' is not a value of {}: {}", .field.name(), wanted(*.field))]
    Wrong {
        /// The field.
        field: Field,
        /// What was written.
        text: String,
    },
    /// A number with more places than the field has.
    #[error("'{text}' is finer than {} is counted: {}", .field.name(), finest(*.field))]
    TooFine {
        /// The field.
        field: Field,
        /// What was written.
        text: String,
    },
    /// A number below nothing.
    #[error("'{text}' is below nothing, and {} never is", .field.name())]
    Negative {
        /// The field.
        field: Field,
        /// What was written.
        text: String,
    },
    /// A number beyond all sense.
    #[error("'{text}' is more than {} can be", .field.name())]
    TooLarge {
        /// The field.
        field: Field,
        /// What was written.
        text: String,
    },
    /// A comparison by size of something that has none.
    #[error("{} has no order: only =, !=, in and notin can be used with it", .field.name())]
    NoOrder {
        /// The field.
        field: Field,
    },
    /// A list of nothing.
    #[error("the list of values for {} is empty", .field.name())]
    NoValues {
        /// The field.
        field: Field,
    },
    /// A list of too many.
    #[error("more than {} values in one list", super::VALUES_MAX)]
    TooManyValues,
    /// A message holds a value that is not in the one form of its field.
    #[error("the test of {} is not in its one form", .field.name())]
    OtherForm {
        /// The field.
        field: Field,
    },
}

/// The value that `text` is, in `field`'s own unit.
pub(super) fn read(field: Field, text: &str) -> Result<Value, ValueProblem> {
    let text = text.trim();
    let wrong = || ValueProblem::Wrong {
        field,
        text: text.to_owned(),
    };
    let value = match field.info().kind {
        Kind::Number(unit) => Value::Number(read_number(field, unit, text)?),
        Kind::Flag => Value::Flag(read_flag(text).ok_or_else(wrong)?),
        Kind::Version => Value::Version(read_version(text).ok_or_else(wrong)?),
        Kind::Capability => Value::Version(read_capability(text).ok_or_else(wrong)?),
        Kind::Choice(_) | Kind::Profile | Kind::Model | Kind::Words | Kind::Id(_) => {
            Value::Text(Text::new(text).map_err(|_| wrong())?)
        }
    };
    checked(field, value)
}

/// `value` in the one form that `field` has for it.
pub(super) fn checked(field: Field, value: Value) -> Result<Value, ValueProblem> {
    let shown = format!("{value:?}");
    match (field.info().kind, value) {
        (Kind::Number(_), Value::Number(number)) => {
            if number.unsigned_abs() > NUMBER_MAX.unsigned_abs() {
                return Err(ValueProblem::TooLarge {
                    field,
                    text: number.to_string(),
                });
            }
            Ok(Value::Number(number))
        }
        (Kind::Flag, Value::Flag(flag)) => Ok(Value::Flag(flag)),
        (Kind::Version, Value::Version(version)) => Ok(Value::Version(version)),
        (Kind::Capability, Value::Version([major, minor, 0, 0])) => {
            Ok(Value::Version([major, minor, 0, 0]))
        }
        (Kind::Profile, Value::Text(text)) => profile::value(field, &text),
        (Kind::Choice(_) | Kind::Model | Kind::Words | Kind::Id(_), Value::Text(text)) => {
            checked_text(field, &text)
        }
        (
            Kind::Number(_)
            | Kind::Flag
            | Kind::Version
            | Kind::Capability
            | Kind::Choice(_)
            | Kind::Profile
            | Kind::Model
            | Kind::Words
            | Kind::Id(_),
            _,
        ) => Err(ValueProblem::Wrong { field, text: shown }),
    }
}

fn checked_text(field: Field, text: &str) -> Result<Value, ValueProblem> {
    let wrong = || ValueProblem::Wrong {
        field,
        text: text.to_owned(),
    };
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c == '_')
        .filter(|part| !part.is_empty())
        .collect();
    let joined = words.join("_");
    // A quote could not be shown in quotes, and `any` would be read as no condition at all.
    let unshowable = joined.contains(['"', '\'']) || is_wildcard(&joined);
    let has_letters = joined.contains(|c: char| c.is_alphanumeric());
    if unshowable || !has_letters {
        return Err(wrong());
    }
    let form = match field.info().kind {
        Kind::Model => joined.to_ascii_uppercase(),
        Kind::Choice(choices) => {
            let lower = joined.to_ascii_lowercase();
            let chosen = if field == Field::CpuArch {
                architecture(&lower)
            } else {
                lower.as_str()
            };
            choices
                .iter()
                .find(|choice| **choice == chosen)
                .ok_or_else(wrong)?
                .to_string()
        }
        Kind::Id(prefix) => {
            let lower = joined.to_ascii_lowercase();
            let body = lower.strip_prefix(prefix).unwrap_or(&lower);
            if body.len() < 4 || !body.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Err(wrong());
            }
            format!("{prefix}{body}")
        }
        Kind::Words
        | Kind::Profile
        | Kind::Number(_)
        | Kind::Flag
        | Kind::Version
        | Kind::Capability => joined.to_ascii_lowercase(),
    };
    Ok(Value::Text(Text::new(form).map_err(|_| wrong())?))
}

/// What stands for every value, so for no condition.
pub(super) fn is_wildcard(text: &str) -> bool {
    text == "*" || text == "?" || text.eq_ignore_ascii_case("any")
}

/// Docker's and Vast's word for what the kernel calls `machine`.
pub(super) fn architecture(machine: &str) -> &'static str {
    match machine {
        "x86_64" | "x86-64" | "x64" | "amd64" => "amd64",
        "aarch64" | "arm64" => "arm64",
        _ => "other",
    }
}

fn read_number(field: Field, unit: Unit, text: &str) -> Result<i64, ValueProblem> {
    let lower = text.to_ascii_lowercase();
    let digits = if unit == Unit::Dollars {
        lower.strip_prefix('$').unwrap_or(&lower)
    } else {
        &lower
    };
    let is_suffix = |c: char| c.is_ascii_alphabetic() || c == '%';
    let number = digits.trim_end_matches(is_suffix);
    let suffix = &digits[number.len()..];
    let scale = if suffix.is_empty() {
        Some(unit.scale())
    } else {
        unit.suffixes()
            .iter()
            .find(|(name, _)| *name == suffix)
            .map(|(_, scale)| *scale)
    };
    let scale = scale.ok_or_else(|| ValueProblem::Wrong {
        field,
        text: text.to_owned(),
    })?;
    let number = number.trim_end();
    // There is no field of which there can be less than nothing; `-0` is a slip, and means nothing else.
    if number.starts_with('-') && read_scaled(number, scale) != Err(NumberProblem::Form) {
        let text = text.to_owned();
        return Err(ValueProblem::Negative { field, text });
    }
    read_scaled(number, scale).map_err(|problem| {
        let text = text.to_owned();
        match problem {
            NumberProblem::Form => ValueProblem::Wrong { field, text },
            NumberProblem::TooFine => ValueProblem::TooFine { field, text },
            NumberProblem::TooLarge => ValueProblem::TooLarge { field, text },
        }
    })
}

fn read_flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Up to four numbers with points between; a `v` in front does not matter.
fn read_version(text: &str) -> Option<[u32; 4]> {
    let digits = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let mut version = [0; 4];
    for (index, part) in digits.split('.').enumerate() {
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *version.get_mut(index)? = part.parse().ok()?;
    }
    Some(version)
}

/// `8.9` as NVIDIA writes it, or `890` as Vast does: a hundred times that.
fn read_capability(text: &str) -> Option<[u32; 4]> {
    if text.contains('.') {
        return read_version(text).filter(|version| version[2..] == [0, 0]);
    }
    let [whole, ..] = read_version(text)?;
    if whole < 100 {
        return Some([whole, 0, 0, 0]);
    }
    (whole % 10 == 0).then_some([whole / 100, whole % 100 / 10, 0, 0])
}

/// The leading numbers of what a machine says its version is, like 6.1.0 of `6.1.0-18-amd64`.
pub(super) fn leading_version(text: &str) -> Option<[u32; 4]> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let numbers: Vec<&str> = text[..end]
        .split('.')
        .filter(|part| !part.is_empty())
        .take(4)
        .collect();
    read_version(&numbers.join("."))
}

fn wanted(field: Field) -> String {
    let info = field.info();
    match info.kind {
        Kind::Number(Unit::Count) => format!("a whole number is wanted ({})", info.unit),
        Kind::Number(_) => format!("a decimal number is wanted ({})", info.unit),
        Kind::Flag => "true or false is wanted".to_owned(),
        Kind::Version => "a version like 12.4 is wanted".to_owned(),
        Kind::Capability => "a compute capability like 8.9 (or 890) is wanted".to_owned(),
        Kind::Choice(choices) => format!("one of {} is wanted", choices.join(", ")),
        Kind::Profile => {
            "a kind of slice like 3g.40gb, none for whole GPUs, or any is wanted".to_owned()
        }
        Kind::Model => "a GPU's name like RTX_4090 is wanted".to_owned(),
        Kind::Words => "letters or digits are wanted".to_owned(),
        Kind::Id(prefix) => format!("an id like {prefix}7k3f is wanted, or its first 4 characters"),
    }
}

fn finest(field: Field) -> String {
    match field.info().kind {
        Kind::Number(Unit::Dollars | Unit::Ratio) => "six decimal places".to_owned(),
        Kind::Number(
            Unit::Cores
            | Unit::SoldGigabytes
            | Unit::Watts
            | Unit::Gigahertz
            | Unit::GigabytesPerSecond
            | Unit::Megabits
            | Unit::Teraflops,
        ) => "three decimal places".to_owned(),
        Kind::Number(Unit::Score) => "two decimal places".to_owned(),
        Kind::Number(Unit::Gigabytes) => "whole bytes".to_owned(),
        Kind::Number(Unit::Days) => "whole seconds".to_owned(),
        Kind::Number(Unit::Count | Unit::Seconds | Unit::MegabytesPerSecond | Unit::Degrees)
        | Kind::Flag
        | Kind::Version
        | Kind::Capability
        | Kind::Choice(_)
        | Kind::Profile
        | Kind::Model
        | Kind::Words
        | Kind::Id(_) => "whole numbers".to_owned(),
    }
}

#[cfg(test)]
mod tests;
