//! An id that this broker never heard of: said before money is put on it, since an id has no check of its own.
//!
//! Must not refuse a repeat: who has money here is known.

use super::desk::AdminDesk;
use super::wire::{AdminReply, AdminRequest};
use crate::core::payment::NO_SUCH;
use protocol::ids::PublicKey;
use protocol::message::Rejection;

impl AdminDesk {
    /// Why this is not done, when it is about somebody whom nobody here ever heard of and does not say so.
    ///
    /// # Errors
    /// When the market does not answer.
    pub(super) async fn stranger(
        &self,
        request: &AdminRequest,
    ) -> Result<Option<AdminReply>, Rejection> {
        let Some((party, shown)) = named(request) else {
            return Ok(None);
        };
        if self.api.market.knows(party).await? {
            return Ok(None);
        }
        Ok(Some(AdminReply::Unknown(format!(
            "this broker never heard of {shown}, so a letter of it may be wrong; nothing was done. \
             Who ran `init` with this broker's address is known until it is started again. \
             If the id is right: --new"
        ))))
    }
}

/// Whom a request names that may be a slip of the finger, and how they are shown.
fn named(request: &AdminRequest) -> Option<(PublicKey, String)> {
    match request {
        AdminRequest::Deposit(deposit) if !deposit.stranger => {
            Some((deposit.renter.into(), deposit.renter.to_string()))
        }
        AdminRequest::Bond(money) if !money.stranger => {
            Some((money.host.into(), money.host.to_string()))
        }
        AdminRequest::Suspend { host, stranger, .. } if !stranger => {
            Some(((*host).into(), host.to_string()))
        }
        AdminRequest::Deposit(_)
        | AdminRequest::Bond(_)
        | AdminRequest::Suspend { .. }
        | AdminRequest::ReturnBond(_)
        | AdminRequest::ReverseDeposit(_)
        | AdminRequest::Refund(_)
        | AdminRequest::Payouts { .. }
        | AdminRequest::PayoutPaid(_)
        | AdminRequest::PayoutDropped(_)
        | AdminRequest::Status
        | AdminRequest::Accounts
        | AdminRequest::Hosts
        | AdminRequest::Leases { .. }
        | AdminRequest::Verify { .. }
        | AdminRequest::LedgerCheck => None,
    }
}

/// What the operator is told of a refusal, whose words are for renters.
pub(super) fn refused(rejection: &Rejection) -> AdminReply {
    if matches!(rejection, Rejection::UnknownLease) {
        return AdminReply::Unknown("there is no such lease here".to_owned());
    }
    if let Rejection::BadValue { problem, .. } = rejection
        && problem.as_str() == NO_SUCH
    {
        return AdminReply::Unknown(rejection.to_string());
    }
    AdminReply::Refused(rejection.to_string())
}
