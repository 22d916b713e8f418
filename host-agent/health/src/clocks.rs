//! How fast a GPU runs, against how fast it could. Heat and a power supply that asks for less lower the grade of its
//! offer once they last; a power limit is normal under load, and lowers it only when it leaves little of the
//! clock.

use host_nvml::sample::{ClockReasons, Reading};
use protocol::units::Millis;

/// How long it has to last, and how long it has to be over.
pub const LASTING: Millis = Millis(60_000);
/// The least share of its highest clock that a GPU under its power limit runs at, in percent: what its makers'
/// limits leave under full load is above it, a limit set low by the owner is below.
pub const CLOCK_PERCENT_MIN: u64 = 50;

/// What slows a GPU down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slowed {
    /// The hardware does, for its heat.
    Heat,
    /// The power supply asked for less.
    PowerBrake,
    /// Its power limit leaves it so much of its clock, in percent.
    PowerLimit(u64),
}

impl Slowed {
    /// In words.
    #[must_use]
    pub fn in_words(self) -> String {
        match self {
            Self::Heat => "it is slowed down for its heat: see to its cooling".to_owned(),
            Self::PowerBrake => "the power supply asks it for less: see to the power".to_owned(),
            Self::PowerLimit(percent) => format!(
                "its power limit leaves it {percent} % of its clock: see the limit with nvidia-smi -q -d POWER"
            ),
        }
    }
}

/// Since when a GPU is slow or not, and what that comes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    /// What is seen now, and since when something or nothing is.
    seen: Option<(Option<Slowed>, Millis)>,
    /// What its grade is lowered for.
    lowered: Option<Slowed>,
}

impl Pace {
    /// What the grade is lowered for.
    #[must_use]
    pub const fn lowered(&self) -> Option<Slowed> {
        self.lowered
    }

    /// After a reading of a GPU with that highest clock (0 when not known).
    #[must_use]
    pub fn after(&self, reading: &Reading, clock_max_mhz: u32, now: Millis) -> Self {
        let slowed = slowed(reading, clock_max_mhz);
        let since = match self.seen {
            Some((before, since)) if before.is_some() == slowed.is_some() => since,
            Some(_) | None => now,
        };
        let lasted = Millis(now.0.saturating_sub(since.0)) > LASTING;
        let lowered = match (lasted, slowed) {
            (true, Some(slowed)) => Some(self.lowered.unwrap_or(slowed)),
            (true, None) => None,
            (false, _) => self.lowered,
        };
        Self {
            seen: Some((slowed, since)),
            lowered,
        }
    }
}

fn slowed(reading: &Reading, clock_max_mhz: u32) -> Option<Slowed> {
    let reasons = reading.clock_reasons?;
    if reasons.has(ClockReasons::HARDWARE_THERMAL) {
        return Some(Slowed::Heat);
    }
    if reasons.has(ClockReasons::POWER_BRAKE) {
        return Some(Slowed::PowerBrake);
    }
    if !reasons.has(ClockReasons::POWER_CAP) || reasons.has(ClockReasons::IDLE) {
        return None;
    }
    let clock = u64::from(reading.graphics_clock_mhz?);
    let percent = clock
        .saturating_mul(100)
        .checked_div(u64::from(clock_max_mhz))?;
    (percent < CLOCK_PERCENT_MIN).then_some(Slowed::PowerLimit(percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(bits: u64, clock: u32) -> Reading {
        Reading {
            clock_reasons: Some(ClockReasons(bits)),
            graphics_clock_mhz: Some(clock),
            ..Reading::default()
        }
    }

    /// The grade after the same reading every two seconds for so long.
    fn after(pace: Pace, from: u64, seconds: u64, reading: &Reading) -> Pace {
        (0..=seconds / 2).fold(pace, |pace, step| {
            pace.after(reading, 2_000, Millis((from + step * 2) * 1_000))
        })
    }

    #[test]
    fn heat_and_the_power_brake_count_after_a_minute_and_until_a_minute_after() {
        for (bit, wanted) in [(0x40, Slowed::Heat), (0x80, Slowed::PowerBrake)] {
            let hot = reading(bit | 0x8, 1_900);
            assert_eq!(after(Pace::default(), 0, 60, &hot).lowered(), None);
            let lowered = after(Pace::default(), 0, 62, &hot);
            assert_eq!(lowered.lowered(), Some(wanted));
            let cool = reading(0, 1_900);
            assert_eq!(after(lowered, 64, 60, &cool).lowered(), Some(wanted));
            assert_eq!(after(lowered, 64, 62, &cool).lowered(), None);
        }
    }

    #[test]
    fn a_moment_of_heat_again_and_again_is_not_a_minute_of_it() {
        let mut pace = Pace::default();
        for step in 0..120 {
            let bits = if step % 20 == 19 { 0 } else { 0x40 };
            pace = pace.after(&reading(bits, 1_900), 2_000, Millis(step * 2_000));
        }
        assert_eq!(pace.lowered(), None);
    }

    /// Row 10 of the threats: throttled after it was verified.
    #[test]
    fn a_power_limit_is_normal_until_it_leaves_little_of_the_clock() {
        // 70 % of the clock under the power limit is what a full load does.
        assert_eq!(
            after(Pace::default(), 0, 600, &reading(0x4, 1_400)).lowered(),
            None
        );
        let capped = after(Pace::default(), 0, 62, &reading(0x4, 800));
        assert_eq!(capped.lowered(), Some(Slowed::PowerLimit(40)));
        // The driver's own slow-down for heat, and an idle GPU's low clock, are no punishment.
        assert_eq!(
            after(Pace::default(), 0, 600, &reading(0x20, 800)).lowered(),
            None
        );
        assert_eq!(
            after(Pace::default(), 0, 600, &reading(0x1, 300)).lowered(),
            None
        );
        // Without its highest clock nothing can be said.
        let unknown = (0..100).fold(Pace::default(), |pace, step| {
            pace.after(&reading(0x4, 800), 0, Millis(step * 2_000))
        });
        assert_eq!(unknown.lowered(), None);
    }
}
