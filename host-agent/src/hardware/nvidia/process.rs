//! One process that asks the library, as the agent sees it: started, asked with a deadline, killed.

use host_nvml::fault::Fault;
use host_nvml::wire::{
    Answer, Ask, Frame, HEADER_BYTES, Request, WireError, framed, length, message,
};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// The subcommand of this program that serves questions.
pub const SUBCOMMAND: &str = "gpu-helper";
/// Frames that may wait to be read; the process waits when they are too many.
const FRAMES: usize = 64;

/// How such a process is started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program; itself, but for tests.
    pub program: PathBuf,
    /// Another file than `libnvidia-ml.so.1`.
    pub library: Option<PathBuf>,
    /// Another file than the driver's table of device nodes.
    pub mig_minors: Option<PathBuf>,
    /// Added to its environment, for tests.
    pub environment: Vec<(String, PathBuf)>,
}

impl Launch {
    /// This program again, with the file to load where it is not the driver's own.
    #[must_use]
    pub fn again(library: Option<PathBuf>) -> Self {
        Self {
            // The file that runs, also when another was installed in its place meanwhile.
            program: PathBuf::from("/proc/self/exe"),
            library,
            mig_minors: None,
            environment: Vec::new(),
        }
    }
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The library says so.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// No answer within the deadline; the process was killed.
    #[error("the driver does not answer within {} ms", .0.as_millis())]
    Hangs(Duration),
    /// The process ended, or said what it should not.
    #[error("the process that asks the driver ended: {0}")]
    Ended(String),
    /// The GPU is not asked right now: it did not answer before, or too many wait.
    #[error("the GPU is not asked right now: {0}")]
    NotAsked(String),
}

/// A running process. Dropped, it is killed and not waited for: one that hangs in the driver cannot be.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    questions: ChildStdin,
    frames: mpsc::Receiver<Frame>,
    number: u32,
    /// What was heard while an answer was waited for.
    heard: VecDeque<Frame>,
    _reading: AbortOnDropHandle<()>,
}

impl Process {
    pub(super) fn start(launch: &Launch) -> Result<Self, CallError> {
        let mut command = Command::new(&launch.program);
        command.arg0("feira-host").arg(SUBCOMMAND);
        if let Some(library) = &launch.library {
            command.arg("--library").arg(library);
        }
        if let Some(mig_minors) = &launch.mig_minors {
            command.arg("--mig-minors").arg(mig_minors);
        }
        command
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let ended = |error: io::Error| CallError::Ended(error.to_string());
        let mut child = command.spawn().map_err(ended)?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(CallError::Ended("it has no pipes".to_owned()));
        };
        let (send, frames) = mpsc::channel(FRAMES);
        let reading = tokio::spawn(read_all(answers, send));
        Ok(Self {
            child,
            questions,
            frames,
            number: 0,
            heard: VecDeque::new(),
            _reading: AbortOnDropHandle::new(reading),
        })
    }

    /// Asks. After anything but an answer or a fault the process is of no use.
    pub(super) async fn call(&mut self, ask: Ask, deadline: Duration) -> Result<Answer, CallError> {
        timeout(deadline, self.call_without_deadline(ask))
            .await
            .unwrap_or(Err(CallError::Hangs(deadline)))
    }

    async fn call_without_deadline(&mut self, ask: Ask) -> Result<Answer, CallError> {
        self.number = self.number.wrapping_add(1);
        let wanted = self.number;
        let request = Request {
            number: wanted,
            ask,
        };
        let bytes = framed(&request).map_err(|error| CallError::Ended(error.to_string()))?;
        if let Err(error) = self.questions.write_all(&bytes).await {
            return Err(self.ended(&error.to_string()));
        }
        loop {
            match self.frames.recv().await {
                Some(Frame::Answer { number, result }) if number == wanted => {
                    return Ok(result?);
                }
                // To a question that nobody waits for any more.
                Some(Frame::Answer { .. }) => {}
                Some(frame @ (Frame::Event { .. } | Frame::EventsBroke { .. })) => {
                    self.heard.push_back(frame);
                }
                None => return Err(self.ended("it said no more")),
            }
        }
    }

    /// The next thing that it says unasked; nothing when it ended. Safe to be dropped and called again.
    pub(super) async fn hear(&mut self) -> Option<Frame> {
        match self.heard.pop_front() {
            Some(frame) => Some(frame),
            None => self.frames.recv().await,
        }
    }

    /// Kills it and waits for a moment, for what must not find it alive.
    pub(super) async fn kill(mut self, at_most: Duration) {
        // One that is dead already is what was wanted, and one that cannot die is not waited for longer.
        let _ = self.child.start_kill();
        let _ = timeout(at_most, self.child.wait()).await;
    }

    fn ended(&mut self, what: &str) -> CallError {
        match self.child.try_wait() {
            Ok(Some(status)) => CallError::Ended(status.to_string()),
            Ok(None) | Err(_) => CallError::Ended(what.to_owned()),
        }
    }
}

/// Passes on every frame until the pipe ends or says something that is none.
async fn read_all(mut pipe: impl AsyncRead + Unpin, frames: mpsc::Sender<Frame>) {
    while let Ok(frame) = read_one(&mut pipe).await {
        if frames.send(frame).await.is_err() {
            return;
        }
    }
}

async fn read_one(pipe: &mut (impl AsyncRead + Unpin)) -> Result<Frame, WireError> {
    let mut header = [0; HEADER_BYTES];
    pipe.read_exact(&mut header).await?;
    let mut body = vec![0; length(header)?];
    pipe.read_exact(&mut body).await?;
    message(&body)
}

/// What came was the answer to something else.
pub(super) fn wrong_answer() -> CallError {
    CallError::Ended("it answered another question".to_owned())
}
