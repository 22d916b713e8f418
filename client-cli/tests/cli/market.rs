//! A broker that does what a test says: a real node on loopback with one offer, leases in a map, and a list of
//! everything it was asked. It holds no money and checks nothing that a test does not ask it to.

mod goods;
mod script;

use ed25519_dalek::SigningKey;
use goods::{bid_of, offer, order_of, place_of, portions, prices, term_of};
use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, LeaseId, PublicKey, RenterId};
use protocol::lease::{Access, ContainerState, LeaseView, Phase, StopReason};
use protocol::message::{self, BrokerInfo, BrokerReply, BrokerRequest, Found, Rejection};
use protocol::net::{Identity, Node, NodeConfig, NodeEvent};
use protocol::order::{LeaseAction, Order};
use protocol::signed::Signed;
use protocol::terms::Rates;
use protocol::units::{BasisPoints, Bytes, MicroUsd, Millis, PricePerHour, Timestamp};
use protocol::usage::{Amounts, Balance};
pub(crate) use script::{Script, Seen};
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// A running broker.
#[derive(Debug)]
pub(crate) struct Broker {
    /// Where it listens.
    pub(crate) address: String,
    seen: Arc<Mutex<Seen>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Broker {
    /// Starts one whose key is made of this byte.
    pub(crate) fn start(byte: u8, script: Script) -> Result<Self, Box<dyn Error>> {
        let (stop, stopped) = oneshot::channel();
        let (ready, address) = std::sync::mpsc::channel();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let desk = Desk {
            id: broker_id(byte),
            script,
            seen: Arc::clone(&seen),
        };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            if let Ok(runtime) = runtime {
                runtime.block_on(desk.serve(byte, &ready, stopped));
            }
        });
        let address = address.recv_timeout(Duration::from_secs(10))?;
        Ok(Self {
            address,
            seen,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// What it was told so far.
    pub(crate) fn seen<T>(&self, read: impl FnOnce(&Seen) -> T) -> T {
        read(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn signing_key(byte: u8) -> SigningKey {
    SigningKey::from_bytes(&[byte; 32])
}

fn broker_id(byte: u8) -> BrokerId {
    PublicKey::from_bytes(signing_key(byte).verifying_key().to_bytes()).into()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's broker has the real time"
)]
fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(0))
}

struct Desk {
    id: BrokerId,
    script: Script,
    seen: Arc<Mutex<Seen>>,
}

impl Desk {
    async fn serve(
        mut self,
        byte: u8,
        ready: &std::sync::mpsc::Sender<String>,
        mut stopped: oneshot::Receiver<()>,
    ) {
        let identity = Identity::from_signing_key(signing_key(byte));
        let listen = protocol::net::parse_address("/ip4/127.0.0.1/tcp/0");
        let started =
            Node::start(&identity, NodeConfig::broker(listen.into_iter().collect())).await;
        let Ok((node, mut events)) = started else {
            return;
        };
        let addresses = node.listen_addresses().await;
        let _ = ready.send(
            addresses
                .first()
                .map(ToString::to_string)
                .unwrap_or_default(),
        );
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                _ = &mut stopped => break,
            };
            let Some(NodeEvent::Request {
                peer,
                bytes,
                responder,
            }) = event
            else {
                continue;
            };
            let reply = match message::decode::<BrokerRequest>(&bytes) {
                Ok(request) => self.answer(peer, request),
                Err(error) => Some(BrokerReply::Refused(Rejection::Malformed(Text::cut(
                    &error.to_string(),
                )))),
            };
            if let Some(Ok(bytes)) = reply.map(|reply| message::encode(&reply)) {
                let _ = responder.reply(bytes);
            }
        }
        node.shutdown(Duration::from_millis(200)).await;
    }

    fn answer(&mut self, peer: PublicKey, request: BrokerRequest) -> Option<BrokerReply> {
        let seen = Arc::clone(&self.seen);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.requests += 1;
        self.make_leases(peer, &mut seen);
        if let BrokerRequest::Order(signed) = &request {
            return self.order(peer, signed, &mut seen);
        }
        let refused = || Some(BrokerReply::Refused(Rejection::UnknownLease));
        let lease = |found: Option<&LeaseView>| {
            found.map_or_else(refused, |view| {
                Some(BrokerReply::Lease(Box::new(view.clone())))
            })
        };
        if let BrokerRequest::Lease(id) = &request {
            return lease(seen.leases.get(id));
        }
        if let BrokerRequest::Watch { lease: id, .. } = &request {
            let found = seen.leases.get_mut(id)?;
            if !self.script.course.is_empty() {
                found.phase = self.script.course.remove(0);
                found.started_at = found.started_at.or(Some(now()));
                found.revision += 1;
            } else if found.phase == Phase::Resting {
                std::thread::sleep(Duration::from_millis(20));
            } else if found.phase == Phase::Offered && self.script.stall {
                std::thread::sleep(Duration::from_millis(100));
            } else if found.phase == Phase::Offered {
                found.phase = self.script.instead.clone().unwrap_or(Phase::Running);
                found.started_at = Some(now());
                found.revision += 1;
            } else if let Phase::Closing(cause) = &found.phase {
                found.phase = Phase::Closed(cause.clone());
            } else if let Phase::Paused(_) = &found.phase {
                std::thread::sleep(Duration::from_millis(20));
                let stopped = ContainerState::Stopped(StopReason::Asked);
                found.container = (!self.script.host_silent).then_some(stopped);
            }
            return lease(seen.leases.get(id));
        }
        if let BrokerRequest::Command(signed) = &request {
            let Ok(verified) = signed.verify_fresh(self.id.into(), now()) else {
                return refused();
            };
            let command = verified.body();
            seen.commands.push((command.lease, command.action));
            let found = seen.leases.get_mut(&command.lease)?;
            found.phase = match command.action {
                LeaseAction::Stop => Phase::Paused(protocol::lease::PauseCause::Renter),
                LeaseAction::Resume => Phase::Running,
                LeaseAction::End => Phase::Closing(protocol::lease::EndCause::Renter),
                LeaseAction::SetBid(bid) => {
                    found.bid = Some(bid);
                    found.phase.clone()
                }
                LeaseAction::Convert { deal, .. } => {
                    found.kind = deal.kind();
                    found.phase.clone()
                }
            };
            return lease(seen.leases.get(&command.lease));
        }
        Some(self.read(&request, &seen))
    }

