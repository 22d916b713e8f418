//! L4: the chain over a journal, `h(n) = BLAKE3(h(n-1) ‖ event n)`, and what of it parties were told.

use broker::core::event::Event;
use protocol::codec;
use protocol::ids::Digest;
use std::collections::BTreeMap;

/// The hash before the first event.
const FIRST: Digest = Digest::from_bytes([0; 32]);

/// The hashes of a journal.
#[derive(Debug, Default)]
pub(super) struct Chain {
    heads: Vec<Digest>,
    /// Which of them stood when somebody was answered: a broker that tells two histories has two of one height.
    told: BTreeMap<usize, Digest>,
}

impl Chain {
    /// The hash of all of it.
    pub(super) fn head(&self) -> Digest {
        self.heads.last().copied().unwrap_or(FIRST)
    }

    /// Goes on with an event that is on disk.
    pub(super) fn append(&mut self, event: &Event) -> Result<(), String> {
        self.heads.push(chained(self.head(), event)?);
        Ok(())
    }

    /// Somebody is answered: at one height, everybody is told one history.
    pub(super) fn tell(&mut self) -> Result<(), String> {
        let (height, head) = (self.heads.len(), self.head());
        match self.told.insert(height, head) {
            Some(other) if other != head => {
                Err(format!("L4: two histories of {height} events were told"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The journal is the one that was written, and all that was told of it is a beginning of it.
    pub(super) fn check(&self, journal: &[Event]) -> Result<(), String> {
        let mut before = FIRST;
        for (event, head) in journal.iter().zip(&self.heads) {
            if chained(before, event)? != *head {
                return Err(format!("L4: the chain is broken at {}", event.kind()));
            }
            before = *head;
        }
        let is_of_it = |(height, head): (&usize, &Digest)| match height.checked_sub(1) {
            Some(last) => self.heads.get(last) == Some(head),
            None => *head == FIRST,
        };
        if journal.len() == self.heads.len() && self.told.iter().all(is_of_it) {
            Ok(())
        } else {
            Err("L4: what was told is not what is on disk".to_owned())
        }
    }
}

/// The hash of a journal with one event more.
fn chained(head: Digest, event: &Event) -> Result<Digest, String> {
    let mut bytes = head.as_bytes().to_vec();
    let body = codec::encode(event).map_err(|error| error.to_string())?;
    bytes.extend_from_slice(&body);
    Ok(Digest::of(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker::core::event::Fact;
    use protocol::ids::LeaseId;
    use protocol::units::Timestamp;

    fn event(at: u64) -> Event {
        let lease = LeaseId::from_bytes([1; 16]);
        Event {
            at: Timestamp(at),
            fact: Fact::Held { lease },
            entries: Vec::new(),
        }
    }

    #[test]
    fn a_changed_event_a_missing_one_and_a_second_history_are_seen() {
        let mut chain = Chain::default();
        for at in [1, 2, 3] {
            chain.append(&event(at)).unwrap();
            chain.tell().unwrap();
        }
        assert_eq!(chain.check(&[event(1), event(2), event(3)]), Ok(()));
        let edited = chain.check(&[event(1), event(4), event(3)]).unwrap_err();
        assert_eq!(edited, "L4: the chain is broken at held");
        let short = chain.check(&[event(1), event(2)]).unwrap_err();
        assert_eq!(short, "L4: what was told is not what is on disk");
        // The broker forgets its last event and tells another one of the same height.
        chain.heads.pop();
        chain.append(&event(5)).unwrap();
        let told = chain.tell().unwrap_err();
        assert_eq!(told, "L4: two histories of 3 events were told");
    }
}
