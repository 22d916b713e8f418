//! A machine that is made up: the twin of [`super::this`] for tests.

mod driver;

use super::disk::Disk;
use super::nvidia::Nvidia;
use super::processor::Processor;
use super::seat::Seats;
use super::system::System;
use super::{CutProblem, Hardware, HardwareError, Measured};
use crate::core::slices::Divisibles;
use crate::core::slices::acts::Act;
use protocol::bounded::Text;
use protocol::units::Bytes;
use std::path::Path;

pub use driver::SimDriver;

/// A machine that measures what it was told.
#[derive(Debug, Clone)]
pub struct SimHardware {
    /// What it measures.
    pub measured: Measured,
    /// Its disk.
    pub disk: Disk,
    /// Its driver, as far as it divides GPUs: one, however often the machine is cloned.
    pub driver: SimDriver,
}

impl SimHardware {
    /// Eight cores, 16 GiB, a terabyte and no GPU.
    #[must_use]
    pub fn without_gpu() -> Self {
        Self {
            measured: Measured {
                processor: Processor {
                    model: "Simulated CPU".to_owned(),
                    cores: 8,
                    has_avx: true,
                    mhz: 3000,
                },
                numa_nodes: 1,
                mainboard: "Simulated board".to_owned(),
                toolkit: String::new(),
                ram: Bytes(16 << 30),
                system: System {
                    name: "Simulated GNU/Linux".to_owned(),
                    kernel: "6.1.0".to_owned(),
                    architecture: "x86_64".to_owned(),
                },
                nvidia: Nvidia::LibraryMissing {
                    detail: "simulated".to_owned(),
                },
                amd: Vec::new(),
                intel: Vec::new(),
                seats: Seats::new(),
            },
            disk: Disk {
                total: Bytes::from_gb(1000),
                free: Bytes::from_gb(800),
                model: "Simulated disk".to_owned(),
            },
            driver: SimDriver::default(),
        }
    }
}

impl Hardware for SimHardware {
    async fn measure(&self) -> Result<Measured, HardwareError> {
        Ok(self.measured.clone())
    }

    fn disk(&self, _path: &Path) -> Result<Disk, HardwareError> {
        Ok(self.disk.clone())
    }

    async fn divisibles(&self) -> Divisibles {
        self.driver.divisibles()
    }

    async fn cut(&self, act: &Act) -> Result<Option<Text<64>>, CutProblem> {
        self.driver.cut(act)
    }
}
