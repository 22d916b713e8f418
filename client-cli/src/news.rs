//! What happens to a lease while one waits, in a sentence each: notices, stops, resumes, prices.
//!
//! Pure: a view in, a sentence out.

use crate::commands::bid::to_win;
use crate::view::{clock_time, hourly, pause_in_words};
use protocol::lease::{LeaseView, Phase};
use protocol::terms::ContractKind;
use protocol::units::{MicroUsd, PricePerHour, Timestamp};

/// What was last seen of a lease.
#[derive(Debug)]
pub(crate) struct News {
    phase: Phase,
    kind: ContractKind,
    rate: PricePerHour,
    has_run: bool,
}

impl News {
    /// Begins with the lease as it is known.
    pub(crate) fn since(view: &LeaseView) -> Self {
        Self {
            phase: view.phase.clone(),
            kind: view.kind,
            rate: view.rates.current(),
            has_run: view.started_at.is_some(),
        }
    }

    /// What is new, a sentence each.
    pub(crate) fn heard(&mut self, view: &LeaseView, now: Timestamp) -> Vec<String> {
        let name = &view.name;
        let mut news = Vec::new();
        if view.kind != self.kind {
            let price: MicroUsd = hourly(view);
            news.push(format!(
                "{name} is {} now, {price}/h all in",
                view.kind.word()
            ));
        } else if view.rates.current() != self.rate && view.phase == self.phase {
            news.push(format!("{name} costs {}/h all in now", hourly(view)));
        }
        if view.phase != self.phase {
            news.extend(self.of_phase(view, now));
        }
        *self = Self {
            has_run: self.has_run || view.started_at.is_some(),
            ..Self::since(view)
        };
        news
    }

    fn of_phase(&self, view: &LeaseView, now: Timestamp) -> Option<String> {
        let name = &view.name;
        let win = to_win(view).map_or_else(String::new, |words| format!("; {words}"));
        match &view.phase {
            Phase::Noticed(cause, by) => {
                let (left, cause) = (by.since(now).seconds(), pause_in_words(cause));
                Some(format!("{name} has to go within {left}: {cause}{win}"))
            }
            Phase::Paused(cause) => {
                let cause = pause_in_words(cause);
                Some(format!("{name} is stopped: {cause}; its disk is kept{win}"))
            }
            Phase::Clearing(by) => {
                let left = by.since(now).seconds();
                Some(format!(
                    "{name} has a place as soon as it is cleared, within {left}"
                ))
            }
            Phase::Resting => {
                let until = view
                    .rests_until
                    .map_or_else(String::new, |until| format!(" until {}", clock_time(until)));
                Some(format!("{name} waits for its price{until}{win}"))
            }
            Phase::Preparing if self.has_run => Some(format!("{name} is being started again")),
            Phase::Running if matches!(self.phase, Phase::Noticed(..)) => {
                Some(format!("{name} may stay"))
            }
            Phase::Running if self.has_run => Some(format!("{name} runs again")),
            Phase::Running => Some(format!("{name} runs")),
            Phase::Suspect => Some(format!(
                "the host of {name} is not heard; nothing is billed"
            )),
            Phase::Offered
            | Phase::Accepted
            | Phase::Preparing
            | Phase::Closing(_)
            | Phase::Closed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::lease;
    use protocol::lease::PauseCause;
    use protocol::terms::Rates;

    const NOW: Timestamp = Timestamp(1_796_047_364_000);

    fn interruptible(phase: Phase) -> LeaseView {
        let mut held = lease(1, "brave-otter", phase);
        held.view.kind = ContractKind::Interruptible;
        held.view.gpu_count = 1;
        held.view.bid = Some(PricePerHour(150_000));
        held.view.started_at = Some(NOW);
        held.view
    }

    #[test]
    fn a_lease_that_is_outbid_says_how_long_it_has_and_what_would_win() {
        let mut news = News::since(&interruptible(Phase::Running));
        let by = Timestamp(NOW.0 + 118_000);
        let mut noticed = interruptible(Phase::Noticed(PauseCause::Outbid, by));
        noticed.to_win = Some(PricePerHour(161_600));
        let heard = news.heard(&noticed, NOW);
        assert_eq!(
            heard,
            [
                "brave-otter has to go within 1m 58s: somebody bid more; it resumes by itself when its bid wins; \
              to win now, bid $0.1616/h for a GPU: feira bid set brave-otter --max-price 0.1616"
            ]
        );
        // The same again is no news.
        assert!(news.heard(&noticed, NOW).is_empty());
        let paused = news.heard(&interruptible(Phase::Paused(PauseCause::Outbid)), NOW);
        assert!(paused[0].starts_with("brave-otter is stopped: somebody bid more"));
        assert_eq!(
            news.heard(&interruptible(Phase::Preparing), NOW),
            ["brave-otter is being started again"]
        );
        assert_eq!(
            news.heard(&interruptible(Phase::Running), NOW),
            ["brave-otter runs again"]
        );
    }

    #[test]
    fn another_price_and_another_kind_are_news() {
        let before = interruptible(Phase::Running);
        let mut news = News::since(&before);
        let mut dearer = before.clone();
        dearer.rates = Rates::flat(PricePerHour(500_000));
        dearer.prices.compute = PricePerHour(500_000);
        // 50 GB at $0.10: 6 944 an hour.
        assert_eq!(
            news.heard(&dearer, NOW),
            ["brave-otter costs $0.506944/h all in now"]
        );
        dearer.kind = ContractKind::OnDemand;
        assert_eq!(
            news.heard(&dearer, NOW),
            ["brave-otter is on-demand now, $0.506944/h all in"]
        );
    }
}
