//! What keeps a secret that is in memory out of core dumps. Called where a key is made or read, so that every
//! program that has one is protected.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// From here on this process has a secret in its memory: a crash must not write it to a disk, and no other
/// process of the same user may attach to it.
///
/// Each of the two suffices against dumps by itself. A service manager may forbid the second call, having set
/// the limit already; that is no reason to run without a key.
pub(super) fn leave_no_core_dumps() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let kept = [
        set_dumpable_behavior(DumpableBehavior::NotDumpable),
        setrlimit(Resource::Core, none),
    ];
    if let [Err(error), Err(_)] = kept {
        tracing::warn!(%error, "a crash of this program may leave its key in a core dump");
    }
}
