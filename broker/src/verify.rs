//! Putting hosts' hardware to the proof, without their knowing: a lease like any other, of a renter with a new key,
//! in whose container the prover is run like any program. What came of it is signed, kept, and shown in searches.
//!
//! ```text
//! every second: the market says what is due and idle ─▶ one task a proof:
//!   money for a new renter ─▶ order ─▶ runs ─▶ tunnels ─▶ challenge, keys, rows ─▶ judge ─▶ end ─▶ money back
//!                                                                                   └▶ transcript, verdict
//! ```
//!
//! A host could tell such a lease by the image's digest, by the program that is run in it, and, where it is reached
//! directly, by the broker's network address: several images can be named, and its own relay comes before direct
//! ways. By keys, names, sizes and payment it cannot.
//!
//! Must not decide who is next, nor whom a failure is put down to.

mod shopper;
mod talk;
pub mod transcripts;

use crate::api::Api;
use crate::core::command::Command;
use crate::core::proofs::classes::Classes;
use crate::core::proofs::schedule::{Outcome, Rules};
use crate::core::proofs::{Assignment, ProofOrder, ProofRules};
use audit::judge;
use audit::transcript::Transcript;
use audit::verifier::Verifier;
use ed25519_dalek::SigningKey;
use futures::future::join_all;
use protocol::bounded::List;
use protocol::ids::{MessageId, OfferId, OrderId};
use protocol::job::PinnedImage;
use protocol::machine::GPUS_MAX;
use protocol::message::Rejection;
use protocol::net::Node;
use protocol::offer::{ResourceName, WHOLE_MACHINE};
use protocol::signed::{ANYONE, Envelope, Signed, VALIDITY_MAX};
use protocol::units::Seconds;
use protocol::verify::{Finding, Verdict, hardware};
use shopper::{Lease, Shopper};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use talk::{Opened, Talked};
use tokio::task::{Id, JoinError, JoinSet};

/// How often it is asked what is due.
const POLL: Duration = Duration::from_secs(1);
/// How often leases and money are looked for that a proof left behind, and transcripts that are too old.
const TIDY: Duration = Duration::from_secs(60);

/// What an operator says about proofs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofConfig {
    /// Images with the prover; one of them is drawn for each proof.
    pub images: Vec<PinnedImage>,
    /// When and how often.
    pub rules: Rules,
    /// What has to be proved.
    pub classes: Classes,
    /// For how long transcripts are kept.
    pub keep: Seconds,
}

/// The task that makes proofs.
pub(crate) struct Proofs {
    at_work: Arc<AtWork>,
    tasks: JoinSet<()>,
    /// What each task is about, for when one breaks off.
    under_way: BTreeMap<Id, (OrderId, Option<OfferId>)>,
}

/// What a proof is made with.
pub(crate) struct AtWork {
    pub(crate) api: Api,
    pub(crate) node: Node,
    pub(crate) key: SigningKey,
    pub(crate) config: ProofConfig,
}

impl Proofs {
    pub(crate) fn new(at_work: AtWork) -> Self {
        Self {
            at_work: Arc::new(at_work),
            tasks: JoinSet::new(),
            under_way: BTreeMap::new(),
        }
    }

