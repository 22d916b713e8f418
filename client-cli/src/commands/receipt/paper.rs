//! A receipt as a file: the signed bytes, and beside them what they say in words that people and programs
//! read. Reading one checks the signature, every sum, and that the words say what was signed.
//!
//! Pure: no broker is asked and no clock is read.

mod json;
mod words;

use crate::failure::{Code, Failure};
use crate::orders::from_hexadecimal;
use protocol::codec;
use protocol::ids::PublicKey;
use protocol::signed::{Signed, Verified};
use protocol::usage::Receipt;
use serde_json::Value;

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
