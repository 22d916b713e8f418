//! The operator of a broker: bonds, refunds, payouts, suspensions and ends of leases, some of them twice, some
//! of more than there is.

use super::broker::Broker;
use super::letters::Letter;
use broker::core::payment::{MoneyOrder, Note};
use protocol::ids::{HostId, LeaseId, PaymentId};
use protocol::units::MicroUsd;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, IteratorRandom};

/// An operator.
#[derive(Debug)]
pub(crate) struct Operator {
    index: usize,
    numbers: u64,
    /// Payments that it ordered, to order them again.
    sent: Vec<MoneyOrder>,
}

impl Operator {
    pub(crate) const fn new(index: usize) -> Self {
        Self {
            index,
            numbers: 0,
            sent: Vec::new(),
        }
    }

    fn number(&mut self) -> PaymentId {
        self.numbers += 1;
        let mut bytes = [0xF0; 16];
        bytes[..8].copy_from_slice(&self.numbers.to_le_bytes());
        bytes[8] = u8::try_from(self.index).unwrap_or(u8::MAX);
        PaymentId::from_bytes(bytes)
    }

    /// What it thinks of next.
    pub(crate) fn act(&mut self, own: &Broker, random: &mut StdRng) -> Vec<Letter> {
        let order = match random.random_range(0..100) {
            0..45 => self.refund(own, random),
            45..58 => Some(MoneyOrder::MakePayouts {
                minimum: MicroUsd(random.random_range(0..200_000)),
            }),
            58..72 => self.close(own, random),
            72..80 => some_host(own, random).map(|host| MoneyOrder::Bond {
                id: self.number(),
                host,
                amount: MicroUsd(random.random_range(1..5_000_000)),
                note: Note::default(),
            }),
            80..84 => some_host(own, random).map(|host| MoneyOrder::ReturnBond {
                id: self.number(),
                host,
                amount: MicroUsd(random.random_range(1..5_000_000)),
                note: Note::default(),
            }),
            84..92 => self.sent.choose(random).cloned(),
            92..96 => some_host(own, random).map(|host| MoneyOrder::Suspend {
                host,
                // Most of them may take leases again.
                why: random
                    .random_bool(0.3)
                    .then(|| Note::cut("of the operator's")),
            }),
            _ => {
                let lease = own.disk.live_leases().map(|lease| lease.id).choose(random);
                return lease.map(Letter::OperatorEnds).into_iter().collect();
            }
        };
        let Some(order) = order else {
            return Vec::new();
        };
        self.sent.push(order.clone());
        vec![Letter::Money(order)]
    }

    /// A part of what a lease cost, all of it, or more, which is refused. Often of one that is open.
    fn refund(&mut self, own: &Broker, random: &mut StdRng) -> Option<MoneyOrder> {
        let is_open = random.random_bool(0.6);
        let costs = own
            .disk
            .leases()
            .filter(|lease| lease.shared() > MicroUsd::ZERO && (!is_open || lease.state.is_open()));
        let (lease, shared): (LeaseId, i64) = costs
            .map(|lease| (lease.id, lease.shared().0))
            .choose(random)?;
        let amount = match random.random_range(0..10) {
            0..6 => random.random_range(1..=shared),
            6..9 => shared,
            _ => shared + random.random_range(1..1000),
        };
        Some(MoneyOrder::Refund {
            id: self.number(),
            lease,
            amount: MicroUsd(amount),
            note: Note::default(),
        })
    }

    /// A payout is paid, or dropped.
    fn close(&self, own: &Broker, random: &mut StdRng) -> Option<MoneyOrder> {
        let open = own.disk.payments().filter(|(_, payment)| payment.is_open());
        let (id, _) = open.choose(random)?;
        let note = Note::default();
        Some(if random.random_bool(0.8) {
            MoneyOrder::Paid { id, note }
        } else {
            MoneyOrder::DropPayout { id, note }
        })
    }
}

/// One of the hosts that had a lease here.
fn some_host(own: &Broker, random: &mut StdRng) -> Option<HostId> {
    let hosts = own.disk.leases().map(|lease| lease.contract.host);
    hosts.choose(random)
}
