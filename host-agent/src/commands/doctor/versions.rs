//! Versions below which an engine or an OCI runtime has holes that a tenant can use. It looks at nothing; it
//! compares.

use crate::version::Version;

/// What is wrong with this OCI runtime, if its upstream version says so. A distribution may have the fix under
/// an older number.
pub(super) fn runtime_hole(runtime: &str) -> Option<&'static str> {
    let version = Version::find(runtime)?;
    if !runtime.starts_with("runc") {
        return None;
    }
    if version < Version::of(&[1, 1, 12]) {
        return Some("CVE-2024-21626 lets a container reach the host's files (fixed in 1.1.12)");
    }
    let fixed = match version.numbers() {
        [1, 2, patch, ..] => *patch >= 8,
        [1, 3, patch, ..] => *patch >= 3,
        [1, minor, ..] => *minor >= 4,
        [major, ..] => *major >= 2,
        [] => true,
    };
    (!fixed).then_some("CVE-2025-31133 and its two companions lead out of a container (fixed in 1.2.8, 1.3.3, 1.4)")
}

/// First versions of NVIDIA's driver, by branch, without the holes of its security bulletin 5861, through which a program
/// that computes reaches further than its own GPU memory.
const DRIVERS: [[u64; 3]; 3] = [[580, 178, 4], [595, 91, 7], [610, 57, 4]];

/// What is wrong with this driver, and the version of its branch, or of the oldest that is mended, without it.
pub(super) fn driver_hole(driver: &str) -> Option<String> {
    let version = Version::find(driver)?;
    let branch = version.numbers().first().copied()?;
    let [oldest, .., newest] = DRIVERS;
    let own = DRIVERS.iter().find(|floor| floor.first() == Some(&branch));
    match own {
        Some(floor) if version >= Version::of(floor) => None,
        Some(floor) => Some(format!("needed {}", driver_words(*floor))),
        None if Version::of(&[branch]) > Version::of(&newest) => None,
        None => Some(format!(
            "this branch is not mended; needed {}",
            driver_words(oldest)
        )),
    }
}

/// `580.178.04`, as NVIDIA writes it.
fn driver_words([branch, minor, patch]: [u64; 3]) -> String {
    format!("{branch}.{minor}.{patch:02} (bulletin 5861)")
}

/// What is missing in this engine.
pub(super) fn engine_lack(engine: &str) -> Option<&'static str> {
    let version = Version::find(engine)?;
    if version < Version::of(&[20, 10]) {
        return Some("Docker 20.10 is the oldest that has all that the sandbox sets");
    }
    if version < Version::of(&[25]) {
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

    #[test]
    fn drivers_have_a_floor_for_each_branch() {
        let hole = |driver: &str| driver_hole(driver).unwrap_or_default();
        assert_eq!(hole("580.178.03"), "needed 580.178.04 (bulletin 5861)");
        assert_eq!(hole("580.178.04"), "");
        assert!(hole("595.91.06").starts_with("needed 595.91.07"));
        assert_eq!(hole("610.57.04"), "");
        let older = "this branch is not mended; needed 580.178.04 (bulletin 5861)";
        assert_eq!(
            (hole("570.124.06").as_str(), hole("600.1").as_str()),
            (older, older)
        );
        assert_eq!(hole("615.10"), "");
    }
}
