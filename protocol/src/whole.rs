//! Whole numbers as people type them: digits and nothing else, within bounds.
//!
//! Must not round, and knows no sign: what is counted here is never less than nothing, and `-0` is a slip.

use std::ops::RangeInclusive;

/// Why a text is not taken for a whole number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a whole number from {least} to {most}, in digits alone")]
pub struct WholeError {
    /// What was typed.
    pub text: String,
    /// The least that is taken.
    pub least: u64,
    /// The most.
    pub most: u64,
}

/// A reader of whole numbers within `range`.
pub fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, WholeError> + Clone + Send + Sync + 'static {
    move |text| {
        let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<u64>().ok().filter(|_| is_digits);
        let number = number.filter(|number| range.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| WholeError {
            text: text.to_owned(),
            least: *range.start(),
            most: *range.end(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_within_the_bounds_are_taken_and_nothing_else() {
        let read = whole::<u16>(1..=16);
        assert_eq!(read("1"), Ok(1));
        assert_eq!(read("016"), Ok(16));
        for wrong in [
            "",
            "0",
            "17",
            "-0",
            "-1",
            "+1",
            "1.0",
            "1e1",
            " 1",
            "0x1",
            "٣",
            "99999999999999999999",
        ] {
            let said = read(wrong).unwrap_err().to_string();
            let wanted = format!("'{wrong}' is not a whole number from 1 to 16, in digits alone");
            assert_eq!(said, wanted);
        }
        assert_eq!(whole::<u16>(0..=100_000)("65535"), Ok(65_535));
        assert!(whole::<u16>(0..=100_000)("65536").is_err());
    }
}
