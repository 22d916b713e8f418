//! The renter whom nobody knows: a key of its own, money, one lease, and nothing left in the end.

use super::AtWork;
use super::talk::{Door, Ways};
use crate::core::command::{Answer, Command};
use crate::core::proofs::{Assignment, DISK, Float, ProofOrder, renter_key};
use ed25519_dalek::SigningKey;
use protocol::bounded::{List, Text};
use protocol::ids::{HostId, LeaseId, MessageId, OrderId, PublicKey, RenterId};
use protocol::job::Job;
use protocol::lease::{LeaseView, Phase};
use protocol::message::Rejection;
use protocol::names;
use protocol::net::{Identity, Node, NodeConfig, NodeEvents, circuit_address, parse_address};
use protocol::offer::ResourceName;
use protocol::order::{LeaseAction, LeaseCommand, Order, Target};
use protocol::signed::{Envelope, Signed, Statement, Verified};
use protocol::terms::Deal;
use protocol::units::{MicroUsd, PricePerHour, Seconds};
use rand::seq::IndexedRandom;
use std::time::Duration;

/// How often a lease is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// What a start may take beyond what its host promises.
const START_SPARE: Seconds = Seconds(60);
/// How long the end of a lease is waited for; after that the money is taken back later.
const END_WITHIN: Duration = Duration::from_secs(120);
const VALIDITY: Seconds = Seconds(60);
/// What a renter of ours would put on a lease at least.
const BUDGET_MIN: MicroUsd = MicroUsd(1_000_000);

/// A renter with a new key.
pub(super) struct Shopper<'a> {
    at_work: &'a AtWork,
    order: OrderId,
    key: SigningKey,
}

/// Its lease, running.
pub(super) struct Lease {
    id: LeaseId,
    host: HostId,
    pub(super) resources: Vec<ResourceName>,
    ways: Ways,
}

impl<'a> Shopper<'a> {
    pub(super) fn new(at_work: &'a AtWork, order: OrderId) -> Self {
        Self {
            at_work,
            order,
            key: renter_key(&at_work.key, order),
        }
    }

    fn public(&self) -> PublicKey {
        PublicKey::from_bytes(self.key.verifying_key().to_bytes())
    }

    /// Rents what is to be proved, and waits until it runs.
    ///
    /// # Errors
    /// Why there is no lease, in words for the log.
    pub(super) async fn rent(&self, assignment: &Assignment) -> Result<Lease, String> {
        let market = &self.at_work.api.market;
        let funds = Command::Proof(ProofOrder::Fund {
            order: self.order,
            renter: RenterId::from(self.public()),
            amount: assignment.fund,
        });
        market.command(funds).await.map_err(|refused| {
            let account = RenterId::from(PublicKey::from(self.at_work.api.broker));
            if let Rejection::NotEnoughMoney { available, needed } = refused {
                return format!(
                    "proofs are paid from the account {account}, which has {available}; {needed} are needed: \
                     feira-broker deposit {account} AMOUNT"
                );
            }
            refused.to_string()
        })?;
        let order = self.order(assignment)?;
        let signed = self.sign(order).map_err(|error| error.to_string())?;
        let ordered = market.command(Command::Order(Box::new(signed))).await;
        let lease = match ordered.map_err(|refused| refused.to_string())? {
            Answer::Lease(view) => view.id,
            Answer::Deposited(_)
            | Answer::DepositedBefore(_)
            | Answer::Noted
            | Answer::Payment { .. }
            | Answer::Payouts(_) => return Err("the order has no lease".to_owned()),
        };
        let promised = assignment.offer.limits.start_within;
        let patience = Duration::from_secs(promised.0.saturating_add(START_SPARE.0));
        let running = tokio::time::timeout(patience, self.running(lease)).await;
        let view = running.map_err(|_| "the lease did not start".to_owned())??;
        let resources = market.resources_of(lease).await;
        Ok(Lease {
            id: lease,
            host: assignment.host,
            resources: resources.map_err(|refused| refused.to_string())?,
            ways: self.ways(assignment.host, view).await,
        })
    }

