//! Hardware is put to the proof by a broker that runs: by hosts that prove it, cheat, cannot, or break off; and by a
//! broker that is stopped in the middle. The prover is the reference on the processor, behind a real tunnel.

use crate::fake::papers::goal_of;
use crate::fake::prover::{Does, prove};
use crate::fake::{DEADLINE, FakeHost, Party, Stand};
use audit::judge;
use broker::admin::proofs::ProofView;
use broker::admin::wire::{AdminReply, AdminRequest};
use protocol::filter::Filter;
use protocol::ids::{LeaseId, PublicKey, RenterId};
use protocol::lease::{ContainerState, Want};
use protocol::message::{BrokerReply, BrokerRequest, LeaseScope, Search};
use protocol::net::{LinkHandle, ReserveRelay};
use protocol::offer::WHOLE_MACHINE;
use protocol::terms::{ContractKind, Need};
use protocol::verify::{Finding, Flaw, Verdict, VerificationLevel, Withdrawal};
use std::time::Duration;

/// Proofs of the fake hosts' processor, 64 rows in all; a new offer comes up within a second.
const SETTINGS: &str = "\
fee_bps = 1000
proof_images = [\"127.0.0.1:5000/feira-prover@sha256:0707070707070707070707070707070707070707070707070707070707070707\"]
proof_first_within_s = 1
proof_classes = [{ name = \"EPYC\", models = [\"AMD EPYC 7543 32-Core Processor\"], memory_min_gb = 1, tile_side = 16, \
inner = 64, tiles = 4, rounds = 2, audits = 64, fill_max_ms = 5000, pass_max_ms = 5000 }]
";

/// A broker that proves, a host of its.
struct Scene {
    stand: Stand,
    host: FakeHost,
    relay: LinkHandle,
}

/// A lease of a proof, as its host sees it.
struct Shopped {
    lease: LeaseId,
    renter: RenterId,
    name: String,
}

impl Scene {
    async fn new(dollars: &str) -> Self {
        let stand = Stand::new(SETTINGS).await;
        let account = RenterId::from(PublicKey::from(stand.id()));
        stand.deposit(account, dollars).await;
        let host = FakeHost::new(&stand).await;
        let relay = link(&stand, &host);
        let scene = Self { stand, host, relay };
        scene.announce().await;
        scene
    }

    async fn announce(&self) {
        let now = self.stand.clock.now();
        let offer = self.host.offer(&[self.stand.id()], now);
        self.host.announce(self.stand.id(), vec![offer], now).await;
    }

    /// The next lease of a proof: granted, and running.
    async fn shopped(&mut self) -> Shopped {
        let is_new = |goal: &protocol::lease::Goal| {
            goal.leases.iter().any(|lease| lease.want == Want::Run(1))
        };
        let goal = self.host.goal(is_new).await;
        let wanted = goal.leases.iter().find(|lease| lease.want == Want::Run(1));
        let wanted = wanted.unwrap().clone();
        let (broker, now) = (self.stand.id(), self.stand.clock.now());
        let order = wanted.order.verify().unwrap();
        let shopped = Shopped {
            lease: wanted.lease,
            renter: RenterId::from(order.signer()),
            name: order.body().name.to_string(),
        };
        assert_eq!(
            self.host.grant(broker, &wanted, 1, now).await,
            BrokerReply::Noted
        );
        self.report(&shopped, ContainerState::Running, 0).await;
        shopped
    }

    async fn report(&self, shopped: &Shopped, state: ContainerState, running: u64) {
        let (broker, now) = (self.stand.id(), self.stand.clock.now());
        self.host
            .report(broker, shopped.lease, state, running, now)
            .await;
    }

    /// The host does as it does with one tunnel.
    async fn serve(&mut self, shopped: &Shopped, does: Does) {
        let tunnel = tokio::time::timeout(DEADLINE, self.host.tunnels.recv()).await;
        let tunnel = tunnel.expect("a tunnel in time").unwrap();
        // By the renter's own key, and through the relay, as any renter's behind a router.
        assert_eq!(RenterId::from(tunnel.peer()), shopped.renter);
        assert!(tunnel.relayed());
        prove(tunnel, does).await;
    }

    /// The broker ends the lease; the host says that it is gone.
    async fn ended(&mut self, shopped: &Shopped) {
        let lease = shopped.lease;
        let is_to_end = |goal: &_| goal_of(goal, lease).is_some_and(|goal| goal.want == Want::End);
        self.host.goal(is_to_end).await;
        self.report(shopped, ContainerState::Gone, 0).await;
    }

    /// One whole proof.
    async fn proof(&mut self, does: Does) -> Shopped {
        let shopped = self.shopped().await;
        self.serve(&shopped, does).await;
        self.ended(&shopped).await;
        shopped
    }

    /// How the host's offer stands, once it stands so.
    async fn level(&self, wanted: &str) -> ProofView {
        for _ in 0..100 {
            let AdminReply::Hosts(rows) = self.stand.operate(AdminRequest::Hosts).await else {
                panic!("no hosts")
            };
            let proof = rows[0].proofs[0].clone();
            if proof.level == wanted && !proof.under_way {
                return proof;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("not {wanted}")
    }

    /// What is left in the account that proofs are paid from, once all of it is back.
    async fn money_is_back(&self, dollars: &str) {
        let AdminReply::Accounts(_) = self.stand.operate(AdminRequest::Accounts).await else {
            panic!("no accounts")
        };
        let account = RenterId::from(PublicKey::from(self.stand.id()));
        let wanted = dollars.parse().unwrap();
        for _ in 0..100 {
            let AdminReply::Accounts(rows) = self.stand.operate(AdminRequest::Accounts).await
            else {
                panic!("no accounts")
            };
            let own = rows.iter().find(|row| row.renter == account).unwrap();
            if own.available == wanted {
                self.stand.check_ledger().await;
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the account has not {dollars}")
    }

    async fn shown(&self, renter: &Party) -> VerificationLevel {
        let search = Search {
            filter: "num_gpus=0".parse::<Filter>().unwrap(),
            sort: Default::default(),
            need: Need::default(),
            kind: ContractKind::OnDemand,
            limit: 5,
            job: None,
        };
        let BrokerReply::Found(found) = renter.ask(BrokerRequest::Search(search)).await else {
            panic!("nothing found")
        };
        found.offers[0].verification.clone()
    }
}

/// The host's way through the broker's relay.
fn link(stand: &Stand, host: &FakeHost) -> LinkHandle {
    let broker = stand.id().into();
    host.party
        .node
        .keep_connected(broker, stand.addresses(), ReserveRelay::Yes)
}

/// The last verdict on the host's machine, and the transcript that it names, as anybody gets them.
async fn evidence(renter: &Party, scene: &Scene) -> (Verdict, Vec<u8>) {
    let host = scene.host.party.host_id();
    let BrokerReply::Verdicts(verdicts) = renter.ask(BrokerRequest::Verdicts(host)).await else {
        panic!("no verdicts")
    };
    let verified = verdicts[0].verify().unwrap();
    assert_eq!(verified.signer(), PublicKey::from(scene.stand.id()));
    let verdict = verified.into_body();
    let mut bytes = Vec::new();
    loop {
        let request = BrokerRequest::Transcript {
            digest: verdict.transcript,
            from: u32::try_from(bytes.len()).unwrap(),
        };
        let BrokerReply::Transcript(part) = renter.ask(request).await else {
            panic!("no transcript")
        };
        bytes.extend_from_slice(&part.bytes);
        if bytes.len() == usize::try_from(part.length).unwrap() {
            return (verdict, bytes);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_honest_host_is_verified_and_anybody_can_check_it_again() {
    let mut scene = Scene::new("10").await;
    let renter = Party::renter(&scene.stand).await;
    let shopped = scene.proof(Does::Proves).await;
    scene.level("verified").await;
    assert!(matches!(
        scene.shown(&renter).await,
        VerificationLevel::Verified { .. }
    ));
    let (verdict, bytes) = evidence(&renter, &scene).await;
    assert_eq!(verdict.device.as_str(), WHOLE_MACHINE);
    assert_eq!(verdict.class.as_str(), "EPYC");
    assert!(matches!(verdict.finding, Finding::Accepted { .. }));
    assert_eq!(judge::confirm(&verdict, &bytes), Ok(()));
    // Named as renters name leases, by a key that nobody has seen, which is not the broker's.
    let (quality, animal) = shopped.name.split_once('-').unwrap();
    assert!(!quality.is_empty() && !animal.is_empty());
    assert_ne!(
        PublicKey::from(shopped.renter),
        PublicKey::from(scene.stand.id())
    );
    // The container never ran by the host's meter: nothing was charged, and all of it is back.
    scene.money_is_back("10").await;
    // It is not shown to the renters' party, and another host's proof would be by another key.
    let BrokerReply::Leases(own) = renter.ask(BrokerRequest::Leases(LeaseScope::All)).await else {
        panic!("no leases")
    };
    assert!(own.is_empty());
    scene.stand.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_holds_half_or_cannot_is_deverified_with_the_reason() {
    let mut scene = Scene::new("10").await;
    let renter = Party::renter(&scene.stand).await;
    scene.proof(Does::Proves).await;
    scene.level("verified").await;
    // The operator asks again: half of 64 rows missing are found with all but 2^-64.
    let host = Some(scene.host.party.host_id());
    let ask = || AdminRequest::Verify { host, offer: None };
    let asked = scene.stand.operate(ask()).await;
    assert!(
        matches!(&asked, AdminReply::Verifying(offers) if offers.len() == 1),
        "{asked:?}"
    );
    scene.proof(Does::Cheats).await;
    let proof = scene.level("deverified").await;
    let why = proof.reason.unwrap();
    assert!(why.contains("was not held in round"), "{why}");
    let VerificationLevel::Withdrawn {
        reason: Withdrawal::Failed(flaw),
        ..
    } = scene.shown(&renter).await
    else {
        panic!("not withdrawn")
    };
    assert!(matches!(flaw, Flaw::NotHeld { .. }), "{flaw:?}");
    let (verdict, bytes) = evidence(&renter, &scene).await;
    assert_eq!(judge::confirm(&verdict, &bytes), Ok(()));
    let forged = Verdict {
        finding: Finding::Accepted {
            fill: protocol::units::Millis(1),
            pass: protocol::units::Millis(1),
        },
        ..verdict
    };
    assert_eq!(
        judge::confirm(&forged, &bytes),
        Err(judge::Forgery::Finding)
    );

    scene.stand.operate(ask()).await;
    scene.proof(Does::Declines).await;
    let mut said = String::new();
    for _ in 0..100 {
        said = scene.level("deverified").await.reason.unwrap();
        if said.contains("no device") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(
        said.contains("the prover could not do it: no device"),
        "{said}"
    );
    scene.money_is_back("10").await;
    scene.stand.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_broken_tunnel_is_the_networks_and_a_second_the_hosts() {
    let mut scene = Scene::new("10").await;
    scene.proof(Does::BreaksOff).await;
    // It comes up again by itself; nothing is said of the hardware yet.
    let shopped = scene.shopped().await;
    let AdminReply::Hosts(rows) = scene.stand.operate(AdminRequest::Hosts).await else {
        panic!("no hosts")
    };
    assert_eq!(rows[0].proofs[0].level, "unverified");
    scene.serve(&shopped, Does::BreaksOff).await;
    scene.ended(&shopped).await;
    let why = scene.level("deverified").await.reason.unwrap();
    assert!(why.contains("the prover fell silent"), "{why}");
    scene.money_is_back("10").await;
    scene.stand.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_stopped_in_the_middle_leaves_no_lease_and_all_of_its_money() {
    let mut scene = Scene::new("10").await;
    let shopped = scene.shopped().await;
    let (lease, is_open) = (shopped.lease, |row: &broker::admin::wire::LeaseRow| {
        row.lease == shopped.lease && row.phase == "running"
    });
    let AdminReply::Leases(rows) = scene
        .stand
        .operate(AdminRequest::Leases { all: false })
        .await
    else {
        panic!("no leases")
    };
    assert!(rows.iter().any(is_open), "{rows:?}");
    // In the middle: the prover was challenged and has not answered.
    let tunnel = tokio::time::timeout(DEADLINE, scene.host.tunnels.recv()).await;
    let stalled = tokio::spawn(prove(tunnel.unwrap().unwrap(), Does::Stalls));
    tokio::time::sleep(Duration::from_millis(300)).await;
    scene.stand.stop().await;
    stalled.await.unwrap();
    scene.stand.start().await;
    scene.host.party.connect(&scene.stand).await;
    scene.relay = link(&scene.stand, &scene.host);
    scene.announce().await;
    let is_to_end = |goal: &_| goal_of(goal, lease).is_some_and(|goal| goal.want == Want::End);
    scene.host.goal(is_to_end).await;
    scene.report(&shopped, ContainerState::Gone, 0).await;
    // The next proof may be ordered already: it is answered as well.
    scene.proof(Does::Proves).await;
    scene.level("verified").await;
    scene.money_is_back("10").await;
    scene.stand.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_money_or_images_nothing_is_proved_and_it_is_said() {
    let mut scene = Scene::new("0.5").await;
    // $3.60 are held for an hour of this machine.
    let none = tokio::time::timeout(Duration::from_secs(3), scene.shopped()).await;
    assert!(none.is_err());
    scene.money_is_back("0.5").await;
    scene.stand.stop().await;
    let stand = Stand::new("").await;
    let host = Some(scene.host.party.host_id());
    let refused = stand
        .operate(AdminRequest::Verify { host, offer: None })
        .await;
    let AdminReply::Refused(why) = refused else {
        panic!("not refused")
    };
    assert!(why.contains("proof_images"), "{why}");
    stand.server.unwrap().shutdown().await.unwrap();
}
