//! All kinds of contracts at once, from the order to the end, with the hosts' grants and reports: how many
//! messages a second a broker acknowledges, beside the raw rate of group commits: transfers of five statements in a
//! plain ledger, with as many clients, in the same minutes.
//!
//! Every GPU goes through the same eight rounds, an eighth of them in each at a time, so that every round has
//! every message of every life and as many leases end as begin. What is said in a round rests on the round
//! before, so it is written down and signed in between: that is its senders' work. Must not use the network.

use std::collections::BTreeMap;
use std::time::Duration;

use broker::core::goal::Awards;
use ed25519_dalek::SigningKey;
use protocol::bounded::List;
use protocol::ids::{BootId, HostId, LeaseId, OrderId};
use protocol::lease::{ContainerState, Grant, Meters, Report};
use protocol::offer::Offer;
use protocol::order::{LeaseAction, LeaseCommand, Order};
use protocol::signed::{Signed, Statement};
use protocol::terms::Deal;
use protocol::units::{MicroUsd, PricePerHour, Seconds};
use tokio::runtime::Runtime;

use crate::Outcome;
use crate::desk::{Desk, IN_FLIGHT, Message};
use crate::group_commit::{Work, Writer};
use crate::market::{self, Seller};
use crate::orders::{Bare, Cpu, renters, workers};
use crate::recorded;
use crate::report::Row;
use crate::rounds::by_turns;

/// Rounds of one life.
const LIFE: usize = 8;
/// GPUs that are at the same round of their lives.
const COHORT: usize = 256;

/// One row: acknowledged messages a second.
pub(crate) fn measure() -> Outcome<Vec<Row>> {
    let folder = tempfile::Builder::new().prefix("feira-bench").tempdir()?;
    let runtime = workers()?;
    let ours = folder.path().join("broker");
    let desk = Desk::open(&ours, &runtime)?;
    let mut town = Town::settle(&desk, &runtime)?;
    // Until every GPU is in the middle of a life.
    for _ in 0..LIFE {
        desk.send(&runtime, town.messages(&desk, &runtime)?)?;
    }
    let before = recorded::last_event(&ours)?;
    let messages = town.messages(&desk, &runtime)?;
    let count = messages.len();
    desk.send(&runtime, messages.clone())?;
    let rows = recorded::after(&ours, before, count)?;
    let events = rows.iter().map(Vec::len).sum::<usize>();
    let bytes = recorded::mean_bytes(&rows);
    let bare = Bare::measure(&runtime, folder.path(), rows, (messages, &desk))?;
    let writer = Writer::start(&folder.path().join("plain"), Work::Transfer, desk.broker)?;
    let (mut cpu, mut waits) = (Cpu::default(), Vec::new());
    let medians = by_turns(
        || {
            let messages = town.messages(&desk, &runtime)?;
            let round = cpu.of(messages.len(), || desk.send(&runtime, messages))?;
            waits.extend(round.waits);
            Ok(round.rate)
        },
        || runtime.block_on(writer.rate(count, IN_FLIGHT)),
    )?;
    writer.stop()?;
    runtime.block_on(desk.close())?;
    let slow = slowest_of_a_hundred(&mut waits);
    let row = Row::new("orders_mixed", "orders/s", medians)
        .beside("a ledger transfer in SQLite, same settings and group commit")
        .goal("at least 15000, p99 at most 50 ms, 0.6 of the baseline", |row| {
            row.ours() >= 15_000.0 && slow <= Duration::from_millis(50) && row.ratio() >= 0.6
        })
        .note(format!(
            "{IN_FLIGHT} in flight; p99 {:.1} ms; {count} messages are {events} events of {bytes} bytes",
            slow.as_secs_f64() * 1000.0
        ))
        .note(bare.note(medians.ours))
        .note(cpu.note());
    Ok(vec![row])
}

/// How long ninety-nine of a hundred took at most.
fn slowest_of_a_hundred(waits: &mut [Duration]) -> Duration {
    waits.sort_unstable();
    let index = waits.len() * 99 / 100;
    waits.get(index).copied().unwrap_or_default()
}

/// What becomes of a GPU in one life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Rented on demand, stopped, resumed, ended.
    OnDemand,
    /// Rented at a bid, which is raised twice.
    Interruptible,
    /// Rented for a week that is paid in advance, and given back.
    Reserved,
    /// A bid that waits, and is raised to what the host asks.
    Bought,
    /// A bid that waits, is raised too little, and is withdrawn.
    Withdrawn,
}

