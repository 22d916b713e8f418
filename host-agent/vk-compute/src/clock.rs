//! The one place where the clock is read.

use std::time::Instant;

/// Now.
#[expect(clippy::disallowed_methods, reason = "this is the clock's own file")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
