//! How long work takes on a machine that may fail: Daly's interval between checkpoints, and the expected time
//! with and without them.
//!
//! Every logarithm and root comes from `libm`, so that all machines get the same bits. Times are seconds,
//! hazards are failures a second. Must not know what a job or an offer is.

/// One failure-prone run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Work to do, if nothing went wrong.
    pub work: f64,
    /// Failures a second.
    pub hazard: f64,
    /// To begin again after one.
    pub restart: f64,
    /// To write a checkpoint; absent when none are made.
    pub checkpoint: Option<f64>,
    /// Interruptions a second before which a checkpoint can still be written.
    pub interruptions: f64,
}

/// What it is expected to take.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Expected {
    /// Writing checkpoints.
    pub checkpoints: f64,
    /// Doing work again, and beginning again.
    pub lost: f64,
}

/// The interval between checkpoints that take `checkpoint` where `mean` passes between failures: J. Daly's
/// higher-order optimum (Future Generation Computer Systems 22, 2006), without the checkpoint itself.
#[must_use]
pub fn daly(checkpoint: f64, mean: f64) -> f64 {
    if checkpoint >= 2.0 * mean {
        return mean;
    }
    let x = checkpoint / (2.0 * mean);
    young(checkpoint, mean) * (1.0 + libm::sqrt(x) / 3.0 + x / 9.0) - checkpoint
}

/// The same to first order: `sqrt(2CM)`.
#[must_use]
pub fn young(checkpoint: f64, mean: f64) -> f64 {
    libm::sqrt(2.0 * checkpoint * mean)
}

/// Expected time of `work` that begins anew after each failure: `e^{λR}/λ · (e^{λW} − 1)`.
#[must_use]
pub fn unprotected(work: f64, hazard: f64, restart: f64) -> f64 {
    if hazard <= 0.0 {
        return work;
    }
    libm::exp(hazard * restart) / hazard * libm::expm1(hazard * work)
}

/// Expected time of `work` with a checkpoint after each `interval` of it:
/// `e^{λR}/λ · (e^{λ(τ+C)} − 1) · W/τ`.
#[must_use]
pub fn protected(work: f64, hazard: f64, restart: f64, checkpoint: f64, interval: f64) -> f64 {
    unprotected(interval + checkpoint, hazard, restart) * (work / interval)
}

impl Run {
    /// What it is expected to take beside its work; infinite where it would never end.
    #[must_use]
    pub fn expected(&self) -> Expected {
        let (checkpoints, time) = self.before_interruptions();
        let spent_restarting = self.interruptions * self.restart;
        let total = if spent_restarting < 1.0 {
            time / (1.0 - spent_restarting)
        } else {
            f64::INFINITY
        };
        Expected {
            checkpoints,
            lost: (total - checkpoints - self.work).max(0.0),
        }
    }

    /// Time for checkpoints, and for all.
    fn before_interruptions(&self) -> (f64, f64) {
        let plain = || (0.0, unprotected(self.work, self.hazard, self.restart));
        let Some(checkpoint) = self.checkpoint.filter(|_| self.hazard > 0.0) else {
            return plain();
        };
        let best = daly(checkpoint, 1.0 / self.hazard);
        // What takes no time is made all the time, and nothing is lost but the restarts.
        if best <= 0.0 {
            return (0.0, self.work * libm::exp(self.hazard * self.restart));
        }
        // Work that is over before the first checkpoint is due makes none.
        let pieces = libm::round(self.work / best);
        if pieces < 1.0 {
            return plain();
        }
        let interval = self.work / pieces;
        let time = protected(self.work, self.hazard, self.restart, checkpoint, interval);
        (pieces * checkpoint, time)
    }
}
