//! Money, prices, time and sizes as types. Integers only; arithmetic that could leave the range says so.
//!
//! Shown amounts are US dollars; stored amounts are micro-dollars (µ$, 1 000 000 to the dollar).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Micro-dollars in a dollar.
pub const MICRO_PER_USD: i64 = 1_000_000;
/// Highest price of anything (a million dollars an hour, a gigabyte or a gigabyte-month): products with
/// any time and size of this market then stay far inside `i128`, and sums inside `i64`.
pub const PRICE_MAX: u64 = 1_000_000_000_000;
/// Seconds in a month as storage is priced: 30 days of 24 hours (720 h).
pub const SECONDS_PER_MONTH: u64 = 2_592_000;
/// Bytes in a gigabyte as disk and traffic are sold.
pub const BYTES_PER_GB: u64 = 1_000_000_000;

/// Why a text is not an amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an amount in dollars: digits with at most six after the point, like 0.35")]
pub struct AmountError {
    /// What was typed.
    pub text: String,
}

/// An amount of money in micro-dollars; negative only for what is owed.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct MicroUsd(pub i64);

impl MicroUsd {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The sum, or nothing when it leaves the range.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The difference, or nothing when it leaves the range.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// The sum, kept at the end of the range. For what is shown or bounded, never for the ledger.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, kept at the end of the range. For what is shown or bounded, never for the ledger.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The same amount with the other sign.
    #[must_use]
    pub fn negated(self) -> Self {
        Self(self.0.saturating_neg())
    }

    /// The amount as a decimal text with six places and no sign of currency, as JSON carries it.
    #[must_use]
    pub fn decimal(self) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micro = MICRO_PER_USD.unsigned_abs();
        let whole = self.0.unsigned_abs();
        format!("{sign}{}.{:06}", whole / micro, whole % micro)
    }
}

impl fmt::Display for MicroUsd {
    /// Dollars: two places, or as many as the amount needs up to six.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = self.decimal();
        let (sign, digits) = match decimal.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", decimal.as_str()),
        };
        let trimmed = digits.trim_end_matches('0');
        let point = digits.len() - 7;
        let shown = &digits[..trimmed.len().max(point + 3)];
        f.pad(&format!("{sign}${shown}"))
    }
}

impl FromStr for MicroUsd {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        parse_amount(text).map(Self).ok_or_else(|| AmountError {
            text: text.to_owned(),
        })
    }
}

/// Dollars in decimal digits, with an optional `$`, as micro-dollars.
fn parse_amount(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('$').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || fraction.len() > 6 {
        return None;
    }
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let whole: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let fraction: i64 = format!("{fraction:0<6}").parse().ok()?;
    whole.checked_mul(MICRO_PER_USD)?.checked_add(fraction)
}

macro_rules! prices {
    ($($(#[$doc:meta])* $name:ident, $unit:literal;)*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub struct $name(pub u64);

        impl $name {
            /// Whether the price is within the range the market's sums are proved for.
            #[must_use]
            pub const fn is_sane(self) -> bool {
                self.0 <= PRICE_MAX
            }

            /// The price as an amount of money for one unit.
            #[must_use]
            pub fn amount(self) -> MicroUsd {
                MicroUsd(i64::try_from(self.0).unwrap_or(i64::MAX))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&format!("{}{}", self.amount(), $unit))
            }
        }

        impl FromStr for $name {
            type Err = AmountError;

            fn from_str(text: &str) -> Result<Self, AmountError> {
                let wrong = || AmountError { text: text.to_owned() };
                let amount = parse_amount(text).ok_or_else(wrong)?;
                let price = Self(u64::try_from(amount).map_err(|_| wrong())?);
                if price.is_sane() { Ok(price) } else { Err(wrong()) }
            }
        }
    )*};
}

prices! {
    /// µ$ for an hour of what an offer sells as a whole.
    PricePerHour, "/h";
    /// µ$ for a gigabyte (10⁹ bytes) kept for a month (720 h).
    PricePerGbMonth, "/GB-month";
    /// µ$ for a gigabyte (10⁹ bytes) of traffic.
    PricePerGb, "/GB";
}

/// A part of ten thousand: the broker's fee and discounts.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct BasisPoints(pub u16);

impl BasisPoints {
    /// The whole.
    pub const WHOLE: Self = Self(10_000);
}

