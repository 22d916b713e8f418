//! What goes to a program in a container: bytes of standard input, sizes of the terminal, signals.

use crate::Input;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::terminal;
use protocol::bounded::Blob;
use protocol::tunnel::{DATA_BYTES_MAX, WindowSize};
use std::io::Read;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Blocks read ahead of what the network takes.
const AHEAD: usize = 4;

/// One thing to pass on.
#[derive(Debug)]
pub(super) enum Event {
    /// Bytes of standard input.
    Bytes(Blob<DATA_BYTES_MAX>),
    /// Standard input is at its end.
    End,
    /// The terminal has another size.
    Resized(WindowSize),
    /// Ctrl-C, where there is no terminal to pass it on as a key.
    Interrupt,
    /// This program is to stop: a second Ctrl-C, or another signal.
    Stop,
}

/// Where those come from.
#[derive(Debug)]
pub(super) struct Inputs {
    bytes: mpsc::Receiver<Blob<DATA_BYTES_MAX>>,
    at_end: bool,
    interrupted: bool,
    resized: Signal,
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Inputs {
    /// Begins reading standard input. In raw mode, what was typed while connecting is passed on too.
    pub(super) fn begin(context: &Context, raw: bool) -> Result<Self, Failure> {
        let (sender, bytes) = mpsc::channel(AHEAD);
        if let Some(input) = context.take_input() {
            // Reading standard input cannot be given up; the thread ends with the process, or with the
            // first block that nobody takes.
            std::thread::Builder::new()
                .name("standard input".to_owned())
                .spawn(move || pump(input, &sender))
                .map_err(|error| failed(&error))?;
        }
        let listen = |kind| signal(kind).map_err(|error| failed(&error));
        Ok(Self {
            bytes,
            at_end: false,
            // In raw mode Ctrl-C is a key: a signal then comes from somebody else and means stop.
            interrupted: raw,
            resized: listen(SignalKind::window_change())?,
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// The next thing to pass on.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return Event::Stop,
                _ = self.hangup.recv() => return Event::Stop,
                _ = self.interrupt.recv() => {
                    if self.interrupted {
                        return Event::Stop;
                    }
                    self.interrupted = true;
                    return Event::Interrupt;
                }
                _ = self.resized.recv() => {
                    if let Some(size) = terminal::size(rustix::stdio::stdout()) {
                        return Event::Resized(size);
                    }
                }
                block = self.bytes.recv(), if !self.at_end => match block {
                    Some(block) => return Event::Bytes(block),
                    None => {
                        self.at_end = true;
                        return Event::End;
                    }
                },
            }
        }
    }
}

fn failed(error: &std::io::Error) -> Failure {
    Failure::new(
        Code::FileFailed,
        format!("standard input cannot be passed on: {error}"),
    )
}

fn pump(mut input: Input, sender: &mpsc::Sender<Blob<DATA_BYTES_MAX>>) {
    let mut buffer = vec![0; DATA_BYTES_MAX];
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let block = buffer.get(..read).unwrap_or_default().to_vec();
        let Ok(block) = Blob::new(block) else {
            return;
        };
        if sender.blocking_send(block).is_err() {
            return;
        }
    }
}
