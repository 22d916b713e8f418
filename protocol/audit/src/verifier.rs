//! The verifier's side of a proof that is going on.
//!
//! ```no_run
//! # use audit::{conversation::{Heard, Plan}, verifier::{Next, Verifier}};
//! # use protocol_pure::{units::Millis, verify::ParameterError};
//! # fn now() -> Millis { Millis(0) }
//! # fn send(_: audit::message::Ask) {}
//! # fn wait(_until: Millis) -> Heard { Heard::Silence }
//! # fn prove(plan: Plan) -> Result<(), ParameterError> {
//! // The prover is started, and milliseconds are counted from here.
//! let mut verifier = Verifier::begin(plan)?;
//! let transcript = loop {
//!     let heard = wait(verifier.deadline());
//!     match verifier.hear(now(), heard) {
//!         Next::Say(ask) => send(ask),
//!         Next::Wait => {}
//!         Next::Over(transcript) => break transcript,
//!     }
//! };
//! // Seconds of arithmetic: not on a thread that has other things to do.
//! let finding = audit::judge::judge(&transcript);
//! # drop(finding);
//! # Ok(())
//! # }
//! ```

use crate::conversation::{Heard, Plan, Stage};
use crate::message::Ask;
use crate::transcript::{Entry, Transcript};
use protocol_pure::units::Millis;
use protocol_pure::verify::ParameterError;

/// A proof that is going on.
#[derive(Debug, Clone)]
pub struct Verifier {
    stage: Stage,
    transcript: Transcript,
}

/// What a verifier does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Say this, at once: the time of the answer is counted from the moment of what was heard.
    Say(Ask),
    /// Wait for more.
    Wait,
    /// Nothing more is to be said or heard; [`crate::judge::judge`] says what came of it.
    Over(Transcript),
}

impl Verifier {
    /// A proof whose prover was just started; all times are counted from then. The prover speaks first.
    ///
    /// # Errors
    /// When the parameters are out of their bounds.
    pub fn begin(plan: Plan) -> Result<Self, ParameterError> {
        plan.challenge.parameters.check()?;
        Ok(Self {
            stage: Stage::Opening,
            transcript: Transcript::new(plan),
        })
    }

    /// When [`Heard::Silence`] has to be heard if nothing else was: one millisecond behind the last at which an
    /// answer is in time.
    #[must_use]
    pub fn deadline(&self) -> Millis {
        self.stage.until(&self.transcript.plan).plus(Millis(1))
    }

    /// Takes in what was heard at `at`.
    pub fn hear(&mut self, at: Millis, heard: Heard) -> Next {
        if self.stage.is_over() {
            return Next::Over(self.transcript.clone());
        }
        let plan = &self.transcript.plan;
        let was_showing = matches!(self.stage, Stage::Showing { .. });
        let stage = std::mem::replace(&mut self.stage, Stage::Opening);
        self.stage = stage.after(plan, at, heard.clone());
        let ask = self.stage.ask(plan).filter(|_| !was_showing);
        self.transcript.heard.push(Entry { at, heard });
        match ask {
            Some(ask) => Next::Say(ask),
            None if self.stage.is_over() => Next::Over(self.transcript.clone()),
            None => Next::Wait,
        }
    }
}
