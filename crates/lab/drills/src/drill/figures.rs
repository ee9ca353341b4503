//! What a drill gave: the same fields for every fault, those that mean nothing for it null.

use std::sync::atomic::Ordering;

use pares_load::{LabResult, Observed, Spread, Stretch, none_of};
use pares_types::HASH_EVERY;
use serde::Serialize;

use super::FaultKind;
use super::diverge::Trace;
use super::flood::Tally;
use super::record::Agreement;
use super::restart::Start;

/// What the rounds of a drill gave, in nanoseconds unless named otherwise.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    /// Longest gap around each fault.
    pub(super) gaps: Vec<u64>,
    /// Longest gap in the quiet stretch before it.
    pub(super) baseline: Vec<u64>,
    /// How long what was hit took to be in step again, microseconds.
    pub(super) resyncs: Vec<u64>,
    /// Longest gap of those whose gateway was killed.
    pub(super) moved: Vec<u64>,
    /// What wrong venues left behind.
    pub(super) trace: Trace,
    /// What became of the floods' requests.
    pub(super) flood: Tally,
    /// From the fault to the first answer on a new connection.
    pub(super) restarts: Vec<u64>,
    /// From sending a poisonous request to the answer that it is void.
    pub(super) voids: Vec<u64>,
}

/// Longest times between two answers, milliseconds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Gaps {
    /// Around a fault, over all faults; where a gateway or server is killed, to the members of the others.
    max_gap_ms: f64,
    /// The median of the faults' longest gaps.
    median_gap_ms: f64,
    /// In the quiet stretches.
    baseline_max_gap_ms: f64,
    /// The median of the quiet stretches' longest gaps.
    baseline_median_gap_ms: f64,
    /// To members of a gateway or server that was killed; null for other faults.
    moved_max_gap_ms: Option<f64>,
    /// The median of these.
    moved_median_gap_ms: Option<f64>,
}

impl Gaps {
    /// Of nanoseconds: around each fault, in each quiet stretch, to those who were hit by each.
    pub(super) fn of(gaps: Vec<u64>, baseline: Vec<u64>, moved: Vec<u64>) -> Self {
        let [gaps, baseline] = [gaps, baseline].map(|gaps| Spread::of(gaps, 1e6).unwrap_or_default());
        let moved = Spread::of(moved, 1e6);
        Self {
            max_gap_ms: gaps.max,
            median_gap_ms: gaps.median,
            baseline_max_gap_ms: baseline.max,
            baseline_median_gap_ms: baseline.median,
            moved_max_gap_ms: moved.map(|all| all.max),
            moved_median_gap_ms: moved.map(|all| all.median),
        }
    }
}

/// What a drill gave.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    /// What was done.
    pub drill: String,
    /// Faults caused.
    pub count: usize,
    /// Longest times without an answer.
    #[serde(flatten)]
    pub gaps: Gaps,
    /// Requests sent and never answered.
    pub lost: u64,
    /// Answers beyond the first.
    pub duplicated: u64,
    /// Requests the client had to send again.
    pub client_retries: u64,
    /// Requests a gateway did not take in.
    pub rejected: u64,
    /// Requests answered that are missing in a recorder's log at the end.
    pub acknowledged_lost: u64,
    /// Requests that stand in the record at two positions, both of them executed.
    pub executed_twice: u64,
    /// Positions recorded.
    pub records: u64,
    /// Positions that are not the same in every recorder's log at the end.
    pub records_differing: u64,
    /// Median time until what was hit is in step again, milliseconds: a killed venue from the start of its process, one
    /// that was stopped or slow from waking for good, a recorder from being started again until it has what its peers had then,
    /// a gateway until it is up, everything from the kill until all nodes are in step.
    pub resync_ms: Option<f64>,
    /// The longest.
    pub resync_max_ms: Option<f64>,
    /// Median time from killing everything to the first answer after it, milliseconds; null for other faults.
    pub restart_ms: Option<f64>,
    /// The longest.
    pub restart_max_ms: Option<f64>,
    /// Median time from sending a poisonous request to the answer that it is void, milliseconds: so long its shard
    /// stalls; null for other faults.
    pub void_ms: Option<f64>,
    /// The longest.
    pub void_max_ms: Option<f64>,
    /// Median latency in the quiet stretches, microseconds.
    pub quiet_p50_us: f64,
    /// 99th percentile in the quiet stretches.
    pub quiet_p99_us: f64,
    /// Median latency from the fault on.
    pub disturbed_p50_us: f64,
    /// 99th percentile then.
    pub disturbed_p99_us: f64,
    /// Median latency while what was hit comes back; null if it never went.
    pub resync_p50_us: Option<f64>,
    /// 99th percentile then.
    pub resync_p99_us: Option<f64>,
    /// Requests answered in all.
    pub completed: u64,
    /// Requests that the flooding session sent; null for other faults, as are the next three. The other counts are without them.
    pub flood_sent: Option<u64>,
    /// Of these, answered.
    pub flood_answered: Option<u64>,
    /// Of these, not taken in by the gateway.
    pub flood_rejected: Option<u64>,
    /// Times that the gateway closed the flooding connection.
    pub flood_closed: Option<u64>,
    /// Positions from a wrong venue's first wrong result to the one by which it was found, at most; null for other faults.
    pub found_after_positions: Option<u64>,
    /// Positions answered as a wrong venue alone said since its state was last known to be right; `records_differing` is
    /// without them.
    pub disputed: Option<u64>,
    /// What a start of everything after a long record gave, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
}

