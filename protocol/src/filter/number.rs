//! Decimal numbers as people write them, read exactly into integers of a base unit.
//!
//! No floats: `0.1` is a tenth here, and what cannot be a whole number of base units is refused.

/// Why a text is not a number of base units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberProblem {
    /// Not digits with at most one point.
    Form,
    /// Not a whole number of base units.
    TooFine,
    /// Beyond what is compared with.
    TooLarge,
}

/// `text`, a decimal number of a unit that has `scale` base units.
pub(super) fn read_scaled(text: &str, scale: u64) -> Result<i64, NumberProblem> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || !digits.contains(|c: char| c.is_ascii_digit()) {
        return Err(NumberProblem::Form);
    }
    // Eighteen places and nineteen digits before the point keep every product inside 128 bits.
    if fraction.len() > 18 {
        return Err(NumberProblem::TooFine);
    }
    let whole: u64 = match whole.trim_start_matches('0') {
        "" => 0,
        digits => digits.parse().map_err(|_| NumberProblem::TooLarge)?,
    };
    let mut places: u128 = 1;
    let mut numerator: u128 = 0;
    for digit in fraction.bytes() {
        places *= 10;
        numerator = numerator * 10 + u128::from(digit - b'0');
    }
    let scaled = numerator * u128::from(scale);
    if !scaled.is_multiple_of(places) {
        return Err(NumberProblem::TooFine);
    }
    let total = u128::from(whole) * u128::from(scale) + scaled / places;
    let total = i64::try_from(total).map_err(|_| NumberProblem::TooLarge)?;
    Ok(if negative { -total } else { total })
}

/// `base` base units as a decimal number of a unit that has `scale` of them, if six places are enough.
pub(super) fn show_scaled(base: i64, scale: u64) -> Option<String> {
    let sign = if base < 0 { "-" } else { "" };
    let (whole, rest) = (base.unsigned_abs() / scale, base.unsigned_abs() % scale);
    if rest == 0 {
        return Some(format!("{sign}{whole}"));
    }
    let millionths = u128::from(rest) * 1_000_000;
    if !millionths.is_multiple_of(u128::from(scale)) {
        return None;
    }
    let fraction = format!("{:06}", millionths / u128::from(scale));
    Some(format!("{sign}{whole}.{}", fraction.trim_end_matches('0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(read_scaled("0.1", 1_000_000), Ok(100_000));
        assert_eq!(read_scaled("24", 1000), Ok(24_000));
        assert_eq!(read_scaled(".5", 86_400), Ok(43_200));
        assert_eq!(read_scaled("4.0", 1), Ok(4));
        assert_eq!(read_scaled("-1.5", 10), Ok(-15));
        assert_eq!(read_scaled("007", 1), Ok(7));
    }

    #[test]
    fn what_is_no_number_too_fine_or_too_large_is_refused() {
        for wrong in [
            "", ".", "-", "1e3", "0x10", "1,000", "NaN", "1.2.3", "--1", "٣",
        ] {
            assert_eq!(
                read_scaled(wrong, 1000),
                Err(NumberProblem::Form),
                "{wrong}"
            );
        }
        assert_eq!(read_scaled("0.0001", 1000), Err(NumberProblem::TooFine));
        assert_eq!(read_scaled("3.5", 1), Err(NumberProblem::TooFine));
        assert_eq!(
            read_scaled("9223372036854775808", 1),
            Err(NumberProblem::TooLarge)
        );
        assert_eq!(
            read_scaled(&"9".repeat(400), 1),
            Err(NumberProblem::TooLarge)
        );
        assert_eq!(read_scaled("9223372036854775807", 1), Ok(i64::MAX));
    }

    #[test]
    fn shown_numbers_read_back() {
        assert_eq!(show_scaled(100_000, 1_000_000), Some("0.1".to_owned()));
        assert_eq!(show_scaled(-15, 10), Some("-1.5".to_owned()));
        // An hour is not a decimal number of days.
        assert_eq!(show_scaled(3600, 86_400), None);
    }
}
