//! What the parties of a world send each other, and how they sign it.
//!
//! A signature takes longer than everything else about a message, and a world has millions of them: what hosts
//! say again and again carries none, and is opened as what was verified before. Orders and awards are signed
//! for real, because hosts verify them.

use broker::core::payment::MoneyOrder;
use ed25519_dalek::SigningKey;
use protocol::bounded::Blob;
use protocol::codec;
use protocol::ids::{DepositId, Digest, HostId, LeaseId, MessageId, PublicKey, RenterId};
use protocol::lease::{Goal, Grant, Refusal, Report};
use protocol::offer::Offer;
use protocol::order::{LeaseCommand, Order};
use protocol::signed::{
    ENVELOPE_VERSION, Envelope, Header, PAYLOAD_BYTES_MAX, Signed, Statement, Verified,
};
use protocol::units::{MicroUsd, Seconds, Timestamp};
use std::rc::Rc;

/// A message to a broker.
#[derive(Debug, Clone)]
pub(crate) enum Letter {
    Deposit(DepositId, RenterId, MicroUsd),
    Order(Box<Verified<Order>>),
    Command(Verified<LeaseCommand>),
    Grant(Verified<Grant>),
    Refuse(Verified<Refusal>),
    Report(Verified<Report>),
    Announce(HostId, Rc<Vec<Verified<Offer>>>),
    /// What the operator wants done with hosts' money.
    Money(MoneyOrder),
    /// The operator ends a lease.
    OperatorEnds(LeaseId),
}

/// A message to a host.
#[derive(Debug)]
pub(crate) struct Goals {
    pub(crate) goal: Goal,
}

/// Signs, each time with an id that was never used.
#[derive(Debug)]
pub(crate) struct Pen {
    pub(crate) key: SigningKey,
    messages: u64,
}

impl Pen {
    pub(crate) fn of(part: &str, index: usize) -> Self {
        let digest = Digest::of(format!("feira world {part} {index}").as_bytes());
        Self {
            key: SigningKey::from_bytes(digest.as_bytes()),
            messages: 0,
        }
    }

    pub(crate) fn public(&self) -> PublicKey {
        PublicKey::from_bytes(self.key.verifying_key().to_bytes())
    }

    fn envelope(&mut self, audience: PublicKey, issued: Timestamp) -> Envelope {
        self.messages += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.messages.to_le_bytes());
        Envelope {
            audience,
            message_id: MessageId::from_bytes(id),
            issued,
            validity: Seconds(300),
        }
    }

    /// Signs for real.
    pub(crate) fn sign<T: Statement>(
        &mut self,
        body: T,
        audience: PublicKey,
        issued: Timestamp,
    ) -> Verified<T> {
        let envelope = self.envelope(audience, issued);
        Signed::sign(body, &self.key, envelope).expect("a statement of a world is small")
    }

    /// What was verified before, without a signature.
    pub(crate) fn said<T: Statement>(
        &mut self,
        body: T,
        audience: PublicKey,
        issued: Timestamp,
    ) -> Verified<T> {
        let envelope = self.envelope(audience, issued);
        let header = Header {
            version: ENVELOPE_VERSION,
            signer: self.public(),
            audience,
            message_id: envelope.message_id,
            issued,
            expires: issued.after(envelope.validity.millis()),
        };
        let payload = codec::encode(&(header, body)).expect("a statement of a world is small");
        let payload = Blob::<PAYLOAD_BYTES_MAX>::new(payload).expect("it is small");
        let bytes = codec::encode(&(payload, [0_u8; 32], [0_u8; 32])).expect("it is small");
        let signed: Signed<T> = codec::decode(&bytes).expect("these are a statement's bytes");
        signed.reopen().expect("its payload was just written")
    }
}
