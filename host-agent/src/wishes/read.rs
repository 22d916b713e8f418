//! How what an owner types becomes a value, and what is said when it is none. clap puts the flag's name before it.

use super::{GpuChoice, Limit};
use protocol::terms::{GRACE_MAX, GRACE_MIN};
use protocol::units::{AmountError, BasisPoints, Seconds, Timestamp};
use std::str::FromStr;

/// The least time for a start: an image that is here needs about a second, one that is not needs its pull.
const START_WITHIN_MIN: Seconds = Seconds(10);
/// Nobody means a longer lease.
const LENGTH_MAX: Seconds = Seconds(366 * 86_400);
/// A larger discount is a slip of the finger.
const DISCOUNT_MAX: BasisPoints = BasisPoints(9_000);

/// A value, or `none`.
pub(super) fn limit<T>(
    read: impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<Limit<T>, String> + Clone + Send + Sync + 'static {
    move |text| {
        if text == "none" {
            Ok(Limit::None)
        } else {
            read(text).map(Limit::At)
        }
    }
}

/// A price, exactly.
pub(super) fn amount<T: FromStr<Err = AmountError>>(text: &str) -> Result<T, String> {
    if text.starts_with('-') {
        return Err("a price is nothing or more; renters are not paid for renting".to_owned());
    }
    text.parse().map_err(|error: AmountError| error.to_string())
}

/// `40`, `12.5`, with or without a percent sign.
pub(super) fn percent(text: &str) -> Result<BasisPoints, String> {
    let wrong =
        || format!("'{text}' is not a percentage like 40 or 12.5, with two decimals at most");
    let digits = text.strip_suffix('%').unwrap_or(text).trim_end();
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || rest.len() > 2 || !is_digits(whole) || !is_digits(rest) {
        return Err(wrong());
    }
    let whole: u16 = whole.parse().map_err(|_| wrong())?;
    let rest: u16 = format!("{rest:0<2}").parse().map_err(|_| wrong())?;
    let points = whole
        .checked_mul(100)
        .and_then(|whole| whole.checked_add(rest));
    points
        .map(BasisPoints)
        .filter(|points| *points <= DISCOUNT_MAX)
        .ok_or_else(|| format!("'{text}' is more than 90 %, which all but gives the machine away"))
}

/// `90s`, `10m`, `2h`, `30d`, `2w`: at most a year.
pub(crate) fn length(text: &str) -> Result<Seconds, String> {
    within(text, LENGTH_MAX, "a year")
}

/// The same, at most a day.
pub(super) fn of_a_day(text: &str) -> Result<Seconds, String> {
    within(text, Seconds(86_400), "a day")
}

fn within(text: &str, most: Seconds, most_said: &str) -> Result<Seconds, String> {
    let wrong = || format!("'{text}' is not a time like 90s, 10m, 2h or 30d");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let digits = text.strip_suffix(unit).unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number
        .checked_mul(factor)
        .map(Seconds)
        .filter(|length| *length <= most)
        .ok_or_else(|| format!("'{text}' is more than {most_said}"))
}

pub(super) fn start_within(text: &str) -> Result<Seconds, String> {
    let time = of_a_day(text)?;
    if time < START_WITHIN_MIN {
        return Err(format!(
            "no lease could start in {text}; {START_WITHIN_MIN} is the least, 10m leaves room for a large image"
        ));
    }
    Ok(time)
}

/// Seconds, with or without a unit.
pub(super) fn notice(text: &str) -> Result<Seconds, String> {
    let is_bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let notice = if is_bare {
        of_a_day(&format!("{text}s"))?
    } else {
        of_a_day(text)?
    };
    if notice < GRACE_MIN || notice > GRACE_MAX {
        let (least, most) = (GRACE_MIN.0, GRACE_MAX.0);
        return Err(format!("a notice is {least} to {most} seconds"));
    }
    Ok(notice)
}

