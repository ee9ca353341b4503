//! How many requests of a front are at the sites at most.
//!
//! A fixed bound is wrong: what quick sites are through with in a tenth of a second takes slow ones two, and the next command of every user waits behind all of it. So the bound follows the time that requests take. What they
//! take beyond the quickest of late is their wait in the sites' queue. If that is long the bound is halved, once in a time that a request takes; else each fourth answer makes it larger by one. So TCP finds its pace by
//! delay (Brakmo and Peterson, Vegas, 1994).
//!
//! A queue that never empties would pass for the quickest after a while. But each halving empties it to a half, so the wait that is allowed comes to rest below twice [`QUEUE_MS`].

use crate::user::UserPart;

/// The bound is this at least: a request's time may be a line between regions.
const WINDOW_MIN: usize = 256;
/// A longer wait in the sites' queue halves it, ms.
const QUEUE_MS: u64 = 50;
/// So many answers make it larger by one: it is a quarter larger when all that were at the sites have come back, and what it overshoots by is small.
const ANSWERS: u32 = 4;
/// The quickest counts for so long at least, ms, and for twice that at most.
const QUICKEST_MS: u64 = 10_000;
/// No request takes longer: its time is of a clock that was set, ms.
const TAKES_MAX_MS: u64 = 60_000;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SitePace {
    window: usize,
    max: usize,
    /// The bound stays as it is: nobody but this front waits.
    is_fixed: bool,
    /// The quickest of this stretch of time and of the one before, ms.
    quickest_ms: [u64; 2],
    /// When this stretch began.
    since_ms: u64,
    halved_ms: u64,
    /// Answers since it was made larger.
    answers: u32,
}

impl SitePace {
    pub(crate) fn new(max: usize) -> Self {
        let quickest_ms = [u64::MAX; 2];
        Self { window: max, max, is_fixed: false, quickest_ms, since_ms: 0, halved_ms: 0, answers: 0 }
    }

    pub(crate) fn fix(&mut self, window: usize) {
        (self.window, self.is_fixed) = (window, true);
    }

    pub(crate) fn window(&self) -> usize {
        self.window
    }

    /// A request came back that was at the sites for so long.
    pub(crate) fn came_back(&mut self, took_ms: u64, now_ms: u64) {
        if self.is_fixed || took_ms > TAKES_MAX_MS {
            return;
        }
        if now_ms.abs_diff(self.since_ms) >= QUICKEST_MS {
            (self.quickest_ms, self.since_ms) = ([u64::MAX, self.quickest_ms[0]], now_ms);
        }
        self.quickest_ms[0] = took_ms.min(self.quickest_ms[0]);
        if took_ms - took_ms.min(self.quickest_ms[0]).min(self.quickest_ms[1]) <= QUEUE_MS {
            self.answers = (self.answers + 1) % ANSWERS;
            self.window = (self.window + usize::from(self.answers == 0)).min(self.max);
        } else if now_ms.abs_diff(self.halved_ms) >= took_ms {
            (self.window, self.halved_ms) = ((self.window / 2).max(WINDOW_MIN.min(self.max)), now_ms);
        }
        assert!(self.window >= WINDOW_MIN.min(self.max), "a bound leaves room for sites that are far away");
        assert!(self.window <= self.max, "a bound that is not fixed stays within its own");
    }
}

impl UserPart {
    /// How long the request of this name has been at the sites, ms; none if it is not awaited, or was handed on more than once.
    pub(crate) fn took_ms(&self, sequence: u64, now_ms: u64) -> Option<u64> {
        let one = &self.under_way[self.unanswered(sequence)?];
        one.is_first().then(|| now_ms.saturating_sub(one.request.time_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 4_096;
    const NOON_MS: u64 = 1_680_000_000_000;

    /// A front that always has more, at sites that take one request each so many microseconds and answer after 10 ms besides: its bound and the longest wait after some seconds.
    fn after(seconds: u64, each_us: u64) -> (usize, u64) {
        let (mut pace, mut longest_ms) = (SitePace::new(MAX), 0);
        let mut at_sites = std::collections::VecDeque::new();
        let end_us = (NOON_MS + seconds * 1_000) * 1_000;
        let mut now_us = NOON_MS * 1_000;
        while now_us < end_us {
            while at_sites.len() < pace.window() {
                at_sites.push_back(now_us);
            }
            now_us += each_us;
            let took_ms = (now_us - at_sites.pop_front().unwrap()) / 1_000 + 10;
            longest_ms = if now_us + 1_000_000 > end_us { took_ms.max(longest_ms) } else { 0 };
            pace.came_back(took_ms, now_us / 1_000);
        }
        (pace.window(), longest_ms)
    }

    #[test]
    fn slow_sites_have_few_requests_and_quick_ones_many() {
        for (each_us, longest_ms) in [(20, 100), (50, 180), (100, 180), (500, 260)] {
            for seconds in [10, 60] {
                let (window, found_ms) = after(seconds, each_us);
                assert!(found_ms <= longest_ms, "{each_us} us: {found_ms} ms, {window} at the sites");
                let least = (10_000 / each_us).max(WINDOW_MIN as u64) as usize;
                assert!(window >= least.min(MAX), "{each_us} us: only {window}, and the sites have pauses");
            }
        }
    }

    #[test]
    fn clock_change_leaves_fixed_bounds() {
        let mut pace = SitePace::new(MAX);
        pace.came_back(3_600_000, NOON_MS);
        assert_eq!(pace.window(), MAX);
        pace.fix(9);
        (0..9).for_each(|second| pace.came_back(1_000 * second, NOON_MS + 1_000 * second));
        assert_eq!(pace.window(), 9);
    }
}
