//! What goes wrong in a world, and how it ends.

use super::{Happening, Violation, World};
use rand::RngExt;
use std::rc::Rc;

impl World {
    pub(super) fn go_wrong(&mut self, what: Happening) -> Result<(), Violation> {
        match what {
            Happening::BrokerDies(broker) => {
                self.fault("broker killed");
                self.brokers[broker].die();
                let back = self.now + self.random.random_range(1_000..120_000);
                self.at(back, Happening::BrokerBack(broker));
            }
            Happening::BrokerBack(broker) => {
                let from_snapshot = self.random.random_bool(0.5);
                let now = self.now;
                let back = self.brokers[broker].come_back(now, from_snapshot);
                back.map_err(|what| self.broken(what))?;
                self.checks.is_back(broker);
                self.say_goals(broker, None);
            }
            Happening::HostDies(host) => {
                self.fault("agent killed");
                self.hosts[host].die(self.now);
                let is_reboot = self.random.random_bool(0.3);
                let back = self.now + self.random.random_range(1_000..200_000);
                self.at(back, Happening::HostBack(host, is_reboot));
            }
            Happening::HostBack(host, is_reboot) => {
                self.hosts[host].come_back(self.now, is_reboot);
                self.at(self.now, Happening::HostLooks(host));
            }
            Happening::Cut(host, until) => {
                self.fault("host cut off");
                self.hosts[host].cut_until = until;
                self.hosts[host].was_unheard = true;
            }
            Happening::ClockJumps(broker, by) => {
                self.fault("broker's clock jumps");
                self.brokers[broker].jump(by);
            }
            Happening::ContainerEnds(host) => {
                let ended = self.hosts[host].end_some_container(self.now, &mut self.random);
                if ended {
                    self.fault("container ends");
                }
            }
            Happening::HostQuits(host) => {
                self.fault("host quits");
                self.hosts[host].quit(self.now);
            }
            Happening::ToBroker(..)
            | Happening::ToHost(..)
            | Happening::HostLooks(_)
            | Happening::EngineDone(..)
            | Happening::RenterActs(_)
            | Happening::OperatorActs(_)
            | Happening::GoalsAgain(_) => {}
        }
        Ok(())
    }

    /// No more faults: the network is whole, everybody is up and honest about ending, and all renters go home.
    pub(super) fn calm_down(&mut self) {
        self.nature.calm_down();
        for host in &mut self.hosts {
            host.cut_until = 0;
        }
        for broker in &mut self.brokers {
            broker.set_clock_right();
        }
        self.queue.retain(|_, what| {
            !matches!(
                what,
                Happening::BrokerDies(_)
                    | Happening::HostDies(_)
                    | Happening::Cut(..)
                    | Happening::ClockJumps(..)
                    | Happening::ContainerEnds(_)
                    | Happening::HostQuits(_)
                    | Happening::RenterActs(_)
                    | Happening::OperatorActs(_)
            )
        });
        let hour = 3_600_000;
        for round in 0..6 {
            for index in 0..self.renters.len() {
                let at = self.now + round * hour / 3 + 120_000;
                let letters = self.renters[index].go_home(at);
                for (broker, letter) in letters {
                    self.at(at, Happening::ToBroker(broker, Rc::new(letter)));
                }
            }
        }
    }
}
