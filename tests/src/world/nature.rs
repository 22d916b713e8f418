//! What goes wrong in a world, and how often: drawn from its seed, so that each world has other troubles.

use super::{Happening, Size};
use rand::rngs::StdRng;
use rand::{RngExt, seq::IndexedRandom};

/// Where a broker dies in the middle of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dies {
    /// Before what it wrote was synced: all of it is lost, and nobody was answered.
    BeforeSync,
    /// After the sync: all of it is there, and nobody was answered.
    AfterSync,
}

/// The troubles of one world.
#[derive(Debug, Clone)]
pub(crate) struct Nature {
    /// How probable it is that a letter is lost, and that it comes twice.
    loss: f64,
    repeats: f64,
    /// The longest that most letters take, in milliseconds.
    delay: u64,
    /// How probable it is that a broker dies in the middle of an input.
    sudden_death: f64,
    /// Faults of each kind in an hour of a party.
    pub(crate) broker_deaths: f64,
    host_deaths: f64,
    cuts: f64,
    jumps: f64,
    ends: f64,
    /// Of a hundred hosts, how many cheat in which way.
    pub(crate) double_sellers: u32,
    pub(crate) liars: u32,
    quitters: u32,
    /// Of a hundred renters.
    pub(crate) cheating_renters: u32,
}

impl Nature {
    pub(crate) fn draw(random: &mut StdRng) -> Self {
        let mut rate = |rates: &[f64]| *rates.choose(random).unwrap_or(&0.0);
        let loss = rate(&[0.0, 0.0, 0.01, 0.1]);
        let repeats = rate(&[0.0, 0.02, 0.2]);
        let sudden_death = rate(&[0.0, 0.0, 0.0005, 0.003]);
        let broker_deaths = rate(&[0.0, 0.05, 0.5]);
        let host_deaths = rate(&[0.0, 0.05, 0.3]);
        let cuts = rate(&[0.0, 0.05, 0.3]);
        let jumps = rate(&[0.0, 0.0, 0.1]);
        let ends = rate(&[0.0, 0.1, 0.5]);
        let mut part = |parts: &[u32]| *parts.choose(random).unwrap_or(&0);
        Self {
            loss,
            repeats,
            delay: 50,
            sudden_death,
            broker_deaths,
            host_deaths,
            cuts,
            jumps,
            ends,
            double_sellers: part(&[0, 0, 20]),
            liars: part(&[0, 0, 20]),
            quitters: part(&[0, 0, 15]),
            cheating_renters: part(&[0, 30]),
        }
    }

    /// The same where there are so many hosts: a broker that hears of more does not die the more often for it.
    pub(crate) fn with_hosts(mut self, hosts: usize) -> Self {
        let hosts = u32::try_from(hosts).unwrap_or(u32::MAX);
        self.sudden_death *= (5.0 / f64::from(hosts)).min(1.0);
        self
    }

    /// Nothing goes wrong any more.
    pub(crate) const fn calm_down(&mut self) {
        self.loss = 0.0;
        self.repeats = 0.0;
        self.sudden_death = 0.0;
    }

    /// Whether no letter is ever lost.
    pub(crate) const fn is_reliable(&self) -> bool {
        self.loss == 0.0
            && self.sudden_death == 0.0
            && self.broker_deaths == 0.0
            && self.jumps == 0.0
    }

    /// When a letter that is sent now arrives: never, once, or twice.
    pub(crate) fn arrivals(&self, now: u64, random: &mut StdRng) -> Vec<u64> {
        let mut arrivals = Vec::new();
        let copies = 1 + usize::from(random.random_bool(self.repeats));
        for _ in 0..copies {
            if random.random_bool(self.loss) {
                continue;
            }
            // Most take milliseconds; one in fifty takes up to half a minute and is overtaken.
            let slow = if random.random_bool(0.02) {
                30_000
            } else {
                self.delay
            };
            arrivals.push(now + random.random_range(1..=slow));
        }
        arrivals
    }

    /// Whether, and where, a broker dies in the middle of what it does now.
    pub(crate) fn dies_here(&self, random: &mut StdRng) -> Option<Dies> {
        if self.sudden_death == 0.0 || !random.random_bool(self.sudden_death) {
            return None;
        }
        Some(if random.random_bool(0.5) {
            Dies::BeforeSync
        } else {
            Dies::AfterSync
        })
    }

    /// All faults up to `end` that have a time of their own.
    pub(crate) fn faults(self, size: Size, end: u64, random: &mut StdRng) -> Vec<(u64, Happening)> {
        let mut faults = Vec::new();
        for broker in 0..size.brokers {
            for at in moments(self.broker_deaths, end, random) {
                faults.push((at, Happening::BrokerDies(broker)));
            }
            for at in moments(self.jumps, end, random) {
                let by = random.random_range(-7_200_000..7_200_000);
                faults.push((at, Happening::ClockJumps(broker, by)));
                // And is put right.
                let right = at + random.random_range(10_000..600_000);
                faults.push((right, Happening::ClockJumps(broker, -by)));
            }
        }
        for host in 0..size.hosts {
            for at in moments(self.host_deaths, end, random) {
                faults.push((at, Happening::HostDies(host)));
            }
            for at in moments(self.cuts, end, random) {
                let long = *[5_000, 60_000, 500_000, 2_000_000, 8_000_000]
                    .choose(random)
                    .unwrap_or(&5_000);
                faults.push((at, Happening::Cut(host, at + long)));
            }
            for at in moments(self.ends, end, random) {
                faults.push((at, Happening::ContainerEnds(host)));
            }
            if random.random_ratio(self.quitters, 100) {
                let at = random.random_range(0..end.max(1));
                faults.push((at, Happening::HostQuits(host)));
            }
        }
        faults
    }
}

/// Moments of something that happens so often an hour, up to `end`.
fn moments(an_hour: f64, end: u64, random: &mut StdRng) -> Vec<u64> {
    let mut moments = Vec::new();
    if an_hour <= 0.0 {
        return moments;
    }
    let mut at = 0.0;
    loop {
        // The time between two of them is exponential.
        let drawn: f64 = random.random_range(f64::EPSILON..1.0);
        at += -drawn.ln() / an_hour * 3_600_000.0;
        if at >= end as f64 {
            return moments;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between 0 and the end"
        )]
        moments.push(at as u64);
    }
}
