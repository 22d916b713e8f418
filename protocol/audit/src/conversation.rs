//! The rules of one proof as the verifier sees it: what may come when, and what each time means. The live
//! verifier and whoever judges a transcript go through the same steps.
//!
//! ```text
//! Opening ──Ready──► Filling ──Filled──► Passing ──Done──► Showing ──Row × s──► Complete
//!    └──────────┴──────────────┴────────────┴─ too late, silent, unable, out of turn ─► Failed
//! ```

use crate::chain;
use crate::message::{Answer, Ask, CELLS_MAX, Cell, Challenge, Node, Nonce, Row};
use protocol_pure::bounded::List;
use protocol_pure::units::Millis;
use protocol_pure::verify::Flaw;
use serde::{Deserialize, Serialize};

/// How long the rows may take to be shown: nothing is measured any more, the data may only not take for ever.
pub const SHOWING_MAX: Millis = Millis(120_000);

/// How long the prover may take to start and to open its device: nothing is asked yet, and nothing is measured.
pub const OPENING_MAX: Millis = Millis(60_000);

/// What a verifier chooses for a proof: fresh random bytes, and what it challenges with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What is sent first.
    pub challenge: Challenge,
    /// The key of the first round; not to be known to anyone before the memory is filled.
    pub nonce: Nonce,
    /// Decides over the audited cells; not to be known to anyone before the last round is through.
    pub secret: [u8; 32],
}

/// What a verifier hears.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Heard {
    /// A message.
    Answer(Answer),
    /// The pipe ended, what came was no message, or the time of [`crate::verifier::Verifier::deadline`] passed.
    Silence,
}

/// How far a proof is. Times are milliseconds since the prover was started, by the verifier's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The prover was started.
    Opening,
    /// The challenge is out since `opened`.
    Filling { opened: Millis },
    /// The memory is full since `filled`, and the first key is out since the same moment.
    Passing { opened: Millis, filled: Millis },
    /// All rounds are through; the cells are out.
    Showing { done: Done, rows: Vec<Row> },
    /// All rows are there, not looked at.
    Complete { done: Done, rows: Vec<Row> },
    /// It failed before a row was looked at.
    Failed(Flaw),
}

/// What is known when all rounds are through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    /// How long it took to fill the memory.
    pub(crate) fill: Millis,
    /// How long the rounds took.
    pub(crate) pass: Millis,
    /// When they were through.
    pub(crate) at: Millis,
    /// The root of each round.
    pub(crate) roots: Vec<Node>,
    /// The cells that were asked for.
    pub(crate) cells: List<Cell, CELLS_MAX>,
}

impl Stage {
    /// What is asked when this stage is entered; nothing where no further message is due.
    pub(crate) fn ask(&self, plan: &Plan) -> Option<Ask> {
        match self {
            Self::Filling { .. } => Some(Ask::Challenge(plan.challenge.clone())),
            Self::Passing { .. } => Some(Ask::Nonce(plan.nonce)),
            Self::Showing { done, rows } if rows.is_empty() => Some(Ask::Audit(done.cells.clone())),
            Self::Opening | Self::Showing { .. } | Self::Complete { .. } | Self::Failed(_) => None,
        }
    }

    /// The last moment at which something may still be heard in this stage.
    pub(crate) fn until(&self, plan: &Plan) -> Millis {
        let parameters = &plan.challenge.parameters;
        match self {
            Self::Opening => OPENING_MAX,
            Self::Filling { opened } => opened.plus(parameters.fill_max),
            Self::Passing { filled, .. } => filled.plus(parameters.pass_max),
            Self::Showing { done, .. } => done.at.plus(SHOWING_MAX),
            Self::Complete { .. } | Self::Failed(_) => Millis(0),
        }
    }

    pub(crate) const fn is_over(&self) -> bool {
        matches!(self, Self::Complete { .. } | Self::Failed(_))
    }

    /// The stage after `heard` at `at`.
    pub(crate) fn after(self, plan: &Plan, at: Millis, heard: Heard) -> Self {
        if let Some(flaw) = self.too_late(plan, at) {
            return Self::Failed(flaw);
        }
        let answer = match heard {
            Heard::Answer(answer) => answer,
            Heard::Silence => return Self::Failed(Flaw::Silent),
        };
        match (self, answer) {
            (Self::Opening, Answer::Ready) => Self::Filling { opened: at },
            (Self::Filling { opened }, Answer::Filled) => Self::Passing { opened, filled: at },
            (Self::Passing { opened, filled }, Answer::Done(roots)) => {
                let (fill, pass) = (since(opened, filled), since(filled, at));
                Self::passed(plan, [fill, pass, at], roots.into_vec())
            }
            (Self::Showing { done, rows }, Answer::Row(row)) => Self::shown(done, rows, row),
            (
                Self::Opening | Self::Filling { .. } | Self::Passing { .. } | Self::Showing { .. },
                Answer::Unable(why),
            ) => Self::Failed(Flaw::Unable(why)),
            (
                Self::Opening
                | Self::Filling { .. }
                | Self::Passing { .. }
                | Self::Showing { .. }
                | Self::Complete { .. }
                | Self::Failed(_),
                Answer::Ready
                | Answer::Filled
                | Answer::Done(_)
                | Answer::Row(_)
                | Answer::Unable(_),
            ) => Self::Failed(Flaw::OutOfTurn),
        }
    }

    fn too_late(&self, plan: &Plan, at: Millis) -> Option<Flaw> {
        if at <= self.until(plan) || self.is_over() {
            return None;
        }
        Some(match self {
            Self::Filling { opened } => Flaw::FillTooSlow {
                took: since(*opened, at),
                bound: plan.challenge.parameters.fill_max,
            },
            Self::Passing { filled, .. } => Flaw::PassTooSlow {
                took: since(*filled, at),
                bound: plan.challenge.parameters.pass_max,
            },
            Self::Opening | Self::Showing { .. } | Self::Complete { .. } | Self::Failed(_) => {
                Flaw::Silent
            }
        })
    }

    fn passed(plan: &Plan, [fill, pass, at]: [Millis; 3], roots: Vec<Node>) -> Self {
        let parameters = &plan.challenge.parameters;
        if roots.len() != usize::from(parameters.rounds) {
            return Self::Failed(Flaw::OutOfTurn);
        }
        let nonces = chain::nonces(plan.nonce, &roots);
        let last = nonces.last().copied().unwrap_or(plan.nonce);
        let cells = chain::cells(&plan.secret, &last, parameters);
        let done = Done {
            fill,
            pass,
            at,
            roots,
            cells,
        };
        Self::Showing {
            done,
            rows: Vec::new(),
        }
    }

    fn shown(done: Done, mut rows: Vec<Row>, row: Row) -> Self {
        rows.push(row);
        if rows.len() == done.cells.len() {
            Self::Complete { done, rows }
        } else {
            Self::Showing { done, rows }
        }
    }
}

const fn since(start: Millis, end: Millis) -> Millis {
    Millis(end.0.saturating_sub(start.0))
}
