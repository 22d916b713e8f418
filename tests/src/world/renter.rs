//! A renter of a world: it orders, bids, stops, resumes, converts and ends; some cheat.

use super::broker::Broker;
use super::clock;
use super::letters::{Letter, Pen};
use super::nature::Nature;
use protocol::bounded::{List, Text};
use protocol::filter::Filter;
use protocol::ids::{DepositId, LeaseId, OrderId, RenterId};
use protocol::job::{Job, PinnedImage};
use protocol::order::{LeaseAction, LeaseCommand, LeaseName, Order, Target};
use protocol::terms::Deal;
use protocol::units::{Bytes, MicroUsd, PricePerHour, Seconds};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// A renter.
#[derive(Debug)]
pub(crate) struct Renter {
    index: usize,
    id: RenterId,
    pen: Pen,
    numbers: u64,
    /// Sends old letters again, uses one id for two orders, and spends one balance twice at once.
    cheats: bool,
    brokers: usize,
    leases: Vec<(usize, LeaseId)>,
    sent: Vec<(usize, Letter)>,
}

impl Renter {
    pub(crate) fn new(index: usize, brokers: usize, nature: &Nature, random: &mut StdRng) -> Self {
        let pen = Pen::of("renter", index);
        Self {
            index,
            id: pen.public().into(),
            pen,
            numbers: 0,
            cheats: random.random_ratio(nature.cheating_renters, 100),
            brokers,
            leases: Vec::new(),
            sent: Vec::new(),
        }
    }

