//! What tunnels were refused for, counted: for metrics and for an owner who wonders.

use std::sync::atomic::{AtomicU64, Ordering};

use protocol::signed::SignatureError;

/// Why a tunnel was refused before it was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// No request came in time.
    Unasked,
    /// The request cannot be read, or not canonically.
    Unreadable,
    /// Its signature or its key is wrong.
    BadSignature,
    /// It is for another host.
    WrongAudience,
    /// It is too old, from the future, or valid for too long.
    NotNow,
    /// It was signed by another key than the connection's.
    NotTheSigner,
    /// It was used before.
    Replayed,
    /// There is no such lease of the asker's.
    UnknownLease,
    /// There are too many tunnels.
    TooMany,
}

impl Refusal {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::Unasked,
        Self::Unreadable,
        Self::BadSignature,
        Self::WrongAudience,
        Self::NotNow,
        Self::NotTheSigner,
        Self::Replayed,
        Self::UnknownLease,
        Self::TooMany,
    ];

    /// The reason as a label of a metric.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unasked => "unasked",
            Self::Unreadable => "unreadable",
            Self::BadSignature => "bad_signature",
            Self::WrongAudience => "wrong_audience",
            Self::NotNow => "not_now",
            Self::NotTheSigner => "not_the_signer",
            Self::Replayed => "replayed",
            Self::UnknownLease => "unknown_lease",
            Self::TooMany => "too_many",
        }
    }

    const fn place(self) -> usize {
        match self {
            Self::Unasked => 0,
            Self::Unreadable => 1,
            Self::BadSignature => 2,
            Self::WrongAudience => 3,
            Self::NotNow => 4,
            Self::NotTheSigner => 5,
            Self::Replayed => 6,
            Self::UnknownLease => 7,
            Self::TooMany => 8,
        }
    }

    pub(super) const fn of_signature(error: &SignatureError) -> Self {
        match error {
            SignatureError::Form(_) | SignatureError::Version { .. } => Self::Unreadable,
            SignatureError::WeakKey | SignatureError::Signature => Self::BadSignature,
            SignatureError::Audience { .. } => Self::WrongAudience,
            SignatureError::FromTheFuture { .. }
            | SignatureError::Expired { .. }
            | SignatureError::ValidTooLong { .. } => Self::NotNow,
        }
    }
}

/// A count for each reason.
#[derive(Debug, Default)]
pub struct Refusals([AtomicU64; Refusal::ALL.len()]);

impl Refusals {
    pub(super) fn count(&self, refusal: Refusal) {
        self.0[refusal.place()].fetch_add(1, Ordering::Relaxed);
    }

    /// How often something was refused for `refusal`.
    #[must_use]
    pub fn of(&self, refusal: Refusal) -> u64 {
        self.0[refusal.place()].load(Ordering::Relaxed)
    }
}
