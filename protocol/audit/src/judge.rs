//! What a transcript proves. Judging is the same for the broker that has just heard it and for anyone later.

use crate::chain;
use crate::conversation::{Done, Stage};
use crate::hash::RowKey;
use crate::message::{Cell, Nonce, Row};
use crate::row;
use crate::transcript::{Transcript, TranscriptError};
use crate::tree;
use protocol_pure::ids::Digest;
use protocol_pure::units::Millis;
use protocol_pure::verify::{Finding, Flaw, Verdict};
use std::collections::BTreeMap;

/// Why a verdict is not what its transcript says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Forgery {
    /// It names another transcript.
    #[error("the verdict names another transcript")]
    Transcript,
    /// It is about another device than was challenged.
    #[error("the verdict is about another device than was challenged")]
    Device,
    /// It names other parameters than the challenge had.
    #[error("the verdict names other parameters than the challenge had")]
    Parameters,
    /// It finds something else.
    #[error("the verdict finds something else than its transcript shows")]
    Finding,
    /// The transcript is none.
    #[error(transparent)]
    Malformed(#[from] TranscriptError),
}

/// Goes through the conversation again, and through the rows that were shown: for each tile among them, K · n
/// bytes are generated and multiplied, 0.1 to 0.3 s on one core for the largest.
///
/// # Errors
/// When the transcript is not of a whole proof.
pub fn judge(transcript: &Transcript) -> Result<Finding, TranscriptError> {
    let plan = &transcript.plan;
    plan.challenge.parameters.check()?;
    let (mut stage, mut last) = (Stage::Opening, Millis(0));
    for entry in &transcript.heard {
        if stage.is_over() {
            return Err(TranscriptError::GoesOn);
        }
        if entry.at < last {
            return Err(TranscriptError::TimesGoBack);
        }
        last = entry.at;
        stage = stage.after(plan, entry.at, entry.heard.clone());
    }
    match stage {
        Stage::Opening | Stage::Filling { .. } | Stage::Passing { .. } | Stage::Showing { .. } => {
            Err(TranscriptError::BreaksOff)
        }
        Stage::Failed(flaw) => Ok(Finding::Rejected(flaw)),
        Stage::Complete { done, rows } => Ok(match find_flaw(transcript, &done, &rows) {
            Some(flaw) => Finding::Rejected(flaw),
            None => Finding::Accepted {
                fill: done.fill,
                pass: done.pass,
            },
        }),
    }
}

/// Judges the transcript in `bytes` again.
///
/// # Errors
/// When they are no transcript of a whole proof.
pub fn recheck(bytes: &[u8]) -> Result<Finding, TranscriptError> {
    judge(&Transcript::from_bytes(bytes)?)
}

/// Whether `verdict` is what the transcript in `bytes` says. Its signature is the caller's to check.
///
/// # Errors
/// In what it is not.
pub fn confirm(verdict: &Verdict, bytes: &[u8]) -> Result<(), Forgery> {
    if verdict.transcript != Digest::of(bytes) {
        return Err(Forgery::Transcript);
    }
    let transcript = Transcript::from_bytes(bytes)?;
    if verdict.device != transcript.plan.challenge.device {
        return Err(Forgery::Device);
    }
    if verdict.parameters != transcript.plan.challenge.parameters {
        return Err(Forgery::Parameters);
    }
    if verdict.finding != judge(&transcript)? {
        return Err(Forgery::Finding);
    }
    Ok(())
}

/// The first flaw of what was shown: first whether all of it was committed to, which is cheap, then whether
/// it is right.
fn find_flaw(transcript: &Transcript, done: &Done, rows: &[Row]) -> Option<Flaw> {
    let shown: Vec<(Cell, &Row)> = done.cells.iter().copied().zip(rows).collect();
    find_not_held(transcript, done, &shown).or_else(|| find_wrong(transcript, &shown))
}

fn find_not_held(transcript: &Transcript, done: &Done, shown: &[(Cell, &Row)]) -> Option<Flaw> {
    let plan = &transcript.plan;
    let parameters = &plan.challenge.parameters;
    let side = usize::try_from(parameters.tile_side).unwrap_or(0);
    let nonces: Vec<Nonce> = chain::nonces(plan.nonce, &done.roots);
    let mut keys = BTreeMap::new();
    let is_held = |keys: &mut BTreeMap<u16, RowKey>, cell: &Cell, row: &Row| {
        let round = usize::from(cell.round);
        let (Some(nonce), Some(root)) = (nonces.get(round), done.roots.get(round)) else {
            return false;
        };
        let key = keys
            .entry(cell.round)
            .or_insert_with(|| RowKey::new(nonce, side));
        row.bytes.len() == side
            && tree::climb(
                key.leaf(cell.tile, cell.row, &row.bytes),
                *cell,
                parameters,
                &row.path,
            ) == Some(*root)
    };
    shown
        .iter()
        .find(|(cell, row)| !is_held(&mut keys, cell, row))
        .map(|(cell, _)| Flaw::NotHeld {
            round: cell.round,
            tile: cell.tile,
            row: cell.row,
        })
}

fn find_wrong(transcript: &Transcript, shown: &[(Cell, &Row)]) -> Option<Flaw> {
    let challenge = &transcript.plan.challenge;
    // A row that is shown for several rounds is computed once.
    let mut by_tile: BTreeMap<u32, BTreeMap<u32, Vec<&Row>>> = BTreeMap::new();
    for (cell, row) in shown {
        let rows = by_tile.entry(cell.tile).or_default();
        rows.entry(cell.row).or_default().push(row);
    }
    by_tile.into_iter().find_map(|(tile, wanted)| {
        let numbers: Vec<u32> = wanted.keys().copied().collect();
        let right = row::rows(&challenge.seed, &challenge.parameters, tile, &numbers);
        wanted
            .into_iter()
            .zip(right)
            .find_map(|((row, shown), right)| {
                shown
                    .iter()
                    .any(|shown| *shown.bytes != *right)
                    .then_some(Flaw::WrongRow { tile, row })
            })
    })
}
