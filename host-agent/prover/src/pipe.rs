//! One proof over two pipes: what is asked comes in, what is answered goes out, both in frames.

use audit::frame::{self, FrameError, Frames};
use audit::message::{Answer, Ask};
use audit::prover::{Device, Prover, Unable};
use protocol_pure::bounded::Text;
use std::fmt;
use std::io::{self, Read, Write};

/// Why a conversation ended before its proof did.
#[derive(Debug)]
pub enum PipeError {
    /// A pipe failed or ended.
    Io(io::Error),
    /// What came is no message.
    Frame(FrameError),
    /// The device could not do it; the other side was told.
    Unable(String),
}

impl fmt::Display for PipeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(formatter, "the conversation broke off: {error}"),
            Self::Frame(error) => write!(formatter, "this is no conversation of a proof: {error}"),
            Self::Unable(why) => write!(formatter, "the proof cannot be made: {why}"),
        }
    }
}

impl std::error::Error for PipeError {}

impl From<io::Error> for PipeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FrameError> for PipeError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

/// Opens the device, says so, and answers until the rows of an audit were shown, or the input ends between two
/// messages.
///
/// # Errors
/// When a pipe breaks, what comes is no message, or the device cannot do what is asked.
pub fn converse(
    open: impl FnOnce() -> Result<Box<dyn Device>, Unable>,
    mut input: impl Read,
    mut output: impl Write,
) -> Result<(), PipeError> {
    let mut prover = match open() {
        Ok(device) => Prover::new(device),
        Err(unable) => {
            say(&mut output, &Answer::Unable(Text::cut(&unable.0)))?;
            return Err(PipeError::Unable(unable.0));
        }
    };
    say(&mut output, &Answer::Ready)?;
    let mut frames = Frames::new();
    while let Some(ask) = next(&mut frames, &mut input)? {
        for answer in prover.answer(&ask) {
            say(&mut output, &answer)?;
            if let Answer::Unable(why) = answer {
                return Err(PipeError::Unable(why.to_string()));
            }
        }
        if matches!(ask, Ask::Audit(_)) {
            return Ok(());
        }
    }
    Ok(())
}

fn say(output: &mut impl Write, answer: &Answer) -> Result<(), PipeError> {
    output.write_all(&frame::encode(answer)?)?;
    Ok(output.flush()?)
}

/// The next message; nothing when the input ends where one could begin.
fn next(frames: &mut Frames, input: &mut impl Read) -> Result<Option<Ask>, PipeError> {
    let mut bytes = [0; 4096];
    loop {
        if let Some(ask) = frames.message()? {
            return Ok(Some(ask));
        }
        match input.read(&mut bytes)? {
            0 if frames.is_empty() => return Ok(None),
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            count => frames.push(&bytes[..count]),
        }
    }
}
