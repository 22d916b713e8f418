//! A process of this machine that the engine started for a tunnel, held by a descriptor.
//!
//! A number alone is not enough: when the process has ended the kernel gives its number away, and this
//! agent is root. So nothing is signalled unless the descriptor says that the process is still there.

use std::io;
use std::os::fd::OwnedFd;

use futures::FutureExt;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, kill_process_group, pidfd_open, pidfd_send_signal};
use tokio::io::unix::AsyncFd;

use super::exec::Signal;

/// A running process that was started as the first of its own process group.
#[derive(Debug)]
pub(crate) struct HostProcess {
    pid: Pid,
    descriptor: AsyncFd<OwnedFd>,
}

impl HostProcess {
    /// Takes hold of process `pid` as this process sees it. The caller makes sure afterwards that the engine
    /// still says that its program runs as `pid`; else the number may have been another's.
    pub(crate) fn hold(pid: i32) -> io::Result<Self> {
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
        let descriptor = watched(pidfd_open(pid, PidfdFlags::NONBLOCK)?)?;
        Ok(Self { pid, descriptor })
    }

    /// Waits until it ended.
    pub(crate) async fn ended(&self) {
        // An error is the reactor's going down, when nothing is waited for any more.
        let _guard = self.descriptor.readable().await;
    }

    /// Signals its process group: it and what it started.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        let signal = kernel_signal(signal);
        // The descriptor says whether it is there; a process that is there still owns its group's number.
        if self.descriptor.readable().now_or_never().is_some() {
            return Ok(());
        }
        match kill_process_group(self.pid, signal) {
            Err(Errno::SRCH) => match pidfd_send_signal(self.descriptor.get_ref(), signal) {
                Err(Errno::SRCH) => Ok(()),
                other => Ok(other?),
            },
            other => Ok(other?),
        }
    }
}

#[expect(
    deprecated,
    reason = "what replaces it is unsafe, for types that lend their descriptor out; this one is owned"
)]
fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(descriptor)
}

fn kernel_signal(signal: Signal) -> rustix::process::Signal {
    use rustix::process::Signal as Kernel;
    match signal {
        Signal::Hangup => Kernel::HUP,
        Signal::Interrupt => Kernel::INT,
        Signal::Quit => Kernel::QUIT,
        Signal::Terminate => Kernel::TERM,
        Signal::Kill => Kernel::KILL,
        Signal::User1 => Kernel::USR1,
        Signal::User2 => Kernel::USR2,
        Signal::WindowChange => Kernel::WINCH,
        Signal::Stop => Kernel::STOP,
        Signal::Continue => Kernel::CONT,
    }
}
