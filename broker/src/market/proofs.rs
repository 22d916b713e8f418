//! Asking the market about proofs of hardware: what is next, what became of it, what is known.

use super::handle::MarketHandle;
use super::input::{Input, Reply};
use super::worker::{Answer, later};
use crate::core::desk::Desk;
use crate::core::proofs::schedule::Outcome;
use crate::core::proofs::{Assignment, Float, ProofRow, ProofRules};
use protocol::bounded::List;
use protocol::ids::{HostId, LeaseId, OfferId};
use protocol::message::Rejection;
use protocol::offer::ResourceName;
use protocol::signed::Signed;
use protocol::units::Timestamp;
use protocol::verify::{VERDICTS_MAX, Verdict};

/// What can be asked. None of it changes the hard state: that is done by commands.
#[derive(Debug)]
pub(super) enum ProofInput {
    Begin(Box<ProofRules>, Reply<()>),
    Next(Reply<Option<Box<Assignment>>>),
    Over(OfferId, Outcome, Reply<bool>),
    Ask(Option<HostId>, Option<OfferId>, Reply<Vec<OfferId>>),
    Floats(Reply<Vec<Float>>),
    Verdicts(HostId, Reply<Verdicts>),
    Rows(HostId, Reply<Vec<ProofRow>>),
    Resources(LeaseId, Reply<Vec<ResourceName>>),
}

type Verdicts = List<Signed<Verdict>, VERDICTS_MAX>;

/// What comes of it.
pub(super) fn answer(desk: &mut Desk, now: Timestamp, input: ProofInput) -> Answer {
    match input {
        ProofInput::Begin(rules, reply) => {
            desk.prove_by(now, *rules);
            later(reply, Ok(()))
        }
        ProofInput::Next(reply) => later(reply, Ok(desk.next_proof(now).map(Box::new))),
        ProofInput::Over(offer, outcome, reply) => {
            later(reply, Ok(desk.proof_over(now, offer, outcome)))
        }
        ProofInput::Ask(host, offer, reply) => later(reply, desk.ask_proof(now, host, offer)),
        ProofInput::Floats(reply) => later(reply, Ok(desk.floats())),
        ProofInput::Verdicts(host, reply) => later(reply, Ok(desk.verdicts(host))),
        ProofInput::Rows(host, reply) => later(reply, Ok(desk.proof_rows(now, host))),
        ProofInput::Resources(lease, reply) => later(reply, Ok(desk.resources_of(lease))),
    }
}

impl MarketHandle {
    /// Begins to schedule proofs.
    ///
    /// # Errors
    /// Only busy or shutting down, here and below where nothing else is said.
    pub async fn begin_proofs(&self, rules: ProofRules) -> Result<(), Rejection> {
        self.ask(|reply| Input::Proof(ProofInput::Begin(Box::new(rules), reply)))
            .await
    }

    /// The next proof to begin, if one may; it is under way from here on.
    ///
    /// # Errors
    /// As above.
    pub async fn next_proof(&self) -> Result<Option<Box<Assignment>>, Rejection> {
        self.ask(|reply| Input::Proof(ProofInput::Next(reply)))
            .await
    }

    /// A proof is over. Gives back whether a break counts as the host's failure.
    ///
    /// # Errors
    /// As above.
    pub async fn proof_over(&self, offer: OfferId, outcome: Outcome) -> Result<bool, Rejection> {
        self.ask(|reply| Input::Proof(ProofInput::Over(offer, outcome, reply)))
            .await
    }

    /// The operator asks for a proof of an offer, or of all of a host.
    ///
    /// # Errors
    /// When there is none, or it cannot be.
    pub async fn ask_proof(
        &self,
        host: Option<HostId>,
        offer: Option<OfferId>,
    ) -> Result<Vec<OfferId>, Rejection> {
        self.ask(|reply| Input::Proof(ProofInput::Ask(host, offer, reply)))
            .await
    }

    /// The renters of proofs who have money of the broker's.
    ///
    /// # Errors
    /// As above.
    pub async fn floats(&self) -> Result<Vec<Float>, Rejection> {
        self.ask(|reply| Input::Proof(ProofInput::Floats(reply)))
            .await
    }

    /// The last verdicts on a host's devices, newest first.
    ///
    /// # Errors
    /// As above.
    pub async fn verdicts(&self, host: HostId) -> Result<Verdicts, Rejection> {
        self.ask(|reply| Input::Proof(ProofInput::Verdicts(host, reply)))
            .await
    }

    /// How the offers of a host stand with proofs.
    ///
    /// # Errors
    /// As above.
    pub async fn proof_rows(&self, host: HostId) -> Result<Vec<ProofRow>, Rejection> {
        self.ask(|reply| Input::Proof(ProofInput::Rows(host, reply)))
            .await
    }

    /// What a lease holds alone.
    ///
    /// # Errors
    /// As above.
    pub async fn resources_of(&self, lease: LeaseId) -> Result<Vec<ResourceName>, Rejection> {
        self.ask(|reply| Input::Proof(ProofInput::Resources(lease, reply)))
            .await
    }
}
