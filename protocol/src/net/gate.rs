//! Decides about every stream that a peer opens: let in, with a place taken for as long as it lasts, or refused
//! with a reason that is counted and said. The limits are asked before a byte of the stream is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{AsyncReadExt, FutureExt};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota};
use libp2p::PeerId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::config::Limits;
use super::counters::{NetCounters, Refusal};
use super::requests::{Answering, Arrived, Arriving};
use super::sources::Source;
use super::speed;
use super::streams::{GuardedStream, Inbound, Kind};
use super::tunnels::Tunnel;
use super::wire::{PeerRefusal, write_accepted, write_refusal};
use crate::ids::PublicKey;

/// Links one peer may hold: one for each program it runs with the same key.
const LINKS_PER_PEER: usize = 8;
/// Two at once would each measure half.
const SPEEDS_PER_PEER: usize = 1;
/// Refusals being written at once, to all peers; beyond it a stream is dropped, which the peer sees as closed.
const REFUSALS_AT_ONCE: usize = 1024;
/// Buckets that have filled up again are forgotten each time this many requests have come.
const SWEEP_EVERY: u32 = 4096;

/// A connected peer: its key and the places that its streams take.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) key: PublicKey,
    pub(crate) inbound: Places,
    pub(crate) outbound: Places,
}

impl Peer {
    pub(crate) fn new(key: PublicKey, limits: &Limits) -> Self {
        Self {
            key,
            inbound: Places::new(limits),
            outbound: Places::new(limits),
        }
    }
}

/// How many streams of each kind may be open with one peer in one direction.
#[derive(Debug)]
pub(crate) struct Places {
    requests: Arc<Semaphore>,
    tunnels: Arc<Semaphore>,
    links: Arc<Semaphore>,
    speeds: Arc<Semaphore>,
}

impl Places {
    fn new(limits: &Limits) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(limits.in_flight_per_peer)),
            tunnels: Arc::new(Semaphore::new(limits.tunnels_per_peer)),
            links: Arc::new(Semaphore::new(LINKS_PER_PEER)),
            speeds: Arc::new(Semaphore::new(SPEEDS_PER_PEER)),
        }
    }

    pub(crate) fn take(&self, kind: Kind) -> Option<OwnedSemaphorePermit> {
        let places = match kind {
            Kind::Request => &self.requests,
            Kind::Tunnel => &self.tunnels,
            Kind::Link => &self.links,
            Kind::Speed => &self.speeds,
        };
        Arc::clone(places).try_acquire_owned().ok()
    }
}

/// How many streams of a kind [`Places`] has, for messages.
pub(crate) const fn places_of(kind: Kind, limits: &Limits) -> usize {
    match kind {
        Kind::Request => limits.in_flight_per_peer,
        Kind::Tunnel => limits.tunnels_per_peer,
        Kind::Link => LINKS_PER_PEER,
        Kind::Speed => SPEEDS_PER_PEER,
    }
}

/// The limits at work, and the tasks of what they let in.
pub(crate) struct Gate {
    limits: Limits,
    counters: Arc<NetCounters>,
    answering: Answering,
    tunnels: mpsc::Sender<Tunnel>,
    /// Kept beyond a peer's disconnection until full again: reconnecting does not refill a bucket.
    buckets: DefaultKeyedRateLimiter<PeerId>,
    until_sweep: u32,
    measurements: Measurements,
    arriving: Arc<Semaphore>,
    /// The same for each source; those of which nothing is arriving are forgotten now and then.
    arriving_of: BTreeMap<Source, Arc<Semaphore>>,
    refusals: Arc<Semaphore>,
    stopping: bool,
    /// Requests being answered, tunnels being accepted, refusals being written: all end by themselves.
    serving: JoinSet<()>,
    /// Links: they end with their connection.
    links: JoinSet<()>,
}

