//! The one task that owns the swarm: carries out commands, hears libp2p's events, keeps who is connected.
//! It waits for nothing but its three sources; whatever takes time runs in the caller's task or the gate's.

mod commands;
mod events;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use libp2p::core::transport::ListenerId;
use libp2p::swarm::{ConnectionId, SwarmEvent};
use libp2p::{Multiaddr, PeerId, Swarm};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

pub(crate) use self::commands::{Command, Snapshot, Stop};
use self::events::{is_in_use, root_cause};
use super::behaviour::Behaviour;
use super::config::{Limits, NodeConfig, Role};
use super::counters::NetCounters;
use super::gate::{Gate, Peer};
use super::node::{ConnectError, NodeError};
use super::reservations::Reservations;
use super::surplus::Surplus;

/// Connections that were told to close get this long to say goodbye.
const GOODBYE: Duration = Duration::from_millis(500);
const PORT_TRIES: u32 = 10;
const PORT_PAUSE: Duration = Duration::from_millis(100);

/// A dial that somebody waits for.
struct Dial {
    peer: PeerId,
    /// Whether a relayed connection will do.
    relayed_will_do: bool,
    reply: oneshot::Sender<Result<(), ConnectError>>,
}

pub(crate) struct Driver {
    swarm: Swarm<Behaviour>,
    commands: mpsc::Receiver<Command>,
    gate: Gate,
    counters: Arc<NetCounters>,
    limits: Limits,
    /// Whether each address listened on is also announced.
    announce_listeners: bool,
    peers: HashMap<PeerId, Peer>,
    dials: BTreeMap<ConnectionId, Dial>,
    reservations: Reservations,
    /// Connections of peers that have too many: what comes on them is refused.
    surplus: Surplus,
    /// Listeners that have not said where they listen yet.
    starting: Vec<(ListenerId, Multiaddr)>,
}

impl Driver {
    pub(crate) fn new(
        mut swarm: Swarm<Behaviour>,
        commands: mpsc::Receiver<Command>,
        gate: Gate,
        counters: &Arc<NetCounters>,
        config: &NodeConfig,
    ) -> Self {
        for address in &config.announce {
            swarm.add_external_address(address.clone());
        }
        Self {
            swarm,
            commands,
            gate,
            counters: Arc::clone(counters),
            limits: config.limits,
            // A relay that knows no address of its own grants no circuit.
            announce_listeners: config.role == Role::Broker && config.announce.is_empty(),
            peers: HashMap::new(),
            dials: BTreeMap::new(),
            reservations: Reservations::new(),
            surplus: Surplus::default(),
            starting: Vec::new(),
        }
    }

    /// Listens, and waits until each listener is up or has failed.
    pub(crate) async fn listen(
        &mut self,
        addresses: &[Multiaddr],
        deadline: Duration,
    ) -> Result<(), NodeError> {
        for address in addresses {
            let listener = self.listen_on(address).await?;
            self.starting.push((listener, address.clone()));
        }
        match timeout(deadline, self.all_listening()).await {
            Ok(result) => result,
            Err(_) => match self.starting.pop() {
                None => Ok(()),
                Some((_, address)) => Err(NodeError::Listen {
                    address,
                    reason: format!("not up within {deadline:?}"),
                }),
            },
        }
    }

    /// A node that was stopped a moment ago may hold its UDP port until its last goodbyes are through, so a port
    /// in use is tried again for a short while.
    async fn listen_on(&mut self, address: &Multiaddr) -> Result<ListenerId, NodeError> {
        let mut tries = PORT_TRIES;
        loop {
            tries -= 1;
            match self.swarm.listen_on(address.clone()) {
                Ok(listener) => return Ok(listener),
                Err(error) if tries > 0 && is_in_use(&error) => sleep(PORT_PAUSE).await,
                Err(error) => {
                    return Err(NodeError::Listen {
                        address: address.clone(),
                        reason: root_cause(&error),
                    });
                }
            }
        }
    }

    async fn all_listening(&mut self) -> Result<(), NodeError> {
        while !self.starting.is_empty() {
            let event = self.swarm.select_next_some().await;
            if let SwarmEvent::ListenerClosed {
                listener_id,
                reason,
                ..
            } = &event
                && let Some(address) = self.started(*listener_id)
            {
                let reason = match reason {
                    Ok(()) => "it closed at once".to_owned(),
                    Err(error) => root_cause(error),
                };
                return Err(NodeError::Listen { address, reason });
            }
            self.on_event(event);
        }
        Ok(())
    }

    /// Takes a listener off the list of those that have said nothing yet.
    fn started(&mut self, listener: ListenerId) -> Option<Multiaddr> {
        let place = self.starting.iter().position(|(id, _)| *id == listener)?;
        Some(self.starting.swap_remove(place).1)
    }

    /// Runs until told to shut down, or until every handle is gone.
    pub(crate) async fn run(mut self) {
        let reply = loop {
            tokio::select! {
                command = self.commands.recv() => {
                    let Some(command) = command else { break None };
                    if let ControlFlow::Break(stop) = self.on_command(command) {
                        self.drain(stop.deadline).await;
                        break Some(stop.reply);
                    }
                }
                event = self.swarm.select_next_some() => self.on_event(event),
                Some(listener) = self.reservations.next_given_up() => {
                    self.swarm.remove_listener(listener);
                }
                (peer, connection) = self.surplus.next_over() => self.close(peer, connection),
            }
        };
        self.say_goodbye().await;
        drop(self);
        if let Some(reply) = reply {
            // Whoever asked may have stopped waiting.
            let _ = reply.send(());
        }
    }

    /// Lets nothing new in and finishes what is being answered.
    async fn drain(&mut self, deadline: Duration) {
        self.gate.stop();
        let swarm = &mut self.swarm;
        let gate = &mut self.gate;
        // The swarm must be polled for the replies to leave; what arrives meanwhile is dropped, which closes it.
        let drained = async {
            tokio::select! {
                () = gate.drained() => {}
                () = async { loop { swarm.select_next_some().await; } } => {}
            }
        };
        // Past the deadline, what is still being answered is cut off: that is what a deadline means.
        let _ = timeout(deadline, drained).await;
    }

    async fn say_goodbye(&mut self) {
        let peers: Vec<PeerId> = self.swarm.connected_peers().copied().collect();
        for peer in peers {
            // Gone by itself: then that is done.
            let _ = self.swarm.disconnect_peer_id(peer);
        }
        let swarm = &mut self.swarm;
        let closed = async {
            while swarm.connected_peers().next().is_some() {
                swarm.select_next_some().await;
            }
        };
        // A peer that does not let go is left.
        let _ = timeout(GOODBYE, closed).await;
    }
}
