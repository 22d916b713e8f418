//! How ids, money and times stand in JSON: as texts that people know, read back exactly.

use protocol::units::{MicroUsd, Timestamp};
use serde::{Deserialize, Deserializer, Serializer};

/// Anything with a text of its own: ids.
pub(crate) mod text {
    use super::{Deserialize, Deserializer, Serializer};
    use std::fmt::Display;
    use std::str::FromStr;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr,
        T::Err: Display,
        D: Deserializer<'de>,
    {
        String::deserialize(from)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// The same, or null.
pub(crate) mod text_if {
    use super::{Deserialize, Deserializer, Serializer};
    use std::fmt::Display;
    use std::str::FromStr;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.collect_str(value),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr,
        T::Err: Display,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(from)?;
        let parsed = text.map(|text| text.parse().map_err(serde::de::Error::custom));
        parsed.transpose()
    }
}

/// Dollars with six places.
pub(crate) mod usd {
    use super::{Deserialize, Deserializer, MicroUsd, Serializer};

    pub(crate) fn serialize<S: Serializer>(amount: &MicroUsd, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&amount.decimal())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<MicroUsd, D::Error> {
        let text = String::deserialize(from)?;
        let (digits, negative) = text
            .strip_prefix('-')
            .map_or((text.as_str(), false), |rest| (rest, true));
        let amount: MicroUsd = digits.parse().map_err(serde::de::Error::custom)?;
        Ok(if negative { amount.negated() } else { amount })
    }
}

/// Dollars with six places, or null.
pub(crate) mod usd_if {
    use super::{Deserialize, Deserializer, MicroUsd, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        amount: &Option<MicroUsd>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match amount {
            Some(amount) => super::usd::serialize(amount, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<MicroUsd>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let amount = text.map(|text| text.parse().map_err(serde::de::Error::custom));
        amount.transpose()
    }
}

/// RFC 3339 in UTC.
pub(crate) mod time {
    use super::{Deserialize, Deserializer, Serializer, Timestamp, from_jiff, to_jiff};

    pub(crate) fn serialize<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&to_jiff(*time))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        let time = String::deserialize(from)?
            .parse()
            .map_err(serde::de::Error::custom)?;
        Ok(from_jiff(time))
    }
}

/// RFC 3339 in UTC, or null.
pub(crate) mod time_if {
    use super::{Deserialize, Deserializer, Serializer, Timestamp, from_jiff, to_jiff};

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => to.collect_str(&to_jiff(*time)),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let parsed = text
            .map(|text| text.parse().map_err(serde::de::Error::custom))
            .transpose()?;
        Ok(parsed.map(from_jiff))
    }
}

fn to_jiff(time: Timestamp) -> jiff::Timestamp {
    let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX)
}

fn from_jiff(time: jiff::Timestamp) -> Timestamp {
    Timestamp(u64::try_from(time.as_millisecond()).unwrap_or(0))
}

/// A time as people read it: local, to the second, with its zone.
#[must_use]
pub(crate) fn local(time: Timestamp) -> String {
    to_jiff(time)
        .to_zoned_datetime(jiff::tz::TimeZone::system())
        .strftime("%Y-%m-%d %H:%M:%S %Z")
        .to_string()
}
