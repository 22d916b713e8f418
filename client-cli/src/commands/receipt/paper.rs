//! A receipt as a file: the signed bytes, and beside them what they say in words that people and programs
//! read. Reading one checks the signature, every sum, and that the words say what was signed.
//!
//! Pure: no broker is asked and no clock is read.

mod words;

use crate::failure::{Code, Failure, end_in_words};
use crate::orders::{from_hexadecimal, hexadecimal};
use crate::view::{kind_word, rates_json, rfc3339, term_json};
use protocol::codec;
use protocol::ids::PublicKey;
use protocol::signed::{Signed, Verified};
use protocol::usage::Receipt;
use serde_json::{Value, json};

/// Schema of the file.
const SCHEMA: &str = "feira.receipt/1";

/// A receipt whose signature and sums are right.
#[derive(Debug, Clone)]
pub(crate) struct Paper {
    verified: Verified<Receipt>,
    /// The signed bytes as they travel.
    bytes: Vec<u8>,
}

impl Paper {
    /// Checks signature and sums.
    pub(crate) fn of(signed: &Signed<Receipt>) -> Result<Self, Failure> {
        let verified = signed.verify().map_err(|error| wrong(error.to_string()))?;
        verified
            .body()
            .check()
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            verified,
            bytes: codec::encode(signed)?,
        })
    }

    /// Reads a file's text, and checks besides that what it says in words was signed.
    pub(crate) fn read(text: &str) -> Result<Self, Failure> {
        let not = |what: &str| Failure::new(Code::NotAReceipt, format!("not a receipt: {what}"));
        let file: Value =
            serde_json::from_str(text).map_err(|error| not(&format!("no JSON: {error}")))?;
        if file["schema"] != SCHEMA {
            return Err(not(&format!(
                "its schema is {}, not {SCHEMA}",
                file["schema"]
            )));
        }
        let hexadecimal = file["signed"]
            .as_str()
            .ok_or_else(|| not("there is no 'signed' in it"))?;
        let bytes =
            from_hexadecimal(hexadecimal).ok_or_else(|| not("'signed' is not hexadecimal"))?;
        let signed = codec::decode::<Signed<Receipt>>(&bytes)
            .map_err(|error| wrong(format!("the signed part cannot be read: {error}")))?;
        let paper = Self::of(&signed)?;
        match difference(&file, &paper.json()) {
            None => Ok(paper),
            Some(field) => Err(wrong(format!(
                "'{field}' says {}, but {} was signed",
                file.get(&field).unwrap_or(&Value::Null),
                paper.json().get(&field).unwrap_or(&Value::Null)
            ))),
        }
    }

    /// What it says.
    pub(crate) fn receipt(&self) -> &Receipt {
        self.verified.body()
    }

    /// Who signed it.
    pub(crate) fn signer(&self) -> PublicKey {
        self.verified.signer()
    }

    /// The file.
    pub(crate) fn json(&self) -> Value {
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
            "budget_usd": receipt.budget.decimal(),
            "fee_basis_points": receipt.fee_rate.0,
            "fee_usd": receipt.fee.decimal(),
            "host_usd": receipt.host_share.decimal(),
            "order_digest": receipt.order.to_string(),
            "grant_digest": receipt.grant.map(|digest| digest.to_string()),
            "report_digest": receipt.report.map(|digest| digest.to_string()),
            "signed": hexadecimal(&self.bytes),
        })
    }
}

fn wrong(what: String) -> Failure {
    Failure::new(
        Code::ReceiptWrong,
        format!("the receipt is not right: {what}"),
    )
    .help("do not accept it; ask the broker with the lease's id")
}

/// The first field of either that the other has not, or has otherwise.
fn difference(file: &Value, signed: &Value) -> Option<String> {
    let (file, signed) = (file.as_object()?, signed.as_object()?);
    let names = signed.keys().chain(file.keys());
    names
        .into_iter()
        .find(|name| file.get(*name) != signed.get(*name))
        .cloned()
}

#[cfg(test)]
mod tests;
