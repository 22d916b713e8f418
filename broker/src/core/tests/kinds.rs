//! Orders of every kind, in any order, with prices that move, bids that change, leases that become others, hosts
//! that are silent and brokers that start anew: the money stays the money, nothing is let twice, nobody is pushed
//! out against the rules, and nobody waits who could be served.

use super::world::{Ask, World, broker_id, host_id, renter_id, renter_key};
use crate::core::command::{Answer, Command};
use crate::core::event::{Event, Fact};
use crate::core::lease::State;
use crate::core::ledger::Account;
use crate::core::market::Market;
use crate::core::settings::MarketSettings;
use crate::core::waiting::Venue;
use proptest::prelude::*;
use protocol::ids::LeaseId;
use protocol::lease::PauseCause;
use protocol::order::{LeaseAction, Order, Target};
use protocol::terms::{ContractKind, Deal};
use protocol::units::{BasisPoints, Bytes, MicroUsd, PricePerHour, Seconds, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

const RENTERS: u8 = 4;

#[derive(Debug, Clone)]
enum Step {
    Deposit(u8, i64),
    Order {
        renter: u8,
        offer: usize,
        any: bool,
        kind: u8,
        bid: u64,
        gpus: u16,
        disk: u64,
        fallback: bool,
    },
    Bid(usize, u64),
    Convert(usize, u8, u64),
    Act(usize, LeaseAction),
    Ask(usize, u64),
    Refuse(usize),
    Pass(u64),
    /// Nobody is heard.
    Silence(u64),
    Restart,
}

fn bid() -> impl Strategy<Value = u64> {
    (90_u64..450).prop_map(|thousands| thousands * 1000)
}

fn step() -> impl Strategy<Value = Step> {
    let order = (
        0..RENTERS,
        0..3_usize,
        any::<bool>(),
        0..8_u8,
        bid(),
        1..4_u16,
        0..60_u64,
        any::<bool>(),
    );
    let action = prop_oneof![
        Just(LeaseAction::Stop),
        Just(LeaseAction::Resume),
        Just(LeaseAction::End)
    ];
    prop_oneof![
        2 => (0..RENTERS, 1_i64..3_000_000).prop_map(|(renter, amount)| Step::Deposit(renter, amount)),
        12 => order.prop_map(|(renter, offer, any, kind, bid, gpus, disk, fallback)| Step::Order {
            renter, offer, any, kind, bid, gpus, disk, fallback,
        }),
        3 => (any::<usize>(), bid()).prop_map(|(lease, bid)| Step::Bid(lease, bid)),
        2 => (any::<usize>(), 0..4_u8, bid()).prop_map(|(lease, kind, bid)| Step::Convert(lease, kind, bid)),
        5 => (any::<usize>(), action).prop_map(|(lease, action)| Step::Act(lease, action)),
        3 => (0..3_usize, bid()).prop_map(|(offer, ask)| Step::Ask(offer, ask)),
        1 => any::<usize>().prop_map(Step::Refuse),
        10 => (1_u64..30).prop_map(|tens| Step::Pass(tens * 10)),
        2 => (30_u64..90).prop_map(|tens| Step::Pass(tens * 10)),
        1 => (1_u64..400).prop_map(Step::Silence),
        1 => Just(Step::Restart),
    ]
}

fn settings() -> MarketSettings {
    MarketSettings {
        fee: BasisPoints(333),
        ..MarketSettings::default()
    }
}

struct Play {
    world: World,
    leases: Vec<LeaseId>,
    deposited: i64,
    /// Up to which event was looked.
    seen: usize,
    /// What the events up to there add up to.
    market: Market,
    /// When each lease's present run began.
    running: BTreeMap<LeaseId, Timestamp>,
}

impl Play {
    fn new() -> Self {
        let mut world = World::new(settings());
        let mut ask = Ask::gpus(4, 400_000, Some(100_000));
        ask.sales.discount_max = Some(BasisPoints(4000));
        ask.prices.storage.0 = 100_000;
        world.offer_resource(0, "GPU-a", ask);
        world.offer_resource(0, "GPU-b", Ask::gpus(1, 300_000, Some(150_000)));
        let mut ask = Ask::gpus(2, 350_000, Some(120_000));
        ask.disk_max = Bytes::from_gb(100);
        world.offer_resource(1, "GPU-c", ask);
        Self {
            world,
            leases: Vec::new(),
            deposited: 0,
            seen: 0,
            market: Market::new(broker_id()),
            running: BTreeMap::new(),
        }
    }

    fn pick(&self, n: usize) -> Option<LeaseId> {
        let len = self.leases.len();
        (len > 0).then(|| self.leases[n % len])
    }

    fn deal(&self, kind: u8, bid: u64, fallback: bool) -> Deal {
        let until = self.world.now.after(Seconds(5000).millis());
        match kind {
            0 | 1 => Deal::OnDemand,
            2 => Deal::Reserved {
                days: 1,
                prepay_max: MicroUsd(i64::MAX),
            },
            3 | 4 => Deal::Bid {
                limit: PricePerHour(bid),
                until,
            },
            _ => Deal::Interruptible {
                bid: PricePerHour(bid),
                until,
                fallback: fallback.then_some(PricePerHour(bid + 100_000)),
            },
        }
    }

    fn order(&mut self, renter: u8, offer: usize, any: bool, deal: Deal, gpus: u16, disk: u64) {
        let mut order = Order {
            disk: Bytes::from_gb(disk),
            ..self.world.deal(offer, deal, gpus)
        };
        if any {
            order.target = Target::Any("gpu=rtx4090".parse().unwrap());
        }
        let signed = self.world.sign(order, &renter_key(renter));
        let answer = self.world.handle(Command::Order(Box::new(signed)));
        if let Ok(Answer::Lease(view)) = answer {
            self.leases.push(view.id);
        }
    }

    fn act(&mut self, lease: LeaseId, action: LeaseAction) {
        let command = self.world.act_command(lease, action);
        let _ = self.world.handle(command);
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Deposit(renter, amount) => {
                self.world.deposit(renter, amount);
                self.deposited += amount;
            }
            Step::Order {
                renter,
                offer,
                any,
                kind,
                bid,
                gpus,
                disk,
                fallback,
            } => {
                self.world.announce();
                let deal = self.deal(kind, bid, fallback);
                self.order(renter, offer, any, deal, gpus, disk);
            }
            Step::Bid(lease, bid) => {
                if let Some(lease) = self.pick(lease) {
                    self.act(lease, LeaseAction::SetBid(PricePerHour(bid)));
                }
            }
            Step::Convert(lease, kind, bid) => {
                if let Some(lease) = self.pick(lease) {
                    let deal = self.deal([0, 2, 3, 5][usize::from(kind)], bid, false);
                    let price_max = PricePerHour(u64::MAX);
                    self.act(lease, LeaseAction::Convert { deal, price_max });
                }
            }
            Step::Act(lease, action) => {
                if let Some(lease) = self.pick(lease) {
                    self.act(lease, action);
                }
            }
            Step::Ask(offer, ask) => {
                self.world.wait(1);
                self.world.reprice(offer, ask);
            }
            Step::Refuse(lease) => {
                let lease = self.pick(lease);
                let market = self.world.desk.market();
                if let Some(lease) = lease.filter(|lease| market.lease(*lease).is_some()) {
                    let _ = self.world.refuse(lease);
                }
            }
            Step::Pass(seconds) => self.world.pass(seconds),
            Step::Silence(seconds) => {
                self.world.wait(seconds);
                self.world.tick();
            }
            Step::Restart => self.world.restart(settings()),
        }
    }

    /// Looks at every new event, with the market as it was before it.
    fn check_events(&mut self) -> Result<(), TestCaseError> {
        let new = self.world.journal[self.seen..].to_vec();
        self.seen = self.world.journal.len();
        for (index, event) in new.iter().enumerate() {
            if let Fact::Moved(moved) = &event.fact {
                if let State::Noticed { cause, .. } = &moved.to {
                    self.check_victim(moved.lease, cause, event.at, &new[index + 1..])?;
                }
                if matches!(moved.to, State::Running) {
                    self.running.entry(moved.lease).or_insert(event.at);
                } else if !matches!(moved.to, State::Noticed { .. } | State::Suspect { .. }) {
                    self.running.remove(&moved.lease);
                }
            }
            self.market.apply(event.clone());
        }
        Ok(())
    }

    /// Who has to go is interruptible; for a bid it had ten minutes, and the bid is a step above its own.
    fn check_victim(
        &self,
        victim: LeaseId,
        cause: &PauseCause,
        at: Timestamp,
        then: &[Event],
    ) -> Result<(), TestCaseError> {
        let victim = self.market.lease(victim).unwrap();
        prop_assert_eq!(victim.contract.kind, ContractKind::Interruptible);
        let comes = then.iter().find_map(|event| {
            if let Fact::Matched(matched) = &event.fact {
                return Some(matched.bid);
            }
            if let Fact::Moved(moved) = &event.fact
                && matches!(moved.to, State::Clearing { .. })
            {
                return Some(self.market.lease(moved.lease).unwrap().contract.bid);
            }
            None
        });
        let bid = comes.expect("somebody goes, and nobody comes");
        if *cause == PauseCause::Preempted {
            prop_assert_eq!(bid, None);
            return Ok(());
        }
        let own = victim.contract.bid.unwrap().0;
        let step = (own.div_ceil(100)).max(1000);
        prop_assert!(bid.unwrap().0 >= own + step, "{:?} over {}", bid, own);
        let ran = at.since(self.running[&victim.id]);
        prop_assert!(ran >= Seconds(600).millis(), "outbid after {:?}", ran);
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        self.check_events()?;
        let market = self.world.desk.market();
        prop_assert!(
            *market == self.market,
            "the journal adds up to another state"
        );
        let ledger = market.ledger();
        let total: i128 = ledger.iter().map(|(_, balance)| i128::from(balance)).sum();
        prop_assert_eq!(total, 0, "money was made or lost");
        prop_assert_eq!(ledger.balance(&Account::Cash), MicroUsd(self.deposited));
        for (account, _) in ledger.iter() {
            let balance = ledger.balance(account);
            let may_owe = *account == Account::BrokerGoodwill;
            prop_assert!(balance.0 >= 0 || may_owe, "{:?} is below zero", account);
            if let Account::RenterLocked(lease) = account {
                let lives = market.lease(*lease).is_some_and(|it| !it.state.is_closed());
                let waits = market.resting(*lease).is_some_and(|it| it.ended.is_none());
                prop_assert!(lives || waits, "{:?} is held for nothing", balance);
            }
        }
        self.check_resources()
    }

    /// No resource is had by two, or next by two, and who has it next waits for nobody who stays.
    fn check_resources(&self) -> Result<(), TestCaseError> {
        let market = self.world.desk.market();
        let (mut held, mut claimed) = (BTreeMap::new(), BTreeSet::new());
        for lease in market.live_leases() {
            for resource in &lease.contract.share.resources {
                let key = (lease.contract.host, resource.clone());
                if lease.state.holds_resources() {
                    prop_assert!(
                        held.insert(key, lease).is_none(),
                        "{} is let twice",
                        resource
                    );
                } else if matches!(lease.state, State::Clearing { .. }) {
                    prop_assert!(claimed.insert(key), "{} is promised twice", resource);
                }
            }
        }
        for key in claimed {
            let stays = held.get(&key).filter(|lease| {
                !matches!(lease.state, State::Noticed { .. } | State::Closing { .. })
            });
            prop_assert!(stays.is_none(), "{:?} is promised and not freed", key);
        }
        Ok(())
    }

    /// Nobody could be served who was not.
    fn check_settled(&mut self) -> Result<(), TestCaseError> {
        self.world.tick();
        for host in [host_id(0), host_id(1)] {
            let step = self.world.desk.next_step(self.world.now, Venue::Host(host));
            prop_assert!(step.is_empty(), "somebody waits in vain: {:?}", step);
        }
        let waiting = self.world.desk.market().rests().map(|rest| rest.lease);
        for lease in waiting {
            let step = self
                .world
                .desk
                .next_step(self.world.now, Venue::Order(lease));
            prop_assert!(step.is_empty(), "an order waits in vain: {:?}", step);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 256, ..ProptestConfig::default() })]

    #[test]
    fn the_market_of_all_kinds_holds(steps in prop::collection::vec(step(), 1..60)) {
        let mut play = Play::new();
        for renter in 0..RENTERS {
            play.take(Step::Deposit(renter, 20_000_000));
        }
        for step in steps {
            play.take(step);
            play.check()?;
            play.check_settled()?;
            play.check()?;
        }
        let bytes = play.market.encode().unwrap();
        prop_assert!(Market::decode(&bytes).unwrap() == play.market, "a snapshot is another state");
        for lease in play.leases.clone() {
            let _ = play.world.handle(Command::Operator { lease });
        }
        play.world.wait(2000);
        play.world.tick();
        play.check()?;
        for renter in 0..RENTERS {
            prop_assert_eq!(play.world.desk.balance(renter_id(renter)).held, MicroUsd::ZERO);
        }
    }
}
