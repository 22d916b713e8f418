//! What a refusal is called on the metrics page, and which refusal a bad signature is.

use protocol::bounded::Text;
use protocol::message::Rejection;
use protocol::signed::SignatureError;
use protocol::units::Timestamp;

/// The reason as a metrics label: closed, so that a label can hold nothing that a stranger chose.
#[must_use]
pub const fn label(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::Malformed(_) => "malformed",
        Rejection::BadSignature(_) => "bad_signature",
        Rejection::NotNow { .. } => "not_now",
        Rejection::WrongAudience => "wrong_audience",
        Rejection::NotTheSigner => "not_the_signer",
        Rejection::Replayed => "replayed",
        Rejection::IdReused => "id_reused",
        Rejection::OfferGone => "offer_gone",
        Rejection::OfferChanged => "offer_changed",
        Rejection::OfferTaken => "offer_taken",
        Rejection::HostGone => "host_gone",
        Rejection::PriceAboveLimit { .. } => "price_above_limit",
        Rejection::PrepayAboveLimit { .. } => "prepay_above_limit",
        Rejection::NotEnoughMoney { .. } => "not_enough_money",
        Rejection::DiskTooLarge { .. } => "disk_too_large",
        Rejection::TooLong { .. } => "too_long",
        Rejection::BadValue { .. } => "bad_value",
        Rejection::NameTaken(_) => "name_taken",
        Rejection::UnknownLease => "unknown_lease",
        Rejection::WrongPhase(_) => "wrong_phase",
        Rejection::ResourceTaken => "resource_taken",
        Rejection::TooMany(_) => "too_many",
        Rejection::NothingMatches => "nothing_matches",
        Rejection::BidTooLow { .. } => "bid_too_low",
        Rejection::NotSold(_) => "not_sold",
        Rejection::CannotConvert { .. } => "cannot_convert",
        Rejection::OwnMachine => "own_machine",
        Rejection::HostSuspended(_) => "host_suspended",
        Rejection::ShuttingDown => "shutting_down",
        Rejection::Busy => "busy",
    }
}

/// Every label.
pub const LABELS: [&str; 30] = [
    "malformed",
    "bad_signature",
    "not_now",
    "wrong_audience",
    "not_the_signer",
    "replayed",
    "id_reused",
    "offer_gone",
    "offer_changed",
    "offer_taken",
    "host_gone",
    "price_above_limit",
    "prepay_above_limit",
    "not_enough_money",
    "disk_too_large",
    "too_long",
    "bad_value",
    "name_taken",
    "unknown_lease",
    "wrong_phase",
    "resource_taken",
    "too_many",
    "nothing_matches",
    "bid_too_low",
    "not_sold",
    "cannot_convert",
    "own_machine",
    "host_suspended",
    "shutting_down",
    "busy",
];

/// The refusal of a statement that did not verify at `now`.
#[must_use]
pub fn of_signature(error: &SignatureError, now: Timestamp) -> Rejection {
    let said = || Text::cut(&error.to_string());
    match error {
        SignatureError::Form(_)
        | SignatureError::Version { .. }
        | SignatureError::WeakKey
        | SignatureError::Signature => Rejection::BadSignature(said()),
        SignatureError::Audience { .. } => Rejection::WrongAudience,
        SignatureError::FromTheFuture { .. }
        | SignatureError::Expired { .. }
        | SignatureError::ValidTooLong { .. } => Rejection::NotNow {
            detail: said(),
            now,
        },
    }
}
