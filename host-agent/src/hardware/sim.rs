//! A machine that is made up: the twin of [`super::this`] for tests.

use super::disk::Disk;
use super::nvidia::Nvidia;
use super::processor::Processor;
use super::system::System;
use super::{Hardware, HardwareError, Measured};
use protocol::units::Bytes;
use std::path::Path;

/// A machine that measures what it was told.
#[derive(Debug, Clone)]
pub struct SimHardware {
    /// What it measures.
    pub measured: Measured,
    /// Its disk.
    pub disk: Disk,
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
                },
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
            },
            disk: Disk {
                total: Bytes::from_gb(1000),
                free: Bytes::from_gb(800),
            },
        }
    }
}

impl Hardware for SimHardware {
    async fn measure(&self) -> Result<Measured, HardwareError> {
        Ok(self.measured.clone())
    }

    fn disk(&self, _path: &Path) -> Result<Disk, HardwareError> {
        Ok(self.disk)
    }
}
