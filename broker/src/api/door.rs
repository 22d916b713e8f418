//! The door: what was signed is verified here, on the thread that took it in, before the market hears of it.
//!
//! Must not look at who sent it.

use protocol::ids::PublicKey;
use protocol::signed::{Keys, SignatureError, Signed, Statement, Verified};
use protocol::units::Timestamp;
use std::cell::RefCell;

thread_local! {
    /// Each thread its own: nobody waits for another's. What is in it changes no verdict.
    static KEYS: RefCell<Keys> = const { RefCell::new(Keys::new()) };
}

/// Checks signature, form, audience and time of what was sent to `broker`.
///
/// # Errors
/// What is wrong with it.
pub fn verified<T: Statement>(
    signed: &Signed<T>,
    broker: PublicKey,
    now: Timestamp,
) -> Result<Verified<T>, SignatureError> {
    KEYS.with_borrow_mut(|keys| signed.verify_fresh_by(keys, broker, now))
}
