//! What a demonstration came to.

use std::sync::atomic::Ordering;
use std::time::Duration;

use pares_load::{LabResult, Observed, Spread, none_of};
use serde::Serialize;

use super::day::verdict::DayVerdict;
use super::director::{Director, Kill};
use super::market::Tally;

/// What a demonstration came to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Verdict {
    /// How long requests were sent.
    pub seconds: f64,
    /// Requests due by the schedule.
    pub offered: u64,
    /// Requests answered.
    pub completed: u64,
    /// Requests answered per second.
    pub completed_per_second: f64,
    /// Requests sent and never answered.
    pub lost: u64,
    /// Answers beyond the first.
    pub duplicated: u64,
    /// Requests a gateway did not take in.
    pub rejected: u64,
    /// Requests the client had to send again.
    pub client_retries: u64,
    /// Trades recorded.
    pub trades: u64,
    /// Times the leading venue was killed.
    pub kills: usize,
    /// Longest time between two answers around a kill.
    pub max_gap_kill_ms: f64,
    /// Longest time between two answers otherwise.
    pub max_gap_quiet_ms: f64,
    /// Median time a venue took to resynchronise, from the start of its new process.
    pub resync_ms: f64,
    /// The longest.
    pub resync_max_ms: f64,
    /// Median time from a kill until the venue raced again.
    pub absent_ms: f64,
    /// The longest.
    pub absent_max_ms: f64,
    /// Median latency from the scheduled send time.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Results read back from the recorders.
    pub recorded: u64,
    /// Those that executing the recorded request again did not reproduce.
    pub differing: u64,
    /// What the trading day came to, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<DayVerdict>,
}

impl Verdict {
    /// Sums up.
    pub fn new(lasted: Duration, observed: &Observed, director: &Director, tally: Tally) -> Self {
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (completed, rejected) = (load(&observed.completed), load(&observed.rejected));
        let latencies = observed.all_latencies();
        let us = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e3;
        let spread = |of: fn(&Kill) -> Duration| {
            Spread::of(director.kills.iter().map(|kill| of(kill).as_nanos() as u64), 1e6).unwrap_or_default()
        };
        let (resync, absent) = (spread(|kill| kill.resync), spread(|kill| kill.absent));
        Self {
            seconds: lasted.as_secs_f64(),
            offered: load(&observed.offered),
            completed,
            completed_per_second: completed as f64 / lasted.as_secs_f64(),
            lost: load(&observed.sent).saturating_sub(completed + rejected),
            duplicated: load(&observed.duplicated),
            rejected,
            client_retries: load(&observed.retried),
            trades: tally.trades,
            kills: director.kills.len(),
            max_gap_kill_ms: director.kill_gap_ns() as f64 / 1e6,
            max_gap_quiet_ms: director.quiet_gap_ns as f64 / 1e6,
            resync_ms: resync.median,
            resync_max_ms: resync.max,
            absent_ms: absent.median,
            absent_max_ms: absent.max,
            p50_us: us(0.5),
            p90_us: us(0.9),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: latencies.max() as f64 / 1e3,
            recorded: tally.results,
            differing: tally.differing,
            day: None,
        }
    }

    /// # Errors
    /// If anything was lost, answered twice, or recorded differently from what executing it gives, or a
    /// trading day that came to its end did not go through all its phases in order.
    pub fn check(&self) -> LabResult {
        none_of([
            (self.lost, "lost"),
            (self.duplicated, "duplicated"),
            (self.differing, "recorded results not reproduced"),
        ])?;
        self.day.as_ref().map_or(Ok(()), DayVerdict::check)
    }
}
