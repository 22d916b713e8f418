//! CPU time of this process by thread, as the kernel counts it. Must not know what the threads do.

use std::fs;

use crate::Outcome;

/// Nanoseconds of CPU that the threads called `name` took so far, those that ended left out.
pub(crate) fn cpu_of(name: &str) -> Outcome<u64> {
    let mut sum = 0;
    for thread in fs::read_dir("/proc/self/task")? {
        let folder = thread?.path();
        // A thread may end between the list and the look.
        let Ok(called) = fs::read_to_string(folder.join("comm")) else {
            continue;
        };
        if called.trim_end() != name {
            continue;
        }
        let counted = fs::read_to_string(folder.join("schedstat")).unwrap_or_default();
        let on_cpu = counted.split_whitespace().next().unwrap_or("0");
        sum += on_cpu.parse::<u64>()?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_thread_takes_time_and_one_of_another_name_none() {
        let busy = || {
            let mut sum = 0_u64;
            for number in 0..5_000_000_u64 {
                sum = std::hint::black_box(sum.wrapping_add(number));
            }
            (cpu_of("bench-busy").unwrap(), cpu_of("bench-idle").unwrap())
        };
        let thread = std::thread::Builder::new().name("bench-busy".to_owned());
        let (spent, none) = thread.spawn(busy).unwrap().join().unwrap();
        assert!(spent > 1_000_000, "{spent}");
        assert_eq!(none, 0);
    }
}
