//! Versions below which an engine or an OCI runtime has holes that a tenant can use. It looks at nothing; it
//! compares.

/// A version as numbers; what does not parse is left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(Vec<u32>);

impl Version {
    /// The first dotted run of numbers in `text`: `runc 1.1.5+ds1` is 1.1.5.
    pub(super) fn find(text: &str) -> Option<Self> {
        let start = text.find(|letter: char| letter.is_ascii_digit())?;
        let rest = text.get(start..)?;
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let run = rest.get(..end.unwrap_or(rest.len()))?;
        let numbers: Vec<u32> = run
            .split('.')
            .filter_map(|part| part.parse().ok())
            .collect();
        (!numbers.is_empty()).then_some(Self(numbers))
    }
}

/// What is wrong with this OCI runtime, if its upstream version says so. A distribution may have the fix under
/// an older number.
pub(super) fn runtime_hole(runtime: &str) -> Option<&'static str> {
    let version = Version::find(runtime)?;
    if !runtime.starts_with("runc") {
        return None;
    }
    if version < Version(vec![1, 1, 12]) {
        return Some("CVE-2024-21626 lets a container reach the host's files (fixed in 1.1.12)");
    }
    let fixed = match version.0.as_slice() {
        [1, 2, patch, ..] => *patch >= 8,
        [1, 3, patch, ..] => *patch >= 3,
        [1, minor, ..] => *minor >= 4,
        [major, ..] => *major >= 2,
        [] => true,
    };
    (!fixed).then_some("CVE-2025-31133 and its two companions lead out of a container (fixed in 1.2.8, 1.3.3, 1.4)")
}

/// What is missing in this engine.
pub(super) fn engine_lack(engine: &str) -> Option<&'static str> {
    let version = Version::find(engine)?;
    if version < Version(vec![20, 10]) {
        return Some("Docker 20.10 is the oldest that has all that the sandbox sets");
    }
    if version < Version(vec![25, 0]) {
        return Some(
            "Docker below 25 is not maintained upstream; your distribution may still mend it",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_engines_say() {
        assert_eq!(
            Version::find("runc 1.1.5+ds1"),
            Some(Version(vec![1, 1, 5]))
        );
        assert_eq!(
            Version::find("20.10.24+dfsg1"),
            Some(Version(vec![20, 10, 24]))
        );
        assert_eq!(Version::find("crun"), None);
        assert!(Version(vec![1, 1, 12]) > Version(vec![1, 1, 5]));
    }

    #[test]
    fn floors_are_those_of_the_published_fixes() {
        assert!(runtime_hole("runc 1.1.5").is_some_and(|hole| hole.contains("21626")));
        assert!(runtime_hole("runc 1.1.12").is_some_and(|hole| hole.contains("31133")));
        assert!(runtime_hole("runc 1.2.7").is_some());
        assert_eq!(runtime_hole("runc 1.2.8"), None);
        assert!(runtime_hole("runc 1.3.2").is_some());
        assert_eq!(runtime_hole("runc 1.3.3"), None);
        assert_eq!(runtime_hole("runc 1.4.0"), None);
        assert_eq!(runtime_hole("crun 1.8"), None);
        assert!(engine_lack("20.10.24").is_some());
        assert_eq!(engine_lack("28.2.2"), None);
    }
}
