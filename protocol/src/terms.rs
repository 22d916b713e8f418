//! Prices and limits of a contract, and the sums that follow from them.
//!
//! Every charge is cumulative: `due = floor(rate × time)` from the start of the contract, and a posting is
//! what is due now less what was posted. So a charge never exceeds the exact amount, differs from it by
//! less than one micro-dollar a component, and does not depend on how often it was metered.

mod deal;
mod rates;
pub mod reserved;

pub use deal::{BID_STEP_MIN, ContractKind, Deal, GRACE_MAX, GRACE_MIN};
pub use rates::{RATES_MAX, RateStep, Rates, RatesError};

use crate::units::{
    BYTES_PER_GB, BasisPoints, Bytes, MicroUsd, Millis, PricePerGb, PricePerGbMonth, PricePerHour,
    SECONDS_PER_MONTH, Seconds, Timestamp,
};
use serde::{Deserialize, Serialize};

/// What a host asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// While it runs: in an offer for each GPU (for the machine where there is none), in an award and a
    /// lease for all of them together.
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

    /// The prices of `gpus` GPUs together; those of the machine when there is none.
    #[must_use]
    pub const fn of_gpus(&self, gpus: u16) -> Self {
        let times = if gpus == 0 { 1 } else { gpus as u64 };
        Self {
            compute: PricePerHour(self.compute.0.saturating_mul(times)),
            ..*self
        }
    }

    /// What an hour costs all in, with the disk and the traffic of `need`.
    #[must_use]
    pub fn all_in_hour(&self, need: Need) -> MicroUsd {
        let hour = Seconds(3600).millis();
        compute_due(self.compute, hour)
            .saturating_add(storage_due(self.storage, need.disk, hour))
            .saturating_add(traffic_due(self.upload, need.upload))
            .saturating_add(traffic_due(self.download, need.download))
    }
}

/// What a lease would use beside its GPUs: what all-in prices are worked out with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// Disk that is kept.
    pub disk: Bytes,
    /// Bytes that leave the container in an hour.
    pub upload: Bytes,
    /// Bytes that reach it in an hour.
    pub download: Bytes,
}

impl Need {
    /// A disk, and no traffic.
    #[must_use]
    pub const fn disk(disk: Bytes) -> Self {
        Self {
            disk,
            upload: Bytes(0),
            download: Bytes(0),
        }
    }
}

/// What a host promises and bounds beside its prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// From the broker's match to the container running; later, the lease is lost.
    pub start_within: Seconds,
    /// Shortest lease that may be asked for; nothing when it is zero.
    pub duration_min: Seconds,
    /// Longest lease, if there is one.
    pub duration_max: Option<Seconds>,
    /// Until when the host promises to be there, if it promises: leases end there.
    pub until: Option<Timestamp>,
    /// From SIGTERM to SIGKILL when a lease stops.
    pub stop_grace: Seconds,
    /// From the notice that an interruptible lease has to go to SIGKILL: [`GRACE_MIN`] to [`GRACE_MAX`].
    pub notice: Seconds,
    /// Largest disk of all leases of the offer together.
    pub disk_max: Bytes,
}

/// What a host sells beside leases on demand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sales {
    /// The lowest interruptible bid for a GPU and hour; absent when nothing is sold so.
    pub floor: Option<PricePerHour>,
    /// The largest discount for a prepaid term; absent when none is sold.
    pub discount_max: Option<BasisPoints>,
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
