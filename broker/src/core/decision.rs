//! What an input comes to, before any of it is recorded. Must not decide it.

use crate::core::event::Event;
use crate::core::meter::Meter;
use protocol::ids::{LeaseId, PaymentId, RenterId};
use protocol::lease::ContainerState;
use protocol::message::Rejection;

/// What an input comes to.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) events: Vec<Event>,
    /// A meter that runs ahead of the journal.
    pub(super) meter: Option<(LeaseId, Meter)>,
    /// What the host said of the container, and of which run.
    pub(super) container: Option<(LeaseId, u32, ContainerState)>,
    pub(super) reply: Reply,
}

/// What the answer is about; it is made after the events are applied.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    Lease(LeaseId),
    Deposited(RenterId),
    DepositedBefore(RenterId),
    Noted,
    /// No, though something came of it for others.
    Refused(Box<Rejection>),
    Payment(PaymentId),
    PaymentBefore(PaymentId),
    OpenPayouts,
}

impl Decision {
    pub(super) const fn events(events: Vec<Event>, reply: Reply) -> Self {
        Self {
            events,
            meter: None,
            container: None,
            reply,
        }
    }

    pub(super) const fn answer(reply: Reply) -> Self {
        Self::events(Vec::new(), reply)
    }

    /// Nothing for the journal, but the meter ran on.
    pub(super) fn heard(lease: LeaseId, meter: Meter) -> Self {
        Self {
            meter: Some((lease, meter)),
            ..Self::answer(Reply::Noted)
        }
    }

    /// And this is what the host said of the container in its run `run`.
    pub(super) fn saying(self, lease: LeaseId, run: u32, container: ContainerState) -> Self {
        Self {
            container: Some((lease, run, container)),
            ..self
        }
    }
}
