//! The sums, and what a machine without a GPU says; and a run to the end on a software device where there is one.

use super::*;
use std::time::Duration;

#[test]
fn rates_are_in_their_units() {
    let tenth = Duration::from_millis(100);
    assert_eq!(giga_per_second(5_000_000_000, tenth), 50);
    assert_eq!(megabytes_per_second(300_000_000, tenth), 3_000);
    assert_eq!(giga_per_second(1, Duration::ZERO), 0);
}

/// Eight chains that begin at 7, 8, … 14 and grow by 1 eight times a round: 84, and 64 a round.
#[test]
fn the_sum_of_the_chains_is_exact() {
    assert_eq!(fma_sum(7, 0).to_bits(), 84.0_f32.to_bits());
    assert_eq!(fma_sum(7, 2).to_bits(), 212.0_f32.to_bits());
    assert!(fma_sum(1_499_999, 64) < 16_777_216.0);
}

#[test]
fn what_is_said_is_a_line_and_is_read_again() {
    let figure = Said::Figure(Figure {
        what: What::HostToDevice,
        value: 24_000,
        method: "pinned-256m".to_owned(),
        version: 1,
    });
    let line = serde_json::to_string(&figure).unwrap();
    assert_eq!(
        line,
        r#"{"figure":{"what":"host-to-device","value":24000,"method":"pinned-256m","version":1}}"#
    );
    assert_eq!(serde_json::from_str::<Said>(&line).unwrap(), figure);
}

/// On a machine without the driver the wrapper would panic; here there is an answer.
#[test]
fn a_machine_without_the_driver_is_told_so() {
    if cuda::is_present() {
        return;
    }
    let mut out = Vec::new();
    assert!(!run_as_lines(&Target::Cuda, &mut out));
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "{\"failed\":\"NVIDIA's driver library (libcuda.so.1) cannot be loaded\"}\n"
    );
}

#[test]
fn a_device_that_is_not_there_is_an_error_that_lists_those_that_are() {
    let refused = run(&Target::Pci("ffff:ff:1f.7".to_owned()), &mut |_| {}).unwrap_err();
    if let GpuError::NoDevice { found } = &refused {
        assert!(!found.is_empty());
    } else {
        assert!(matches!(refused, GpuError::NoVulkan(_)), "{refused}");
    }
}

/// The whole way, with results that are checked: Mesa's lavapipe is enough.
#[test]
fn a_software_device_runs_the_kernels_and_is_marked() {
    let mut said = Vec::new();
    match run(&Target::Software, &mut |one| said.push(one)) {
        Ok(()) => {}
        // A machine without one has nothing to show here.
        Err(GpuError::NoVulkan(_) | GpuError::NoDevice { .. }) => return,
        Err(other) => panic!("{other}"),
    }
    let is_software = |one: &Said| matches!(one, Said::Device { software: true, .. });
    assert!(said.first().is_some_and(is_software), "{said:?}");
    let figures: Vec<(What, bool)> = said
        .iter()
        .filter_map(|one| match one {
            Said::Figure(figure) => Some((figure.what, figure.value > 0)),
            Said::Device { .. } | Said::Progress(_) | Said::Skipped { .. } | Said::Failed(_) => {
                None
            }
        })
        .collect();
    assert_eq!(figures, [(What::Fp32, true), (What::Memory, true)]);
    let progress: Vec<u16> = said
        .iter()
        .filter_map(|one| match one {
            Said::Progress(done) => Some(*done),
            Said::Device { .. } | Said::Figure(_) | Said::Skipped { .. } | Said::Failed(_) => None,
        })
        .collect();
    assert!(
        progress.is_sorted() && progress.last() == Some(&1000),
        "{progress:?}"
    );
}
