//! The half of [`Behaviour`](super::Behaviour) that lives in each connection's task: it opens the streams it is
//! told to and passes up those that arrive. It holds no stream longer than that.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use libp2p::core::upgrade::{InboundUpgrade, ReadyUpgrade, UpgradeInfo};
use libp2p::swarm::handler::{ConnectionEvent, DialUpgradeError, FullyNegotiatedOutbound};
use libp2p::swarm::{
    ConnectionHandler, ConnectionHandlerEvent, ConnectionId, Stream, StreamUpgradeError,
    SubstreamProtocol,
};
use tokio_util::sync::CancellationToken;

use super::guarded::GuardedStream;
use super::{Kind, OpenError, Opened, Opening};

/// The queues are as long as the muxer allows streams on one connection, no longer.
#[derive(Debug)]
pub(crate) struct Handler {
    connection: ConnectionId,
    relayed: bool,
    wanted: VecDeque<Opening>,
    arrived: VecDeque<(Kind, GuardedStream)>,
    /// The connection drops its handler as soon as it begins to close; this then ends its streams.
    gone: CancellationToken,
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

impl Handler {
    pub(super) fn new(connection: ConnectionId, relayed: bool) -> Self {
        Self {
            connection,
            relayed,
            wanted: VecDeque::new(),
            arrived: VecDeque::new(),
            gone: CancellationToken::new(),
        }
    }

    fn opened(&self, event: FullyNegotiatedOutbound<ReadyUpgrade<Kind>, Opening>) {
        let Opening { place, reply, .. } = event.info;
        // A caller that stopped waiting drops the stream here, which resets it.
        let _ = reply.send(Ok(Opened {
            stream: GuardedStream::new(event.protocol, self.gone.clone()),
            connection: self.connection,
            relayed: self.relayed,
            place,
        }));
    }
}

fn not_opened(event: DialUpgradeError<Opening, ReadyUpgrade<Kind>>) {
    let error = match event.error {
        StreamUpgradeError::Timeout => OpenError::TimedOut,
        StreamUpgradeError::NegotiationFailed => OpenError::Unsupported,
        StreamUpgradeError::Io(error) => OpenError::Io(error),
        StreamUpgradeError::Apply(never) => match never {},
    };
    // A caller that stopped waiting needs no reason.
    let _ = event.info.reply.send(Err(error));
}

impl ConnectionHandler for Handler {
    type FromBehaviour = Opening;
    type ToBehaviour = (Kind, GuardedStream);
    type InboundProtocol = AnyKind;
    type OutboundProtocol = ReadyUpgrade<Kind>;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = Opening;

    fn listen_protocol(&self) -> SubstreamProtocol<AnyKind> {
        SubstreamProtocol::new(AnyKind, ())
    }

    fn on_behaviour_event(&mut self, opening: Opening) {
        self.wanted.push_back(opening);
    }

    fn poll(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<ReadyUpgrade<Kind>, Opening, (Kind, GuardedStream)>> {
        if let Some(opening) = self.wanted.pop_front() {
            let upgrade = ReadyUpgrade::new(opening.kind);
            return Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest {
                protocol: SubstreamProtocol::new(upgrade, opening),
            });
        }
        self.arrived.pop_front().map_or(Poll::Pending, |arrived| {
            Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(arrived))
        })
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<'_, AnyKind, ReadyUpgrade<Kind>, (), Opening>,
    ) {
        match event {
            ConnectionEvent::FullyNegotiatedInbound(event) => {
                let (kind, stream) = event.protocol;
                let stream = GuardedStream::new(stream, self.gone.clone());
                self.arrived.push_back((kind, stream));
            }
            ConnectionEvent::FullyNegotiatedOutbound(event) => self.opened(event),
            ConnectionEvent::DialUpgradeError(event) => not_opened(event),
            ConnectionEvent::ListenUpgradeError(_)
            | ConnectionEvent::AddressChange(_)
            | ConnectionEvent::LocalProtocolsChange(_)
            | ConnectionEvent::RemoteProtocolsChange(_)
            | _ => {}
        }
    }
}

/// Accepts a stream of any kind and says which it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnyKind;

impl UpgradeInfo for AnyKind {
    type Info = Kind;
    type InfoIter = std::array::IntoIter<Kind, 4>;

    fn protocol_info(&self) -> Self::InfoIter {
        Kind::ALL.into_iter()
    }
}

impl InboundUpgrade<Stream> for AnyKind {
    type Output = (Kind, Stream);
    type Error = Infallible;
    type Future = Ready<Result<(Kind, Stream), Infallible>>;

    fn upgrade_inbound(self, stream: Stream, kind: Kind) -> Self::Future {
        ready(Ok((kind, stream)))
    }
}
