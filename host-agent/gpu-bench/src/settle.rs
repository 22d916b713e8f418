//! How long a kernel is run: as many rounds as take a tenth of a second, then again and again for a second or two, so
//! that the figure is one that the GPU holds at its temperature and its power limit. The median is what counts.

use std::time::Duration;

/// Long enough for a launch to be nothing beside it, short enough for a driver that ends what takes seconds.
const ONE_RUN: Duration = Duration::from_millis(100);
const RUNS: u32 = 15;
/// A GPU that is this fast is not built yet.
const ROUNDS_MAX: u32 = 1 << 24;

/// Rounds, and how long the median of the runs took for them. `run` takes rounds and returns the time they took;
/// `done` hears of thousandths.
pub(crate) fn settle<E>(
    mut run: impl FnMut(u32) -> Result<Duration, E>,
    mut done: impl FnMut(u16),
) -> Result<(u32, Duration), E> {
    let mut rounds = 1;
    // The first run also loads the kernel.
    run(rounds)?;
    while run(rounds)? < ONE_RUN && rounds < ROUNDS_MAX {
        rounds *= 2;
    }
    let mut times = Vec::new();
    for number in 0..RUNS {
        times.push(run(rounds)?);
        done(u16::try_from((number + 1) * 1000 / RUNS).unwrap_or(1000));
    }
    times.sort_unstable();
    Ok((
        rounds,
        times.get(times.len() / 2).copied().unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn rounds_are_doubled_to_a_tenth_of_a_second_and_the_median_counts() {
        let mut runs = 0;
        let mut said = Vec::new();
        let settled = settle::<Infallible>(
            |rounds| {
                runs += 1;
                // 3 ms a round; every fourth run meets a busy machine.
                let slow = if runs % 4 == 0 { 5 } else { 1 };
                Ok(Duration::from_millis(3) * rounds * slow)
            },
            |part| said.push(part),
        );
        let Ok((rounds, time)) = settled;
        // 32 rounds take 96 ms, which is too little; of the 15 runs that count, three or four were slow.
        assert_eq!((rounds, time), (64, Duration::from_millis(192)));
        assert_eq!((said.len(), said.last()), (15, Some(&1000)));
    }

    #[test]
    fn the_first_failure_ends_it() {
        assert_eq!(settle(|_| Err("no"), |_| {}), Err("no"));
    }
}
