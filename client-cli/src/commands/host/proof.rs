//! Evidence whose signatures were checked, and the score computed from it; in a file, the signed bytes alone.
//!
//! Pure: no broker is asked and no clock is read.

use crate::failure::{Code, Failure};
use crate::orders::{from_hexadecimal, hexadecimal};
use protocol::codec;
use protocol::ids::{BrokerId, HostId, PublicKey};
use protocol::reliability::{Evidence, HostEvidence, Outcome, Score, Standing};
use protocol::signed::{Signed, Statement};
use protocol::units::Timestamp;
use serde::{Deserialize, Serialize};

/// Schema of the file.
const SCHEMA: &str = "feira.host-evidence/1";

/// What one broker signed of a host, complete, and what it comes to.
#[derive(Debug, Clone)]
pub(super) struct Proof {
    pub(super) broker: BrokerId,
    pub(super) evidence: Evidence,
    /// The moment of the score.
    pub(super) as_of: Timestamp,
    pub(super) score: Score,
    /// When the broker heard the host last, by its own word; not in a file.
    pub(super) heard_at: Option<Timestamp>,
    standing: Signed<Standing>,
    outcomes: Vec<Signed<Outcome>>,
}

/// A file of evidence: of one host, from each of some brokers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    schema: String,
    host: String,
    brokers: Vec<Part>,
}

/// What one broker signed, hexadecimal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    broker: String,
    as_of_unix_ms: u64,
    score_millionths: u32,
    standing: String,
    outcomes: Vec<String>,
}

impl Proof {
    /// Checks the pages of one answer: signatures, that nothing is missing, and that the score follows.
    pub(super) fn of(
        broker: BrokerId,
        host: HostId,
        pages: &[HostEvidence],
    ) -> Result<Self, Failure> {
        let Some(last) = pages.last() else {
            return Err(wrong("there is nothing".to_owned()));
        };
        let outcomes = pages.iter().flat_map(|page| page.outcomes.iter().cloned());
        let mut proof = Self::check(
            broker,
            last.standing.clone(),
            outcomes.collect(),
            (last.as_of, last.ppm),
        )?;
        if proof.evidence.host != host {
            return Err(wrong("it is of another host".to_owned()));
        }
        proof.heard_at = last.heard_at;
        Ok(proof)
    }

    fn check(
        broker: BrokerId,
        standing: Signed<Standing>,
        outcomes: Vec<Signed<Outcome>>,
        (as_of, ppm): (Timestamp, u32),
    ) -> Result<Self, Failure> {
        let signed_standing = body_of(broker, &standing)?;
        let bodies = outcomes.iter().map(|outcome| body_of(broker, outcome));
        let bodies = bodies.collect::<Result<Vec<_>, _>>()?;
        let evidence = Evidence::of_statements(signed_standing, bodies)
            .map_err(|error| wrong(error.to_string()))?;
        let score = Score::of(&evidence, as_of);
        if score.ppm != ppm {
            return Err(wrong(format!(
                "it comes to a score of {} millionths; the broker says {ppm}",
                score.ppm
            )));
        }
        Ok(Self {
            broker,
            evidence,
            as_of,
            score,
            heard_at: None,
            standing,
            outcomes,
        })
    }

    /// Whether the broker knows nothing of the host.
    pub(super) fn is_empty(&self) -> bool {
        self.heard_at.is_none() && self.evidence == Evidence::new(self.evidence.host)
    }
}

/// The body of a statement that this broker signed.
fn body_of<T: Statement>(broker: BrokerId, signed: &Signed<T>) -> Result<T, Failure> {
    let verified = signed.verify().map_err(|error| wrong(error.to_string()))?;
    if verified.signer() != PublicKey::from(broker) {
        return Err(wrong("somebody else than the broker signed it".to_owned()));
    }
    Ok(verified.into_body())
}

fn wrong(what: String) -> Failure {
    let what = format!("the evidence on the host is not right: {what}");
    Failure::new(Code::EvidenceWrong, what)
}

impl File {
    /// The file of what some brokers signed.
    pub(super) fn of(host: HostId, proofs: &[Proof]) -> Result<Self, Failure> {
        let part = |proof: &Proof| {
            let outcomes = proof.outcomes.iter();
            let outcomes = outcomes.map(|outcome| Ok(hexadecimal(&codec::encode(outcome)?)));
            Ok(Part {
                broker: proof.broker.to_string(),
                as_of_unix_ms: proof.as_of.0,
                score_millionths: proof.score.ppm,
                standing: hexadecimal(&codec::encode(&proof.standing)?),
                outcomes: outcomes.collect::<Result<_, Failure>>()?,
            })
        };
        Ok(Self {
            schema: SCHEMA.to_owned(),
            host: host.to_string(),
            brokers: proofs.iter().map(part).collect::<Result<_, Failure>>()?,
        })
    }

    /// The file's text.
    pub(super) fn text(&self) -> String {
        // Texts and numbers alone: there is nothing in it that cannot be written.
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        format!("{text}\n")
    }

    /// Reads a file's text.
    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        let file: Self = serde_json::from_str(text).map_err(|error| not(&error.to_string()))?;
        if file.schema != SCHEMA {
            return Err(not(&format!("its schema is {}", file.schema)));
        }
        Ok(file)
    }

    /// Checks all of it.
    pub(super) fn proofs(&self) -> Result<(HostId, Vec<Proof>), Failure> {
        let host: HostId = self.host.parse().map_err(|_| not("'host' is no host"))?;
        let proof = |part: &Part| {
            let broker = part.broker.parse().map_err(|_| not("'broker' is none"))?;
            let outcomes = part.outcomes.iter().map(|text| decoded(text));
            let proof = Proof::check(
                broker,
                decoded(&part.standing)?,
                outcomes.collect::<Result<_, _>>()?,
                (Timestamp(part.as_of_unix_ms), part.score_millionths),
            )?;
            if proof.evidence.host != host {
                return Err(wrong("it is of another host".to_owned()));
            }
            Ok(proof)
        };
        let proofs: Result<Vec<Proof>, Failure> = self.brokers.iter().map(proof).collect();
        Ok((host, proofs?))
    }
}

fn not(what: &str) -> Failure {
    Failure::new(Code::NotEvidence, format!("not evidence on a host: {what}"))
        .help("feira host show HOST --save FILE writes such a file")
}

fn decoded<T: Statement>(text: &str) -> Result<Signed<T>, Failure> {
    let bytes = from_hexadecimal(text).ok_or_else(|| not("a statement is not hexadecimal"))?;
    codec::decode(&bytes).map_err(|error| wrong(format!("a statement cannot be read: {error}")))
}

#[cfg(test)]
mod tests;