impl Kind {
    /// Eight, three, three, three and three of twenty.
    const fn of(number: usize) -> Self {
        match number % 20 {
            0 | 3 | 5 | 8 | 10 | 13 | 15 | 18 => Self::OnDemand,
            1 | 6 | 11 => Self::Interruptible,
            2 | 7 | 12 => Self::Reserved,
            4 | 9 | 14 => Self::Bought,
            _ => Self::Withdrawn,
        }
    }

    /// What is said of it in a round of its life, if anything is.
    const fn says(self, age: usize) -> Option<Says> {
        match (self, age) {
            (_, 0) => Some(Says::Order),
            (Self::OnDemand | Self::Interruptible | Self::Reserved, 1) | (Self::Bought, 2) => {
                Some(Says::Grant)
            }
            (Self::OnDemand, 3) => Some(Says::Act(LeaseAction::Stop)),
            (Self::OnDemand, 4) => Some(Says::Act(LeaseAction::Resume)),
            (Self::OnDemand, 5) => Some(Says::Runs(2)),
            (Self::Interruptible, 3) => Some(Says::Bid(50)),
            (Self::Interruptible, 5) => Some(Says::Bid(60)),
            (Self::Bought, 1) => Some(Says::Bid(100)),
            (Self::Withdrawn, 1) => Some(Says::Bid(60)),
            (Self::Withdrawn, 2) => Some(Says::Act(LeaseAction::End)),
            (Self::Withdrawn, _) => None,
            (_, 6) => Some(Says::Act(LeaseAction::End)),
            (_, 7) => Some(Says::Gone),
            (_, _) => Some(Says::Runs(1)),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Says {
    Order,
    Act(LeaseAction),
    /// A bid of so many hundredths of what the host asks.
    Bid(u64),
    Grant,
    /// The container runs, for the so-manieth time.
    Runs(u32),
    Gone,
}

/// Everybody beside the broker.
struct Town {
    renters: Vec<SigningKey>,
    sellers: Vec<Seller>,
    gpus: Vec<Gpu>,
    rounds: usize,
    said: u64,
}

/// A GPU and what is rented of it now.
struct Gpu {
    seller: usize,
    offer: Offer,
    renter: usize,
    kind: Kind,
    lease: LeaseId,
}

impl Town {
    fn settle(desk: &Desk, runtime: &Runtime) -> Outcome<Self> {
        let renters = renters(desk, runtime)?;
        let sellers = market::sellers(COHORT * LIFE, desk.broker, desk.clock.now())?;
        let mut gpus: Vec<Gpu> = Vec::with_capacity(COHORT * LIFE);
        for (number, seller) in sellers.iter().enumerate() {
            runtime.block_on(desk.announce(seller))?;
            for offer in &seller.offers {
                gpus.push(Gpu {
                    seller: number,
                    offer: offer.body().clone(),
                    renter: gpus.len() % renters.len(),
                    kind: Kind::of(gpus.len() / LIFE),
                    lease: LeaseId::from_bytes([0; 16]),
                });
            }
        }
        Ok(Self {
            renters,
            sellers,
            gpus,
            rounds: 0,
            said: 0,
        })
    }

    /// What is said in the next round.
    fn messages(&mut self, desk: &Desk, runtime: &Runtime) -> Outcome<Vec<Message>> {
        let goals = self.goals(desk, runtime)?;
        let mut messages = Vec::with_capacity(self.gpus.len());
        for number in 0..self.gpus.len() {
            // A life begins with every cohort in its turn.
            let Some(age) = self.rounds.checked_sub(number % LIFE) else {
                continue;
            };
            if let Some(says) = self.gpus[number].kind.says(age % LIFE) {
                messages.push(self.message(desk, number, says, &goals)?);
            }
        }
        self.rounds += 1;
        Ok(messages)
    }

    /// The orders and awards that hosts have to grant, as they would hear of them.
    fn goals(&self, desk: &Desk, runtime: &Runtime) -> Outcome<BTreeMap<LeaseId, Grant>> {
        let mut goals = BTreeMap::new();
        for seller in &self.sellers {
            let host = HostId::from(market::public(&seller.key));
            let goal = runtime.block_on(desk.handle.goal(host, &mut Awards::default()))?;
            for lease in &goal.leases {
                let grant = Grant {
                    lease: lease.lease,
                    order: lease.order.digest(),
                    award: lease.award.digest(),
                    resources: List::default(),
                };
                goals.insert(lease.lease, grant);
            }
        }
        Ok(goals)
    }

    fn message(
        &mut self,
        desk: &Desk,
        number: usize,
        says: Says,
        goals: &BTreeMap<LeaseId, Grant>,
    ) -> Outcome<Message> {
        let order = matches!(says, Says::Order)
            .then(|| self.order(desk, number))
            .transpose()?;
        let gpu = &self.gpus[number];
        let (lease, ask) = (gpu.lease, gpu.offer.prices.compute);
        let host = self.sellers[gpu.seller].key.clone();
        let renter = self.renters[gpu.renter].clone();
        let command = |action| LeaseCommand { lease, action };
        let sequence = u64::try_from(self.rounds)? + 1;
        let report = |run, state| Report {
            lease,
            sequence,
            boot: BootId::from_bytes([3; 16]),
            run,
            state,
            meters: Meters::default(),
        };
        Ok(match says {
            Says::Order => {
                let order = order.ok_or("no order")?;
                Message::Order(Box::new(self.signed(desk, order, &renter)?))
            }
            Says::Act(action) => Message::Command(self.signed(desk, command(action), &renter)?),
            Says::Bid(hundredths) => {
                let action = LeaseAction::SetBid(part(ask, hundredths));
                Message::Command(self.signed(desk, command(action), &renter)?)
            }
            Says::Grant => {
                let known = goals
                    .get(&lease)
                    .ok_or("a host does not hear of its lease")?;
                let resources = gpu.offer.share.resources.iter();
                let grant = Grant {
                    resources: List::first(resources.map(|name| (name.clone(), sequence))),
                    ..known.clone()
                };
                Message::Grant(self.signed(desk, grant, &host)?)
            }
            Says::Runs(run) => {
                let runs = report(run, ContainerState::Running);
                Message::Report(self.signed(desk, runs, &host)?)
            }
            Says::Gone => {
                let gone = report(1, ContainerState::Gone);
                Message::Report(self.signed(desk, gone, &host)?)
            }
        })
    }

    /// The order with which a life of that GPU begins.
    fn order(&mut self, desk: &Desk, number: usize) -> Outcome<Order> {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.said.to_be_bytes());
        let renter = market::renter_id(&self.renters[self.gpus[number].renter]);
        let gpu = &mut self.gpus[number];
        gpu.lease = LeaseId::of_order(desk.broker, renter, OrderId::from_bytes(id));
        let ask = gpu.offer.prices.compute;
        let until = desk.clock.now().after(Seconds(24 * 3600).millis());
        let deal = match gpu.kind {
            Kind::OnDemand => Deal::OnDemand,
            Kind::Interruptible => Deal::Interruptible {
                bid: part(ask, 40),
                until,
                fallback: None,
            },
            Kind::Reserved => Deal::Reserved {
                days: 7,
                prepay_max: MicroUsd(5_000_000_000),
            },
            Kind::Bought | Kind::Withdrawn => Deal::Bid {
                limit: part(ask, 50),
                until,
            },
        };
        market::order_of(&gpu.offer, deal, OrderId::from_bytes(id))
    }

    fn signed<T: Statement>(
        &mut self,
        desk: &Desk,
        body: T,
        key: &SigningKey,
    ) -> Outcome<Signed<T>> {
        self.said += 1;
        let mut id = [1; 16];
        id[..8].copy_from_slice(&self.said.to_be_bytes());
        let signed = market::sign(body, key, desk.broker.into(), id, desk.clock.now())?;
        Ok(signed.signed().clone())
    }
}

/// So many hundredths of a price.
const fn part(price: PricePerHour, hundredths: u64) -> PricePerHour {
    PricePerHour(price.0 * hundredths / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_life_has_an_order_and_an_end() {
        for number in 0..20 {
            let kind = Kind::of(number);
            let said: Vec<Says> = (0..LIFE).filter_map(|age| kind.says(age)).collect();
            assert!(matches!(said.first(), Some(Says::Order)), "{kind:?}");
            let ends = |says: &&Says| matches!(says, Says::Act(LeaseAction::End));
            assert_eq!(said.iter().filter(ends).count(), 1, "{kind:?}");
            let rented = kind != Kind::Withdrawn;
            assert_eq!(matches!(said.last(), Some(Says::Gone)), rented, "{kind:?}");
        }
        let on_demand = (0..20).filter(|number| Kind::of(*number) == Kind::OnDemand);
        assert_eq!(on_demand.count(), 8);
    }

    #[test]
    fn of_a_hundred_waits_one_may_be_longer() {
        let mut waits: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(slowest_of_a_hundred(&mut waits), Duration::from_millis(199));
    }
}
