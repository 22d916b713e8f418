//! What proofs do to the books and to what is shown; that a replay and a snapshot say the same.

use super::world::*;
use crate::core::command::{Answer, Command};
use crate::core::market::Market;
use crate::core::proofs::classes::Classes;
use crate::core::proofs::schedule::{Outcome, Rules};
use crate::core::proofs::{Assignment, ProofOrder, ProofRules, renter_key as key_of};
use protocol::bounded::{List, Text};
use protocol::filter::Filter;
use protocol::ids::{DepositId, Digest, OrderId, PublicKey, RenterId};
use protocol::lease::{ContainerState, FaultClass, GpuFault, StopReason};
use protocol::message::{Rejection, Search};
use protocol::order::LeaseAction;
use protocol::terms::{ContractKind, Need};
use protocol::units::{MicroUsd, Millis, Seconds};
use protocol::verify::{Finding, Flaw, Verdict, VerificationLevel, Withdrawal, hardware};

const RULES: Rules = Rules {
    every: Seconds(86_400),
    stands: Seconds(3 * 86_400),
    first_within: Seconds(0),
    at_once: 4,
    per_hour: 100,
};
const ACCEPTED: Finding = Finding::Accepted {
    fill: Millis(6000),
    pass: Millis(1500),
};

/// A host with two RTX 4090 at $0.40 each, and a broker that puts them to the proof.
fn world() -> World {
    let mut world = World::with_a_fee_of_ten_percent();
    world.offer_resource(0, "GPU-x", Ask::gpus(2, 400_000, None));
    prove_by(&mut world);
    world
}

fn prove_by(world: &mut World) {
    let rules = ProofRules {
        rules: RULES,
        classes: Classes::default(),
        seed: [3; 32],
    };
    world.desk.prove_by(world.now, rules);
}

fn proof(world: &mut World, order: ProofOrder) -> Result<Answer, Rejection> {
    world.handle(Command::Proof(order))
}

/// The broker's verdict on a GPU of the host, as it is offered now.
fn verdict(world: &mut World, assigned: &Assignment, device: &str, finding: Finding) {
    let verdict = Verdict {
        host: host_id(0),
        device: Text::new(device).unwrap(),
        resources: List::first([Text::new(device).unwrap()]),
        hardware: hardware(&assigned.offer, device).unwrap(),
        class: assigned.class.clone(),
        parameters: assigned.parameters,
        finding,
        transcript: Digest::of(b"transcript"),
        at: world.now,
    };
    let signed = world.sign(verdict, &broker_key());
    let noted = proof(world, ProofOrder::Prove(Box::new(signed)));
    assert_eq!(noted, Ok(Answer::Noted));
}

/// What a search shows of the whole offer.
fn level(world: &mut World) -> VerificationLevel {
    let search = Search {
        filter: "num_gpus=2".parse::<Filter>().unwrap(),
        sort: List::default(),
        need: Need::default(),
        kind: ContractKind::OnDemand,
        limit: 8,
        job: None,
    };
    let found = world.desk.search(world.now, &search);
    found.offers[0].verification.clone()
}

fn reason(level: VerificationLevel) -> Withdrawal {
    let VerificationLevel::Withdrawn { reason, .. } = level else {
        panic!("{level:?}")
    };
    reason
}

fn fund_account(world: &mut World, amount: i64) -> RenterId {
    let account = RenterId::from(PublicKey::from(broker_id()));
    let deposit = Command::Deposit {
        id: DepositId::from_bytes([9; 16]),
        renter: account,
        amount: MicroUsd(amount),
        memo: Text::default(),
    };
    world.handle(deposit).unwrap();
    account
}

#[test]
fn an_idle_offer_is_assigned_whole_and_once() {
    let mut world = world();
    let assigned = world.desk.next_proof(world.now).unwrap();
    assert_eq!((assigned.host, assigned.gpus), (host_id(0), 2));
    assert_eq!(assigned.class.as_str(), "RTX 4090");
    // 2 · $0.40, and 10 GB at nothing; held for an hour; 10 cents to spare.
    assert_eq!(assigned.hour, MicroUsd(800_000));
    assert_eq!(assigned.fund, MicroUsd(900_000));
    assert_eq!(world.desk.next_proof(world.now), None);
    // One of the two is rented: the other alone is idle. None: none is.
    world.deposit(0, 100_000_000);
    let order = world.deal(0, protocol::terms::Deal::OnDemand, 1);
    world.running(0, order);
    world
        .desk
        .proof_over(world.now, assigned.offer.id, Outcome::Nothing);
    assert_eq!(world.desk.next_proof(world.now).unwrap().gpus, 1);
    world
        .desk
        .proof_over(world.now, assigned.offer.id, Outcome::Nothing);
    let order = world.deal(0, protocol::terms::Deal::OnDemand, 1);
    world.running(0, order);
    assert_eq!(world.desk.next_proof(world.now), None);
}

