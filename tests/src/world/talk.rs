//! How the parties of a world hear each other: letters to brokers, goals to hosts, work on engines.

use super::broker::Input;
use super::letters::{Goals, Letter};
use super::{Happening, Violation, World, search};
use protocol::ids::{Digest, LeaseId};
use rand::RngExt;
use std::collections::BTreeSet;
use std::rc::Rc;

impl World {
    /// Sends a letter: it may be lost, come twice, or take long.
    pub(super) fn send(&mut self, broker: usize, host: Option<usize>, letter: Letter) {
        let letter = Rc::new(letter);
        let is_cut = host.is_some_and(|host| self.now < self.hosts[host].cut_until);
        if is_cut {
            return;
        }
        for at in self.nature.arrivals(self.now, &mut self.random) {
            self.at(at, Happening::ToBroker(broker, Rc::clone(&letter)));
        }
    }

    pub(super) fn deliver(&mut self, broker: usize, letter: &Letter) -> Result<(), Violation> {
        if !self.brokers[broker].is_up() || !self.brokers[broker].takes(letter, self.now) {
            return Ok(());
        }
        self.input(broker, Input::Letter(letter))
    }

    /// Gives a broker's desk something to do, looks at all that comes of it, and tells who has to know.
    pub(super) fn input(&mut self, broker: usize, input: Input<'_>) -> Result<(), Violation> {
        let dies = self.nature.dies_here(&mut self.random);
        let given = self.brokers[broker].give(self.now, input, dies);
        let events = given.map_err(|what| self.broken(what))?;
        for event in &events {
            self.brokers[broker].disk.apply(event.clone());
            let seen = self
                .checks
                .event(&self.brokers[broker], event, &self.hosts, self.now);
            seen.map_err(|what| self.broken(what))?;
        }
        self.note(broker);
        let funded = self.checks.funds(&self.brokers[broker], self.now);
        funded.map_err(|what| self.broken(what))?;
        if dies.is_some() {
            self.fault("broker killed between two writes");
            let back = self.now + self.random.random_range(1_000..60_000);
            self.at(back, Happening::BrokerBack(broker));
            return Ok(());
        }
        let changed: BTreeSet<_> = self.brokers[broker].hosts_with_news();
        for host in 0..self.hosts.len() {
            if changed.contains(&self.hosts[host].id) {
                self.say_goals(broker, Some(host));
            }
        }
        Ok(())
    }

    /// A broker's journal has this hash now.
    fn note(&mut self, broker: usize) {
        self.log.clear();
        self.log.extend_from_slice(self.log_digest.as_bytes());
        let head = self.brokers[broker].head();
        self.log.extend_from_slice(head.as_bytes());
        self.log_digest = Digest::of(&self.log);
    }

    /// A broker tells its hosts, or one of them, what they should be doing.
    pub(super) fn say_goals(&mut self, broker: usize, only: Option<usize>) {
        for host in 0..self.hosts.len() {
            let is_meant = only.is_none_or(|only| only == host);
            let is_cut = self.now < self.hosts[host].cut_until;
            if !is_meant || !self.hosts[host].lists_with(broker) || is_cut {
                continue;
            }
            let Some(goal) = self.brokers[broker].goal(self.hosts[host].id) else {
                continue;
            };
            let goals = Rc::new(Goals { goal });
            for at in self.nature.arrivals(self.now, &mut self.random) {
                self.at(at, Happening::ToHost(host, broker, Rc::clone(&goals)));
            }
        }
    }

    pub(super) fn goal_arrives(&mut self, host: usize, broker: usize, goals: &Goals) {
        let id = self.brokers[broker].id;
        let replies = self.hosts[host].follow(id, &goals.goal, self.now);
        for letter in replies {
            self.send(broker, Some(host), letter);
        }
        self.begin_work(host);
    }

    pub(super) fn begin_work(&mut self, host: usize) {
        for lease in self.hosts[host].begin_work(self.now) {
            let done = self.now + self.random.random_range(200..20_000);
            self.at(done, Happening::EngineDone(host, lease));
        }
    }

    pub(super) fn engine_done(&mut self, host: usize, lease: LeaseId) -> Result<(), Violation> {
        let done = self.hosts[host].finish_work(lease, self.now, &mut self.random);
        done.map_err(|what| self.broken(what))?;
        self.begin_work(host);
        self.report(host, Some(lease))
    }

    /// A host sends its reports and its offers, and looks again in some time.
    pub(super) fn host_looks(&mut self, host: usize) -> Result<(), Violation> {
        let again = self.now + self.random.random_range(120_000..150_000);
        self.at(again, Happening::HostLooks(host));
        self.hosts[host].look(self.now, &mut self.random);
        self.begin_work(host);
        if let Some(offers) = self.hosts[host].announcement(self.now) {
            let id = self.hosts[host].id;
            for broker in 0..self.brokers.len() {
                if self.hosts[host].lists_with(broker) {
                    let letter = Letter::Announce(id, Rc::clone(&offers));
                    self.send(broker, Some(host), letter);
                }
            }
        }
        self.report(host, None)
    }

    pub(super) fn report(&mut self, host: usize, only: Option<LeaseId>) -> Result<(), Violation> {
        for (broker, letter) in self.hosts[host].reports(only, self.now) {
            let index = self.brokers.iter().position(|known| known.id == broker);
            if let Some(index) = index {
                self.send(index, Some(host), letter);
            }
        }
        Ok(())
    }

    pub(super) fn renter_acts(&mut self, renter: usize) -> Result<(), Violation> {
        let broker = self.random.random_range(0..self.brokers.len());
        let found = search::compared(&mut self.brokers[broker], self.now, &mut self.random);
        found.map_err(|what| self.broken(what))?;
        let Self {
            renters,
            brokers,
            random,
            now,
            ..
        } = self;
        let letters = renters[renter].act(brokers, *now, random);
        let again = self.now + self.random.random_range(60_000..self.idle_max);
        self.at(again, Happening::RenterActs(renter));
        for (broker, letter) in letters {
            self.send(broker, None, letter);
        }
        Ok(())
    }

    pub(super) fn operator_acts(&mut self, broker: usize) {
        let Self {
            operators,
            brokers,
            random,
            ..
        } = self;
        let letters = operators[broker].act(&brokers[broker], random);
        let again = self.now + self.random.random_range(60_000..1_800_000);
        self.at(again, Happening::OperatorActs(broker));
        for letter in letters {
            self.fault("operator acts");
            self.send(broker, None, letter);
        }
    }
}
