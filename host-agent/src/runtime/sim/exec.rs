//! Programs of the simulated engine: a few that tests need, each a task of its own.
//!
//! `echo WORDS`, `cat` (also what `sh` is here), `exit CODE`, `sleep` (until signalled). Nothing else is "in
//! the image".

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::super::exec::{
    ExecError, ExecHandle, ExecInput, ExecOutput, ExecSession, ExecSpec, Signal,
};
use super::engine::Engine;

/// What waits in a program's pipe, as in a real one.
const PIPE_BYTES: usize = 64 * 1024;

/// A program that was started.
#[derive(Debug)]
pub(super) struct Program {
    code: watch::Receiver<Option<i32>>,
    killed_by: Option<i32>,
    task: AbortOnDropHandle<()>,
}

impl Program {
    pub(super) fn code(&self) -> Option<i32> {
        self.killed_by.or(*self.code.borrow())
    }

    pub(super) fn signal(&mut self, signal: Signal) {
        let number = match signal {
            Signal::Hangup => 1,
            Signal::Interrupt => 2,
            Signal::Quit => 3,
            Signal::Kill => 9,
            Signal::Terminate => 15,
            Signal::User1
            | Signal::User2
            | Signal::WindowChange
            | Signal::Stop
            | Signal::Continue => return,
        };
        if self.code().is_none() {
            self.killed_by = Some(128 + number);
            self.task.abort();
        }
    }
}

pub(super) fn start(engine: &Arc<Engine>, spec: &ExecSpec) -> Result<ExecSession, ExecError> {
    let (name, words) = spec
        .command
        .split_first()
        .map_or(("", &[][..]), |(n, w)| (n.as_str(), w));
    if !matches!(name, "echo" | "cat" | "sh" | "exit" | "sleep") {
        let detail = format!("exec: \"{name}\": executable file not found in $PATH");
        return Err(ExecError::CommandUnknown { detail });
    }
    let (input, program_input) = duplex(PIPE_BYTES);
    let (program_output, output) = duplex(PIPE_BYTES);
    let (said, code) = watch::channel(None);
    let is_framed = spec.terminal.is_none();
    let work = Work {
        name: name.to_owned(),
        words: words.to_vec(),
        input: program_input,
        output: program_output,
        is_framed,
    };
    let task = tokio::spawn(async move {
        let code = work.run().await.unwrap_or(1);
        said.send_replace(Some(code));
    });
    let program = Program {
        code,
        killed_by: None,
        task: AbortOnDropHandle::new(task),
    };
    let id = engine.with(|state| {
        let id = format!("exec-{}", state.programs.len());
        state.programs.insert(id.clone(), program);
        id
    });
    let output = if is_framed {
        ExecOutput::framed(output)
    } else {
        ExecOutput::raw(output)
    };
    let handle = ExecHandle { id, process: None };
    Ok(ExecSession {
        handle,
        output,
        input: ExecInput::new(input),
    })
}

struct Work {
    name: String,
    words: Vec<String>,
    input: DuplexStream,
    output: DuplexStream,
    is_framed: bool,
}

impl Work {
    async fn run(mut self) -> io::Result<i32> {
        match self.name.as_str() {
            "echo" => {
                self.write(format!("{}\n", self.words.join(" ")).as_bytes())
                    .await?
            }
            "exit" => {
                return Ok(self
                    .words
                    .first()
                    .and_then(|code| code.parse().ok())
                    .unwrap_or(0));
            }
            "sleep" => std::future::pending().await,
            _ => {
                let mut bytes = vec![0; 4096];
                loop {
                    let read = self.input.read(&mut bytes).await?;
                    if read == 0 {
                        break;
                    }
                    self.write(&bytes[..read]).await?;
                }
            }
        }
        Ok(0)
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_framed {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            self.output.write_all(&[1, 0, 0, 0]).await?;
            self.output.write_all(&length.to_be_bytes()).await?;
        }
        self.output.write_all(bytes).await
    }
}
