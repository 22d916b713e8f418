//! Proofs in a file: the signed verdicts and the transcripts they name, as bytes. Pure.

use super::fetch::{checked, wrong};
use super::words;
use crate::failure::{Code, Failure};
use crate::orders::{from_hexadecimal, hexadecimal};
use protocol::codec;
use protocol::ids::{BrokerId, HostId};
use protocol::signed::{Signed, Verified};
use protocol::verify::Verdict;
use serde_json::{Value, json};

/// Schema of the file, and of the answer.
pub(super) const SCHEMA: &str = "feira.proofs/1";

/// A verdict whose signature was checked, and its transcript, which was not judged.
#[derive(Debug)]
pub(super) struct Proof {
    pub(super) broker: BrokerId,
    signed: (BrokerId, Verified<Verdict>),
    transcript: Vec<u8>,
}

impl Proof {
    pub(super) const fn new(
        broker: BrokerId,
        verdict: Verified<Verdict>,
        transcript: Vec<u8>,
    ) -> Self {
        Self {
            broker,
            signed: (broker, verdict),
            transcript,
        }
    }

    pub(super) const fn verdict(&self) -> &Verdict {
        self.signed.1.body()
    }

    pub(super) const fn signed_by(&self) -> &(BrokerId, Verified<Verdict>) {
        &self.signed
    }

    pub(super) fn transcript(&self) -> &[u8] {
        &self.transcript
    }
}

/// A file of proofs of one host.
#[derive(Debug)]
pub(super) struct File(Value);

impl File {
    pub(super) fn of(host: HostId, proofs: &[Proof]) -> Result<Self, Failure> {
        let mut shown = words::json(proofs.iter().map(Proof::signed_by));
        for (proof, shown) in proofs
            .iter()
            .zip(shown.as_array_mut().into_iter().flatten())
        {
            shown["signed"] = json!(hexadecimal(&codec::encode(proof.signed.1.signed())?));
            shown["transcript_bytes"] = json!(hexadecimal(&proof.transcript));
        }
        let host = host.to_string();
        Ok(Self(
            json!({ "schema": SCHEMA, "host": host, "proofs": shown }),
        ))
    }

    pub(super) fn text(&self) -> String {
        format!("{:#}\n", self.0)
    }

    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        let file: Value = serde_json::from_str(text).map_err(|error| not(&error.to_string()))?;
        if file["schema"] != SCHEMA {
            return Err(not(&format!("its schema is {}", file["schema"])));
        }
        Ok(Self(file))
    }

    /// What is in it, each signature checked, and the readable part held against the signed one.
    pub(super) fn proofs(&self) -> Result<(HostId, Vec<Proof>), Failure> {
        let host = text(&self.0["host"])?;
        let host: HostId = host.parse().map_err(|_| not("'host' is no host"))?;
        let all = self.0["proofs"].as_array();
        let all = all.ok_or_else(|| not("it has no proofs"))?;
        let proofs: Result<Vec<Proof>, Failure> = all.iter().map(|one| proof(host, one)).collect();
        let proofs = proofs?;
        if proofs.is_empty() {
            return Err(not("it has no proofs"));
        }
        if Self::of(host, &proofs)?.0 != self.0 {
            return Err(wrong("what is written there is not what was signed"));
        }
        Ok((host, proofs))
    }
}

fn proof(host: HostId, shown: &Value) -> Result<Proof, Failure> {
    let broker = text(&shown["broker"])?;
    let broker = broker.parse().map_err(|_| not("'broker' is none"))?;
    let signed: Signed<Verdict> = codec::decode(&bytes(&shown["signed"])?)
        .map_err(|error| wrong(&format!("a verdict cannot be read: {error}")))?;
    let verified = checked(broker, &signed)?;
    if verified.body().host != host {
        return Err(wrong("it is of another host"));
    }
    let transcript = bytes(&shown["transcript_bytes"])?;
    Ok(Proof::new(broker, verified, transcript))
}

fn text(value: &Value) -> Result<&str, Failure> {
    value.as_str().ok_or_else(|| not("a text is missing"))
}

fn bytes(value: &Value) -> Result<Vec<u8>, Failure> {
    from_hexadecimal(text(value)?).ok_or_else(|| not("what was signed is not hexadecimal"))
}

fn not(what: &str) -> Failure {
    Failure::new(Code::NotEvidence, format!("not proofs of hardware: {what}"))
        .help("feira audit show HOST --save FILE writes such a file")
}

#[cfg(test)]
mod tests;
