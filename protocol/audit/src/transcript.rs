//! What is kept of a proof: what the verifier chose, and all that it heard and when. Anyone who has it can judge
//! again; what it cannot show is that the times are true, which are the verifier's word.
//!
//! Its bytes are frames as on the pipe: the plan, then each thing heard.

use crate::conversation::{Heard, Plan};
use crate::frame::{self, FrameError, Frames};
use protocol_pure::ids::Digest;
use protocol_pure::units::Millis;
use serde::{Deserialize, Serialize};

/// Largest transcript in bytes: 128 rows, the roots, the plan, and room.
pub const TRANSCRIPT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Something heard, and when: milliseconds since the prover was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When.
    pub at: Millis,
    /// What.
    pub heard: Heard,
}

/// What is kept of a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// What the verifier chose.
    pub plan: Plan,
    /// What it heard, in order.
    pub heard: Vec<Entry>,
}

/// Why bytes are no transcript of a whole proof.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// More bytes than any transcript has.
    #[error("the transcript has {length} bytes; {TRANSCRIPT_BYTES_MAX} are allowed")]
    TooBig {
        /// How many.
        length: usize,
    },
    /// A part of it cannot be read.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// It breaks off.
    #[error("the transcript breaks off")]
    BreaksOff,
    /// Something was heard after the proof was over.
    #[error("the transcript goes on after the proof is over")]
    GoesOn,
    /// Times that go back.
    #[error("the times in the transcript go back")]
    TimesGoBack,
    /// No such challenge could be sent.
    #[error(transparent)]
    Parameters(#[from] protocol_pure::verify::ParameterError),
}

impl Transcript {
    /// Nothing heard yet.
    #[must_use]
    pub const fn new(plan: Plan) -> Self {
        Self {
            plan,
            heard: Vec::new(),
        }
    }

    /// Its bytes.
    ///
    /// # Errors
    /// When something in it is larger than a message may be.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FrameError> {
        let mut bytes = frame::encode(&self.plan)?;
        for entry in &self.heard {
            bytes.extend(frame::encode(entry)?);
        }
        Ok(bytes)
    }

    /// The transcript that `bytes` are.
    ///
    /// # Errors
    /// When they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TranscriptError> {
        let length = bytes.len();
        if length > TRANSCRIPT_BYTES_MAX {
            return Err(TranscriptError::TooBig { length });
        }
        let mut frames = Frames::new();
        frames.push(bytes);
        let plan = frames.message()?.ok_or(TranscriptError::BreaksOff)?;
        let mut heard = Vec::new();
        while let Some(entry) = frames.message()? {
            heard.push(entry);
        }
        if !frames.is_empty() {
            return Err(TranscriptError::BreaksOff);
        }
        Ok(Self { plan, heard })
    }

    /// BLAKE3 of its bytes: what a verdict names it by.
    ///
    /// # Errors
    /// As [`Self::to_bytes`].
    pub fn digest(&self) -> Result<Digest, FrameError> {
        Ok(Digest::of(&self.to_bytes()?))
    }
}
