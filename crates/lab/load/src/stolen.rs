//! Time in which a virtual machine's processors had work and its host ran something else, or nothing because the machine had used up its
//! share.
//!
//! A join of a large state asks the host for gigabytes of memory that it must find first. A host that counts this as the machine's own
//! time stops all its processors together until the next period of its accounts, and latencies tell of that more than of the exchange.
//! Linux counts such time as `steal` (`proc_stat(5)`).

use std::fs;

/// Its place behind the name on a line of `/proc/stat`.
const STEAL: usize = 7;

/// How much of it there was, from a moment on.
#[derive(Clone, Copy, Debug)]
pub struct Stolen {
    ticks: u64,
}

impl Stolen {
    /// Counts from now on.
    #[must_use]
    pub fn begin() -> Self {
        Self { ticks: now() }
    }

    /// Milliseconds of all processors together since then; 0 where it is not counted.
    #[must_use]
    pub fn ms(self) -> f64 {
        now().saturating_sub(self.ticks) as f64 * 1e3 / rustix::param::clock_ticks_per_second() as f64
    }
}

fn now() -> u64 {
    fs::read_to_string("/proc/stat").ok().and_then(|stat| ticks(&stat)).unwrap_or_default()
}

fn ticks(stat: &str) -> Option<u64> {
    stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().nth(STEAL)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_all_processors_counts() {
        let stat = "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!((ticks(stat), ticks("cpu  1 2"), ticks("")), (Some(80), None, None));
    }
}
