//! A proof from its first word to the verdict, in one call: the verifier's times are given, the device is real.

use audit::conversation::{Heard, Plan};
use audit::judge;
use audit::message::{Answer, Ask, Challenge, Nonce, Seed};
use audit::prover::{Device, Prover};
use audit::transcript::Transcript;
use audit::verifier::{Next, Verifier};
use protocol_pure::bounded::Text;
use protocol_pure::ids::MessageId;
use protocol_pure::units::Millis;
use protocol_pure::verify::{Finding, Parameters};

/// Five tiles of sixteen rows: eighty rows, so that 10 % of them are whole rows.
pub(crate) const EIGHTY_ROWS: Parameters = Parameters {
    tile_side: 16,
    inner: 64,
    tiles: 5,
    rounds: 2,
    audits: 8,
    fill_max: Millis(14_000),
    pass_max: Millis(3_200),
};

/// How long a device takes for its two parts, as the verifier's clock sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) fill: Millis,
    pub(crate) pass: Millis,
}

/// How long a prover takes to be ready.
pub(crate) const STARTED: Millis = Millis(800);

pub(crate) const HONEST: Times = Times {
    fill: Millis(6_000),
    pass: Millis(1_500),
};

/// A plan whose randomness is all of `number`.
pub(crate) fn plan(parameters: Parameters, number: u64) -> Plan {
    let random = |what: &str| *blake3::hash(format!("{what} {number}").as_bytes()).as_bytes();
    Plan {
        challenge: Challenge {
            id: MessageId::from_bytes([1; 16]),
            device: Text::new("GPU-1").unwrap(),
            parameters,
            seed: Seed(random("seed")),
        },
        nonce: Nonce(random("nonce")),
        secret: random("secret"),
    }
}

/// All that is said and heard.
pub(crate) fn converse<D: Device>(plan: Plan, device: D, times: Times) -> Transcript {
    let mut prover = Prover::new(device);
    let mut verifier = Verifier::begin(plan).unwrap();
    let Next::Say(mut ask) = verifier.hear(STARTED, Heard::Answer(Answer::Ready)) else {
        panic!("no challenge");
    };
    loop {
        let filled = STARTED.plus(times.fill);
        let at = match ask {
            Ask::Challenge(_) => filled,
            Ask::Nonce(_) | Ask::Audit(_) => filled.plus(times.pass),
        };
        let mut said = None;
        for answer in prover.answer(&ask) {
            match verifier.hear(at, Heard::Answer(answer)) {
                Next::Say(ask) => said = Some(ask),
                Next::Wait => {}
                Next::Over(transcript) => return transcript,
            }
        }
        ask = said.expect("the prover said too little");
    }
}

pub(crate) fn prove<D: Device>(plan: Plan, device: D, times: Times) -> Finding {
    judge::judge(&converse(plan, device, times)).unwrap()
}
