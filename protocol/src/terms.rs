//! Prices and limits of a contract, and the sums that follow from them.
//!
//! Every charge is cumulative: `due = floor(rate × time)` from the start of the contract, and a posting is
//! what is due now less what was posted. So a charge never exceeds the exact amount, differs from it by
//! less than one micro-dollar a component, and does not depend on how often it was metered.

use crate::units::{
    BYTES_PER_GB, BasisPoints, Bytes, MicroUsd, Millis, PricePerGb, PricePerGbMonth, PricePerHour,
    SECONDS_PER_MONTH, Seconds,
};
use serde::{Deserialize, Serialize};

/// How a resource is contracted. Interruptible and reserved contracts join this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ContractKind {
    /// At the host's price until either a limit or the renter ends it; all terms are frozen.
    OnDemand,
}

/// What a host asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// For the share of the machine that the offer sells, while it runs.
    pub compute: PricePerHour,
    /// For the disk, while it exists.
    pub storage: PricePerGbMonth,
    /// For each byte that leaves the container.
    pub upload: PricePerGb,
    /// For each byte that reaches the container.
    pub download: PricePerGb,
}

impl Prices {
    /// Whether every price is within the range that the market's sums are proved for.
    #[must_use]
    pub const fn are_sane(&self) -> bool {
        self.compute.is_sane()
            && self.storage.is_sane()
            && self.upload.is_sane()
            && self.download.is_sane()
    }

    /// What an hour costs all in, with `disk` and without traffic.
    #[must_use]
    pub fn all_in_hour(&self, disk: Bytes) -> MicroUsd {
        let hour = Seconds(3600).millis();
        compute_due(self.compute, hour).saturating_add(storage_due(self.storage, disk, hour))
    }
}

/// What a host promises and bounds beside its prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// From the broker's match to the container running; later, the lease is lost.
    pub start_within: Seconds,
    /// Longest lease, if there is one.
    pub duration_max: Option<Seconds>,
    /// From SIGTERM to SIGKILL when a lease stops.
    pub stop_grace: Seconds,
    /// Largest disk of one lease.
    pub disk_max: Bytes,
}

/// What is due for running `elapsed` at `price`: `floor(price × s / 3600)`, to the millisecond.
#[must_use]
pub fn compute_due(price: PricePerHour, elapsed: Millis) -> MicroUsd {
    floor(u128::from(price.0) * u128::from(elapsed.0), 3_600_000)
}

/// What is due for keeping `disk` for `elapsed`: `floor(GB × price × s / 2 592 000)`.
#[must_use]
pub fn storage_due(price: PricePerGbMonth, disk: Bytes, elapsed: Millis) -> MicroUsd {
    // Price and size alone fit; with a time of centuries the product saturates, where nobody could pay.
    let rate = u128::from(price.0) * u128::from(disk.0);
    let product = rate.saturating_mul(u128::from(elapsed.0));
    floor(
        product,
        u128::from(BYTES_PER_GB) * u128::from(SECONDS_PER_MONTH) * 1000,
    )
}

/// What is due for `traffic`: `floor(bytes × price / 10⁹)`.
#[must_use]
pub fn traffic_due(price: PricePerGb, traffic: Bytes) -> MicroUsd {
    floor(
        u128::from(price.0) * u128::from(traffic.0),
        u128::from(BYTES_PER_GB),
    )
}

/// The broker's part of `gross`: `floor(gross × bps / 10 000)`; the host gets the rest.
#[must_use]
pub fn fee_of(gross: MicroUsd, fee: BasisPoints) -> MicroUsd {
    let gross = u128::try_from(gross.0).unwrap_or(0);
    floor(
        gross * u128::from(fee.0.min(BasisPoints::WHOLE.0)),
        u128::from(BasisPoints::WHOLE.0),
    )
}

fn floor(product: u128, divisor: u128) -> MicroUsd {
    MicroUsd(i64::try_from(product / divisor).unwrap_or(i64::MAX))
}
