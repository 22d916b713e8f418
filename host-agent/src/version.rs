//! Versions as people number them: dotted numbers, where a missing part is zero.

use std::fmt;

/// A version. `12`, `12.0` and `12.0.0` are the same one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(Vec<u64>);

impl Version {
    /// The version of these numbers.
    #[must_use]
    pub fn of(numbers: &[u64]) -> Self {
        let significant = numbers.iter().rposition(|number| *number != 0);
        let count = significant.map_or(0, |last| last + 1);
        Self(numbers.iter().take(count).copied().collect())
    }

    /// A text that is nothing but a version.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.split('.').map(|part| part.parse().ok());
        let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
        let is_plain = text
            .chars()
            .all(|letter| letter.is_ascii_digit() || letter == '.');
        is_plain.then(|| Self::of(&numbers))
    }

    /// The first dotted run of numbers in `text`: `runc 1.1.5+ds1` is 1.1.5.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let start = text.find(|letter: char| letter.is_ascii_digit())?;
        let rest = text.get(start..)?;
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let run = rest.get(..end.unwrap_or(rest.len()))?;
        let numbers: Vec<u64> = run
            .split('.')
            .filter_map(|part| part.parse().ok())
            .collect();
        (!numbers.is_empty()).then(|| Self::of(&numbers))
    }

    /// Its numbers, without zeros at the end.
    #[must_use]
    pub fn numbers(&self) -> &[u64] {
        &self.0
    }
}

impl fmt::Display for Version {
    /// With two parts at least: `12.0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |at: usize| self.0.get(at).copied().unwrap_or(0);
        write!(f, "{}.{}", part(0), part(1))?;
        let more = self.0.iter().skip(2);
        more.into_iter()
            .try_for_each(|number| write!(f, ".{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let of = |text: &str| Version::find(text).map(|version| version.to_string());
        assert_eq!(of("runc 1.1.5+ds1").as_deref(), Some("1.1.5"));
        assert_eq!(of("20.10.24+dfsg1").as_deref(), Some("20.10.24"));
        assert_eq!(
            of("NVIDIA Container Toolkit CLI version 1.17.8\ncommit: f202b80").as_deref(),
            Some("1.17.8")
        );
        assert_eq!(of("crun"), None);
    }

    #[test]
    fn a_missing_part_is_zero() {
        let of = |text: &str| Version::parse(text).unwrap();
        assert_eq!(of("12"), of("12.0.0"));
        assert!(of("12.1") > of("12") && of("9.9") < of("12"));
        assert!(Version::of(&[1, 1, 12]) > Version::of(&[1, 1, 5]));
        assert!(of("535.104") > of("535") && of("535.104.5") > of("535.104"));
        for wrong in ["", "1.", ".1", "1.x", "+1", "1 2"] {
            assert_eq!(Version::parse(wrong), None, "{wrong}");
        }
    }
}
