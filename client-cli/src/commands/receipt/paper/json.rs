//! A receipt as programs read it: all that was signed, and the signed bytes.

use super::{Paper, SCHEMA};
use crate::failure::end_in_words;
use crate::orders::hexadecimal;
use crate::view::{kind_word, rates_json, rfc3339, term_json};
use protocol::usage::Receipt;
use serde_json::{Value, json};

impl Paper {
    /// The file.
    pub(crate) fn json(&self) -> Value {
        let mut json = self.of_lease();
        if let (Some(fields), Some(sums)) = (json.as_object_mut(), sums(self.receipt()).as_object())
        {
            fields.extend(sums.clone());
        }
        json
    }

    fn of_lease(&self) -> Value {
        let receipt = self.receipt();
        let time = |at: Option<_>| at.map(rfc3339);
        json!({
            "schema": SCHEMA,
            "lease": receipt.lease.to_string(),
            "name": receipt.name.as_str(),
            "renter": receipt.renter.to_string(),
            "host": receipt.host.to_string(),
            "broker": protocol::ids::BrokerId::from(self.signer()).to_string(),
            "offer": receipt.offer.to_string(),
            "kind": kind_word(receipt.kind),
            "gpu_count": receipt.gpus,
            "rates": rates_json(&receipt.rates),
            "term": receipt.term.as_ref().map(term_json),
            "image": receipt.image.to_string(),
            "issued_at": rfc3339(self.verified.header().issued),
            "final": receipt.ended.is_some(),
            "ordered_at": rfc3339(receipt.ordered_at),
            "started_at": time(receipt.started_at),
            "ended_at": time(receipt.ended.as_ref().map(|(at, _)| *at)),
            "ended_because": receipt.ended.as_ref().map(|(_, cause)| end_in_words(cause)),
            "order_digest": receipt.order.to_string(),
            "grant_digest": receipt.grant.map(|digest| digest.to_string()),
            "report_digest": receipt.report.map(|digest| digest.to_string()),
            "signed": hexadecimal(&self.bytes),
        })
    }
}

fn sums(receipt: &Receipt) -> Value {
    json!({
        "disk_bytes": receipt.disk.0,
        "running_ms": receipt.usage.running.0,
        "stored_ms": receipt.usage.stored.0,
        "uploaded_bytes": receipt.usage.uploaded.0,
        "downloaded_bytes": receipt.usage.downloaded.0,
        "metered_running_ms": receipt.meters.running.0,
        "compute_usd_per_hour": receipt.prices.compute.amount().decimal(),
        "storage_usd_per_gb_month": receipt.prices.storage.amount().decimal(),
        "upload_usd_per_gb": receipt.prices.upload.amount().decimal(),
        "download_usd_per_gb": receipt.prices.download.amount().decimal(),
        "compute_usd": receipt.amounts.compute.decimal(),
        "storage_usd": receipt.amounts.storage.decimal(),
        "upload_usd": receipt.amounts.upload.decimal(),
        "download_usd": receipt.amounts.download.decimal(),
        "total_usd": receipt.total.decimal(),
        "refunded_usd": receipt.refunded.decimal(),
        "budget_usd": receipt.budget.decimal(),
        "fee_basis_points": receipt.fee_rate.0,
        "fee_usd": receipt.fee.decimal(),
        "host_usd": receipt.host_share.decimal(),
    })
}