#[test]
fn what_has_no_class_is_never_assigned_and_says_why() {
    let mut world = World::with_a_fee_of_ten_percent();
    world.offer(0, Ask::default());
    prove_by(&mut world);
    assert_eq!(world.desk.next_proof(world.now), None);
    let rows = world.desk.proof_rows(world.now, host_id(0));
    let why = rows[0].unprovable.clone().unwrap();
    assert!(why.contains("there is no class for"), "{why}");
    let refused = world.desk.ask_proof(world.now, Some(host_id(0)), None);
    assert!(refused.unwrap_err().to_string().contains("no class"));
}

#[test]
fn an_offer_is_verified_when_all_its_gpus_are_until_that_is_too_long_ago() {
    let mut world = world();
    let assigned = world.desk.next_proof(world.now).unwrap();
    assert_eq!(level(&mut world), VerificationLevel::Unverified);
    verdict(&mut world, &assigned, "GPU-x-00", ACCEPTED);
    assert_eq!(level(&mut world), VerificationLevel::Unverified);
    let first = world.now;
    world.wait(60);
    verdict(&mut world, &assigned, "GPU-x-01", ACCEPTED);
    let VerificationLevel::Verified { at, .. } = level(&mut world) else {
        panic!("not verified")
    };
    assert_eq!(at, first);
    // Announced again, it stays; three days after the older proof it is too old.
    world.wait(3 * 86_400 - 61);
    world.announce();
    assert!(matches!(
        level(&mut world),
        VerificationLevel::Verified { .. }
    ));
    world.wait(1);
    world.announce();
    let stale = VerificationLevel::Withdrawn {
        reason: Withdrawal::Stale,
        at: first.after(Seconds(3 * 86_400).millis()),
    };
    assert_eq!(level(&mut world), stale);
    assert!(
        world.desk.next_proof(world.now).is_none(),
        "it is under way"
    );
}

#[test]
fn a_failed_proof_takes_the_level_away_at_once_and_a_later_one_gives_it_back() {
    let mut world = world();
    let assigned = world.desk.next_proof(world.now).unwrap();
    for device in ["GPU-x-00", "GPU-x-01"] {
        verdict(&mut world, &assigned, device, ACCEPTED);
    }
    world.wait(1);
    let flaw = Flaw::WrongRow { tile: 3, row: 4 };
    let failed = Finding::Rejected(flaw.clone());
    verdict(&mut world, &assigned, "GPU-x-01", failed);
    assert_eq!(reason(level(&mut world)), Withdrawal::Failed(flaw));
    // An older verdict changes nothing, however late it comes.
    world.now = world.now.before(Millis(500));
    verdict(&mut world, &assigned, "GPU-x-01", ACCEPTED);
    world.now = world.now.after(Millis(500));
    assert!(matches!(
        level(&mut world),
        VerificationLevel::Withdrawn { .. }
    ));
    world.wait(1);
    verdict(&mut world, &assigned, "GPU-x-01", ACCEPTED);
    assert!(matches!(
        level(&mut world),
        VerificationLevel::Verified { .. }
    ));
    // Another broker's word is none.
    let stranger = Verdict {
        finding: Finding::Rejected(Flaw::Silent),
        at: world.now.after(Millis(1)),
        ..world.desk.verdicts(host_id(0))[0]
            .verify()
            .unwrap()
            .into_body()
    };
    let signed = world.sign(stranger, &renter_key(0));
    let refused = proof(&mut world, ProofOrder::Prove(Box::new(signed)));
    assert_eq!(refused, Err(Rejection::NotTheSigner));
}

