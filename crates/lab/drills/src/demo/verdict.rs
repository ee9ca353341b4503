//! What a demonstration came to.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pares_load::{LabError, LabResult, Observed};
use pares_text::grouped;
use serde::Serialize;

use super::day::verdict::DayVerdict;
use super::director::Director;
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
        let resync = spread_ms(director.kills.iter().map(|kill| kill.resync));
        let absent = spread_ms(director.kills.iter().map(|kill| kill.absent));
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
        match (self.lost, self.duplicated, self.differing) {
            (0, 0, 0) => self.day.as_ref().map_or(Ok(()), DayVerdict::check),
            (lost, duplicated, differing) => Err(LabError::Failed(format!(
                "{lost} lost, {duplicated} duplicated, {differing} recorded results not reproduced"
            ))),
        }
    }
}

/// Median and maximum, milliseconds; 0 of nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    max: f64,
}

fn spread_ms(durations: impl Iterator<Item = Duration>) -> Spread {
    let mut sorted: Vec<Duration> = durations.collect();
    sorted.sort_unstable();
    let ms = |duration: Option<&Duration>| duration.copied().unwrap_or_default().as_secs_f64() * 1e3;
    Spread { median: ms(sorted.get(sorted.len() / 2)), max: ms(sorted.last()) }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "requests    {} offered, {} answered in {:.1} s: {} per second",
            grouped(self.offered),
            grouped(self.completed),
            self.seconds,
            grouped(self.completed_per_second.round() as u64),
        )?;
        writeln!(
            f,
            "promises    {} lost, {} duplicated, {} rejected, {} sent again",
            self.lost, self.duplicated, self.rejected, self.client_retries
        )?;
        writeln!(
            f,
            "kills       {} of the leading venue; back in the race after {:.1} ms (median), {:.1} ms (longest),",
            self.kills, self.absent_ms, self.absent_max_ms
        )?;
        writeln!(
            f,
            "            of which resynchronising {:.1} ms (median), {:.1} ms (longest)",
            self.resync_ms, self.resync_max_ms
        )?;
        writeln!(
            f,
            "gaps        longest without an answer: {:.2} ms around a kill, {:.2} ms otherwise",
            self.max_gap_kill_ms, self.max_gap_quiet_ms
        )?;
        writeln!(
            f,
            "latency     p50 {:.1} us  p90 {:.1}  p99 {:.1}  p99.9 {:.1}  max {:.1}",
            self.p50_us, self.p90_us, self.p99_us, self.p999_us, self.max_us
        )?;
        write!(
            f,
            "record      {} results with {} trades executed again from the recorders' logs: {} differ",
            grouped(self.recorded),
            grouped(self.trades),
            self.differing
        )?;
        self.day.as_ref().map_or(Ok(()), |day| write!(f, "\n{day}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_middle_and_the_largest() {
        let times = [30, 10, 20].map(Duration::from_millis);
        assert_eq!(spread_ms(times.into_iter()), Spread { median: 20.0, max: 30.0 });
        assert_eq!(spread_ms(std::iter::empty()), Spread { median: 0.0, max: 0.0 });
    }
}
