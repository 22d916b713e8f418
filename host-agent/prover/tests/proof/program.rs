//! The program, over its pipes.

use crate::{NONCE, SEED, parameters};
use audit::conversation::{Heard, Plan};
use audit::frame::{self, Frames};
use audit::judge::judge;
use audit::message::{Answer, Challenge};
use audit::transcript::Transcript;
use audit::verifier::{Next, Verifier};
use protocol_pure::bounded::Text;
use protocol_pure::ids::MessageId;
use protocol_pure::units::Millis;
use protocol_pure::verify::{Finding, Flaw, Parameters};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_feira-prover"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn plan(parameters: Parameters) -> Plan {
    Plan {
        challenge: Challenge {
            id: MessageId::from_bytes([1; 16]),
            device: Text::new("machine").unwrap(),
            parameters,
            seed: SEED,
        },
        nonce: NONCE,
        secret: [9; 32],
    }
}

/// A whole conversation with the program, at no time at all; and how the program ended.
fn converse(backend: &str, parameters: Parameters) -> (Transcript, Option<i32>) {
    let mut child = start(&[backend]);
    let mut input = child.stdin.take().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut verifier = Verifier::begin(plan(parameters)).unwrap();
    let (mut frames, mut bytes) = (Frames::new(), [0; 999]);
    loop {
        let heard = match frames.message::<Answer>().unwrap() {
            Some(answer) => Heard::Answer(answer),
            None => match output.read(&mut bytes).unwrap() {
                0 => Heard::Silence,
                count => {
                    frames.push(&bytes[..count]);
                    continue;
                }
            },
        };
        match verifier.hear(Millis(5), heard) {
            Next::Say(ask) => input.write_all(&frame::encode(&ask).unwrap()).unwrap(),
            Next::Wait => {}
            Next::Over(transcript) => return (transcript, child.wait().unwrap().code()),
        }
    }
}

#[test]
fn it_proves_its_hardware_whatever_that_is() {
    for backend in ["processor", "software"] {
        let (transcript, code) = converse(backend, parameters(64, 128, 3));
        let (fill, pass) = (Millis(0), Millis(0));
        assert_eq!(judge(&transcript), Ok(Finding::Accepted { fill, pass }));
        assert_eq!(code, Some(0), "{backend}");
    }
}

#[test]
fn what_it_cannot_do_it_says() {
    // 4096 of the largest tiles, 274.9 GB: no device that is a program has so much.
    let (transcript, code) = converse("software", parameters(8192, 64, 4096));
    let found = judge(&transcript).unwrap();
    let Finding::Rejected(Flaw::Unable(why)) = found else {
        panic!("{found:?}");
    };
    assert!(why.contains("of memory, 274.8 GB are needed"), "{why}");
    assert_eq!(code, Some(1));
}

#[test]
fn a_wrong_command_line_is_named() {
    for (arguments, says) in [
        (&["quantum"][..], "there is no back end 'quantum'"),
        (
            &["cuda", "GPU-1", "more"],
            "at most a back end and a device",
        ),
    ] {
        let output = start(arguments).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(says));
    }
}

#[test]
fn what_is_no_conversation_ends_it() {
    let mut child = start(&["processor"]);
    child.stdin.take().unwrap().write_all(&[255; 8]).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no conversation of a proof"), "{said}");
    // An input that ends between two messages is nobody's fault.
    let mut child = start(&["processor"]);
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