impl Figures {
    /// The figures of a finished drill.
    pub(super) fn new(fault: FaultKind, samples: Samples, observed: &Observed, agreed: Agreement) -> Self {
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (completed, rejected) = (load(&observed.completed), load(&observed.rejected));
        let us = |phase, quantile| observed.latencies(phase).value_at_quantile(quantile) as f64 / 1e3;
        let resync = |quantile| {
            (!observed.latencies(Stretch::Resync).is_empty()).then(|| us(Stretch::Resync, quantile))
        };
        let restarts = Spread::of(samples.restarts, 1e6);
        let voids = Spread::of(samples.voids, 1e6);
        let flood = (fault == FaultKind::Flood).then_some(samples.flood);
        let resyncs = Spread::of(samples.resyncs, 1e3);
        Self {
            drill: fault.name(),
            count: samples.gaps.len(),
            gaps: Gaps::of(samples.gaps, samples.baseline, samples.moved),
            lost: observed.in_flight(),
            duplicated: load(&observed.duplicated),
            client_retries: load(&observed.retried),
            rejected,
            acknowledged_lost: agreed.acknowledged_lost,
            executed_twice: agreed.executed_twice,
            records: agreed.records,
            records_differing: agreed.differing,
            resync_ms: resyncs.map(|all| all.median),
            resync_max_ms: resyncs.map(|all| all.max),
            restart_ms: restarts.map(|all| all.median),
            restart_max_ms: restarts.map(|all| all.max),
            void_ms: voids.map(|all| all.median),
            void_max_ms: voids.map(|all| all.max),
            quiet_p50_us: us(Stretch::Quiet, 0.5),
            quiet_p99_us: us(Stretch::Quiet, 0.99),
            disturbed_p50_us: us(Stretch::Disturbed, 0.5),
            disturbed_p99_us: us(Stretch::Disturbed, 0.99),
            resync_p50_us: resync(0.5),
            resync_p99_us: resync(0.99),
            completed,
            flood_sent: flood.map(|tally| tally.sent),
            flood_answered: flood.map(|tally| tally.answered),
            flood_rejected: flood.map(|tally| tally.rejected),
            flood_closed: flood.map(|tally| tally.closed),
            found_after_positions: samples.trace.found_after,
            disputed: (fault == FaultKind::Diverge).then_some(samples.trace.disputed),
            start: None,
        }
    }

    /// Whether the promise was kept, by what can be counted. How long anything took is for the reader to judge.
    ///
    /// # Errors
    /// What was broken.
    pub fn verdict(&self) -> LabResult {
        let counts = [
            (self.lost, "lost"),
            (self.duplicated, "answered twice"),
            (self.acknowledged_lost, "answered and not recorded"),
            (self.executed_twice, "executed twice"),
            (self.records_differing, "positions recorded differently"),
            (
                self.found_after_positions.unwrap_or(0) / HASH_EVERY,
                "times 1,024 positions until a wrong venue was found",
            ),
        ];
        none_of(counts.into_iter().chain(self.start.iter().flat_map(Start::broken)))
    }
}
