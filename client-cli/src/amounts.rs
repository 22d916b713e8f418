//! Reads lengths of time, sizes and variables as they are typed.
//!
//! Amounts of money read themselves (`protocol::units`).

use protocol::bounded::Text;
use protocol::job::{Variable, is_hosts_variable, is_variable_name};
use protocol::terms::reserved::DAYS_MAX;
use protocol::units::{BYTES_PER_GB, Bytes, MicroUsd, PricePerHour, Seconds};

/// Why a typed value is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AmountError {
    /// Not a length of time.
    #[error("a time is a number with s, m, h or d, like 90s, 30m, 1h30m or 3d")]
    Duration,
    /// Not a price.
    #[error("a price is dollars an hour, more than 0 and at most 1000000, like 0.35")]
    Price,
    /// Not the length of a prepaid term.
    #[error(
        "a prepaid term is a whole number of days, from 1 to {DAYS_MAX}, like 30: for longer, prepay another when it \
         is over"
    )]
    Days,
    /// Not a part in percent.
    #[error(
        "a percentage is from 0 to 100, with at most four digits after the point, like 99 or 99.5"
    )]
    Percent,
    /// Not a number of CPUs.
    #[error("a number of CPUs is more than 0 and at most 4096, to the thousandth, like 8 or 1.5")]
    Cores,
    /// Not a size in gigabytes.
    #[error("a size is gigabytes, more than 0 and at most 1000000, like 60 or 0.5")]
    Gigabytes,
    /// Less memory or disk than a container begins with.
    #[error("no container runs in less than 0.01 GB, which is 10 MB")]
    NoRoom,
    /// Not a variable.
    #[error(
        "a variable is NAME=value; the name has letters, digits and _, and does not begin with a digit"
    )]
    Variable,
    /// A variable that hosts keep for themselves.
    #[error("this variable may not be set: it is the host's; set it inside the container")]
    HostVariable,
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

/// Largest size that can be typed, in gigabytes: a petabyte.
const GIGABYTES_MAX: u64 = 1_000_000;

/// `60`, `0.5`: gigabytes of 10⁹ bytes, to the byte.
pub(crate) fn parse_gigabytes(text: &str) -> Result<Bytes, AmountError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 9 {
        return Err(AmountError::Gigabytes);
    }
    let whole: u64 = whole.parse().map_err(|_| AmountError::Gigabytes)?;
    let fraction: u64 = format!("{fraction:0<9}")
        .parse()
        .map_err(|_| AmountError::Gigabytes)?;
    let bytes = Bytes(Bytes::from_gb(whole).0.saturating_add(fraction));
    if bytes.0 == 0 || bytes > Bytes::from_gb(GIGABYTES_MAX) {
        return Err(AmountError::Gigabytes);
    }
    Ok(bytes)
}

/// The least disk or memory of a lease: engines refuse containers with less than 6 MB.
const ROOM_MIN: Bytes = Bytes(10_000_000);

/// The same for what a container has to fit in.
pub(crate) fn parse_room(text: &str) -> Result<Bytes, AmountError> {
    let size = parse_gigabytes(text)?;
    if size < ROOM_MIN {
        return Err(AmountError::NoRoom);
    }
    Ok(size)
}

/// `0.35`: dollars for an hour. A price of nothing is no price.
pub(crate) fn parse_price(text: &str) -> Result<PricePerHour, AmountError> {
    let amount: MicroUsd = text.parse().map_err(|_| AmountError::Price)?;
    let price = PricePerHour(u64::try_from(amount.0).map_err(|_| AmountError::Price)?);
    if price.0 == 0 || !price.is_sane() {
        return Err(AmountError::Price);
    }
    Ok(price)
}

/// `30`: whole days of a prepaid term.
pub(crate) fn parse_days(text: &str) -> Result<u16, AmountError> {
    let days: u16 = text.parse().map_err(|_| AmountError::Days)?;
    if days == 0 || days > DAYS_MAX || text.starts_with('+') {
        return Err(AmountError::Days);
    }
    Ok(days)
}

/// `99`, `99.5`: kept as it was typed.
pub(crate) fn parse_percent(text: &str) -> Result<String, AmountError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 4 || whole.len() > 3 {
        return Err(AmountError::Percent);
    }
    let is_above = match whole.parse::<u32>() {
        Ok(100) => fraction.bytes().any(|digit| digit != b'0'),
        Ok(number) => number > 100,
        Err(_) => true,
    };
    if is_above {
        return Err(AmountError::Percent);
    }
    Ok(text.to_owned())
}

/// Most CPUs that can be typed.
const CORES_MAX: u32 = 4096;

/// `8`, `1.5`: CPUs, in thousandths.
pub(crate) fn parse_cores(text: &str) -> Result<u32, AmountError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 3 {
        return Err(AmountError::Cores);
    }
    let whole: u32 = whole.parse().map_err(|_| AmountError::Cores)?;
    let fraction: u32 = format!("{fraction:0<3}")
        .parse()
        .map_err(|_| AmountError::Cores)?;
    let cores = whole.saturating_mul(1000).saturating_add(fraction);
    if cores == 0 || cores > CORES_MAX * 1000 {
        return Err(AmountError::Cores);
    }
    Ok(cores)
}

