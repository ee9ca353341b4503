//! What is measured, for the clients of each side.

use crate::queue::{MILLISECOND, Nanos};

/// Why a transaction was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It waited for a row whose holder committed.
    Waited,
    /// An update from another site took a row from it.
    Overrun,
    /// It did not pass certification.
    Refused,
}

/// Times of one kind, ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Vec<Nanos>);

impl Times {
    pub(crate) fn add(&mut self, time: Nanos) {
        self.0.push(time);
    }

    fn summary(&self) -> ResponseTime {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = |share: f64| match sorted.len() {
            0 => 0.0,
            length => milliseconds(sorted[((length - 1) as f64 * share) as usize]),
        };
        let sum: u128 = sorted.iter().map(|&time| u128::from(time)).sum();
        let mean_ms = sum as f64 / sorted.len().max(1) as f64 / MILLISECOND as f64;
        ResponseTime { mean_ms, p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1.0) }
    }
}

pub(crate) fn milliseconds(time: Nanos) -> f64 {
    time as f64 / MILLISECOND as f64
}

/// Counts of one side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) committed: u64,
    pub(crate) read: u64,
    pub(crate) rolled_back: u64,
    pub(crate) aborted: [u64; 3],
    /// Payments committed, and aborted.
    pub(crate) payments: [u64; 2],
    /// Attempts after the first, and those of them that were aborted.
    pub(crate) again: u64,
    pub(crate) again_aborted: u64,
    /// Aborts that were reported to a client.
    pub(crate) told: u64,
    pub(crate) wasted: Nanos,
    pub(crate) update: Times,
    pub(crate) whole: Times,
    pub(crate) reading: Times,
}

/// How long something took, virtual milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResponseTime {
    /// Mean.
    pub mean_ms: f64,
    /// Half are below.
    pub p50_ms: f64,
    /// All but one of a hundred are below.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// What the clients of one side saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SideResult {
    /// Transactions ended per minute, all types, aborts not counted.
    pub per_minute: f64,
    /// Update transactions committed.
    pub committed: u64,
    /// Of all attempts at an update transaction, the percentage aborted.
    pub abort_percent: f64,
    /// Of these: having waited for a row whose holder committed; by an update from another site; by certification.
    pub abort_percent_by_cause: [f64; 3],
    /// Of attempts at a Payment, the percentage aborted.
    pub payment_abort_percent: f64,
    /// Of attempts after a transaction's first, the percentage aborted.
    pub second_abort_percent: f64,
    /// Aborts that were reported to clients, in percent of answers to update transactions.
    pub told_percent: f64,
    /// From submission to answer, update transactions that committed.
    pub update: ResponseTime,
    /// The same from the first submission on, over all resubmissions.
    pub whole: ResponseTime,
    /// Read-only transactions.
    pub reading: ResponseTime,
    /// Processor time of aborted attempts, in percent of what there is.
    pub wasted_percent: f64,
    /// Processors busy, percent.
    pub processor_percent: f64,
    /// Bytes that left over the long link, per second.
    pub link_bytes_per_second: f64,
    /// The link, from this side, busy, percent.
    pub link_percent: f64,
    /// Messages that did, per committed update transaction of both sides.
    pub link_messages_per_commit: f64,
}

impl Counts {
    pub(crate) fn attempts(&self) -> u64 {
        self.committed + self.aborted.iter().sum::<u64>()
    }

    /// The side's figures over `seconds`, but for those of processors and link.
    pub(crate) fn side(&self, seconds: f64, processor_nanos: f64) -> SideResult {
        let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
        let aborted: u64 = self.aborted.iter().sum();
        SideResult {
            per_minute: (self.committed + self.read + self.rolled_back) as f64 * 60.0 / seconds,
            committed: self.committed,
            abort_percent: percent(aborted, self.attempts()),
            abort_percent_by_cause: self.aborted.map(|count| percent(count, self.attempts())),
            payment_abort_percent: percent(self.payments[1], self.payments[0] + self.payments[1]),
            second_abort_percent: percent(self.again_aborted, self.again),
            told_percent: percent(self.told, self.told + self.committed),
            update: self.update.summary(),
            whole: self.whole.summary(),
            reading: self.reading.summary(),
            wasted_percent: 100.0 * self.wasted as f64 / processor_nanos,
            ..SideResult::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_up() {
        let mut times = Times::default();
        (1..=100).for_each(|time| times.add(time * MILLISECOND));
        let ResponseTime { mean_ms, p50_ms, p99_ms, max_ms } = times.summary();
        assert_eq!((mean_ms, p50_ms, p99_ms, max_ms), (50.5, 50.0, 99.0, 100.0));
        assert_eq!(Times::default().summary(), ResponseTime::default());
    }
}
