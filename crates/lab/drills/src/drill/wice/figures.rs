//! What the drill gives. What MariaDB with Galera gives at the same round trip stands beside it in `docs/reliability.md`.

use std::time::Duration;

use pares_load::{LabError, LabResult, none_of};
use serde::Serialize;

use super::load::Told;

/// What clients of one cluster saw, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Latency {
    pub(super) p50_ms: f64,
    pub(super) p95_ms: f64,
    pub(super) p99_ms: f64,
}

/// A part of the drill in which clients work undisturbed.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Throughput {
    /// Commits a second, all clients together.
    pub(super) commits_per_s: f64,
    /// Of each site's clients, in the order of the part.
    pub(super) shares_per_s: Vec<f64>,
    #[serde(flatten)]
    pub(super) aborts: Aborts,
}

/// What was for nothing, by cluster.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Aborts {
    /// Answers that it was not done, percent of the answers to that cluster's clients.
    pub(super) aborted_percent: [f64; 2],
    /// Executions that lost against others, percent of those at that cluster's sites.
    pub(super) wasted_percent: [f64; 2],
    /// Executions for each commit, all sites.
    pub(super) executions_per_commit: f64,
}

/// One fault.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Fault {
    pub(super) fault: String,
    /// Longest time between two commits, milliseconds, of the clients whose own site was left alone, in the worst of their sites.
    pub(super) max_gap_ms: f64,
    /// The same in the quiet stretch before it.
    pub(super) quiet_max_gap_ms: f64,
    /// From the operator's decision, or the healing of a cut, to the first commit after it, milliseconds.
    pub(super) resumed_ms: Option<f64>,
    /// Until what was hit is in step again, milliseconds.
    pub(super) back_ms: Option<f64>,
}

/// A site that is filled with a state of some size.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct BigState {
    pub(super) state_mib: u64,
    /// From its start on an empty disk until it votes.
    pub(super) filled_ms: f64,
    /// What a commit took the clients of the other sites before, and meanwhile.
    pub(super) quiet_p99_ms: f64,
    pub(super) fill_p99_ms: f64,
    /// The second over the first.
    pub(super) p99_ratio: f64,
}

/// A backup under load, and a database that is restored of it.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Restoring {
    /// Of the copy.
    pub(super) items: u64,
    pub(super) mib: u64,
    pub(super) copied_ms: f64,
    /// Versions that were kept behind it.
    pub(super) versions: u64,
    /// What a commit took all clients before, and while the copy was taken.
    pub(super) quiet_p99_ms: f64,
    pub(super) copy_p99_ms: f64,
    /// From the command until all new sites show it.
    pub(super) restored_ms: f64,
    /// New sites that show anything else than the old ones did at that version.
    pub(super) restored_differing: u64,
}

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figures {
    pub(super) drill: &'static str,
    pub(super) rtt_ms: u64,
    pub(super) durability: &'static str,
    pub(super) seconds_per_part: f64,
    /// The longest gap at the death of one site, and of the quiet stretches before.
    pub(super) max_gap_ms: f64,
    pub(super) baseline_max_gap_ms: f64,
    /// Unconflicted transfers, by cluster.
    pub(super) commit: [Latency; 2],
    /// The same clients' aborts.
    pub(super) unconflicted: Aborts,
    /// Reads of the stable version, by cluster.
    pub(super) read: [Latency; 2],
    /// One hot row: 8 clients of the certifier's cluster on one site, one request open each, as measured of others.
    pub(super) hot_row_one_open: Throughput,
    /// The same with 64 requests open at each.
    pub(super) hot_row: Throughput,
    pub(super) hot_row_commits_per_s: f64,
    /// 4 and 4 on two sites of that cluster.
    pub(super) hot_row_two_sites: Throughput,
    /// 4 and 4 across clusters.
    pub(super) hot_row_two_clusters: Throughput,
    /// Twenty hot rows, 8 clients at every site, one open each.
    pub(super) twenty_rows: Throughput,
    pub(super) faults: Vec<Fault>,
    /// Peers that have no certificate, and were let in.
    pub(super) forged_accepted: u64,
    #[serde(rename = "big-state")]
    pub(super) big_state: BigState,
    pub(super) backup: Restoring,
    /// Requests answered as done.
    pub(super) completed: u64,
    /// Requests sent again for want of an answer.
    pub(super) client_retries: u64,
    /// Answers that it was not done: aborted, behind.
    pub(super) rejected: u64,
    /// Requests that nobody ever answered.
    pub(super) lost: u64,
    /// Requests answered as done, and not found at the end.
    pub(super) acknowledged_lost: u64,
    /// Requests found more than once.
    pub(super) executed_twice: u64,
    /// Requests answered as not done, and found.
    pub(super) denied_and_done: u64,
    /// What the transfers made or destroyed.
    pub(super) money_off: i128,
    /// Sites whose content, or version, is not that of the first.
    pub(super) sites_differing: u64,
}

