//! CPU time of a command: user and system, of it and all its threads and children.
//!
//! The shell's `time` is what asks the kernel, since no safe call of the standard library does. Its
//! unit is a millisecond, so short commands run several times in one measurement.
//!
//! Must not measure wall-clock time.

use std::process::Command;

use crate::Outcome;

/// Milliseconds of CPU that one run of `command` takes, as the mean of `times` runs in a row.
///
/// `variables` are added to the environment. A run that fails is an error.
pub(crate) fn milliseconds(
    command: &[&str],
    variables: &[(&str, &str)],
    times: u32,
) -> Outcome<f64> {
    const SCRIPT: &str = r#"
        times=$1; shift
        TIMEFORMAT='%3U %3S'
        time { for ((i = 0; i < times; i++)); do "$@" >/dev/null 2>&1 || exit 1; done; }
    "#;
    let output = Command::new("bash")
        .args(["-c", SCRIPT, "bash", &times.to_string()])
        .args(command)
        .envs(variables.iter().copied())
        .output()?;
    if !output.status.success() {
        return Err(format!("`{}` failed", command.join(" ")).into());
    }
    let text = String::from_utf8(output.stderr)?;
    Ok(seconds(&text)? * 1000.0 / f64::from(times))
}

/// The sum of the two figures that `time` printed last.
fn seconds(text: &str) -> Outcome<f64> {
    let line = text.lines().last().ok_or("`time` printed nothing")?;
    let mut sum = 0.0;
    for part in line.split_whitespace() {
        sum += part
            .parse::<f64>()
            .map_err(|_| format!("`time` printed '{line}'"))?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_added() {
        assert!((seconds("0.120 0.030\n").unwrap() - 0.15).abs() < 1e-9);
        assert!(seconds("command not found").is_err());
    }

    #[test]
    fn work_takes_time_and_a_failure_is_one() {
        let busy = milliseconds(
            &["bash", "-c", "for ((i=0;i<50000;i++)); do :; done"],
            &[],
            2,
        );
        assert!(busy.unwrap() > 5.0);
        assert!(milliseconds(&["false"], &[], 1).is_err());
    }
}
