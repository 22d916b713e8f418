//! The one place that reads the clock, the boot and randomness for ids.

use crate::core::meter::Moment;
use protocol::ids::{BootId, MessageId};
use protocol::units::{Millis, Timestamp};
use rand::Rng;
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The clocks of this machine in this boot.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    boot: BootId,
}

impl Clock {
    /// Reads which boot this is.
    #[must_use]
    pub fn of_this_boot() -> Self {
        Self { boot: boot_id() }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Moment {
        Moment {
            wall: wall(),
            monotonic: monotonic(),
            boot: self.boot,
        }
    }
}

/// The wall clock.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock's own file")]
pub fn wall() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

/// Time since the boot, without time asleep.
#[must_use]
pub fn monotonic() -> Millis {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    Millis(
        seconds
            .saturating_mul(1000)
            .saturating_add(nanoseconds / 1_000_000),
    )
}

/// A new message id.
#[must_use]
pub fn message_id() -> MessageId {
    let mut bytes = [0; 16];
    rand::rng().fill_bytes(&mut bytes);
    MessageId::from_bytes(bytes)
}

/// The kernel's id of this boot; a random one where it cannot be read, so that nothing is taken for
/// the same boot.
fn boot_id() -> BootId {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    BootId::from_bytes(boot_bytes(&text).unwrap_or_else(|| *message_id().as_bytes()))
}

/// The 16 bytes of a UUID.
fn boot_bytes(uuid: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = uuid.trim().bytes().filter(|byte| *byte != b'-').collect();
    let mut bytes = [0; 16];
    if digits.len() != 32 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_id_is_read_from_its_text() {
        let bytes = boot_bytes("00112233-4455-6677-8899-aabbccddeeff\n").unwrap();
        assert_eq!((bytes[0], bytes[15]), (0, 255));
        assert_eq!(boot_bytes("not a boot"), None);
    }

    #[test]
    fn two_clocks_of_one_boot_agree_on_it() {
        let (one, two) = (Clock::of_this_boot().now(), Clock::of_this_boot().now());
        assert_eq!(one.boot, two.boot);
        assert!(two.monotonic >= one.monotonic);
    }
}
