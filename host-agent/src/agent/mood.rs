//! How a broker takes what this host says: what it said no to last, so that each change is logged once, and how
//! long to wait before it is asked again. It says nothing itself.

use protocol::message::Rejection;
use protocol::units::Millis;
use std::mem::Discriminant;

/// A pause is doubled at most so often.
const DOUBLINGS_MAX: u32 = 5;

/// How one broker takes what is said to it.
#[derive(Debug, Default)]
pub(super) struct Mood {
    /// What kind of no was heard last; nothing since it took something.
    last: Option<Discriminant<Rejection>>,
    /// How often the clocks were too far apart since it took something.
    untimely: u32,
}

impl Mood {
    /// It said no; whether this is news.
    pub(super) fn refused(&mut self, rejection: &Rejection) -> bool {
        if matches!(rejection, Rejection::NotNow { .. }) {
            self.untimely = self.untimely.saturating_add(1);
        }
        let kind = std::mem::discriminant(rejection);
        self.last.replace(kind) != Some(kind)
    }

    /// It took something; whether this is news after clocks that were too far apart.
    pub(super) const fn noted(&mut self) -> bool {
        let was_untimely = self.untimely > 0;
        self.last = None;
        self.untimely = 0;
        was_untimely
    }

    /// How long to wait before something is said again: `first`, and ever longer up to `longest` while the clocks
    /// are too far apart, since nothing this host can say helps then.
    pub(super) fn pause(&self, first: Millis, longest: Millis) -> Millis {
        let doublings = self.untimely.saturating_sub(1).min(DOUBLINGS_MAX);
        let grown = Millis(first.0.saturating_mul(1 << doublings));
        first.max(grown.min(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::bounded::Text;
    use protocol::units::Timestamp;

    fn untimely(now: u64) -> Rejection {
        Rejection::NotNow {
            detail: Text::cut("expired"),
            now: Timestamp(now),
        }
    }

    #[test]
    fn a_refusal_is_news_once_until_it_changes() {
        let mut mood = Mood::default();
        assert!(mood.refused(&untimely(1)));
        assert!(!mood.refused(&untimely(2)), "the same, two seconds later");
        assert!(mood.refused(&Rejection::Busy));
        assert!(mood.refused(&untimely(3)));
        assert!(mood.noted(), "the clocks agree again");
        assert!(!mood.noted());
        assert!(mood.refused(&untimely(4)));
    }

    #[test]
    fn pauses_grow_while_the_clocks_are_apart_and_for_nothing_else() {
        let mut mood = Mood::default();
        let pause = |mood: &Mood| mood.pause(Millis(2_000), Millis(20_000)).0;
        assert_eq!(pause(&mood), 2_000);
        let mut pauses = Vec::new();
        for now in 0..6 {
            mood.refused(&untimely(now));
            pauses.push(pause(&mood));
        }
        assert_eq!(pauses, [2_000, 4_000, 8_000, 16_000, 20_000, 20_000]);
        mood.noted();
        mood.refused(&Rejection::Busy);
        mood.refused(&Rejection::Busy);
        assert_eq!(pause(&mood), 2_000);
    }
}