/// `2027-03-01` (its beginning, UTC), or a moment with its zone.
pub(super) fn date(text: &str) -> Result<Timestamp, String> {
    let wrong =
        || format!("'{text}' is not a date like 2027-03-01, or a moment like 2027-03-01T12:00:00Z");
    let is_day = text.len() == "2027-03-01".len();
    let moment = if is_day {
        format!("{text}T00:00:00Z").parse()
    } else {
        text.parse()
    };
    let moment: jiff::Timestamp = moment.map_err(|_| wrong())?;
    u64::try_from(moment.as_millisecond())
        .map(Timestamp)
        .map_err(|_| wrong())
}

/// `all`, `none`, or a list.
pub(super) fn gpus(text: &str) -> Result<GpuChoice, String> {
    match text {
        "all" => return Ok(GpuChoice::All),
        "none" => return Ok(GpuChoice::None),
        _ => {}
    }
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        return Err(format!(
            "'{text}' is not a list of GPUs like 0,2 or GPU-1b2c"
        ));
    }
    Ok(GpuChoice::Some(names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::units::PricePerHour;

    #[test]
    fn times_have_a_unit_and_an_end() {
        assert_eq!(length("10m"), Ok(Seconds(600)));
        assert_eq!(length("90s"), Ok(Seconds(90)));
        assert_eq!(length("30d"), Ok(Seconds(2_592_000)));
        assert_eq!(length("2w"), Ok(Seconds(1_209_600)));
        for wrong in [
            "", "10", "m", "-1s", "+1s", "367d", "1.5h", "10µ", "inf", "NaNs",
        ] {
            assert!(length(wrong).is_err(), "{wrong} was accepted");
        }
        assert!(of_a_day("24h").is_ok() && of_a_day("25h").is_err());
        let vast = "99999999999999999999s";
        assert!(length(vast).is_err());
    }

    #[test]
    fn a_notice_is_half_a_minute_to_ten() {
        for (text, seconds) in [("30", 30), ("120s", 120), ("10m", 600)] {
            assert_eq!(notice(text), Ok(Seconds(seconds)));
        }
        for wrong in ["29", "601", "0", "-30", "", "soon", "11m"] {
            assert!(notice(wrong).is_err(), "{wrong} was accepted");
        }
    }

    #[test]
    fn percentages_are_exact_and_not_absurd() {
        for (text, points) in [
            ("40", 4000),
            ("12.5%", 1250),
            ("0.01", 1),
            ("40 %", 4000),
            ("90", 9000),
        ] {
            assert_eq!(percent(text), Ok(BasisPoints(points)), "{text}");
        }
        for wrong in [
            "", "%", "-1", "90.01", "100", "0.001", "1e1", "nan", "inf", "70000", ".5",
        ] {
            assert!(percent(wrong).is_err(), "{wrong} was accepted");
        }
    }

    #[test]
    fn a_bound_can_be_none() {
        let floor = limit(amount::<PricePerHour>);
        assert_eq!(floor("none"), Ok(Limit::None));
        assert_eq!(floor("0.1"), Ok(Limit::At(PricePerHour(100_000))));
        for wrong in ["-0.1", "0.0000001", "1e3", "nan", "inf", "1000001", "None"] {
            assert!(floor(wrong).is_err(), "{wrong} was accepted");
        }
    }

    #[test]
    fn a_date_begins_at_midnight_in_utc() {
        assert_eq!(date("2027-01-01"), Ok(Timestamp(1_798_761_600_000)));
        assert_eq!(
            date("2027-01-01T01:00:00+01:00"),
            Ok(Timestamp(1_798_761_600_000))
        );
        for wrong in [
            "",
            "tomorrow",
            "2027-13-01",
            "2027-02-30",
            "1.3.2027",
            "1969-01-01",
            "2027-01-01T10:00:00",
        ] {
            assert!(date(wrong).is_err(), "{wrong} was accepted");
        }
    }

    #[test]
    fn gpus_are_all_none_or_some() {
        assert_eq!(gpus("all"), Ok(GpuChoice::All));
        assert_eq!(gpus("none"), Ok(GpuChoice::None));
        let some = ["0", "GPU-1b"].map(str::to_owned).to_vec();
        assert_eq!(gpus("0, GPU-1b"), Ok(GpuChoice::Some(some)));
        assert!(gpus("").is_err() && gpus("0,,1").is_err());
    }
}
