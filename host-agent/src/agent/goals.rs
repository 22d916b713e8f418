//! What a broker asks of this host: its goal, checked, decided, recorded, and only then noted.

use super::AgentError;
use super::desk::Desk;
use crate::core::goal::Overtaken;
use crate::hardware::Hardware;
use crate::runtime::Runtime;
use protocol::bounded::Text;
use protocol::ids::{BrokerId, PublicKey};
use protocol::lease::Goal;
use protocol::message::{self, HostReply, HostRequest};
use protocol::net::Responder;

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Answers one request. Who asks is known from the connection: noise proves the key.
    pub(super) async fn asked(
        &mut self,
        peer: PublicKey,
        bytes: &[u8],
        responder: Responder,
    ) -> Result<(), AgentError> {
        let reply = self.answer_broker(peer, bytes).await?;
        match message::encode(&reply) {
            // The broker went away; it says its goal again.
            Ok(bytes) => drop(responder.reply(bytes)),
            Err(error) => tracing::error!(%error, "an answer cannot be encoded"),
        }
        Ok(())
    }

    async fn answer_broker(
        &mut self,
        peer: PublicKey,
        bytes: &[u8],
    ) -> Result<HostReply, AgentError> {
        let broker = BrokerId::from(peer);
        if !self.brokers.contains_key(&broker) {
            self.count("unknown_broker");
            return Ok(refused("this host does not list with you"));
        }
        match message::decode::<HostRequest>(bytes) {
            Ok(HostRequest::Goal(goal)) => self.follow(broker, &goal).await,
            Err(error) => {
                self.count("malformed");
                Ok(refused(&error.to_string()))
            }
        }
    }

    async fn follow(&mut self, broker: BrokerId, goal: &Goal) -> Result<HostReply, AgentError> {
        let decided = self
            .leases
            .decide_goal(broker, goal, &self.judging(), self.now());
        match decided {
            Ok(decision) => {
                self.record(&decision).await?;
                if self.leases.waits(broker) {
                    self.unfinished.insert(broker, goal.clone());
                } else {
                    self.unfinished.remove(&broker);
                }
                Ok(HostReply::Noted)
            }
            Err(Overtaken) => {
                self.count("overtaken_goal");
                Ok(refused("a newer goal was noted"))
            }
        }
    }
}

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Follows again what waited for a lease to be gone, when one is.
    pub(super) async fn go_on(&mut self) -> Result<(), AgentError> {
        if !std::mem::take(&mut self.freed) {
            return Ok(());
        }
        for (broker, goal) in std::mem::take(&mut self.unfinished) {
            self.follow(broker, &goal).await?;
        }
        Ok(())
    }
}

fn refused(reason: &str) -> HostReply {
    HostReply::Refused(Text::cut(reason))
}
