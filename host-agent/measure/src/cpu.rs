//! Integer and floating-point speed of the processors: primes by trial division, the kernel of `sysbench cpu`, so
//! that anybody can compare. One event finds all primes below [`LIMIT`].

use crate::clock::now;
use crate::control::{Control, LOOK, check, part_of};
use crate::{MeasureError, Method, Rate};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// `--cpu-max-prime` of sysbench, at its default.
pub const LIMIT: u64 = 10_000;

/// One thread.
pub const SINGLE: Method = Method {
    name: "prime-10000-single",
    about: "primes below 10000 by trial division, one thread (as sysbench cpu)",
    version: 1,
};

/// One thread for each logical CPU.
pub const ALL: Method = Method {
    name: "prime-10000-all",
    about: "primes below 10000 by trial division, one thread a CPU (as sysbench cpu)",
    version: 1,
};

/// Events by `threads` threads at once, for `length`: each thread counts whole events only, over the time they took
/// it, and the rates are added.
///
/// # Errors
/// When it is cancelled, or a thread cannot be started.
pub fn events(
    threads: NonZeroUsize,
    length: Duration,
    control: &dyn Control,
) -> Result<u64, MeasureError> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut workers = Vec::with_capacity(threads.get());
        for _ in 0..threads.get() {
            let worker = thread::Builder::new().spawn_scoped(scope, || count(length, &stop));
            match worker {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(MeasureError::Thread(error));
                }
            }
        }
        let began = now();
        while workers.iter().any(|worker| !worker.is_finished()) {
            if let Err(cancelled) = check(control) {
                stop.store(true, Ordering::Relaxed);
                return Err(cancelled);
            }
            control.progress(part_of(began, now(), length));
            thread::sleep(LOOK.min(length / 20));
        }
        let mut thousandths = 0_u64;
        for worker in workers {
            // A worker that panicked has counted nothing; none can.
            let rate = worker.join().unwrap_or(Rate {
                count: 0,
                elapsed: length,
            });
            thousandths = thousandths.saturating_add(rate.thousandths_per_second());
        }
        control.progress(1000);
        Ok(thousandths)
    })
}

/// Whole events until `length` has passed.
fn count(length: Duration, stop: &AtomicBool) -> Rate {
    let began = now();
    let mut count = 0;
    loop {
        black_box(primes(black_box(LIMIT)));
        count += 1;
        let elapsed = now().saturating_duration_since(began);
        if elapsed >= length || stop.load(Ordering::Relaxed) {
            return Rate { count, elapsed };
        }
    }
}

/// How many primes there are from 3 up to, not with, `limit`; every divisor up to the root is tried.
///
/// Divisions are of 64 bits, as sysbench's are. A compiler may guard them by a test for small operands and divide
/// those in 32 bits, which is another and, on older processors, a far faster operation; operands that are moved up by
/// 32 bits have the same quotient and the same remainder of zero, and are never small.
fn primes(limit: u64) -> u64 {
    let up = black_box(32_u32);
    let mut found = 0;
    for candidate in 3..limit {
        let root = approximate(candidate).sqrt();
        let dividend = candidate << up;
        let mut divisor = 2;
        while approximate(divisor) <= root {
            if dividend.is_multiple_of(divisor << up) {
                break;
            }
            divisor += 1;
        }
        if approximate(divisor) > root {
            found += 1;
        }
    }
    found
}

/// Exact for what is far below 2^53.
#[inline(always)]
fn approximate(whole: u64) -> f64 {
    whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Unwatched;
    use crate::control::tests::After;

    const ONE: NonZeroUsize = NonZeroUsize::MIN;

    #[test]
    fn an_event_finds_the_primes() {
        // There are 1229 primes below 10000, and 2 is not looked at.
        assert_eq!(primes(LIMIT), 1228);
        assert_eq!(primes(12), 4);
        assert_eq!(primes(3), 0);
    }

    #[test]
    fn a_rate_is_that_of_the_time_it_took() {
        let length = Duration::from_millis(200);
        let began = now();
        let thousandths = events(ONE, length, &Unwatched).unwrap();
        assert!(now().duration_since(began) >= length);
        // One event takes from a tenth of a millisecond to a second on anything this is built for.
        assert!((1_000..10_000_000).contains(&thousandths), "{thousandths}");
    }

    #[test]
    fn it_stops_when_it_is_told_to() {
        let control = After::looks(2);
        let began = now();
        let stopped = events(ONE, Duration::from_secs(60), &control).unwrap_err();
        assert!(matches!(stopped, MeasureError::Cancelled));
        assert!(now().duration_since(began) < Duration::from_secs(20));
    }

    #[test]
    fn progress_rises_to_all_of_it() {
        let control = After::looks(u32::MAX);
        events(ONE, Duration::from_millis(100), &control).unwrap();
        let said = control.said.lock().unwrap();
        assert!(said.is_sorted() && said.last() == Some(&1000), "{said:?}");
    }
}
