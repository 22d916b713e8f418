//! Lines of the kernel's log about GPUs, as they come. It takes root or `CAP_SYSLOG`; without it the driver's library
//! tells of most of the same.

use gpu_health::log::{Line, kernel_message, read};
use rustix::fs::{Mode, OFlags, SeekFrom, open, seek};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

/// The kernel's log, a record a read.
pub const PATH: &str = "/dev/kmsg";
/// The longest record that the kernel writes.
const RECORD_MAX: usize = 8192;

/// The log, from its end on.
#[derive(Debug)]
pub struct KernelLog(AsyncFd<OwnedFd>);

impl KernelLog {
    /// Opens it.
    ///
    /// # Errors
    /// What the system said: mostly that this user may not.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty())?;
        match seek(&file, SeekFrom::End(0)) {
            // A pipe has no end: what is written to it from now on comes.
            Ok(_) | Err(Errno::SPIPE) => {}
            Err(error) => return Err(error.into()),
        }
        #[expect(
            deprecated,
            reason = "the file is owned here, which is all that its successor asks for"
        )]
        let watched = AsyncFd::new(file)?;
        Ok(Self(watched))
    }

    /// Sends what it says of GPUs, until nobody listens or it cannot be read any more.
    pub async fn follow(self, heard: mpsc::Sender<Line>) {
        let mut record = [0; RECORD_MAX];
        loop {
            let Ok(mut ready) = self.0.readable().await else {
                return;
            };
            match rustix::io::read(self.0.get_ref(), &mut record) {
                Ok(0) => return,
                Ok(length) => {
                    let text = record.get(..length).unwrap_or_default();
                    let text = String::from_utf8_lossy(text);
                    let line = text.lines().next().and_then(kernel_message).and_then(read);
                    if let Some(line) = line
                        && heard.send(line).await.is_err()
                    {
                        return;
                    }
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                // Records were overwritten before they were read.
                Err(Errno::PIPE | Errno::INTR) => {}
                Err(error) => {
                    tracing::warn!(%error, "the kernel's log cannot be read any more");
                    return;
                }
            }
        }
    }
}
