//! Who may ask what: bytes of a peer become a question, the question becomes a command or a reading of the
//! market, and what comes of it becomes bytes again.
//!
//! The order is fixed: canonical form, then the signature over the received bytes, its audience and time,
//! then that the signer is the one who sent it. Only then does the market hear of it. Every refusal is an
//! answer, counted by its reason. The rules of the market are not here.

pub mod door;
mod fit;
mod reach;
pub mod refusals;

use crate::clock::{Clock, Stopwatch};
use crate::core::command::{Answer, Command, VerifiedAnnouncement};
use crate::goals::Goals;
use crate::market::MarketHandle;
use crate::metrics::Metrics;
use crate::verify::transcripts::Transcripts;
use crate::watches::Watches;
use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, HostId, LeaseId, PublicKey, RenterId};
use protocol::lease::LeaseView;
use protocol::message::{
    self, Announcement, BrokerInfo, BrokerReply, BrokerRequest, LeaseScope, Rejection, Search,
    WATCH_MAX,
};
use protocol::net::Multiaddr;
use protocol::order::{Order, Target};
use protocol::signed::{ANYONE, Signed, Statement, Verified};
use protocol::units::{BasisPoints, Seconds};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// Answers what hosts and renters ask. Cheap to clone; every request is answered by a task of its own.
#[derive(Debug, Clone)]
pub struct Api {
    pub(crate) broker: BrokerId,
    pub(crate) name: Text<63>,
    pub(crate) fee: BasisPoints,
    pub(crate) clock: Clock,
    pub(crate) market: MarketHandle,
    pub(crate) goals: Goals,
    pub(crate) watches: Watches,
    pub(crate) watch_places: Arc<Semaphore>,
    /// Where this broker can be dialled: what circuits to hosts begin with.
    pub(crate) addresses: watch::Receiver<Vec<Multiaddr>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stopping: CancellationToken,
    pub(crate) transcripts: Transcripts,
}

type Reply = Result<BrokerReply, Rejection>;

impl Api {
    /// The answer to `bytes`, which came over the connection of `peer`.
    pub async fn answer(&self, peer: PublicKey, bytes: &[u8]) -> Vec<u8> {
        let since = Stopwatch::start();
        let (asked, outcome) = match message::decode::<BrokerRequest>(bytes) {
            Ok(request) => (kind(&request), self.reply(peer, request).await),
            Err(error) => {
                let said = Text::cut(&error.to_string());
                ("unreadable", Err(Rejection::Malformed(said)))
            }
        };
        let refusal = outcome.as_ref().err().map(refusals::label);
        if let Err(rejection) = &outcome {
            tracing::debug!(peer = %peer.short(), asked, %rejection, "refused");
        }
        self.metrics.answered(asked, refusal, since.elapsed());
        fit::encode(outcome.unwrap_or_else(BrokerReply::Refused))
    }

