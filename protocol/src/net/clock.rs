//! The only file of `net` that reads the clock. It must stay a thin window: no decision is taken here.

use std::time::Instant;

/// The monotonic time, for how long something has lasted and when it is tried again.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock of the network layer"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
