//! A transcript is judged again by anyone, and one that was changed is seen (threat 16).

use crate::play::{EIGHTY_ROWS, HONEST, Times, converse, plan};
use audit::conversation::Heard;
use audit::judge::{Forgery, confirm, judge, recheck};
use audit::message::{Answer, Nonce};
use audit::processor::Processor;
use audit::transcript::{Transcript, TranscriptError};
use protocol_pure::bounded::{Blob, List, Text};
use protocol_pure::ids::{HostId, PublicKey};
use protocol_pure::units::{Millis, Timestamp};
use protocol_pure::verify::{Finding, Flaw, Verdict};

const ACCEPTED: Finding = Finding::Accepted {
    fill: HONEST.fill,
    pass: HONEST.pass,
};

fn honest() -> Transcript {
    converse(plan(EIGHTY_ROWS, 7), Processor::new(), HONEST)
}

fn verdict(transcript: &Transcript, finding: Finding) -> Verdict {
    Verdict {
        host: HostId::from(PublicKey::from_bytes([1; 32])),
        device: transcript.plan.challenge.device.clone(),
        resources: List::first([transcript.plan.challenge.device.clone()]),
        hardware: protocol_pure::ids::Digest::of(b"hardware"),
        class: Text::new("H100-SXM").unwrap(),
        parameters: EIGHTY_ROWS,
        finding,
        transcript: transcript.digest().unwrap(),
        at: Timestamp(0),
    }
}

#[test]
fn what_was_accepted_is_accepted_by_everyone() {
    let transcript = honest();
    let bytes = transcript.to_bytes().unwrap();
    assert_eq!(recheck(&bytes), Ok(ACCEPTED));
    assert_eq!(Transcript::from_bytes(&bytes).as_ref(), Ok(&transcript));
    assert_eq!(confirm(&verdict(&transcript, ACCEPTED), &bytes), Ok(()));
}

/// What `change` makes of the honest transcript, judged again.
fn changed(change: impl FnOnce(&mut Transcript)) -> Result<Finding, TranscriptError> {
    let mut transcript = honest();
    change(&mut transcript);
    recheck(&transcript.to_bytes().unwrap())
}

fn answer(transcript: &mut Transcript, at: usize) -> &mut Answer {
    match &mut transcript.heard[at].heard {
        Heard::Answer(answer) => answer,
        Heard::Silence => panic!("silence at {at}"),
    }
}

#[test]
fn a_changed_row_root_seed_key_or_draw_is_seen() {
    let row = changed(|transcript| {
        if let Answer::Row(row) = answer(transcript, 3) {
            let mut bytes = row.bytes.to_vec();
            bytes[0] ^= 1;
            row.bytes = Blob::new(bytes).unwrap();
        }
    });
    assert!(matches!(row, Ok(Finding::Rejected(Flaw::NotHeld { .. }))));
    let root = changed(|transcript| {
        if let Answer::Done(roots) = answer(transcript, 2) {
            let mut changed = roots.to_vec();
            changed[1].0[0] ^= 1;
            *roots = List::new(changed).unwrap();
        }
    });
    assert!(matches!(root, Ok(Finding::Rejected(Flaw::NotHeld { .. }))));
    let seed = changed(|transcript| transcript.plan.challenge.seed.0[0] ^= 1);
    assert!(matches!(seed, Ok(Finding::Rejected(Flaw::WrongRow { .. }))));
    let key = changed(|transcript| transcript.plan.nonce = Nonce([0; 32]));
    assert!(matches!(key, Ok(Finding::Rejected(Flaw::NotHeld { .. }))));
    let draw = changed(|transcript| transcript.plan.secret[0] ^= 1);
    assert!(matches!(draw, Ok(Finding::Rejected(Flaw::NotHeld { .. }))));
}

#[test]
fn a_transcript_that_lacks_or_adds_something_is_none() {
    let shorter = changed(|transcript| drop(transcript.heard.pop()));
    assert_eq!(shorter, Err(TranscriptError::BreaksOff));
    let longer = changed(|transcript| transcript.heard.push(transcript.heard[3].clone()));
    assert_eq!(longer, Err(TranscriptError::GoesOn));
    let back = changed(|transcript| transcript.heard[2].at = Millis(1));
    assert_eq!(back, Err(TranscriptError::TimesGoBack));
    let mut bytes = honest().to_bytes().unwrap();
    bytes.pop();
    assert_eq!(recheck(&bytes), Err(TranscriptError::BreaksOff));
    assert!(matches!(recheck(&[7; 64]), Err(TranscriptError::Frame(_))));
    assert!(matches!(
        recheck(&vec![0; 3 << 20]),
        Err(TranscriptError::TooBig { .. })
    ));
}

#[test]
fn a_verdict_that_says_something_else_is_a_forgery() {
    // Too slow, and judged as if it had been fast.
    let slow = Times {
        fill: Millis(15_000),
        ..HONEST
    };
    let transcript = converse(plan(EIGHTY_ROWS, 7), Processor::new(), slow);
    let (took, bound) = (Millis(15_000), Millis(14_000));
    let flaw = Flaw::FillTooSlow { took, bound };
    assert_eq!(judge(&transcript), Ok(Finding::Rejected(flaw.clone())));
    let bytes = transcript.to_bytes().unwrap();
    let says = |finding| confirm(&verdict(&transcript, finding), &bytes);
    assert_eq!(says(Finding::Rejected(flaw)), Ok(()));
    assert_eq!(says(ACCEPTED), Err(Forgery::Finding));
    // A verdict with the transcript of another proof.
    let other = honest().to_bytes().unwrap();
    let verdict_of_slow = verdict(&transcript, ACCEPTED);
    assert_eq!(confirm(&verdict_of_slow, &other), Err(Forgery::Transcript));
    // The right transcript, said to be another device's.
    let mut elsewhere = verdict(&honest(), ACCEPTED);
    elsewhere.device = Text::new("GPU-2").unwrap();
    assert_eq!(confirm(&elsewhere, &other), Err(Forgery::Device));
    // The right transcript under easier parameters than the verdict names.
    let mut easier = verdict(&honest(), ACCEPTED);
    easier.parameters.tiles = 1096;
    assert_eq!(confirm(&easier, &other), Err(Forgery::Parameters));
}