    async fn reply(&self, peer: PublicKey, request: BrokerRequest) -> Reply {
        if self.stopping.is_cancelled() {
            return Err(Rejection::ShuttingDown);
        }
        match request {
            BrokerRequest::Info => self.info(peer).await,
            BrokerRequest::Search(search) => self.search(search).await,
            BrokerRequest::Order(order) => {
                let order = self.effect(peer, &order)?;
                self.order(order).await
            }
            BrokerRequest::Command(command) => {
                let command = self.effect(peer, &command)?;
                self.command(Command::Lease(command)).await
            }
            BrokerRequest::Leases(scope) => self.leases(peer, scope).await,
            BrokerRequest::Lease(lease) => self.lease(peer, lease).await,
            BrokerRequest::Watch { lease, seen, wait } => self.watch(peer, lease, seen, wait).await,
            BrokerRequest::Balance => self
                .market
                .balance(RenterId::from(peer))
                .await
                .map(BrokerReply::Balance),
            BrokerRequest::Statement(after) => {
                let statement = self.market.statement(RenterId::from(peer), after).await;
                statement.map(BrokerReply::Statement)
            }
            BrokerRequest::Receipt(lease) => self
                .market
                .receipt(peer, lease)
                .await
                .map(BrokerReply::Receipt),
            BrokerRequest::Announce(announcement) => self.announce(peer, announcement).await,
            BrokerRequest::Grant(grant) => {
                let grant = self.of_host(peer, &grant)?;
                self.command(Command::Grant(grant)).await
            }
            BrokerRequest::Refuse(refusal) => {
                let refusal = self.of_host(peer, &refusal)?;
                self.command(Command::Refuse(refusal)).await
            }
            BrokerRequest::Report(report) => {
                let report = self.of_host(peer, &report)?;
                self.command(Command::Report(report)).await
            }
            BrokerRequest::Progress(progress) => self
                .market
                .progress(HostId::from(peer), progress)
                .await
                .map(|()| BrokerReply::Noted),
            BrokerRequest::Earnings => self
                .market
                .earnings(HostId::from(peer))
                .await
                .map(BrokerReply::Earnings),
            BrokerRequest::HostEvidence { host, after } => self
                .market
                .host_evidence(host, after)
                .await
                .map(BrokerReply::HostEvidence),
            BrokerRequest::Verdicts(host) => {
                self.market.verdicts(host).await.map(BrokerReply::Verdicts)
            }
            BrokerRequest::Transcript { digest, from } => Ok(BrokerReply::Transcript(
                self.transcripts.part(digest, from).await,
            )),
        }
    }

    async fn search(&self, search: Search) -> Reply {
        self.market.search(search).await.map(BrokerReply::Found)
    }

    async fn info(&self, peer: PublicKey) -> Reply {
        let counts = self.market.greet(peer).await?;
        Ok(BrokerReply::Info(BrokerInfo {
            broker: self.broker,
            name: self.name.clone(),
            fee: self.fee,
            now: self.clock.now(),
            offers: u32::try_from(counts.offers).unwrap_or(u32::MAX),
            version: Text::cut(env!("CARGO_PKG_VERSION")),
        }))
    }

    async fn command(&self, command: Command) -> Reply {
        Ok(match self.market.command(command).await? {
            Answer::Lease(view) => BrokerReply::Lease(self.reachable(view)),
            Answer::Deposited(balance) | Answer::DepositedBefore(balance) => {
                BrokerReply::Balance(balance)
            }
            Answer::Noted | Answer::Payment { .. } | Answer::Payouts(_) => BrokerReply::Noted,
        })
    }

    async fn order(&self, order: Verified<Order>) -> Reply {
        let id = order.body().id;
        let renter = RenterId::from(order.signer());
        let offer = match &order.body().target {
            Target::Offer { offer, .. } => Some(tracing::field::display(*offer)),
            Target::Any(_) => None,
        };
        let outcome = self.command(Command::Order(Box::new(order))).await;
        if let Err(rejection) = &outcome {
            let reason = refusals::label(rejection);
            tracing::info!(order = %id, offer, renter = %renter.short(), reason, "order refused: {rejection}");
        }
        outcome
    }

    async fn leases(&self, peer: PublicKey, scope: LeaseScope) -> Reply {
        let views = self.market.leases(peer, scope).await?;
        let views = views
            .into_iter()
            .map(|view| *self.reachable(Box::new(view)));
        Ok(BrokerReply::Leases(List::first(views)))
    }

    async fn lease(&self, peer: PublicKey, lease: LeaseId) -> Reply {
        let view = self.market.lease(peer, lease).await?;
        Ok(BrokerReply::Lease(self.reachable(view)))
    }

    /// Answers when the lease's revision is above `seen`, or as it stands after `wait`.
    async fn watch(&self, peer: PublicKey, lease: LeaseId, seen: u64, wait: Seconds) -> Reply {
        let view = self.market.lease(peer, lease).await?;
        if view.revision > seen {
            return Ok(BrokerReply::Lease(self.reachable(view)));
        }
        let _place = self
            .watch_places
            .try_acquire()
            .map_err(|_| Rejection::Busy)?;
        let waiting = self.changed(peer, lease, seen);
        let deadline = Duration::from_secs(wait.0.min(WATCH_MAX.0));
        if let Ok(changed) = tokio::time::timeout(deadline, waiting).await {
            return changed.map(|view| BrokerReply::Lease(self.reachable(view)));
        }
        self.lease(peer, lease).await
    }

