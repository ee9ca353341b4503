//! One measurement of one engine over one stream.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_flow::BookMessage;
use serde::{Deserialize, Serialize};

use crate::{Engine, Output, ReportRing, Sums};

/// How often the clock is read to learn what that costs.
const CLOCK_READINGS: usize = 1_000_000;
/// After so many messages an engine's time is looked at; a slow one takes a few seconds for as many.
const LOOKED_AT: usize = 4_096;

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// The time of the whole stream.
    Throughput,
    /// The time of each message, the reading of the clock after it included.
    Latency,
    /// What happens; not timed.
    Check,
}

/// What was measured: what the task did not ask for is 0 or `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Messages taken: all of them, unless the time was up before.
    pub messages: u64,
    /// How long they took in all.
    pub elapsed_ns: u64,
    /// How long each of them took.
    pub latency: Option<Latency>,
    /// What happened.
    pub tally: Option<Sums>,
}

/// How long messages took, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them took at most this.
    pub p50_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// 999 of 1,000.
    pub p999_ns: u64,
    /// All of them.
    pub max_ns: u64,
}

/// Measures an engine, a new one, over a stream; it is stopped when it has taken longer than `most`.
#[must_use]
pub fn measure<E: Engine>(task: Task, messages: &[BookMessage], most: Duration) -> Measured {
    let mut engine = E::new();
    match task {
        Task::Throughput => throughput(&mut engine, messages, most),
        Task::Latency => latency(&mut engine, messages, most),
        Task::Check => {
            let mut tally = Sums::default();
            let taken = apply(&mut engine, messages, most, &mut tally, &mut || {});
            tally.resting = engine.resting() as u64;
            Measured { messages: taken as u64, tally: Some(tally), ..Measured::default() }
        }
    }
}

/// Applies the messages until there are no more or the time is up; how many that were.
fn apply(
    engine: &mut impl Engine,
    messages: &[BookMessage],
    most: Duration,
    out: &mut impl Output,
    after: &mut impl FnMut(),
) -> usize {
    let start = Instant::now();
    let mut taken = 0;
    for some in messages.chunks(LOOKED_AT) {
        if start.elapsed() >= most {
            break;
        }
        engine.apply(some, out, after);
        taken += some.len();
    }
    taken
}

fn throughput(engine: &mut impl Engine, messages: &[BookMessage], most: Duration) -> Measured {
    let mut ring = ReportRing::new();
    let start = Instant::now();
    let taken = apply(engine, messages, most, &mut ring, &mut || {});
    let elapsed = start.elapsed();
    assert!(black_box(&ring).written() >= taken, "a report for every message");
    let elapsed_ns = u64::try_from(elapsed.as_nanos()).expect("far less than 500 years");
    Measured { messages: taken as u64, elapsed_ns, ..Measured::default() }
}

/// The clock is read once a message, so a message's time includes one reading; the times are put into order later.
fn latency(engine: &mut impl Engine, messages: &[BookMessage], most: Duration) -> Measured {
    let (mut ring, mut stopwatch) = (ReportRing::new(), Stopwatch::new(messages.len()));
    let taken = apply(engine, messages, most, &mut ring, &mut || stopwatch.lap());
    assert!(black_box(&ring).written() >= taken, "a report for every message");
    let histogram = stopwatch.histogram();
    let latency = Latency {
        p50_ns: histogram.value_at_quantile(0.5),
        p99_ns: histogram.value_at_quantile(0.99),
        p999_ns: histogram.value_at_quantile(0.999),
        max_ns: histogram.max(),
    };
    Measured { messages: taken as u64, latency: Some(latency), ..Measured::default() }
}

/// What a reading of the clock alone adds to a message's time, in nanoseconds: the median.
#[must_use]
pub fn clock_ns() -> u64 {
    let mut stopwatch = Stopwatch::new(CLOCK_READINGS);
    for _ in 0..CLOCK_READINGS {
        stopwatch.lap();
    }
    stopwatch.histogram().value_at_quantile(0.5)
}

struct Stopwatch {
    last: Instant,
    laps_ns: Vec<u32>,
}

impl Stopwatch {
    fn new(laps: usize) -> Self {
        // Written once, so that no page is missing while it counts.
        let mut laps_ns = vec![1; laps];
        black_box(&mut laps_ns).clear();
        Self { last: Instant::now(), laps_ns }
    }

    #[inline]
    fn lap(&mut self) {
        let now = Instant::now();
        self.laps_ns.push(u32::try_from((now - self.last).as_nanos()).unwrap_or(u32::MAX));
        self.last = now;
    }

    fn histogram(&self) -> Histogram<u64> {
        let mut histogram =
            Histogram::new_with_bounds(1, u64::from(u32::MAX), 3).expect("constant bounds are valid");
        self.laps_ns.iter().for_each(|&ns| histogram.saturating_record(u64::from(ns)));
        histogram
    }
}

#[cfg(test)]
mod tests {
    use pares_book::NaiveBook;
    use pares_flow::BookScenario;

    use super::*;
    use crate::Books;

    #[test]
    fn an_engine_whose_time_is_up_is_stopped() {
        let messages = BookScenario::ALL[0].messages_of(1, 500);
        for task in [Task::Throughput, Task::Latency, Task::Check] {
            let of = |most| measure::<Books<NaiveBook>>(task, &messages, most).messages;
            assert_eq!(of(Duration::MAX), messages.len() as u64);
            assert_eq!(of(Duration::ZERO), 0, "none before the first look");
        }
    }
}
