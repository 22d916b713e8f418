//! Bandwidth of the memory: the triad of STREAM (McCalpin 1995), `a[i] = b[i] + s × c[i]` over arrays of doubles that
//! no cache holds, by one thread for each CPU. 24 bytes are counted for an element, as STREAM counts them: what a
//! cache line that is written costs beside is not.

use crate::clock::now;
use crate::control::{Control, check};
use crate::{MeasureError, Method, Rate};
use std::fs;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The best pass, as STREAM reports it.
pub const TRIAD: Method = Method {
    name: "stream-triad",
    about: "STREAM triad, doubles, one thread a CPU, best pass",
    version: 1,
};

/// The arrays of a pass take this much together unless memory is short.
pub const BYTES: u64 = 3 * 512 * MIB;
/// Under this much the caches of a large processor would be measured.
const BYTES_MIN: u64 = 3 * 32 * MIB;
const MIB: u64 = 1024 * 1024;
/// Of the memory that is free, one part in so many is used at most.
const PART_OF_FREE: u64 = 4;
/// Passes that are timed; the one before them makes the pages.
const PASSES: u16 = 10;
const ELEMENT: u64 = 24;

/// The rate of the best of the passes.
///
/// # Errors
/// When memory is short, it is cancelled, or a thread cannot be started.
pub fn triad(threads: NonZeroUsize, control: &dyn Control) -> Result<Rate, MeasureError> {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = available(&meminfo).unwrap_or(0);
    triad_within(threads, free, control)
}

fn triad_within(
    threads: NonZeroUsize,
    free: u64,
    control: &dyn Control,
) -> Result<Rate, MeasureError> {
    let bytes = BYTES.min(free / PART_OF_FREE);
    if bytes < BYTES_MIN {
        return Err(MeasureError::NoMemory {
            free,
            needed: BYTES_MIN * PART_OF_FREE,
        });
    }
    check(control)?;
    let workers = u64::try_from(threads.get()).unwrap_or(u64::MAX);
    let elements = usize::try_from(bytes / ELEMENT / workers).unwrap_or(usize::MAX);
    let round = Round {
        start: Barrier::new(threads.get()),
        end: Barrier::new(threads.get()),
        stop: AtomicBool::new(false),
    };
    let spans = thread::scope(|scope| {
        // The first of the threads is this one: it alone speaks with whoever follows.
        let others: Vec<_> = (1..threads.get())
            .map(|_| scope.spawn(|| passes(elements, &round, None)))
            .collect();
        let mut all = vec![passes(elements, &round, Some(control))];
        all.extend(
            others
                .into_iter()
                .map(|other| other.join().unwrap_or_default()),
        );
        all
    });
    if round.stop.load(Ordering::Relaxed) {
        return Err(MeasureError::Cancelled);
    }
    let count = u64::try_from(elements).unwrap_or(0) * workers * ELEMENT;
    Ok(Rate {
        count,
        elapsed: best(&spans),
    })
}

/// What keeps the threads together.
struct Round {
    start: Barrier,
    end: Barrier,
    stop: AtomicBool,
}

/// When one thread's passes began and ended.
type Spans = Vec<(Instant, Instant)>;

/// Each thread makes and touches its own arrays, so that they lie in the memory nearest to it.
fn passes(elements: usize, round: &Round, control: Option<&dyn Control>) -> Spans {
    let (mut a, b, c) = (
        vec![0.0_f64; elements],
        vec![1.0_f64; elements],
        vec![2.0_f64; elements],
    );
    let mut spans = Spans::new();
    for pass in 0..=PASSES {
        if let Some(control) = control {
            if control.is_cancelled() {
                round.stop.store(true, Ordering::Relaxed);
            }
            control.progress(pass * (1000 / (PASSES + 1)));
        }
        round.start.wait();
        if round.stop.load(Ordering::Relaxed) {
            return spans;
        }
        let began = now();
        add_scaled(&mut a, &b, &c, black_box(3.0));
        black_box(&mut a);
        spans.push((began, now()));
        round.end.wait();
    }
    if let Some(control) = control {
        control.progress(1000);
    }
    spans
}

#[inline(never)]
fn add_scaled(a: &mut [f64], b: &[f64], c: &[f64], scale: f64) {
    for ((sum, one), other) in a.iter_mut().zip(b).zip(c) {
        *sum = one + scale * other;
    }
}

/// The shortest time from the first thread's start to the last one's end, the first pass aside.
fn best(spans: &[Spans]) -> Duration {
    let passes = spans.iter().map(Vec::len).min().unwrap_or(0);
    let length = |pass: usize| {
        let of_pass = || spans.iter().filter_map(|thread| thread.get(pass));
        let began = of_pass().map(|span| span.0).min()?;
        let ended = of_pass().map(|span| span.1).max()?;
        Some(ended.saturating_duration_since(began))
    };
    (1..passes).filter_map(length).min().unwrap_or_default()
}

/// `MemAvailable` of the text of `/proc/meminfo`, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Unwatched;
    use crate::control::tests::After;

    const TWO: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

    #[test]
    fn the_kernel_is_the_triad() {
        let mut a = [0.0; 3];
        add_scaled(&mut a, &[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0], 0.5);
        assert_eq!(a, [6.0, 12.0, 18.0]);
    }

    #[test]
    fn the_best_pass_is_the_shortest_of_all_threads_together() {
        let zero = now();
        let at = |millis| zero + Duration::from_millis(millis);
        let one = vec![(at(0), at(1)), (at(10), at(20)), (at(30), at(45))];
        let two = vec![(at(0), at(1)), (at(12), at(26)), (at(30), at(41))];
        // 10 to 26 and 30 to 45; the first pass of 1 ms does not count.
        assert_eq!(best(&[one, two]), Duration::from_millis(15));
        assert_eq!(best(&[]), Duration::ZERO);
    }

    #[test]
    fn every_byte_of_every_thread_is_counted() {
        // A quarter of it is 96 MiB: 24 bytes an element divide it among two threads without a rest.
        let rate = triad_within(TWO, BYTES_MIN * 4, &Unwatched).unwrap();
        assert_eq!(rate.count, 100_663_296);
        assert!(rate.elapsed > Duration::from_micros(100));
    }

    #[test]
    fn short_memory_is_refused_with_the_numbers() {
        let refused = triad_within(TWO, 200_000_000, &Unwatched).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "200000000 bytes of memory are free, and 402653184 are needed to pass the processor's caches by"
        );
    }

    #[test]
    fn it_stops_between_passes() {
        let control = After::looks(3);
        let stopped = triad_within(TWO, BYTES_MIN * 4, &control).unwrap_err();
        assert!(matches!(stopped, MeasureError::Cancelled));
        assert!(control.said.lock().unwrap().len() < 6);
    }

    #[test]
    fn free_memory_is_what_the_kernel_says() {
        assert_eq!(
            available("MemFree: 1 kB\nMemAvailable:  2048 kB\n"),
            Some(2_097_152)
        );
        assert_eq!(available("MemFree: 1 kB\n"), None);
    }
}