    /// The lease once its revision is above `seen`, or as it is when the broker stops.
    async fn changed(
        &self,
        peer: PublicKey,
        lease: LeaseId,
        seen: u64,
    ) -> Result<Box<LeaseView>, Rejection> {
        loop {
            // Registered before looking, so that a change in between is not missed.
            let change = self.watches.register(lease).await;
            let view = self.market.lease(peer, lease).await?;
            let Some(change) = change else {
                return Ok(view);
            };
            if view.revision > seen || self.stopping.is_cancelled() {
                return Ok(view);
            }
            tokio::select! {
                _ = change => {}
                () = self.stopping.cancelled() => {}
            }
        }
    }

    async fn announce(&self, peer: PublicKey, announcement: Announcement) -> Reply {
        let Announcement {
            offers,
            addresses,
            withheld,
        } = announcement;
        let verified = offers.iter().map(|offer| self.verify(peer, offer));
        let verified = verified.collect::<Result<Vec<_>, _>>()?;
        let host = HostId::from(peer);
        let announced = VerifiedAnnouncement {
            offers: verified,
            addresses,
            withheld,
        };
        self.market.announce(host, announced).await?;
        self.goals.seen(host);
        Ok(BrokerReply::Noted)
    }

    /// Checks what a renter signed to have an effect here and nowhere else.
    fn effect<T: Statement>(
        &self,
        peer: PublicKey,
        signed: &Signed<T>,
    ) -> Result<Verified<T>, Rejection> {
        let verified = self.verify(peer, signed)?;
        if verified.header().audience == ANYONE {
            return Err(Rejection::WrongAudience);
        }
        Ok(verified)
    }

    fn of_host<T: Statement>(
        &self,
        peer: PublicKey,
        signed: &Signed<T>,
    ) -> Result<Verified<T>, Rejection> {
        let verified = self.verify(peer, signed)?;
        self.goals.seen(HostId::from(peer));
        Ok(verified)
    }

    fn verify<T: Statement>(
        &self,
        peer: PublicKey,
        signed: &Signed<T>,
    ) -> Result<Verified<T>, Rejection> {
        let now = self.clock.now();
        let verified = door::verified(signed, self.broker.into(), now)
            .map_err(|error| refusals::of_signature(&error, now))?;
        if verified.signer() != peer {
            return Err(Rejection::NotTheSigner);
        }
        Ok(verified)
    }

    fn reachable(&self, mut view: Box<LeaseView>) -> Box<LeaseView> {
        if let Some((host, _)) = view.place {
            let known = self.addresses.borrow();
            reach::add_circuits(&mut view.access, self.broker, host, &known);
        }
        view
    }
}

/// What a request asks for, as a metrics label.
const fn kind(request: &BrokerRequest) -> &'static str {
    match request {
        BrokerRequest::Info => "info",
        BrokerRequest::Search(_) => "search",
        BrokerRequest::Order(_) => "order",
        BrokerRequest::Command(_) => "command",
        BrokerRequest::Leases(_) => "leases",
        BrokerRequest::Lease(_) => "lease",
        BrokerRequest::Watch { .. } => "watch",
        BrokerRequest::Balance => "balance",
        BrokerRequest::Statement(_) => "statement",
        BrokerRequest::Receipt(_) => "receipt",
        BrokerRequest::Announce(_) => "announce",
        BrokerRequest::Grant(_) => "grant",
        BrokerRequest::Refuse(_) => "refuse",
        BrokerRequest::Report(_) => "report",
        BrokerRequest::Progress(_) => "progress",
        BrokerRequest::Earnings => "earnings",
        BrokerRequest::HostEvidence { .. } => "host-evidence",
        BrokerRequest::Verdicts(_) => "verdicts",
        BrokerRequest::Transcript { .. } => "transcript",
    }
}
