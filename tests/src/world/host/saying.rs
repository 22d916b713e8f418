//! What a host says by itself: how its leases stand, and what it offers.

use super::super::clock;
use super::super::letters::Letter;
use super::Host;
use host_agent::core::leases::Decision;
use host_agent::core::offer::Listed;
use host_agent::core::report::Stages;
use protocol::ids::{BrokerId, LeaseId};
use protocol::offer::Offer;
use protocol::signed::{ANYONE, Verified};
use std::rc::Rc;

impl Host {
    /// What it says of its leases, or of one.
    pub(crate) fn reports(&mut self, only: Option<LeaseId>, now: u64) -> Vec<(BrokerId, Letter)> {
        let mut letters = Vec::new();
        if !self.is_up || now < self.cut_until {
            return letters;
        }
        let moment = self.moment(now);
        for index in 0..self.minds.len() {
            let leases = &self.minds[index].leases;
            let said: Vec<LeaseId> = leases
                .records()
                .values()
                .filter(|record| only.is_none_or(|only| only == record.lease))
                .filter(|record| leases.is_reported(record))
                .map(|record| record.lease)
                .collect();
            let (changes, reports) = leases.decide_reports(&said, &Stages::new(), moment);
            let decision = Decision {
                changes,
                notes: Vec::new(),
            };
            self.minds[index].record(&decision);
            for mut report in reports {
                if self.lies {
                    report.meters.running.0 *= 2;
                }
                let record = self.minds[index].leases.record(report.lease);
                let Some(broker) = record.map(|record| record.broker) else {
                    continue;
                };
                let report = self.pen.said(report, broker.into(), clock(now));
                letters.push((broker, Letter::Report(report)));
            }
        }
        letters
    }

    /// All that it offers, signed once for all brokers.
    pub(crate) fn announcement(&mut self, now: u64) -> Option<Rc<Vec<Verified<Offer>>>> {
        if !self.is_up {
            return None;
        }
        let listed = if self.has_quit { &[][..] } else { &self.listed };
        let mut offers = Vec::new();
        for Listed { offer, .. } in listed {
            let mut offer = offer.clone();
            offer.sequence = clock(now).0;
            offers.push(self.pen.said(offer, ANYONE, clock(now)));
        }
        Some(Rc::new(offers))
    }
}