    /// Makes proofs until the market ends.
    pub(crate) async fn run(mut self) {
        let rules = ProofRules {
            rules: self.at_work.config.rules,
            classes: self.at_work.config.classes.clone(),
            seed: rand::random(),
        };
        while let Err(refused) = self.at_work.api.market.begin_proofs(rules.clone()).await {
            if refused == Rejection::ShuttingDown {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
        let (mut poll, mut tidy) = (tokio::time::interval(POLL), tokio::time::interval(TIDY));
        loop {
            tokio::select! {
                biased;
                Some(done) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => {
                    self.finished(done).await;
                }
                _ = tidy.tick() => self.tidy().await,
                _ = poll.tick() => {
                    if self.begin_due().await == Err(Rejection::ShuttingDown) {
                        return;
                    }
                }
            }
        }
    }

    async fn begin_due(&mut self) -> Result<(), Rejection> {
        while let Some(assignment) = self.at_work.api.market.next_proof().await? {
            let order = OrderId::from_bytes(rand::random());
            let offer = assignment.offer.id;
            let at_work = Arc::clone(&self.at_work);
            let task = self
                .tasks
                .spawn(async move { at_work.prove(order, &assignment).await });
            self.under_way.insert(task.id(), (order, Some(offer)));
        }
        Ok(())
    }

    async fn finished(&mut self, done: Result<(Id, ()), JoinError>) {
        let id = done.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
        let about = self.under_way.remove(&id);
        if let (Err(error), Some((_, Some(offer)))) = (done, about) {
            tracing::error!(%error, "a proof broke off by a mistake of this program");
            let over = self.at_work.api.market.proof_over(offer, Outcome::Nothing);
            // A market that ended needs not to know.
            let _ = over.await;
        }
    }

    /// Ends the leases and takes back the money of proofs that are not under way: of those that were when the broker
    /// was killed, and of those whose leases took long to end.
    async fn tidy(&mut self) {
        let Ok(floats) = self.at_work.api.market.floats().await else {
            return;
        };
        for float in floats {
            let order = float.order;
            if !self.under_way.values().any(|(of, _)| *of == order) {
                let at_work = Arc::clone(&self.at_work);
                let task = self
                    .tasks
                    .spawn(async move { at_work.shopper(order).leave().await });
                self.under_way.insert(task.id(), (order, None));
            }
        }
        let keep = self.at_work.config.keep;
        let transcripts = self.at_work.api.transcripts.clone();
        let forgetting = tokio::task::spawn_blocking(move || transcripts.forget(keep));
        if let Ok(Err(error)) = forgetting.await {
            tracing::warn!(%error, "old transcripts of proofs cannot be deleted");
        }
    }
}

/// Which device a transcript is of.
struct About<'a> {
    assignment: &'a Assignment,
    device: &'a ResourceName,
    /// All that were challenged with it.
    together: &'a List<ResourceName, GPUS_MAX>,
}

/// What came of one device.
struct Proved {
    device: ResourceName,
    talked: Talked,
}

impl AtWork {
    fn shopper(&self, order: OrderId) -> Shopper<'_> {
        Shopper::new(self, order)
    }

    /// One proof, from the order to the money that comes back.
    async fn prove(&self, order: OrderId, assignment: &Assignment) {
        let host = assignment.host.short();
        let shopper = self.shopper(order);
        let proved = match shopper.rent(assignment).await {
            Ok(lease) => self.sit(&shopper, &lease, assignment).await,
            Err(why) => Err(why),
        };
        let outcome = match &proved {
            Ok(all)
                if all
                    .iter()
                    .any(|one| matches!(one.talked, Talked::Broken(_))) =>
            {
                Outcome::Broken
            }
            Ok(_) => Outcome::Judged,
            Err(why) => {
                tracing::info!(%host, offer = %assignment.offer.id, "no proof of hardware: {why}");
                Outcome::Nothing
            }
        };
        let over = self.api.market.proof_over(assignment.offer.id, outcome);
        let breaks_count = over.await.unwrap_or(false);
        let proved = proved.unwrap_or_default();
        let together = List::first(proved.iter().map(|one| one.device.clone()));
        for one in proved {
            let (transcript, counts) = match one.talked {
                Talked::Over(transcript) => (transcript, true),
                Talked::Broken(transcript) => (transcript, breaks_count),
            };
            if counts {
                let about = About {
                    assignment,
                    device: &one.device,
                    together: &together,
                };
                self.judge(&about, transcript).await;
            } else {
                tracing::info!(%host, device = %one.device, "a proof of hardware broke off; it is made again");
            }
        }
        shopper.leave().await;
    }