impl fmt::Display for BasisPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{:02} %", self.0 / 100, self.0 % 100))
    }
}

/// A length of time in whole seconds.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Seconds(pub u64);

impl Seconds {
    /// The same time in milliseconds.
    #[must_use]
    pub const fn millis(self) -> Millis {
        Millis(self.0.saturating_mul(1000))
    }
}

impl fmt::Display for Seconds {
    /// `45s`, `12m 05s`, `2h 05m`, `3d 04h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, hours) = (self.0 / 86_400, self.0 / 3600 % 24);
        let (minutes, seconds) = (self.0 / 60 % 60, self.0 % 60);
        let text = match (days, hours, minutes) {
            (0, 0, 0) => format!("{seconds}s"),
            (0, 0, _) => format!("{minutes}m {seconds:02}s"),
            (0, _, _) => format!("{hours}h {minutes:02}m"),
            _ => format!("{days}d {hours:02}h"),
        };
        f.pad(&text)
    }
}

/// A length of time in milliseconds: what meters count in.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Millis(pub u64);

impl Millis {
    /// The sum, kept at the end of the range (half a billion years).
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Whole seconds, rounded down.
    #[must_use]
    pub const fn seconds(self) -> Seconds {
        Seconds(self.0 / 1000)
    }
}

/// A moment: milliseconds since 1970-01-01 UTC, by the clock of whoever says it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The moment `span` later.
    #[must_use]
    pub const fn after(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The moment `span` earlier.
    #[must_use]
    pub const fn before(self, span: Millis) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// How long after `earlier` this is; zero when it is not after it, so a clock that goes back bills
    /// nothing.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

/// A size in bytes.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Bytes(pub u64);

impl Bytes {
    /// So many gigabytes of 10⁹ bytes.
    #[must_use]
    pub const fn from_gb(gigabytes: u64) -> Self {
        Self(gigabytes.saturating_mul(BYTES_PER_GB))
    }

    /// Whole gigabytes of 10⁹ bytes, rounded down.
    #[must_use]
    pub const fn gb(self) -> u64 {
        self.0 / BYTES_PER_GB
    }
}

impl fmt::Display for Bytes {
    /// Decimal units with one place: `7.4 GB`, `812 kB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (1_000_000_000_000, "TB"),
            (1_000_000_000, "GB"),
            (1_000_000, "MB"),
        ];
        for (size, name) in units {
            if self.0 >= size {
                let tenths = self.0 / (size / 10);
                return f.pad(&format!("{}.{} {name}", tenths / 10, tenths % 10));
            }
        }
        if self.0 >= 1000 {
            return f.pad(&format!("{} kB", self.0 / 1000));
        }
        f.pad(&format!("{} B", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly() {
        let read = |text: &str| text.parse::<MicroUsd>().map(|amount| amount.0);
        assert_eq!(read("0.35"), Ok(350_000));
        assert_eq!(read("$12"), Ok(12_000_000));
        assert_eq!(read(".000001"), Ok(1));
        for wrong in [
            "",
            ".",
            "-1",
            "1.0000001",
            "1e3",
            "0,35",
            "NaN",
            "99999999999999",
        ] {
            assert!(read(wrong).is_err(), "{wrong} was accepted");
        }
    }

    #[test]
    fn amounts_are_shown_with_the_places_they_need() {
        assert_eq!(MicroUsd(350_000).to_string(), "$0.35");
        assert_eq!(MicroUsd(12_000_000).to_string(), "$12.00");
        assert_eq!(MicroUsd(336_001).to_string(), "$0.336001");
        assert_eq!(MicroUsd(-1).to_string(), "-$0.000001");
        assert_eq!(MicroUsd(-2_500_000).decimal(), "-2.500000");
    }

    #[test]
    fn prices_over_the_range_are_refused() {
        assert_eq!("1000000".parse(), Ok(PricePerHour(PRICE_MAX)));
        assert!("1000000.000001".parse::<PricePerHour>().is_err());
    }

    #[test]
    fn times_and_sizes_read_well() {
        assert_eq!(Seconds(7500).to_string(), "2h 05m");
        assert_eq!(Seconds(65).to_string(), "1m 05s");
        assert_eq!(Bytes(7_430_000_000).to_string(), "7.4 GB");
        assert_eq!(Timestamp(5).since(Timestamp(9)), Millis(0));
    }
}