#[test]
fn a_fault_of_the_hardware_or_other_hardware_takes_the_level_away() {
    let mut world = world();
    let assigned = world.desk.next_proof(world.now).unwrap();
    for device in ["GPU-x-00", "GPU-x-01"] {
        verdict(&mut world, &assigned, device, ACCEPTED);
    }
    world.deposit(0, 100_000_000);
    let order = world.deal(0, protocol::terms::Deal::OnDemand, 2);
    let lease = world.running(0, order);
    let fault = |class, xid| {
        ContainerState::Stopped(StopReason::GpuFault(GpuFault {
            resource: Text::new("GPU-x-01").unwrap(),
            xid,
            class,
            detail: Text::new("fell off the bus").unwrap(),
        }))
    };
    // What the renter's program did is not the hardware's fault.
    world.wait(10);
    world
        .report(lease, fault(FaultClass::Program, 13), 10_000)
        .unwrap();
    world.act(lease, LeaseAction::End).unwrap();
    world.report(lease, ContainerState::Gone, 10_000).unwrap();
    assert!(matches!(
        level(&mut world),
        VerificationLevel::Verified { .. }
    ));
    let order = world.deal(0, protocol::terms::Deal::OnDemand, 2);
    let lease = world.running(0, order);
    world.wait(10);
    world
        .report(lease, fault(FaultClass::Hardware, 79), 10_000)
        .unwrap();
    world.act(lease, LeaseAction::End).unwrap();
    world.report(lease, ContainerState::Gone, 10_000).unwrap();
    let Withdrawal::Fault(said) = reason(level(&mut world)) else {
        panic!("no fault")
    };
    assert!(said.contains("fell off the bus (Xid 79)"), "{said}");
    // Journal and snapshot say the same.
    assert_eq!(&world.replayed(), world.desk.market());
    let bytes = world.desk.market().encode().unwrap();
    assert_eq!(&Market::decode(&bytes).unwrap(), world.desk.market());
}

#[test]
fn the_money_of_a_proof_comes_back_but_for_what_the_host_earned() {
    let mut world = world();
    let account = fund_account(&mut world, 2_000_000);
    let assigned = world.desk.next_proof(world.now).unwrap();
    let id = OrderId::from_bytes([4; 16]);
    let key = key_of(&broker_key(), id);
    let renter = RenterId::from(PublicKey::from_bytes(key.verifying_key().to_bytes()));
    let fund = |amount| ProofOrder::Fund {
        order: id,
        renter,
        amount: MicroUsd(amount),
    };
    // More than there is, and then enough; the same again has no second effect.
    let refused = proof(&mut world, fund(2_000_001));
    let (available, needed) = (MicroUsd(2_000_000), MicroUsd(2_000_001));
    assert_eq!(
        refused,
        Err(Rejection::NotEnoughMoney { available, needed })
    );
    for _ in 0..2 {
        assert_eq!(proof(&mut world, fund(assigned.fund.0)), Ok(Answer::Noted));
    }
    assert_eq!(world.desk.market().available(account), MicroUsd(1_100_000));
    assert_eq!(world.desk.market().available(renter), MicroUsd(900_000));

    let order = world.deal(0, protocol::terms::Deal::OnDemand, 2);
    let order = protocol::order::Order { id, ..order };
    let signed = world.sign(order, &key);
    let Ok(Answer::Lease(view)) = world.handle(Command::Order(Box::new(signed))) else {
        panic!("no lease")
    };
    let lease = view.id;
    world.grant(lease).unwrap();
    world.report(lease, ContainerState::Running, 0).unwrap();
    assert_eq!(world.desk.floats()[0].lease, Some(lease));
    // While the lease is not over its money stays.
    let reclaim = || ProofOrder::Reclaim { order: id };
    assert!(proof(&mut world, reclaim()).is_err());
    // A broker that was killed here knows the renter again, and makes its key again.
    world.restart(crate::core::settings::MarketSettings {
        fee: protocol::units::BasisPoints(1000),
        ..Default::default()
    });
    assert_eq!(world.desk.floats()[0].renter, renter);
    assert_eq!(key_of(&broker_key(), id), key);
    world.wait(36);
    let end = protocol::order::LeaseCommand {
        lease,
        action: LeaseAction::End,
    };
    let signed = world.sign(end, &key);
    world.handle(Command::Lease(signed)).unwrap();
    world.report(lease, ContainerState::Gone, 36_000).unwrap();
    assert_eq!(proof(&mut world, reclaim()), Ok(Answer::Noted));
    assert_eq!(proof(&mut world, reclaim()), Ok(Answer::Noted));
    // 36 s of $0.80 an hour are 8000 µ$.
    assert_eq!(world.desk.market().available(account), MicroUsd(1_992_000));
    assert_eq!(world.desk.market().available(renter), MicroUsd(0));
    assert_eq!(world.desk.floats(), []);
    // 10 % of it are the broker's own again; the host is paid as for any lease.
    assert_eq!(world.desk.earnings(host_id(0)).pending, MicroUsd(7200));
    assert_eq!(&world.replayed(), world.desk.market());
    let bytes = world.desk.market().encode().unwrap();
    assert_eq!(&Market::decode(&bytes).unwrap(), world.desk.market());
}