/// The same the other way.
pub(crate) fn in_cores(millicores: u32) -> String {
    shortened(&format!("{}.{:03}", millicores / 1000, millicores % 1000))
}

/// The same the other way: as few digits as say it exactly.
pub(crate) fn in_gigabytes(size: Bytes) -> String {
    let text = format!("{}.{:09}", size.gb(), size.0 % BYTES_PER_GB);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A decimal amount without the zeros that say nothing.
pub(crate) fn shortened(value: &str) -> String {
    let shorter = match value.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
        Some(_) => value.trim_end_matches('0'),
        None => value,
    };
    shorter.to_owned()
}

/// `NAME=value`.
pub(crate) fn parse_variable(text: &str) -> Result<Variable, AmountError> {
    let (name, value) = text.split_once('=').ok_or(AmountError::Variable)?;
    if !is_variable_name(name) {
        return Err(AmountError::Variable);
    }
    // Hosts refuse an order with one of them; it is said before anything is signed.
    if is_hosts_variable(name) {
        return Err(AmountError::HostVariable);
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
    fn a_term_is_days_that_a_host_can_sell() {
        assert_eq!(parse_days("1"), Ok(1));
        assert_eq!(parse_days("365"), Ok(365));
        for wrong in ["", "0", "-1", "+3", "1.5", "366", "70000", "30d"] {
            assert_eq!(parse_days(wrong), Err(AmountError::Days), "{wrong}");
        }
    }

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
    fn a_container_has_room_to_begin() {
        assert_eq!(parse_room("0.01"), Ok(Bytes(10_000_000)));
        for wrong in ["0.009999999", "0.0000001"] {
            assert_eq!(parse_room(wrong), Err(AmountError::NoRoom), "{wrong}");
        }
        assert_eq!(parse_room("-1"), Err(AmountError::Gigabytes));
    }

    #[test]
    fn sizes_are_gigabytes_to_the_byte() {
        let right = [
            ("60", 60_000_000_000),
            ("0.1", 100_000_000),
            ("1.000000001", 1_000_000_001),
        ];
        for (text, bytes) in right {
            assert_eq!(parse_gigabytes(text), Ok(Bytes(bytes)), "{text}");
            assert_eq!(in_gigabytes(Bytes(bytes)), text);
        }
        for wrong in [
            "",
            "0",
            "0.0",
            ".5",
            "1.",
            "-1",
            "1e3",
            "60GB",
            "1.0000000001",
            "1000001",
        ] {
            assert_eq!(
                parse_gigabytes(wrong),
                Err(AmountError::Gigabytes),
                "{wrong}"
            );
        }
        assert_eq!(in_gigabytes(Bytes::from_gb(100)), "100");
    }

    #[test]
    fn prices_are_more_than_nothing_and_finite() {
        assert_eq!(parse_price("0.22"), Ok(PricePerHour(220_000)));
        assert_eq!(parse_price("1000000"), Ok(PricePerHour(1_000_000_000_000)));
        for wrong in [
            "",
            "0",
            "0.0",
            "-1",
            "NaN",
            "inf",
            "1e9",
            "1000000.000001",
            "0.0000001",
            "$-1",
            "99999999999999999999",
        ] {
            assert_eq!(parse_price(wrong), Err(AmountError::Price), "{wrong}");
        }
    }

    #[test]
    fn percentages_stay_between_nothing_and_all() {
        for right in ["0", "99", "99.5", "99.9868", "100", "100.0"] {
            assert_eq!(parse_percent(right).as_deref(), Ok(right));
        }
        for wrong in [
            "", "-1", "100.1", "101", "1e2", "99.99999", "99%", "NaN", "9999",
        ] {
            assert_eq!(parse_percent(wrong), Err(AmountError::Percent), "{wrong}");
        }
    }

    #[test]
    fn cpus_are_counted_in_thousandths() {
        for (text, millicores) in [
            ("8", 8000),
            ("1.5", 1500),
            ("0.125", 125),
            ("4096", 4_096_000),
        ] {
            assert_eq!(parse_cores(text), Ok(millicores), "{text}");
            assert_eq!(in_cores(millicores), text);
        }
        for wrong in [
            "",
            "0",
            "0.0",
            "-1",
            "1.0001",
            "4096.001",
            "4097",
            "x",
            "99999999999",
        ] {
            assert_eq!(parse_cores(wrong), Err(AmountError::Cores), "{wrong}");
        }
    }

    #[test]
    fn amounts_are_said_as_they_were_meant() {
        for (amount, label) in [
            ("10.000000", "10"),
            ("0.400000", "0.4"),
            ("100", "100"),
            ("0.5", "0.5"),
        ] {
            assert_eq!(shortened(amount), label);
        }
    }

    #[test]
    fn variables_of_the_host_are_refused_before_anything_is_signed() {
        for name in [
            "LD_PRELOAD",
            "NVIDIA_VISIBLE_DEVICES",
            "NVIDIA_REQUIRE_CUDA",
        ] {
            let typed = format!("{name}=/x");
            assert_eq!(parse_variable(&typed), Err(AmountError::HostVariable));
        }
        for name in ["PATH", "LD_BIND_NOW", "NVIDIA_TF32_OVERRIDE"] {
            assert!(parse_variable(&format!("{name}=1")).is_ok(), "{name}");
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