/// A share of a sorted list, milliseconds.
pub(super) fn latency(mut all: Vec<Duration>) -> Latency {
    all.sort_unstable();
    let at = |percent: usize| {
        let place = (all.len() * percent / 100).min(all.len().saturating_sub(1));
        all.get(place).map_or(0.0, |duration| millis(*duration))
    };
    Latency { p50_ms: at(50), p95_ms: at(95), p99_ms: at(99) }
}

/// What a commit took at most, but for the longest hundredth, of those that ended between two moments; milliseconds.
pub(super) fn p99_ms(told: &[Told], from: Duration, to: Duration) -> f64 {
    let all = told.iter().flat_map(|told| &told.done).filter(|(at, _)| (from..to).contains(at));
    latency(all.map(|done| done.1).collect()).p99_ms
}

/// Milliseconds, to the hundredth.
pub(super) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 100_000.0).round() / 100.0
}

/// A number, to the tenth.
pub(super) fn tenth(number: f64) -> f64 {
    if number.is_finite() { (number * 10.0).round() / 10.0 } else { 0.0 }
}

/// How many of it a second between two moments.
pub(super) fn rate(told: &Told, from: Duration, to: Duration) -> f64 {
    let count = told.done.iter().filter(|(at, _)| (from..to).contains(at)).count();
    tenth(count as f64 / (to - from).as_secs_f64())
}

/// The longest time without a commit between two moments.
pub(super) fn gap(told: &Told, from: Duration, to: Duration) -> Duration {
    let mut last = from;
    let mut longest = Duration::ZERO;
    for &(at, _) in told.done.iter().filter(|(at, _)| (from..to).contains(at)) {
        longest = longest.max(at - last);
        last = at;
    }
    longest.max(to - last)
}

impl Figures {
    /// What follows from the rest.
    pub(super) fn settle(&mut self) {
        let alone = self.faults.iter().filter(|fault| fault.resumed_ms.is_none());
        let longest = |of: fn(&Fault) -> f64| alone.clone().map(of).fold(0.0, f64::max);
        self.max_gap_ms = longest(|fault| fault.max_gap_ms);
        self.baseline_max_gap_ms = longest(|fault| fault.quiet_max_gap_ms);
    }

    /// Whether what is promised was kept. `noticed` is how much longer than before nobody may commit when a site of the other cluster dies.
    ///
    /// # Errors
    /// What was not.
    pub(super) fn verdict(&self, noticed: Duration) -> LabResult {
        let counts = [
            (self.lost, "never answered"),
            (self.acknowledged_lost, "acknowledged and lost"),
            (self.executed_twice, "executed twice"),
            (self.denied_and_done, "denied and done"),
            (self.sites_differing, "sites differing"),
            (self.forged_accepted, "forged peers let in"),
            (self.backup.restored_differing, "restored sites differing"),
            (u64::try_from(self.money_off.unsigned_abs()).unwrap_or(u64::MAX), "money made or destroyed"),
        ];
        none_of(counts)?;
        let noticeable = |fault: &&Fault| {
            fault.fault == "kill-remote-site" && fault.max_gap_ms > fault.quiet_max_gap_ms + millis(noticed)
        };
        if let Some(Fault { max_gap_ms, quiet_max_gap_ms, .. }) = self.faults.iter().find(noticeable) {
            return Err(LabError::Failed(format!(
                "a remote site's death was noticed: {max_gap_ms} ms, quiet {quiet_max_gap_ms}"
            )));
        }
        let never = self.faults.iter().filter(|fault| fault.resumed_ms == Some(f64::INFINITY)).count();
        none_of([(never as u64, "faults with no commit after the decision, or the healing")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_reaches_to_both_ends() {
        let ms = Duration::from_millis;
        let told = Told { done: [5, 20, 21, 90].map(|at| (ms(at), ms(1))).to_vec(), ..Told::default() };
        assert_eq!(gap(&told, ms(0), ms(30)), ms(15));
        assert_eq!(gap(&told, ms(20), ms(89)), ms(68));
        assert_eq!(gap(&told, ms(30), ms(60)), ms(30));
        assert!((rate(&told, ms(0), ms(100)) - 40.0).abs() < 1e-9);
    }

    #[test]
    fn shares_of_latencies_are_those_of_the_sorted() {
        let Latency { p50_ms, p99_ms, .. } = latency((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!((p50_ms, p99_ms), (51.0, 100.0));
        assert_eq!(latency(Vec::new()).p50_ms.to_bits(), 0);
    }
}
