//! What a scenario's steps do. Must not look at the market but through what the parties are answered.

use super::actors::{Renter, bytes_of, job};
use super::city::{Broken, City, START};
use super::doing::{Bid, BidKind, Do, FaultKind, Rent, Reserve};
use super::lines::Line;
use crate::core::command::{Answer, Command};
use crate::core::payment::MoneyOrder;
use protocol::bounded::{List, Text};
use protocol::filter::Filter;
use protocol::ids::{DepositId, Digest, LeaseId, OrderId, PaymentId};
use protocol::lease::ContainerState;
use protocol::message::Rejection;
use protocol::order::{LeaseAction, LeaseCommand, LeaseName, Order, Target};
use protocol::terms::Deal;
use protocol::units::{Bytes, MicroUsd, PRICE_MAX, PricePerHour, Seconds};

/// A budget that no scenario reaches: 10⁹ $.
const BUDGET: MicroUsd = MicroUsd(1_000_000_000_000_000);

/// An order of a scenario.
struct Wish<'s> {
    order: &'s str,
    renter: &'s str,
    gpus: u16,
    filter: &'s Filter,
    disk_gb: u64,
    deal: Deal,
}

impl City<'_> {
    /// Does the step of that place in the file.
    pub(super) fn step(&mut self, index: usize) -> Result<(), Broken> {
        let scenario = self.scenario;
        let Some(step) = scenario.steps.get(index) else {
            return Ok(());
        };
        match &step.what {
            Do::Deposit { renter, amount } => self.deposit(index, renter, *amount),
            Do::Rent(rent) => self.order(index, &wish_of_rent(rent)),
            Do::Bid(bid) => {
                let wish = self.wish_of_bid(bid);
                self.order(index, &wish)
            }
            Do::Reserve(reserve) => self.order(index, &wish_of_reserve(reserve)),
            Do::SetAsk { host, ask_uh } => self.reprice(host, Some(*ask_uh), None),
            Do::SetFloor { host, floor_uh } => self.reprice(host, None, Some(*floor_uh)),
            Do::Usage {
                order,
                up_bytes,
                down_bytes,
            } => self.usage(order, Bytes(*up_bytes), Bytes(*down_bytes)),
            Do::Fault { host, kind, for_s } => self.fault(host, *kind, Seconds(*for_s)),
            Do::Stop { order } => self.act_on(order, LeaseAction::Stop),
            Do::Resume { order } => self.act_on(order, LeaseAction::Resume),
            Do::Destroy { order } | Do::Cancel { order } => self.act_on(order, LeaseAction::End),
            Do::ChangeBid { order, limit_uh } => {
                self.act_on(order, LeaseAction::SetBid(PricePerHour(*limit_uh)))
            }
            Do::Refund { order, amount } => self.refund(index, order, *amount),
            Do::PayOut {} => self.pay_out(),
        }
    }

    fn renter(&mut self, name: &str) -> &Renter {
        let renter = self
            .renters
            .entry(name.to_owned())
            .or_insert_with(|| Renter::named(name));
        self.names.renters.insert(renter.id, name.to_owned());
        renter
    }

    fn deposit(&mut self, index: usize, renter: &str, amount: i64) -> Result<(), Broken> {
        let id = DepositId::from_bytes(step_id(index));
        let renter = self.renter(renter).id;
        let outcome = self.command(Command::Deposit {
            id,
            renter,
            amount: MicroUsd(amount),
            memo: Text::default(),
        })?;
        self.refused(None, outcome)
    }

    /// The bond of a host, if it has one.
    pub(super) fn bond_of(&self, index: usize) -> Option<Command> {
        let host = self.hosts.get(index).filter(|host| host.spec.bond > 0)?;
        let id = Digest::of(host.id.as_bytes()).half();
        Some(Command::Money(MoneyOrder::Bond {
            id: PaymentId::from_bytes(id),
            host: host.id,
            amount: MicroUsd(host.spec.bond),
            note: Text::default(),
        }))
    }

    fn wish_of_bid<'s>(&self, bid: &'s Bid) -> Wish<'s> {
        let end = START.after(Seconds(self.scenario.until_s.saturating_add(1)).millis());
        let until = bid
            .for_s
            .map_or(end, |time| self.now.after(Seconds(time).millis()));
        let price = PricePerHour(bid.limit_uh);
        Wish {
            order: &bid.order,
            renter: &bid.renter,
            gpus: bid.gpus,
            filter: &bid.filter,
            disk_gb: bid.disk_gb,
            deal: match bid.kind {
                BidKind::Interruptible => Deal::Interruptible {
                    bid: price,
                    until,
                    fallback: None,
                },
                BidKind::Resting => Deal::Bid {
                    limit: price,
                    until,
                },
            },
        }
    }

    fn order(&mut self, index: usize, wish: &Wish<'_>) -> Result<(), Broken> {
        let renter = self.renter(wish.renter);
        let (key, renter_id) = (renter.key.clone(), renter.id);
        let id = OrderId::from_bytes(step_id(index));
        let lease = LeaseId::of_order(self.broker, renter_id, id);
        self.names.orders.insert(lease, wish.order.to_owned());
        let owner = (lease, wish.renter.to_owned());
        self.orders.insert(wish.order.to_owned(), owner);
        let order = Order {
            id,
            target: Target::Any(wish.filter.clone()),
            deal: wish.deal,
            gpus: wish.gpus,
            cpu_millicores: None,
            ram: None,
            name: LeaseName::cut(&format!("step-{index}")),
            job: job(),
            disk: Bytes::from_gb(wish.disk_gb),
            price_max: PricePerHour(PRICE_MAX),
            budget: BUDGET,
            duration_max: None,
            access: List::default(),
        };
        let order = self.signer.sign(order, &key, self.now)?;
        let outcome = self.command(Command::Order(Box::new(order)))?;
        self.refused(Some(wish.order), outcome)
    }

    fn act_on(&mut self, order: &str, action: LeaseAction) -> Result<(), Broken> {
        let Some((lease, renter)) = self.orders.get(order).cloned() else {
            return Ok(());
        };
        let key = self.renter(&renter).key.clone();
        let command = self
            .signer
            .sign(LeaseCommand { lease, action }, &key, self.now)?;
        let outcome = self.command(Command::Lease(command))?;
        self.refused(Some(order), outcome)
    }

    fn reprice(&mut self, name: &str, ask: Option<u64>, floor: Option<u64>) -> Result<(), Broken> {
        let Some(index) = self.host_named(name) else {
            return Ok(());
        };
        if let Some(host) = self.hosts.get_mut(index) {
            host.spec.ask_uh = ask.unwrap_or(host.spec.ask_uh);
            host.spec.floor_uh = floor.or(host.spec.floor_uh);
        }
        self.heartbeat(index)
    }

    fn usage(&mut self, order: &str, up: Bytes, down: Bytes) -> Result<(), Broken> {
        let Some((lease, _)) = self.orders.get(order).cloned() else {
            return Ok(());
        };
        for index in 0..self.hosts.len() {
            let host = self.hosts.get_mut(index);
            let Some(container) = host.and_then(|host| host.containers.get_mut(&lease)) else {
                continue;
            };
            container.uploaded.0 = container.uploaded.0.saturating_add(up.0);
            container.downloaded.0 = container.downloaded.0.saturating_add(down.0);
            self.report(index, lease, ContainerState::Running)?;
        }
        Ok(())
    }

    fn fault(&mut self, name: &str, kind: FaultKind, time: Seconds) -> Result<(), Broken> {
        let Some(index) = self.host_named(name) else {
            return Ok(());
        };
        match kind {
            FaultKind::Offline => {
                self.silence(index, self.now.after(time.millis()));
                Ok(())
            }
            FaultKind::Withdraw => {
                if let Some(host) = self.hosts.get_mut(index) {
                    host.withdrawn = true;
                }
                self.heartbeat(index)
            }
        }
    }

    fn refund(&mut self, index: usize, order: &str, amount: i64) -> Result<(), Broken> {
        let Some((lease, _)) = self.orders.get(order).cloned() else {
            return Ok(());
        };
        let outcome = self.command(Command::Money(MoneyOrder::Refund {
            id: PaymentId::from_bytes(step_id(index)),
            lease,
            amount: MicroUsd(amount),
            note: Text::default(),
        }))?;
        self.refused(Some(order), outcome)
    }

    fn pay_out(&mut self) -> Result<(), Broken> {
        let minimum = MicroUsd(1);
        let made = self.command(Command::Money(MoneyOrder::MakePayouts { minimum }))?;
        let open = match made {
            Ok(Answer::Payouts(open)) => open,
            Ok(_) => Vec::new(),
            Err(rejection) => return self.refused(None, Err(rejection)),
        };
        for (id, _) in open {
            let note = Text::default();
            let paid = self.command(Command::Money(MoneyOrder::Paid { id, note }))?;
            self.refused(None, paid)?;
        }
        Ok(())
    }

    /// Says that something was refused, and why.
    fn refused(
        &mut self,
        order: Option<&str>,
        outcome: Result<Answer, Rejection>,
    ) -> Result<(), Broken> {
        let Err(rejection) = outcome else {
            return Ok(());
        };
        self.line(Line {
            event: "order_rejected",
            order: order.map(str::to_owned),
            reason: Some(rejection.to_string()),
            ..Line::default()
        })
    }

    fn host_named(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.spec.id == name)
    }
}

fn wish_of_rent(rent: &Rent) -> Wish<'_> {
    Wish {
        order: &rent.order,
        renter: &rent.renter,
        gpus: rent.gpus,
        filter: &rent.filter,
        disk_gb: rent.disk_gb,
        deal: Deal::OnDemand,
    }
}

fn wish_of_reserve(reserve: &Reserve) -> Wish<'_> {
    Wish {
        order: &reserve.order,
        renter: &reserve.renter,
        gpus: reserve.gpus,
        filter: &reserve.filter,
        disk_gb: reserve.disk_gb,
        deal: Deal::Reserved {
            days: reserve.days,
            prepay_max: BUDGET,
        },
    }
}

fn step_id(index: usize) -> [u8; 16] {
    bytes_of(u64::try_from(index).unwrap_or(u64::MAX))
}