impl Gate {
    pub(crate) fn new(
        limits: Limits,
        counters: Arc<NetCounters>,
        requests: mpsc::Sender<Arrived>,
        tunnels: mpsc::Sender<Tunnel>,
    ) -> Self {
        let quota = Quota::per_second(limits.requests_per_second).allow_burst(limits.request_burst);
        Self {
            limits,
            answering: Answering {
                queue: requests,
                counters: Arc::clone(&counters),
                in_flight: Arc::new(Semaphore::new(limits.in_flight)),
                frame_timeout: limits.frame_timeout,
                answer_timeout: limits.answer_timeout,
            },
            counters,
            tunnels,
            buckets: DefaultKeyedRateLimiter::keyed(quota),
            until_sweep: SWEEP_EVERY,
            measurements: Measurements::new(&limits),
            arriving: Arc::new(Semaphore::new(limits.arriving)),
            arriving_of: BTreeMap::new(),
            refusals: Arc::new(Semaphore::new(REFUSALS_AT_ONCE)),
            stopping: false,
            serving: JoinSet::new(),
            links: JoinSet::new(),
        }
    }

    /// Lets the stream in or refuses it; never waits. A connection that this node dialled has no source.
    pub(crate) fn admit(&mut self, peer: &Peer, source: Option<Source>, inbound: Inbound) {
        self.reap();
        if self.stopping {
            self.refuse(inbound.stream, Refusal::Stopping, PeerRefusal::Stopping);
            return;
        }
        match inbound.kind {
            Kind::Request => self.admit_request(peer, source, inbound),
            Kind::Tunnel => self.admit_tunnel(peer, inbound),
            Kind::Link => self.admit_link(peer, inbound.stream),
            Kind::Speed => self.admit_speed(peer, inbound),
        }
    }

    /// Says on a stream of a connection over the peer's limit that it is. The connection is counted, not its streams.
    pub(crate) fn turn_away(&mut self, stream: GuardedStream) {
        self.reap();
        self.say_no(stream, PeerRefusal::TooManyConnections);
    }

