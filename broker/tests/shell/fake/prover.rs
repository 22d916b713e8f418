//! A prover behind a tunnel: the reference on the processor, and those who cheat, decline, break off or stall.

use audit::frame::{Frames, encode};
use audit::message::{Answer, Ask, Node as Leaf, Nonce, Seed};
use audit::processor::Processor;
use audit::prover::{Device, Prover, Unable};
use protocol::bounded::{Blob, Text};
use protocol::net::Tunnel;
use protocol::net::frames::{MessageReader, read_message, write_message};
use protocol::tunnel::{Downward, Opening, OpeningReply, Purpose, Upward};
use protocol::verify::Parameters;

/// What the host's prover does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    /// All that is asked.
    Proves,
    /// It holds half of what it should.
    Cheats,
    /// It says that it cannot.
    Declines,
    /// It breaks the tunnel when it is challenged.
    BreaksOff,
    /// It says nothing after it was challenged, and the tunnel lives.
    Stalls,
}

/// Half of its rows are zeros when they are hashed.
struct Half(Processor);

impl Device for Half {
    fn fill(&mut self, seed: &Seed, parameters: &Parameters) -> Result<(), Unable> {
        self.0.fill(seed, parameters)
    }

    fn pass(&mut self, nonce: &Nonce) -> Result<Vec<Leaf>, Unable> {
        (0..4)
            .map(|tile| Ok(audit::tree::root(&self.leaves(nonce, tile)?)))
            .collect()
    }

    fn leaves(&mut self, nonce: &Nonce, tile: u32) -> Result<Vec<Leaf>, Unable> {
        let key = audit::hash::RowKey::new(nonce, 16);
        let mut leaves = self.0.leaves(nonce, tile)?;
        for (row, leaf) in (0..).zip(&mut leaves) {
            if row % 2 == 0 {
                *leaf = key.leaf(tile, row, &[0; 16]);
            }
        }
        Ok(leaves)
    }

    fn row(&mut self, tile: u32, row: u32) -> Result<Vec<u8>, Unable> {
        self.0.row(tile, row)
    }
}

/// What `feira-prover` does over the pipes of `exec`.
pub(crate) async fn prove(mut tunnel: Tunnel, does: Does) {
    let opening = read_message::<Opening, _>(&mut tunnel)
        .await
        .unwrap()
        .unwrap();
    let Purpose::Exec(exec) = opening.verify().unwrap().into_body().purpose else {
        panic!("no program")
    };
    let words: Vec<&str> = exec.command.iter().map(|word| word.as_str()).collect();
    assert_eq!(words, ["feira-prover", "processor"]);
    assert_eq!(exec.terminal, None);
    write_message(&mut tunnel, &OpeningReply::Open)
        .await
        .unwrap();
    let (reader, mut writer) = tokio::io::split(tunnel);
    let (mut reader, mut frames) = (MessageReader::new(reader), Frames::new());
    let mut prover: Prover<Box<dyn Device + Send>> = match does {
        Does::Cheats => Prover::new(Box::new(Half(Processor::new()))),
        Does::Proves | Does::Declines | Does::BreaksOff | Does::Stalls => {
            Prover::new(Box::new(Processor::new()))
        }
    };
    let mut say = vec![match does {
        Does::Declines => Answer::Unable(Text::new("no device").unwrap()),
        Does::Proves | Does::Cheats | Does::BreaksOff | Does::Stalls => Answer::Ready,
    }];
    loop {
        for answer in say.drain(..) {
            let bytes = Blob::new(encode(&answer).unwrap()).unwrap();
            if write_message(&mut writer, &Downward::Output(bytes))
                .await
                .is_err()
            {
                return;
            }
        }
        let Ok(Some(Upward::Input(bytes))) = reader.next::<Upward>().await else {
            return;
        };
        if does == Does::BreaksOff {
            return;
        }
        frames.push(&bytes);
        while let Some(ask) = frames.message::<Ask>().unwrap() {
            if does != Does::Stalls {
                say.extend(prover.answer(&ask));
            }
        }
    }
}
