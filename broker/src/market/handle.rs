//! Asking the market from any task. A full queue is an answer: busy.

use crate::core::command::{Answer, Command, VerifiedAnnouncement};
use crate::core::goal::Awards;
use crate::core::overview::{AccountRow, Counts, HostRow};
use crate::market::input::{Input, Reply};
use crate::store::LedgerReport;
use ed25519_dalek::SigningKey;
use protocol::ids::{DepositId, HostId, LeaseId, PublicKey, RenterId};
use protocol::lease::{Goal, LeaseView, Progress};
use protocol::message::{Found, LeaseScope, Rejection, Search};
use protocol::reliability::HostEvidence;
use protocol::signed::Signed;
use protocol::units::MicroUsd;
use protocol::usage::{AccountStatement, Balance, Earnings, Receipt};
use std::sync::Arc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// A way to ask the market. Every method waits for the commit of what it asked, and refuses with
/// [`Rejection::Busy`] when too much waits already, or [`Rejection::ShuttingDown`] when the market ended.
#[derive(Debug, Clone)]
pub struct MarketHandle {
    inputs: mpsc::Sender<Input>,
    key: Arc<SigningKey>,
}

/// What every method here may refuse with, beside its own reasons.
type Asked<T> = Result<T, Rejection>;

impl MarketHandle {
    pub(super) const fn new(inputs: mpsc::Sender<Input>, key: Arc<SigningKey>) -> Self {
        Self { inputs, key }
    }

    pub(super) async fn ask<T>(&self, input: impl FnOnce(Reply<T>) -> Input) -> Asked<T> {
        let (reply, answer) = oneshot::channel();
        self.inputs
            .try_send(input(reply))
            .map_err(|error| match error {
                TrySendError::Full(_) => Rejection::Busy,
                TrySendError::Closed(_) => Rejection::ShuttingDown,
            })?;
        answer.await.unwrap_or(Err(Rejection::ShuttingDown))
    }

    /// Asks for an effect.
    ///
    /// # Errors
    /// Why the market refuses.
    pub async fn command(&self, command: Command) -> Asked<Answer> {
        self.ask(|reply| Input::Command(command, reply)).await
    }

    /// Takes up all that a host offers now.
    ///
    /// # Errors
    /// When an offer is not the host's, or contradicts itself.
    pub async fn announce(&self, host: HostId, announced: VerifiedAnnouncement) -> Asked<()> {
        self.ask(|reply| Input::Announce(host, announced, reply))
            .await
    }

    /// Shows how far a start is.
    ///
    /// # Errors
    /// When the lease is not the host's.
    pub async fn progress(&self, host: HostId, progress: Progress) -> Asked<()> {
        self.ask(|reply| Input::Progress(host, progress, reply))
            .await
    }

    /// Withdraws the offers of a host that is not connected any more. Waits for room in the queue.
    pub async fn gone(&self, host: HostId) {
        // A market that ended has no offers either.
        let _ = self.inputs.send(Input::Gone(host)).await;
    }

    /// Which offers match.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn search(&self, search: Search) -> Asked<Found> {
        self.ask(|reply| Input::Search(Box::new(search), reply))
            .await
    }

    /// Leases of `party`, as renter or host, newest first.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn leases(&self, party: PublicKey, scope: LeaseScope) -> Asked<Vec<LeaseView>> {
        self.ask(|reply| Input::Leases(party, scope, reply)).await
    }

    /// A lease of `party`, as renter or host.
    ///
    /// # Errors
    /// When there is no such lease of the party's.
    pub async fn lease(&self, party: PublicKey, lease: LeaseId) -> Asked<Box<LeaseView>> {
        self.ask(|reply| Input::Lease(party, lease, reply)).await
    }

    /// A renter's money.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn balance(&self, renter: RenterId) -> Asked<Balance> {
        self.ask(|reply| Input::Balance(renter, reply)).await
    }

    /// A host's money.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn earnings(&self, host: HostId) -> Asked<Earnings> {
        self.ask(|reply| Input::Earnings(host, reply)).await
    }

    /// The evidence on a host, signed: of its outcomes those behind `after`.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn host_evidence(
        &self,
        host: HostId,
        after: Option<(LeaseId, u16)>,
    ) -> Asked<Box<HostEvidence>> {
        self.ask(|reply| Input::HostEvidence(host, after, reply))
            .await
    }

    /// A renter's movements after event `after`, signed.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn statement(&self, renter: RenterId, after: u64) -> Asked<Signed<AccountStatement>> {
        self.ask(|reply| Input::Statement(renter, after, reply))
            .await
    }

    /// The receipt of a lease of `party`, signed.
    ///
    /// # Errors
    /// When there is no such lease of the party's.
    pub async fn receipt(&self, party: PublicKey, lease: LeaseId) -> Asked<Signed<Receipt>> {
        self.ask(|reply| Input::Receipt(party, lease, reply)).await
    }

    /// What a host should be doing. What is not in `awards`, those that it was told last, is signed here.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn goal(&self, host: HostId, awards: &mut Awards) -> Asked<Goal> {
        let goal = self.ask(|reply| Input::Goal(host, reply)).await?;
        Ok(goal.sign(&self.key, awards))
    }

    /// What there is.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn counts(&self) -> Asked<Counts> {
        self.ask(Input::Counts).await
    }

    /// What there is, for somebody who connected and asks: its id is known from here on.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn greet(&self, party: PublicKey) -> Asked<Counts> {
        self.ask(|reply| Input::Greet(party, reply)).await
    }

    /// Whether this party is on the books, offers something, or greeted.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn knows(&self, party: PublicKey) -> Asked<bool> {
        self.ask(|reply| Input::Knows(party, reply)).await
    }

    /// The hosts that are heard.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn hosts(&self) -> Asked<Vec<HostRow>> {
        self.ask(Input::Hosts).await
    }

    /// The renters' accounts.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn accounts(&self) -> Asked<Vec<AccountRow>> {
        self.ask(Input::Accounts).await
    }

    /// All leases, newest first.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn all_leases(&self, scope: LeaseScope) -> Asked<Vec<LeaseView>> {
        self.ask(|reply| Input::AllLeases(scope, reply)).await
    }

    /// What was credited, and to whom, under that id.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn deposit(&self, id: DepositId) -> Asked<Option<(RenterId, MicroUsd)>> {
        self.ask(|reply| Input::Deposit(id, reply)).await
    }

    /// Compares the balances in memory with the entries on disk.
    ///
    /// # Errors
    /// Only busy or shutting down.
    pub async fn ledger(&self) -> Asked<LedgerReport> {
        self.ask(Input::Ledger).await
    }

    /// Ends the market: what is in the queue is done, the state is written down, the journal is closed.
    /// Waits for room in the queue.
    pub async fn shutdown(&self) {
        let (reply, answer) = oneshot::channel();
        if self.inputs.send(Input::Shutdown(reply)).await.is_ok() {
            // However it ended is told by the thread's own result.
            let _ = answer.await;
        }
    }
}
