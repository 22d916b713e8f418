//! What is known of a GPU beside what an offer's terms hold: where it sits in the machine, and how hot it may get.

use super::amd::AmdGpu;
use super::intel::IntelGpu;
use super::pci;
use crate::clock;
use crate::core::bench::Outcome;
use protocol::bounded::Text;
use protocol::machine::{Gpu, Quantity};
use protocol::offer::ResourceName;
use std::collections::BTreeMap;
use std::path::Path;

/// Where a GPU sits, and its limits. What nobody says is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seat {
    /// The NUMA node that it hangs on; nothing where there is one only.
    pub numa_node: Option<u32>,
    /// At which temperature it slows itself down, in degrees Celsius.
    pub temperature_max_c: Option<u32>,
}

/// The seats of all GPUs, by UUID.
pub type Seats = BTreeMap<ResourceName, Seat>;

/// The seat of an NVIDIA GPU: its driver says how hot, the kernel's files under `root`, which is `/sys`, say where.
#[must_use]
pub fn nvidia(root: &Path, gpu: &Gpu, temperature_max_c: Option<u32>) -> (ResourceName, Seat) {
    let seat = Seat {
        numa_node: pci::numa_node(root, &gpu.pci_address),
        temperature_max_c,
    };
    (gpu.uuid.clone(), seat)
}

/// The seat of an AMD GPU.
#[must_use]
pub fn amd(found: &AmdGpu) -> (ResourceName, Seat) {
    let seat = Seat {
        numa_node: found.numa_node,
        temperature_max_c: found.temperature_max_c,
    };
    (found.gpu.uuid.clone(), seat)
}

/// The seat of an Intel GPU.
#[must_use]
pub fn intel(found: &IntelGpu) -> (ResourceName, Seat) {
    let seat = Seat {
        numa_node: found.numa_node,
        temperature_max_c: found.temperature_max_c,
    };
    (found.gpu.uuid.clone(), seat)
}

/// What drivers say that offers carry beside what benchmarks gave.
#[must_use]
pub fn said(seats: &Seats) -> Vec<Outcome> {
    let one = |(gpu, seat): (&ResourceName, &Seat)| {
        Some(Outcome {
            quantity: Quantity::GpuTemperatureMax,
            value: seat.temperature_max_c?.into(),
            method: Text::cut("driver"),
            version: 1,
            at: clock::wall(),
            on: gpu.to_string(),
            software: false,
        })
    };
    seats.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::pci::tree::plant;
    use super::*;
    use crate::core::tests::gpu;

    #[test]
    fn the_kernel_says_where_a_gpu_of_nvidias_sits() {
        let root = tempfile::TempDir::new().unwrap();
        let devices = root.path().join("bus/pci/devices");
        plant(
            &devices,
            &[
                ("0000:05:00.0/numa_node", "1\n"),
                // One node only.
                ("0000:06:00.0/numa_node", "-1\n"),
            ],
        );
        for (address, wanted) in [
            ("0000:05:00.0", Some(1)),
            ("0000:06:00.0", None),
            ("", None),
        ] {
            let found = Gpu {
                pci_address: Text::cut(address),
                ..gpu("GPU-a")
            };
            let (name, seat) = nvidia(root.path(), &found, Some(87));
            assert_eq!((name.as_str(), seat.numa_node), ("GPU-a", wanted));
        }
    }

    #[test]
    fn only_what_a_driver_says_is_said() {
        let hot = Seat {
            numa_node: None,
            temperature_max_c: Some(87),
        };
        let seats = Seats::from([
            (ResourceName::cut("GPU-a"), hot),
            (ResourceName::cut("GPU-b"), Seat::default()),
        ]);
        let said = said(&seats);
        let values: Vec<(&str, u64)> = said.iter().map(|it| (it.on.as_str(), it.value)).collect();
        assert_eq!(values, [("GPU-a", 87)]);
    }
}
