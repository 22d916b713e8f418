//! What an operator asks about proofs of hardware: how a host's offers stand, and one as soon as may be.

use super::desk::AdminDesk;
use super::shown;
use super::wire::AdminReply;
use crate::core::proofs::ProofRow;
use protocol::ids::{HostId, OfferId};
use protocol::message::Rejection;
use protocol::units::Timestamp;
use protocol::verify::VerificationLevel;
use serde::{Deserialize, Serialize};

/// How an offer stands with proofs of its hardware.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofView {
    /// Which offer.
    #[serde(with = "shown::text")]
    pub offer: OfferId,
    /// `unverified`, `verified` or `deverified`.
    pub level: String,
    /// Since when: of the proof, or of what took the level away.
    #[serde(with = "shown::time_if")]
    pub since: Option<Timestamp>,
    /// Why it is not verified any more, or why it cannot be put to the proof.
    pub reason: Option<String>,
    /// When it is put to the proof next, if this broker makes proofs.
    #[serde(with = "shown::time_if")]
    pub next_at: Option<Timestamp>,
    /// Whether a proof goes on.
    pub under_way: bool,
}

impl From<ProofRow> for ProofView {
    fn from(row: ProofRow) -> Self {
        let ProofRow {
            offer,
            level,
            unprovable,
            due,
            is_under_way,
        } = row;
        let (level, since, reason) = match level {
            VerificationLevel::Unverified => ("unverified", None, None),
            VerificationLevel::Verified { at, .. } => ("verified", Some(at), None),
            VerificationLevel::Withdrawn { reason, at } => {
                ("deverified", Some(at), Some(reason.to_string()))
            }
        };
        Self {
            offer,
            level: level.to_owned(),
            since,
            next_at: due.filter(|_| unprovable.is_none()),
            reason: reason.or(unprovable),
            under_way: is_under_way,
        }
    }
}

impl AdminDesk {
    /// How the offers of a host stand.
    pub(super) async fn proofs(&self, host: HostId) -> Result<Vec<ProofView>, Rejection> {
        let rows = self.api.market.proof_rows(host).await?;
        Ok(rows.into_iter().map(ProofView::from).collect())
    }

    /// Asks for a proof of an offer, or of all that a host offers, as soon as it is idle.
    pub(super) async fn verify(
        &self,
        host: Option<HostId>,
        offer: Option<OfferId>,
    ) -> Result<AdminReply, Rejection> {
        let asked = self.api.market.ask_proof(host, offer).await;
        match asked {
            Ok(offers) => Ok(AdminReply::Verifying(
                offers.iter().map(ToString::to_string).collect(),
            )),
            Err(Rejection::OfferGone) => Ok(AdminReply::Refused(
                "nothing of that id is offered here now".to_owned(),
            )),
            Err(other) => Err(other),
        }
    }
}
