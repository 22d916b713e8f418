//! The numbers of the market that an operator may choose, with the ones it starts from.
//!
//! Must not read a file: `config` does, and fills this in.

use protocol::units::{BasisPoints, Seconds};

/// The numbers of the market. Those of a lease are frozen when it is matched; the rest hold from the next
/// moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarketSettings {
    /// The broker's part of every charge.
    pub fee: BasisPoints,
    /// From the match to the host's grant.
    pub accept_within: Seconds,
    /// A running lease whose host is silent for longer is suspect, and nobody is billed for a longer gap.
    pub suspect_after: Seconds,
    /// A lease whose host is silent for longer is lost.
    pub lost_after: Seconds,
    /// How long a lease's hold pays for.
    pub hold: Seconds,
    /// How often the hold is filled up again.
    pub top_up_every: Seconds,
    /// The renter is warned when the money lasts for less.
    pub low_balance: Seconds,
    /// The lease is stopped when the money lasts for less; longer than any gap that is billed, so that
    /// what ran was always paid for.
    pub stop_below: Seconds,
    /// How often a running meter is journalled.
    pub meter_every: Seconds,
    /// How long a host's earnings are pending.
    pub dispute: Seconds,
    /// How long they are of a host that carries its leases through.
    pub dispute_trusted: Seconds,
    /// How long the disk of a stopped lease is kept.
    pub disk_keep: Seconds,
    /// How long it is kept when the money ran out, or the market took its resources.
    pub disk_keep_unpaid: Seconds,
    /// How long an interruptible lease runs before a higher bid can push it out.
    pub min_run: Seconds,
}

impl Default for MarketSettings {
    fn default() -> Self {
        Self {
            fee: BasisPoints(300),
            accept_within: Seconds(10),
            suspect_after: Seconds(90),
            lost_after: Seconds(900),
            hold: Seconds(3600),
            top_up_every: Seconds(300),
            low_balance: Seconds(900),
            stop_below: Seconds(300),
            meter_every: Seconds(30),
            dispute: Seconds(72 * 3600),
            dispute_trusted: Seconds(24 * 3600),
            disk_keep: Seconds(7 * 24 * 3600),
            disk_keep_unpaid: Seconds(48 * 3600),
            min_run: Seconds(600),
        }
    }
}
