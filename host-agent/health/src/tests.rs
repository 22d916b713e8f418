//! The rules together, on a stage: a machine whose GPUs answer, whose leases end when they are told to, and whose
//! resets and scrubs succeed unless a test says otherwise.

mod cleaning;
mod faults;
mod hives;
mod life;
mod stage;
mod threats;
mod verdicts;
