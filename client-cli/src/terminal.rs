//! The terminal that this program runs in: its size, and raw mode that always ends.

use protocol::tunnel::WindowSize;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Size of the terminal on this stream; nothing when it is none, or does not know.
pub(crate) fn size(stream: impl AsFd) -> Option<WindowSize> {
    let size = tcgetwinsize(stream).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some(WindowSize {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

/// Width in characters of the terminal on this stream; 80 when a terminal does not know, nothing when it is
/// none.
pub(crate) fn width(stream: impl AsFd) -> Option<usize> {
    if !rustix::termios::isatty(&stream) {
        return None;
    }
    Some(size(stream).map_or(80, |size| usize::from(size.columns)))
}

/// Standard input passed on key by key, until this is dropped: at the end of the command, on an error, on a
/// signal, and when a panic unwinds.
#[derive(Debug)]
pub(crate) struct RawMode {
    input: OwnedFd,
    before: Termios,
}

impl RawMode {
    /// Begins raw mode on standard input.
    ///
    /// # Errors
    /// When it is not a terminal.
    pub(crate) fn begin() -> io::Result<Self> {
        let input = rustix::stdio::stdin().try_clone_to_owned()?;
        let before = tcgetattr(&input)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&input, OptionalActions::Now, &raw)?;
        Ok(Self { input, before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // There is nobody left to tell when this fails.
        let _ = tcsetattr(&self.input, OptionalActions::Drain, &self.before);
    }
}
