//! Figures second by second.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pares_load::Observed;

/// Seconds remembered: as many as a very wide terminal shows.
const SECONDS_MAX: usize = 240;

/// One second of the demonstration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Requests answered in it.
    pub completed: u64,
    /// The longest time between two answers that ended in it, ns.
    pub gap_ns: u64,
    /// Venues killed in it.
    pub kills: u64,
    /// Median latency from the scheduled send time, ns.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
}

/// The seconds so far, the last ones.
#[derive(Default)]
pub struct Minute {
    seconds: VecDeque<Second>,
    current: Second,
    whole: u64,
    completed: u64,
}

impl Minute {
    /// Notes a gap that ended now.
    pub fn note_gap(&mut self, gap_ns: u64) {
        self.current.gap_ns = self.current.gap_ns.max(gap_ns);
    }

    /// Notes a kill.
    pub fn note_kill(&mut self) {
        self.current.kills += 1;
    }

    /// Ends the current second if it is over. Says whether it was.
    pub fn tick(&mut self, elapsed: Duration, observed: &Observed) -> bool {
        if elapsed.as_secs() <= self.whole {
            return false;
        }
        self.whole = elapsed.as_secs();
        let completed = observed.completed.load(Ordering::Relaxed);
        let latencies = observed.take_recent();
        self.seconds.push_back(Second {
            completed: completed - self.completed,
            p50_ns: latencies.value_at_quantile(0.5),
            p99_ns: latencies.value_at_quantile(0.99),
            p999_ns: latencies.value_at_quantile(0.999),
            ..std::mem::take(&mut self.current)
        });
        self.completed = completed;
        if self.seconds.len() > SECONDS_MAX {
            self.seconds.pop_front();
        }
        true
    }

    /// Starts counting answers here: what came before was warming up.
    pub fn begin(&mut self, observed: &Observed) {
        observed.take_recent();
        observed.forget_latencies();
        self.completed = observed.completed.load(Ordering::Relaxed);
    }

    /// The last whole second.
    pub fn last(&self) -> Second {
        self.seconds.back().copied().unwrap_or_default()
    }

    /// The last `count` seconds, oldest first.
    pub fn lately(&self, count: usize) -> impl Iterator<Item = &Second> {
        self.seconds.iter().skip(self.seconds.len().saturating_sub(count))
    }
}
