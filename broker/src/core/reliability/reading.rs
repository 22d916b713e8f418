//! What the market shows of a host's reliability, and what it journals of what it watched.

use crate::core::desk::Desk;
use crate::core::event::{Event, Fact};
use protocol::bounded::{List, Text};
use protocol::codec::CodecError;
use protocol::ids::{HostId, LeaseId};
use protocol::message::Rejection;
use protocol::reliability::{Evidence, HostEvidence, Score};
use protocol::units::Timestamp;

/// Most bytes of outcomes in one answer; the standing may take a quarter of a message beside them.
const OUTCOMES_BYTES_MAX: usize = 128 * 1024;

impl Desk {
    /// What is thought of a host, as computed last: at most an hour ago, and a moment after anything happened.
    #[must_use]
    pub fn score_of(&self, host: HostId) -> Score {
        self.hosts_watched.score(host)
    }

    /// The shown score of a host in millionths: that a lease of a day runs in time and to its end.
    #[must_use]
    pub fn score_ppm(&self, host: HostId) -> u32 {
        self.score_of(host).ppm
    }

    /// The evidence on a host, signed, and the score that it comes to now; of its outcomes those behind `after`.
    /// Of a host that is not known it is empty.
    ///
    /// # Errors
    /// When it cannot be signed, which its bounds rule out.
    pub fn host_evidence(
        &self,
        now: Timestamp,
        host: HostId,
        after: Option<(LeaseId, u16)>,
    ) -> Result<HostEvidence, Rejection> {
        let unknown;
        let evidence = match self.market.reliability().evidence(host) {
            Some(evidence) => evidence,
            None => {
                unknown = Evidence::new(host);
                &unknown
            }
        };
        self.signed_evidence(now, evidence, after)
            .map_err(|error| Rejection::Malformed(Text::cut(&error.to_string())))
    }

    fn signed_evidence(
        &self,
        now: Timestamp,
        evidence: &Evidence,
        after: Option<(LeaseId, u16)>,
    ) -> Result<HostEvidence, CodecError> {
        let mut outcomes = Vec::new();
        let mut room = OUTCOMES_BYTES_MAX;
        let mut next = None;
        let mut last = after;
        for (key, outcome) in &evidence.outcomes {
            if after.is_some_and(|after| *key <= after) {
                continue;
            }
            let signed = self.sign(now, outcome.clone())?;
            let fits = room.checked_sub(signed.size());
            if outcomes.len() == HostEvidence::OUTCOMES_MAX || fits.is_none() {
                next = last;
                break;
            }
            room = fits.unwrap_or(0);
            last = Some(*key);
            outcomes.push(signed);
        }
        Ok(HostEvidence {
            standing: self.sign(now, evidence.standing())?,
            as_of: now,
            ppm: Score::of(evidence, now).ppm,
            heard_at: self.heard_at(evidence.host),
            outcomes: List::first(outcomes),
            next,
        })
    }

    /// Journals what was watched, and computes the scores that are due.
    ///
    /// # Errors
    /// When recording failed.
    pub(in crate::core) fn watch_hosts<E>(
        &mut self,
        now: Timestamp,
        record: &mut impl FnMut(&Event) -> Result<(), E>,
    ) -> Result<(), E> {
        for fact in self.hosts_watched.facts(now) {
            let is_of_all = matches!(fact, Fact::Away(_));
            let event = Event::bare(now, fact);
            record(&event)?;
            self.market.apply(event);
            if is_of_all {
                self.hosts_watched.touch_all();
            }
        }
        let reliability = self.market.reliability();
        for host in self.hosts_watched.compute_due(reliability, now) {
            self.book.rate(host, &self.hosts_watched.score(host));
        }
        Ok(())
    }
}