    /// All devices of the lease, challenged at the same moment.
    async fn sit(
        &self,
        shopper: &Shopper<'_>,
        lease: &Lease,
        assignment: &Assignment,
    ) -> Result<Vec<Proved>, String> {
        let (node, _events) = shopper.node().await?;
        let devices = &lease.resources;
        let opened = join_all(devices.iter().map(|device| async {
            let door = shopper.door(&node, lease);
            let command = command(device, devices.len());
            talk::open(&door, &command).await
        }));
        let opened: Result<Vec<Opened>, String> = opened.await.into_iter().collect();
        let talks = devices.iter().zip(opened?).map(|(device, opened)| async {
            let plan = talk::plan(device, assignment.parameters);
            let verifier = Verifier::begin(plan).map_err(|error| error.to_string())?;
            let talked = talk::converse(opened, verifier).await;
            Ok(Proved {
                device: device.clone(),
                talked,
            })
        });
        let talked: Result<Vec<Proved>, String> = join_all(talks).await.into_iter().collect();
        node.shutdown(Duration::from_millis(300)).await;
        talked
    }

    /// Judges, keeps the transcript, and then puts the verdict on the books.
    async fn judge(&self, about: &About<'_>, transcript: Transcript) {
        let About {
            assignment, device, ..
        } = about;
        let host = assignment.host.short();
        match self.judged(about, transcript).await {
            Ok(Finding::Accepted { fill, pass }) => {
                tracing::info!(%host, %device, class = %assignment.class, fill_ms = fill.0, pass_ms = pass.0, "hardware is proved");
            }
            Ok(Finding::Rejected(flaw)) => {
                tracing::warn!(%host, %device, class = %assignment.class, "hardware is not what it is said to be: {flaw}");
            }
            Err(error) => tracing::error!(%host, %device, "a proof has no verdict: {error}"),
        }
    }

    async fn judged(&self, about: &About<'_>, transcript: Transcript) -> Result<Finding, String> {
        let About {
            assignment,
            device,
            together,
        } = about;
        let transcripts = self.api.transcripts.clone();
        let judging = tokio::task::spawn_blocking(move || {
            let finding = judge::judge(&transcript).map_err(|error| error.to_string())?;
            let bytes = transcript.to_bytes().map_err(|error| error.to_string())?;
            let digest = transcripts
                .keep(&bytes)
                .map_err(|error| format!("its transcript cannot be kept: {error}"))?;
            Ok::<_, String>((finding, digest))
        });
        let (finding, digest) = judging.await.map_err(|error| error.to_string())??;
        let offer = &assignment.offer;
        let verdict = Verdict {
            host: assignment.host,
            device: (*device).clone(),
            resources: (*together).clone(),
            hardware: hardware(offer, device).ok_or("the offer does not have it")?,
            class: assignment.class.clone(),
            parameters: assignment.parameters,
            finding: finding.clone(),
            transcript: digest,
            at: self.api.clock.now(),
        };
        let envelope = Envelope {
            audience: ANYONE,
            message_id: MessageId::from_bytes(rand::random()),
            issued: verdict.at,
            validity: VALIDITY_MAX,
        };
        let signed =
            Signed::sign(verdict, &self.key, envelope).map_err(|error| error.to_string())?;
        let proves = Command::Proof(ProofOrder::Prove(Box::new(signed)));
        let noted = self.api.market.command(proves).await;
        noted.map_err(|refused| refused.to_string())?;
        Ok(finding)
    }
}

/// What is run in the container: one of several GPUs is named by its UUID, a lone one is the first that there is.
fn command(device: &ResourceName, of: usize) -> Vec<&str> {
    match (device.as_str(), of) {
        (WHOLE_MACHINE, _) => vec!["feira-prover", "processor"],
        (device, 2..) => vec!["feira-prover", "auto", device],
        (_, _) => vec!["feira-prover"],
    }
}
