//! How far training on several machines is held up by the network between them.
//!
//! Hierarchical all-reduce, `2(k − 1)/k · gradients / bandwidth` a step, of which half the computing hides
//! as much. An offer of a cluster is worth making from an efficiency of 0.7 on.

/// Machines that train together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cluster {
    /// How many.
    pub machines: u16,
    /// Bytes a second between two of them.
    pub network: f64,
    /// Bytes of gradients that all exchange in each step.
    pub gradients: f64,
    /// Seconds of a step's computing on one machine alone.
    pub computing_alone: f64,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Seconds of computing on each machine.
    pub computing: f64,
    /// Seconds of exchanging, hidden behind computing or not.
    pub exchanging: f64,
    /// Seconds in all.
    pub total: f64,
    /// What of the machines' time is computing.
    pub efficiency: f64,
}

impl Cluster {
    /// What one step takes; infinite without a network.
    #[must_use]
    pub fn step(&self) -> Step {
        let machines = f64::from(self.machines.max(1));
        let computing = self.computing_alone / machines;
        let exchanging = if self.machines > 1 {
            2.0 * (machines - 1.0) / machines * self.gradients / self.network
        } else {
            0.0
        };
        let total = computing + (exchanging - computing / 2.0).max(0.0);
        Step {
            computing,
            exchanging,
            total,
            efficiency: computing / total,
        }
    }
}
