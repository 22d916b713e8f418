//! Who answers on the owner's socket: what is asked goes to the agent's loop, which owns the answers.

use super::wire::{AdminReply, AdminRequest};
use protocol::operator::Desk;
use tokio::sync::{mpsc, oneshot};

/// A question on its way to the loop, and where its answer goes.
pub(crate) type Asked = (AdminRequest, oneshot::Sender<AdminReply>);

/// The way to the loop.
#[derive(Debug, Clone)]
pub(crate) struct OwnersDesk(pub(crate) mpsc::Sender<Asked>);

impl Desk for OwnersDesk {
    type Request = AdminRequest;
    type Reply = AdminReply;

    async fn answer(&self, request: AdminRequest) -> AdminReply {
        let (reply, answered) = oneshot::channel();
        let stopping = || AdminReply::Refused("the agent is stopping".to_owned());
        if self.0.send((request, reply)).await.is_err() {
            return stopping();
        }
        answered.await.unwrap_or_else(|_| stopping())
    }
}