    fn order(&self, assignment: &Assignment) -> Result<Order, String> {
        let images = &self.at_work.config.images;
        let image = images.choose(&mut rand::rng());
        let hour = u64::try_from(assignment.hour.0).map_err(|error| error.to_string())?;
        // As somebody would type them who saw the price: whole cents above it.
        let cents = |amount: u64| amount.div_ceil(10_000).saturating_mul(10_000);
        Ok(Order {
            id: self.order,
            target: Target::Offer {
                offer: assignment.offer.id,
                terms: assignment.terms,
            },
            deal: Deal::OnDemand,
            gpus: assignment.gpus,
            cpu_millicores: None,
            ram: None,
            name: Text::cut(&names::of_random(rand::random())),
            job: Job {
                image: image.ok_or("no image with a prover is named")?.clone(),
                entrypoint: None,
                command: None,
                environment: List::default(),
            },
            disk: DISK,
            price_max: PricePerHour(cents(hour.saturating_add(hour / 10))),
            budget: assignment.fund.max(BUDGET_MIN),
            duration_max: None,
            access: List::default(),
        })
    }

    fn sign<T: Statement>(&self, body: T) -> Result<Verified<T>, protocol::codec::CodecError> {
        let envelope = Envelope {
            audience: self.at_work.api.broker.into(),
            message_id: MessageId::from_bytes(rand::random()),
            issued: self.at_work.api.clock.now(),
            validity: VALIDITY,
        };
        Signed::sign(body, &self.key, envelope)
    }

    async fn view(&self, lease: LeaseId) -> Result<LeaseView, String> {
        let view = self.at_work.api.market.lease(self.public(), lease).await;
        Ok(*view.map_err(|refused| refused.to_string())?)
    }

    async fn running(&self, lease: LeaseId) -> Result<LeaseView, String> {
        loop {
            let view = self.view(lease).await?;
            if view.phase == Phase::Running {
                return Ok(view);
            }
            if !view.phase.is_open() {
                return Err(format!("the lease is {}", view.phase.word()));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The ways to the host: this broker's own relay at every address of it, and what any renter is told.
    async fn ways(&self, host: HostId, view: LeaseView) -> Ways {
        let (node, broker) = (&self.at_work.node, self.at_work.api.broker);
        let own = node.listen_addresses().await;
        let own = own
            .iter()
            .map(|address| circuit_address(address, broker.into(), host.into()));
        let told = view.access.addresses.iter();
        let told = told.filter_map(|address| parse_address(address).ok());
        let (relayed, direct) = own
            .chain(told)
            .partition(|address| address.to_string().contains("/p2p-circuit/"));
        Ways { relayed, direct }
    }

    /// A node with the renter's key and no address of its own, and what it would be asked, which is nothing.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn node(&self) -> Result<(Node, NodeEvents), String> {
        let identity = Identity::from_signing_key(self.key.clone());
        let started = Node::start(&identity, NodeConfig::renter()).await;
        started.map_err(|error| error.to_string())
    }

    pub(super) fn door<'b>(&'b self, node: &'b Node, lease: &Lease) -> Door<'b> {
        Door {
            node,
            key: &self.key,
            host: lease.host,
            ways: lease.ways.clone(),
            lease: lease.id,
            now: self.at_work.api.clock.now(),
        }
    }

    /// Ends the lease, if there is one, and takes back what is left of the money. What does not come about in time
    /// is done again later.
    pub(super) async fn leave(&self) {
        let leaving = async {
            loop {
                match self.leave_once().await {
                    Ok(()) => return,
                    Err(Rejection::ShuttingDown) => return,
                    Err(why) => {
                        tracing::debug!(order = %self.order, %why, "a lease of a proof is not over yet")
                    }
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        if tokio::time::timeout(END_WITHIN, leaving).await.is_err() {
            tracing::warn!(order = %self.order, "a lease of a proof takes long to end");
        }
    }

    async fn leave_once(&self) -> Result<(), Rejection> {
        let market = &self.at_work.api.market;
        let is_mine = |float: &Float| float.order == self.order;
        let Some(float) = market.floats().await?.into_iter().find(is_mine) else {
            return Ok(());
        };
        if let Some(lease) = float.lease {
            let view = market.lease(self.public(), lease).await?;
            if view.phase.is_open() {
                let action = LeaseAction::End;
                let signed = self.sign(LeaseCommand { lease, action });
                let signed =
                    signed.map_err(|error| Rejection::Malformed(Text::cut(&error.to_string())))?;
                market.command(Command::Lease(signed)).await?;
            }
        }
        let reclaim = ProofOrder::Reclaim { order: self.order };
        market.command(Command::Proof(reclaim)).await.map(|_| ())
    }
}