    fn order(
        &mut self,
        peer: PublicKey,
        signed: &Signed<Order>,
        seen: &mut Seen,
    ) -> Option<BrokerReply> {
        let verified = match signed.verify_fresh(self.id.into(), now()) {
            Ok(verified) => verified,
            Err(error) => {
                let reason = Text::cut(&error.to_string());
                return Some(BrokerReply::Refused(Rejection::BadSignature(reason)));
            }
        };
        let order = verified.into_body();
        seen.orders.push(order.clone());
        if let Some(rejection) = &self.script.refuse {
            return Some(BrokerReply::Refused(rejection.clone()));
        }
        let view = self.lease(peer.into(), &order);
        let view = seen.leases.entry(view.id).or_insert(view).clone();
        if self.script.swallow > 0 {
            self.script.swallow -= 1;
            return None;
        }
        Some(BrokerReply::Lease(Box::new(view)))
    }

    fn read(&self, request: &BrokerRequest, seen: &Seen) -> BrokerReply {
        if let BrokerRequest::Info = request {
            return BrokerReply::Info(self.info());
        }
        if let BrokerRequest::Search(_) = request
            && self.script.all_rented
        {
            let rented = 1;
            return BrokerReply::Found(Found {
                rented,
                ..Found::default()
            });
        }
        if let BrokerRequest::Search(search) = request {
            return BrokerReply::Found(Found {
                offers: List::first(portions(self.script.pool, search)),
                matching: 1,
                of: 1,
                ..Found::default()
            });
        }
        if let BrokerRequest::Leases(_) = request {
            return BrokerReply::Leases(List::first(seen.leases.values().cloned()));
        }
        if let BrokerRequest::Balance = request {
            let available = MicroUsd(9_500_000);
            return BrokerReply::Balance(Balance {
                available,
                ..Balance::default()
            });
        }
        BrokerReply::Refused(Rejection::Malformed(Text::cut(&format!("{request:?}"))))
    }

    fn info(&self) -> BrokerInfo {
        BrokerInfo {
            broker: self.id,
            name: Text::cut("test"),
            fee: BasisPoints(300),
            now: now(),
            offers: 1,
            version: Text::cut("0"),
        }
    }

    /// The leases of the script, whose renter is known with the first request.
    fn make_leases(&mut self, peer: PublicKey, seen: &mut Seen) {
        let mut made = Vec::new();
        for (index, (name, phase)) in std::mem::take(&mut self.script.leases)
            .into_iter()
            .enumerate()
        {
            let Ok(offer) = offer().verify() else {
                continue;
            };
            let byte = u8::try_from(index + 1).unwrap_or(0);
            let Ok(mut order) = order_of(offer.body(), byte) else {
                continue;
            };
            order.name = Text::cut(name);
            let mut view = self.lease(peer.into(), &order);
            view.phase = phase;
            made.push(view);
        }
        if let [first, second, ..] = made.as_mut_slice()
            && self.script.called_like_an_id
        {
            first.name = Text::cut(&second.id.to_string());
        }
        seen.leases
            .extend(made.into_iter().map(|view| (view.id, view)));
    }

    fn lease(&self, renter: RenterId, order: &Order) -> LeaseView {
        let (bid, until) = bid_of(&order.deal);
        let rests = self.script.rests && bid.is_some();
        LeaseView {
            id: LeaseId::of_order(self.id, renter, order.id),
            order: order.id,
            name: order.name.clone(),
            renter,
            place: place_of(order).filter(|_| !rests),
            kind: order.deal.kind(),
            bid,
            to_win: rests.then_some(PricePerHour(205_000)),
            rests_until: until.filter(|_| rests),
            gpu_count: order.gpus,
            phase: if rests {
                Phase::Resting
            } else {
                Phase::Offered
            },
            since: now(),
            progress: None,
            revision: 1,
            image: order.job.image.clone(),
            gpus: List::default(),
            partition: None,
            cpu_millicores: 8000,
            ram: Bytes(30 << 30),
            disk: order.disk,
            prices: prices(),
            rates: Rates::flat(prices().compute),
            term: self.script.term.map(term_of),
            fee: BasisPoints(300),
            ordered_at: now(),
            started_at: None,
            running: Millis(0),
            charged: Amounts::default(),
            held: MicroUsd(400_000),
            budget: order.budget,
            duration_max: order.duration_max,
            until: None,
            disk_until: None,
            low_balance: false,
            grant: None,
            access: Access::default(),
            container: None,
        }
    }
}
