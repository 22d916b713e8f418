//! The agent's signature: what it says, when, and for how long. It decides nothing about what is said.

use crate::clock;
use protocol::codec::CodecError;
use protocol::ids::PublicKey;
use protocol::net::Identity;
use protocol::signed::{Envelope, Signed, Statement};
use protocol::units::Seconds;

/// An answer to a broker is acted on when it arrives, or said again.
pub(crate) const ANSWER_VALIDITY: Seconds = Seconds(120);
/// An offer that is not signed again within this time is withdrawn by itself.
pub(crate) const OFFER_VALIDITY: Seconds = Seconds(90);

/// Signs `body` for `audience`, now.
pub(crate) fn sign<T: Statement>(
    identity: &Identity,
    body: T,
    audience: PublicKey,
    validity: Seconds,
) -> Result<Signed<T>, CodecError> {
    let envelope = Envelope {
        audience,
        message_id: clock::message_id(),
        issued: clock::wall(),
        validity,
    };
    Ok(Signed::sign(body, identity.signing_key(), envelope)?
        .signed()
        .clone())
}
