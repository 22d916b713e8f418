//! How leases, times and money look: the JSON that programs read and the words that people read.
//!
//! Pure: everything shown is an argument.

mod json;
mod listing;
mod object;
mod phase;
mod slice;
mod sums;

pub(crate) use json::{kind_word, rates_json, term_json};
pub(crate) use listing::lease_listing;
pub(crate) use object::lease_object;
pub(crate) use phase::{pause_in_words, phase_in_words};
pub(crate) use slice::{apart_in_words, slice_in_words, slice_json};
pub(crate) use sums::{cancelled, disk_per_day, hourly, lasts};

use protocol::filter::gigabytes_as_sold;
use protocol::ids::BrokerId;
use protocol::lease::LeaseView;
use protocol::machine::Gpu;
use protocol::offer::{Offer, Partition};
use protocol::units::{Bytes, Timestamp};

/// A lease with the broker that keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// Who keeps it.
    pub broker: BrokerId,
    /// The lease.
    pub view: LeaseView,
}

fn moment(at: Timestamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(i64::try_from(at.0).ok()?).ok()
}

/// RFC 3339 in UTC, to the millisecond.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    moment(at).map_or_else(|| "unknown".to_owned(), |moment| format!("{moment:.3}"))
}

/// For people: local time with its zone.
pub(crate) fn clock_time(at: Timestamp) -> String {
    let zoned = moment(at).map(|moment| moment.to_zoned_datetime(jiff::tz::TimeZone::system()));
    zoned.map_or_else(
        || "unknown".to_owned(),
        |zoned| zoned.strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
    )
}

/// So many of these GPUs, which are all of one model: `2x RTX 4090 24 GB`, or `none` on a CPU machine.
fn portion_in_words(gpus: &[Gpu], count: u16) -> String {
    let Some(first) = gpus.first() else {
        return "none".to_owned();
    };
    let model = first.model.replace("NVIDIA ", "").replace("GeForce ", "");
    // As it is sold, which drivers never quite report.
    let gigabytes = gigabytes_as_sold(first.vram) / 1000;
    format!("{count}x {model} {gigabytes} GB")
}

/// So many GPUs of an offer, or the slice that it sells: `1x H100 80GB HBM3 3g.40gb`.
pub(crate) fn offered_in_words(offer: &Offer, count: u16) -> String {
    goods_in_words(&offer.share.gpus, count, offer.partition.as_ref())
}

/// So many GPUs, or a slice of one.
pub(crate) fn goods_in_words(gpus: &[Gpu], count: u16, partition: Option<&Partition>) -> String {
    match (gpus.first(), partition) {
        (Some(gpu), Some(slice)) => {
            let model = gpu.model.replace("NVIDIA ", "").replace("GeForce ", "");
            format!("{count}x {model} {}", slice.profile)
        }
        _ => portion_in_words(gpus, count),
    }
}

/// What a price of a GPU and hour is for.
pub(crate) const fn unit(gpus: u16) -> &'static str {
    match gpus {
        0 => "the machine",
        _ => "a GPU",
    }
}

/// Cores as people say them: `2`, `1.5`.
pub(crate) fn cores_in_words(millicores: u32) -> String {
    let (whole, rest) = (millicores / 1000, millicores % 1000);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{rest:03}")
        .trim_end_matches('0')
        .to_owned()
}

/// RAM as people say it, in binary gigabytes.
pub(crate) fn ram_in_words(ram: Bytes) -> String {
    let tenths = u128::from(ram.0) * 10 / (1 << 30);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_utc() {
        // 2026-11-30T14:02:44.103Z, by `date -u -d … +%s`.
        assert_eq!(
            rfc3339(Timestamp(1_796_047_364_103)),
            "2026-11-30T14:02:44.103Z"
        );
        assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn sizes_in_words() {
        assert_eq!(cores_in_words(2000), "2");
        assert_eq!(cores_in_words(1500), "1.5");
        assert_eq!(ram_in_words(Bytes(64 << 30)), "64.0 GiB");
        assert_eq!(goods_in_words(&[], 0, None), "none");
    }
}