    /// Refuses everything from now on.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        // Nobody waits for the end of one: it is asked for again elsewhere or later.
        self.measurements.running.abort_all();
    }

    /// Waits until nothing is being answered any more.
    pub(crate) async fn drained(&mut self) {
        while self.serving.join_next().await.is_some() {}
    }

    fn admit_request(&mut self, peer: &Peer, source: Option<Source>, inbound: Inbound) {
        if !self.take_token(inbound.peer) {
            self.refuse(
                inbound.stream,
                Refusal::TooManyRequests,
                PeerRefusal::TooManyRequests,
            );
            return;
        }
        let places = match peer.inbound.take(Kind::Request) {
            Some(of_peer) => self.take_arriving(source).map(|place| (of_peer, place)),
            None => Err(Refusal::TooManyInFlight),
        };
        let (of_peer, arriving) = match places {
            Ok(places) => places,
            Err(reason) => {
                self.refuse(inbound.stream, reason, PeerRefusal::TooManyInFlight);
                return;
            }
        };
        let answering = self.answering.clone();
        self.serving
            .spawn(answering.answer(inbound.stream, peer.key, of_peer, arriving));
    }

    fn take_arriving(&mut self, source: Option<Source>) -> Result<Arriving, Refusal> {
        let of_source = match source {
            None => None,
            Some(source) => {
                let most = self.limits.arriving_per_address;
                let places = self
                    .arriving_of
                    .entry(source)
                    .or_insert_with(|| Arc::new(Semaphore::new(most)));
                let place = Arc::clone(places).try_acquire_owned();
                Some(place.map_err(|_| Refusal::TooManyArrivingOfAddress)?)
            }
        };
        let of_all = Arc::clone(&self.arriving).try_acquire_owned();
        Ok(Arriving {
            _of_all: of_all.map_err(|_| Refusal::TooManyInFlight)?,
            _of_source: of_source,
        })
    }

    fn take_token(&mut self, peer: PeerId) -> bool {
        self.until_sweep -= 1;
        if self.until_sweep == 0 {
            self.until_sweep = SWEEP_EVERY;
            self.buckets.retain_recent();
            self.measurements.of_peer.retain_recent();
            let most = self.limits.arriving_per_address;
            self.arriving_of
                .retain(|_, places| places.available_permits() < most);
        }
        self.buckets.check_key(&peer).is_ok()
    }

    fn admit_tunnel(&mut self, peer: &Peer, inbound: Inbound) {
        let Inbound {
            mut stream,
            relayed,
            ..
        } = inbound;
        let Some(place) = peer.inbound.take(Kind::Tunnel) else {
            self.refuse(stream, Refusal::TooManyTunnels, PeerRefusal::TooManyTunnels);
            return;
        };
        // The slot in the queue is taken before the peer is told yes: a yes is never taken back.
        let Ok(slot) = self.tunnels.clone().try_reserve_owned() else {
            self.refuse(stream, Refusal::TunnelQueueFull, PeerRefusal::QueueFull);
            return;
        };
        let (key, patience) = (peer.key, self.limits.frame_timeout);
        let counters = Arc::clone(&self.counters);
        self.serving.spawn(async move {
            if let Ok(Ok(())) = timeout(patience, write_accepted(&mut stream)).await {
                counters.tunnel_accepted();
                slot.send(Tunnel::new(stream, key, relayed, place));
            }
        });
    }

    fn admit_link(&mut self, peer: &Peer, mut stream: GuardedStream) {
        let Some(place) = peer.inbound.take(Kind::Link) else {
            self.counters.refuse(Refusal::TooManyLinks);
            return;
        };
        let counters = Arc::clone(&self.counters);
        self.links.spawn(async move {
            let _place = place;
            // A link says nothing. Zero bytes is its end.
            if let Ok(1..) = stream.read(&mut [0]).await {
                counters.refuse(Refusal::Malformed);
            }
        });
    }

    fn admit_speed(&mut self, peer: &Peer, inbound: Inbound) {
        let Inbound {
            mut stream,
            peer: id,
            ..
        } = inbound;
        let place = peer.inbound.take(Kind::Speed);
        let Some(places) = place.and_then(|place| self.measurements.take(id, place)) else {
            self.refuse(
                stream,
                Refusal::TooManyMeasurements,
                PeerRefusal::MeasuredEnough,
            );
            return;
        };
        let limits = self.limits;
        self.measurements.running.spawn(async move {
            let _places = places;
            if let Ok(Ok(())) = timeout(limits.frame_timeout, write_accepted(&mut stream)).await {
                speed::serve(&mut stream, limits.speed).await;
            }
        });
    }

    fn refuse(&mut self, stream: GuardedStream, counted: Refusal, said: PeerRefusal) {
        self.counters.refuse(counted);
        self.say_no(stream, said);
    }

    fn say_no(&mut self, mut stream: GuardedStream, said: PeerRefusal) {
        let Ok(place) = Arc::clone(&self.refusals).try_acquire_owned() else {
            return;
        };
        let patience = self.limits.frame_timeout;
        self.serving.spawn(async move {
            let _place = place;
            // The peer may be gone; then there is nobody to tell.
            let _ = timeout(patience, write_refusal(&mut stream, said)).await;
        });
    }

    /// Lets go of the tasks that have ended, so that they do not pile up.
    fn reap(&mut self) {
        while let Some(Some(_)) = self.serving.join_next().now_or_never() {}
        while let Some(Some(_)) = self.links.join_next().now_or_never() {}
        while let Some(Some(_)) = self.measurements.running.join_next().now_or_never() {}
    }
}

/// Measurements of the network that are given: how many at once, and how often to whom.
struct Measurements {
    at_once: Arc<Semaphore>,
    /// Kept beyond a peer's disconnection until full again, as the buckets of requests are.
    of_peer: DefaultKeyedRateLimiter<PeerId>,
    of_all: DefaultDirectRateLimiter,
    running: JoinSet<()>,
}

impl Measurements {
    fn new(limits: &Limits) -> Self {
        let speed = &limits.speed;
        Self {
            at_once: Arc::new(Semaphore::new(speed.at_once)),
            of_peer: DefaultKeyedRateLimiter::keyed(Quota::per_hour(speed.per_peer_and_hour)),
            of_all: DefaultDirectRateLimiter::direct(Quota::per_hour(speed.per_hour)),
            running: JoinSet::new(),
        }
    }

    /// Asks for a place first, so that whoever has to wait for one loses no turn by it.
    fn take(
        &self,
        peer: PeerId,
        of_peer: OwnedSemaphorePermit,
    ) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let of_all = Arc::clone(&self.at_once).try_acquire_owned().ok()?;
        self.of_peer.check_key(&peer).ok()?;
        self.of_all.check().ok()?;
        Some((of_peer, of_all))
    }
}
