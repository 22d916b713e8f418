//! Numbers that are none, below nothing or too small are refused by the name of their flag, and what is very long
//! is not read back whole.

use crate::program::Home;
use std::error::Error;

type Test = Result<(), Box<dyn Error>>;

const SEARCH: &[&str] = &["search"];
const RENT: &[&str] = &["rent", "o-7k3f", "--image", "x"];

#[test]
fn a_number_that_cannot_be_is_refused_by_its_flag() -> Test {
    let home = Home::with_key()?;
    for (words, flag, value, said) in [
        (SEARCH, "--min-vram", "-1", "below nothing"),
        (SEARCH, "--gpus", "-0", "'-0' is not a whole number from 0"),
        (SEARCH, "--limit", "+3", "in digits alone"),
        (RENT, "--ram", "0.0000001", "less than 0.01 GB"),
        (RENT, "--max-hours", "-3", "from 1 to 87600"),
    ] {
        let typed: Vec<&str> = words.iter().copied().chain([flag, value]).collect();
        let ran = home.run(&typed)?;
        assert_eq!(ran.code, Some(2), "{typed:?}: {}", ran.errors);
        assert!(
            ran.errors.contains(flag) && ran.errors.contains(said),
            "{typed:?}: {}",
            ran.errors
        );
    }
    Ok(())
}

#[test]
fn ten_kilobytes_are_not_read_back() -> Test {
    let home = Home::with_key()?;
    let long = "9".repeat(10_000);
    let field = format!("gpu_name={long}");
    for typed in [
        vec!["search", "--gpus", long.as_str()],
        vec!["search", field.as_str()],
        vec!["show", long.as_str()],
    ] {
        let ran = home.run(&typed)?;
        assert_ne!(ran.code, Some(0));
        assert!(ran.errors.len() < 1_500, "{}", ran.errors.len());
    }
    Ok(())
}
