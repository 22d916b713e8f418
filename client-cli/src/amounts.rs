//! Reads lengths of time and variables as they are typed.
//!
//! Amounts of money read themselves (`protocol::units`).

use protocol::bounded::Text;
use protocol::job::Variable;
use protocol::units::Seconds;

/// Why a typed value is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AmountError {
    /// Not a length of time.
    #[error("a time is a number with s, m, h or d, like 90s, 30m, 1h30m or 3d")]
    Duration,
    /// Not a variable.
    #[error(
        "a variable is NAME=value; the name has letters, digits and _, and does not begin with a digit"
    )]
    Variable,
    /// A variable's name or value is too long or has control characters.
    #[error("the variable is too long, or has control characters")]
    VariableBounds,
}

/// `90s`, `30m`, `1h30m`, `3d`; a number without a unit is refused, since nobody can know which was meant.
pub(crate) fn parse_duration(text: &str) -> Result<Seconds, AmountError> {
    let mut total: u64 = 0;
    let mut digits = String::new();
    for character in text.chars() {
        if character.is_ascii_digit() {
            digits.push(character);
            continue;
        }
        let unit = match character {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return Err(AmountError::Duration),
        };
        let number: u64 = digits.parse().map_err(|_| AmountError::Duration)?;
        let seconds = number.checked_mul(unit).ok_or(AmountError::Duration)?;
        total = total.checked_add(seconds).ok_or(AmountError::Duration)?;
        digits.clear();
    }
    if total == 0 || !digits.is_empty() {
        return Err(AmountError::Duration);
    }
    Ok(Seconds(total))
}

/// `NAME=value`.
pub(crate) fn parse_variable(text: &str) -> Result<Variable, AmountError> {
    let (name, value) = text.split_once('=').ok_or(AmountError::Variable)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins_well = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    if !begins_well || !name.chars().all(is_name) {
        return Err(AmountError::Variable);
    }
    Ok(Variable {
        name: Text::new(name).map_err(|_| AmountError::VariableBounds)?,
        value: Text::new(value).map_err(|_| AmountError::VariableBounds)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        let right = [
            ("90s", 90),
            ("30m", 1800),
            ("12h", 43_200),
            ("3d", 259_200),
            ("1h30m", 5400),
        ];
        for (text, seconds) in right {
            assert_eq!(parse_duration(text), Ok(Seconds(seconds)), "{text}");
        }
        for wrong in [
            "",
            "90",
            "h",
            "1.5h",
            "-1h",
            "1h30",
            "0s",
            "1w",
            "99999999999999999999s",
        ] {
            assert_eq!(parse_duration(wrong), Err(AmountError::Duration), "{wrong}");
        }
    }

    #[test]
    fn variables_have_a_name_and_any_value() {
        let variable = parse_variable("TOKEN=a=b c").unwrap();
        assert_eq!(
            (variable.name.as_str(), variable.value.as_str()),
            ("TOKEN", "a=b c")
        );
        assert_eq!(parse_variable("EMPTY=").unwrap().value.as_str(), "");
        for wrong in ["TOKEN", "=x", "1A=x", "A-B=x", "A B=x"] {
            assert_eq!(parse_variable(wrong), Err(AmountError::Variable), "{wrong}");
        }
        assert_eq!(
            parse_variable("A=\u{1b}[2J"),
            Err(AmountError::VariableBounds)
        );
    }
}
