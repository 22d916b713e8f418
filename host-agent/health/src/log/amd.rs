//! Lines of AMD's driver, after `amdgpu `. Its own words come first in each; names of programs stand in lines that are not
//! read here, or behind what is. Counts of memory errors are not taken from here: what asks for them makes the driver
//! write such lines, and of a GPU at rest they are wrong.

use super::{Slot, read_number, read_slot};
use crate::input::AmdEvent;

/// Which GPU, and what happened to it.
pub(super) fn read(rest: &str) -> Option<(Slot, AmdEvent)> {
    let (slot, rest) = read_slot(rest)?;
    let rest = rest.strip_prefix(".0: ")?;
    // Older drivers say it once, newer ones twice.
    let said = rest.strip_prefix("amdgpu: ").unwrap_or(rest);
    Some((slot, event(said)?))
}

fn event(said: &str) -> Option<AmdEvent> {
    if said.starts_with("GPU reset begin!") {
        return Some(AmdEvent::PreReset);
    }
    if let Some(rest) = said.strip_prefix("GPU reset(") {
        let (_, rest) = read_number(rest)?;
        return rest
            .starts_with(") succeeded!")
            .then_some(AmdEvent::PostReset);
    }
    if let Some(rest) = said.strip_prefix("ring ") {
        let (_name, rest) = rest.split_once(' ')?;
        return rest.starts_with("timeout, ").then_some(AmdEvent::RingHang);
    }
    if let Some(rest) = said.strip_prefix("RAS records:") {
        let (_, rest) = read_number(rest)?;
        return rest
            .starts_with(" exceed threshold:")
            .then_some(AmdEvent::EccThreshold);
    }
    let (_hub, rest) = said.strip_prefix('[')?.split_once("] ")?;
    let is_fault = [
        "page fault (",
        "no-retry page fault (",
        "retry page fault (",
    ];
    is_fault
        .iter()
        .any(|words| rest.starts_with(words))
        .then_some(AmdEvent::VmFault)
}

#[cfg(test)]
mod tests {
    use crate::input::AmdEvent::{EccThreshold, PostReset, PreReset, RingHang, VmFault};
    use crate::log::{Line, read};
    use protocol::bounded::Text;

    #[test]
    fn lines_that_the_driver_writes() {
        for (line, wanted) in [
            (
                "amdgpu 0000:87:00.0: amdgpu: GPU reset begin!",
                Some(PreReset),
            ),
            (
                "amdgpu 0000:87:00.0: amdgpu: GPU reset begin!. Source:  3",
                Some(PreReset),
            ),
            (
                "amdgpu 0000:87:00.0: amdgpu: GPU reset(1) succeeded!",
                Some(PostReset),
            ),
            (
                "amdgpu 0000:87:00.0: GPU reset(12) succeeded!",
                Some(PostReset),
            ),
            (
                "amdgpu 0000:87:00.0: amdgpu: ring comp_1.1.0 timeout, signaled seq=813605, emitted seq=813607",
                Some(RingHang),
            ),
            (
                "amdgpu 0000:87:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:3 pasid:32769)",
                Some(VmFault),
            ),
            (
                "amdgpu 0000:87:00.0: amdgpu: RAS records:300 exceed threshold:256, GPU will not be initialized.",
                Some(EccThreshold),
            ),
            // The reset is not over yet, or did not work.
            (
                "amdgpu 0000:87:00.0: amdgpu: GPU reset succeeded, trying to resume",
                None,
            ),
            ("amdgpu 0000:87:00.0: amdgpu: GPU reset(1) failed", None),
            // What a program is called.
            (
                "amdgpu 0000:87:00.0: amdgpu: Process information: process GPU reset begin! pid 7",
                None,
            ),
            ("amdgpu: GPU reset begin!", None),
            (
                "amdgpu 0000:87:00.0: amdgpu: 1048560 uncorrectable hardware errors detected in umc block",
                None,
            ),
        ] {
            let slot = Text::cut("0000:87:00");
            assert_eq!(
                read(line),
                wanted.map(|event| Line::Amd { slot, event }),
                "{line}"
            );
        }
    }
}