    fn number(&mut self) -> [u8; 16] {
        self.numbers += 1;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.numbers.to_le_bytes());
        bytes[8..].copy_from_slice(&(self.index as u64).to_le_bytes());
        bytes
    }

    /// What it thinks of next.
    pub(crate) fn act(
        &mut self,
        brokers: &[Broker],
        now: u64,
        random: &mut StdRng,
    ) -> Vec<(usize, Letter)> {
        if self.numbers == 0 {
            // Nobody rents without money.
            let deposits = (0..self.brokers).map(|broker| {
                let id = DepositId::from_bytes(self.number());
                (broker, Letter::Deposit(id, self.id, MicroUsd(20_000_000)))
            });
            return deposits.collect();
        }
        let broker = random.random_range(0..self.brokers);
        let to = &brokers[broker];
        let letters = match random.random_range(0..100) {
            0..12 => {
                let amount = MicroUsd(random.random_range(100_000..20_000_000));
                let id = DepositId::from_bytes(self.number());
                vec![(broker, Letter::Deposit(id, self.id, amount))]
            }
            12..60 => self.order(broker, to, now, random),
            60..68 if self.cheats => self.cheat(broker, to, now, random),
            _ => self.command(brokers, now, random),
        };
        self.sent.extend(letters.iter().cloned());
        letters
    }

    fn order(
        &mut self,
        broker: usize,
        to: &Broker,
        now: u64,
        random: &mut StdRng,
    ) -> Vec<(usize, Letter)> {
        let order = self.new_order(now, random);
        vec![self.signed_order(order, broker, to, now)]
    }

    fn signed_order(
        &mut self,
        order: Order,
        broker: usize,
        to: &Broker,
        now: u64,
    ) -> (usize, Letter) {
        let lease = LeaseId::of_order(to.id, self.id, order.id);
        if !self.leases.contains(&(broker, lease)) {
            self.leases.push((broker, lease));
        }
        let order = self.pen.sign(order, to.id.into(), clock(now));
        (broker, Letter::Order(Box::new(order)))
    }

    fn new_order(&mut self, now: u64, random: &mut StdRng) -> Order {
        let id = OrderId::from_bytes(self.number());
        let price = PricePerHour(random.random_range(50_000..700_000));
        let until = clock(now + random.random_range(60_000..20_000_000));
        let deal = match random.random_range(0..10) {
            0..4 => Deal::OnDemand,
            4..6 => Deal::Bid {
                limit: price,
                until,
            },
            6..9 => Deal::Interruptible {
                bid: price,
                until,
                fallback: random.random_bool(0.2).then_some(PricePerHour(500_000)),
            },
            _ => Deal::Reserved {
                days: random.random_range(1..=2),
                prepay_max: MicroUsd(100_000_000),
            },
        };
        Order {
            id,
            target: Target::Any(Filter::default()),
            deal,
            gpus: *[1, 1, 1, 2, 4].choose(random).unwrap_or(&1),
            cpu_millicores: None,
            ram: None,
            name: LeaseName::cut(&format!("job-{}", self.numbers)),
            job: job(),
            disk: Bytes::from_gb(random.random_range(1..200)),
            price_max: PricePerHour(100_000_000),
            budget: MicroUsd(random.random_range(50_000..200_000_000)),
            duration_max: random
                .random_bool(0.4)
                .then(|| Seconds(random.random_range(60..30_000)))
                .filter(|_| !matches!(deal, Deal::Reserved { .. })),
            access: List::default(),
        }
    }

    /// Old letters, one id for two orders, one balance for four leases.
    fn cheat(
        &mut self,
        broker: usize,
        to: &Broker,
        now: u64,
        random: &mut StdRng,
    ) -> Vec<(usize, Letter)> {
        match random.random_range(0..3) {
            0 => self.sent.choose(random).cloned().into_iter().collect(),
            1 => {
                let order = self.new_order(now, random);
                let other = Order {
                    disk: Bytes::from_gb(1),
                    gpus: 1,
                    ..order.clone()
                };
                vec![
                    self.signed_order(order, broker, to, now),
                    self.signed_order(other, broker, to, now),
                ]
            }
            _ => (0..4)
                .map(|_| {
                    let order = Order {
                        deal: Deal::OnDemand,
                        gpus: 1,
                        ..self.new_order(now, random)
                    };
                    self.signed_order(order, broker, to, now)
                })
                .collect(),
        }
    }

    fn command(
        &mut self,
        brokers: &[Broker],
        now: u64,
        random: &mut StdRng,
    ) -> Vec<(usize, Letter)> {
        let open: Vec<(usize, LeaseId)> = self
            .leases
            .iter()
            .copied()
            .filter(|(broker, lease)| is_open(&brokers[*broker], *lease))
            .collect();
        let Some((broker, lease)) = open.choose(random).copied() else {
            return Vec::new();
        };
        let price = PricePerHour(random.random_range(50_000..900_000));
        let action = match random.random_range(0..10) {
            0..2 => LeaseAction::Stop,
            2..5 => LeaseAction::Resume,
            5..7 => LeaseAction::SetBid(price),
            7 => LeaseAction::Convert {
                deal: match random.random_range(0..3) {
                    0 => Deal::OnDemand,
                    1 => Deal::Interruptible {
                        bid: price,
                        until: clock(now),
                        fallback: None,
                    },
                    _ => Deal::Reserved {
                        days: 1,
                        prepay_max: MicroUsd(100_000_000),
                    },
                },
                price_max: PricePerHour(u64::MAX),
            },
            _ => LeaseAction::End,
        };
        vec![self.signed_command(broker, lease, action, now)]
    }

    fn signed_command(
        &mut self,
        broker: usize,
        lease: LeaseId,
        action: LeaseAction,
        now: u64,
    ) -> (usize, Letter) {
        let to = Pen::of("broker", broker).public();
        let command = self
            .pen
            .sign(LeaseCommand { lease, action }, to, clock(now));
        (broker, Letter::Command(command))
    }

    /// Ends everything that it has.
    pub(crate) fn go_home(&mut self, at: u64) -> Vec<(usize, Letter)> {
        let leases = self.leases.clone();
        leases
            .into_iter()
            .map(|(broker, lease)| self.signed_command(broker, lease, LeaseAction::End, at))
            .collect()
    }
}

fn is_open(broker: &Broker, lease: LeaseId) -> bool {
    let Some(desk) = broker.desk() else {
        return false;
    };
    let market = desk.market();
    market
        .lease(lease)
        .is_some_and(|lease| lease.state.is_open())
        || market
            .resting(lease)
            .is_some_and(|rest| rest.ended.is_none())
}

fn job() -> Job {
    Job {
        image: PinnedImage {
            name: Text::cut("127.0.0.1:5000/demo"),
            sha256: [5; 32],
        },
        entrypoint: None,
        command: None,
        environment: List::default(),
    }
}
