//! A stand-in for NVIDIA's management library, for machines without a GPU: a C library that is loaded as the
//! real one is, and answers from a scenario file that a test writes and changes while it runs.
//!
//! The file is named by the environment variable [`SCENARIO`]. What programs change (MIG modes and instances)
//! is kept beside it, so that several processes see one machine, and is gone when the scenario's boot changes.
//!
//! * [`scenario`]: the machine, its faults and events. [`models`]: GPUs as they are sold.
//!   [`loading`]: where the built library is, and how it becomes that of an old driver.
//! * `world`, `state`: the scenario as the library sees it, and what programs changed.
//!   `calls`: the functions, by the real names. `tables`: MIG profiles and where they fit.

pub mod loading;
pub mod models;
pub mod scenario;

mod calls;
mod state;
mod tables;
mod world;

/// The environment variable that names the scenario file.
pub const SCENARIO: &str = "FEIRA_FAKE_NVML";
