//! R1 to R5: what the paper's text says of its figure, looked for in ours.

use pares_tpcc::{Protocol, RunResult, SideResult};

use super::Verdict;
use super::figure::Point;
use super::unknowns::{FEW, SAFE, Unknown, Varied};

/// Judges the figure, and where the paper's words may mean another one, that.
pub(super) fn judge(points: &[Point], varied: &[Varied]) -> Vec<Verdict> {
    let at = |clients: u32| points.iter().find(|point| point.clients == clients).expect("in the range");
    let with = |unknown: Unknown, clients: u32| {
        let matches = |v: &&Varied| v.unknown == unknown && v.point.clients == clients;
        &varied.iter().find(matches).expect("it is run").point
    };
    let (few, safe) = (at(FEW), at(SAFE));
    let mut verdicts = vec![knee(few, safe, at(6_000)), far_is_worse(safe), primary_is_near(safe)];
    verdicts.push(rises("R2c", "as in the figure", few.of(Protocol::Dbsm), safe.of(Protocol::Dbsm)));
    let (some, most) = (with(Unknown::FixedWarehouses, FEW), with(Unknown::FixedWarehouses, SAFE));
    verdicts.push(rises("R2d", "600 warehouses", some.of(Protocol::Dbsm), most.of(Protocol::Dbsm)));
    verdicts.push(flat(points));
    for (name, line) in [("R4a", Protocol::Dbsm), ("R4b", Protocol::DbsmSequencer)] {
        verdicts.push(between(
            name,
            line.name(),
            [Protocol::DbsmCluster, Protocol::Wice, line].map(|line| safe.of(line)),
        ));
    }
    let huge = with(Unknown::HugeWriteSets, SAFE);
    let outcomes = [Protocol::DbsmCluster, Protocol::Wice, Protocol::Dbsm].map(|line| huge.of(line));
    verdicts.push(between("R4c", "DBSM, write sets of 12 KiB", outcomes));
    for (name, line) in [("R5a", Protocol::Dbsm), ("R5b", Protocol::DbsmSequencer)] {
        verdicts.push(ratio(name, line, points));
    }
    verdicts
}

fn per_minute(outcome: &RunResult) -> f64 {
    outcome.sides.iter().map(|side| side.per_minute).sum()
}

fn least_and_most(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(least, most), value| (least.min(value), most.max(value)))
}

/// Two standard errors of an abort rate, in points.
fn noise(side: &SideResult) -> f64 {
    let share = side.abort_percent / 100.0;
    let attempts = side.committed as f64 / (1.0 - share).max(0.01);
    200.0 * (share * (1.0 - share) / attempts.max(1.0)).sqrt()
}

fn knee(few: &Point, safe: &Point, most: &Point) -> Verdict {
    let [few, safe, most] = [few, safe, most].map(|point| point.of(Protocol::DbsmCluster));
    let processors =
        |outcome: &RunResult| least_and_most(outcome.sides.iter().map(|side| side.processor_percent));
    let grows = per_minute(safe) / per_minute(few) / (f64::from(SAFE) / f64::from(FEW));
    let stops = per_minute(most) / per_minute(safe) / 1.5;
    Verdict {
        name: "R1",
        rule: "DBSM CLUSTER: throughput grows with the clients to 4,000 (within 5 %), not to 6,000, where the processors are exhausted".into(),
        found: format!(
            "{:.0}, {:.0}, {:.0} per minute with 1,000, 4,000, 6,000; processors {:.0} % with 4,000, {:.0} % with 6,000",
            per_minute(few),
            per_minute(safe),
            per_minute(most),
            processors(safe).1,
            processors(most).0
        ),
        passed: grows > 0.95 && stops < 0.95 && processors(safe).1 < 95.0 && processors(most).0 > 99.0,
    }
}

fn far_is_worse(safe: &Point) -> Verdict {
    let [near, far] = [Protocol::DbsmCluster, Protocol::Dbsm].map(|line| safe.of(line).sides);
    let worse = |side: usize| {
        far[side].abort_percent > 5.0 * near[side].abort_percent
            && far[side].update.mean_ms > near[side].update.mean_ms + 300.0
    };
    let alike = (far[0].abort_percent / far[1].abort_percent - 1.0).abs() < 0.25;
    Verdict {
        name: "R2a",
        rule: "DBSM over the link, 4,000 clients: aborts (5 times) and latency (300 ms) above DBSM CLUSTER in both clusters, aborts alike in both (25 %)".into(),
        found: format!(
            "aborted {:.2} / {:.2} % against {:.2} / {:.2}; {:.0} / {:.0} ms against {:.0} / {:.0}",
            far[0].abort_percent,
            far[1].abort_percent,
            near[0].abort_percent,
            near[1].abort_percent,
            far[0].update.mean_ms,
            far[1].update.mean_ms,
            near[0].update.mean_ms,
            near[1].update.mean_ms
        ),
        passed: worse(0) && worse(1) && alike,
    }
}

fn primary_is_near(safe: &Point) -> Verdict {
    let (near, wice) = (safe.of(Protocol::DbsmCluster).sides[0], safe.of(Protocol::Wice).sides[0]);
    let allowed = noise(&near) + noise(&wice);
    Verdict {
        name: "R2b",
        rule:
            "WICE, C_A, 4,000 clients: aborts as in DBSM CLUSTER, but for noise (two standard errors of each)"
                .into(),
        found: format!("{:.2} % against {:.2}, noise {allowed:.2}", wice.abort_percent, near.abort_percent),
        passed: wice.abort_percent <= near.abort_percent + allowed,
    }
}

fn rises(name: &'static str, which: &str, few: &RunResult, safe: &RunResult) -> Verdict {
    let aborts = |outcome: &RunResult| outcome.sides.map(|side| side.abort_percent);
    let whole = |outcome: &RunResult| outcome.sides.map(|side| side.whole.mean_ms);
    let ([a1, b1], [a4, b4]) = (aborts(few), aborts(safe));
    let ([la1, lb1], [la4, lb4]) = (whole(few), whole(safe));
    Verdict {
        name,
        rule: format!(
            "DBSM over the link, {which}: aborts rise with the clients in both clusters (twice from 1,000 to 4,000)"
        ),
        found: format!(
            "aborted {a1:.2} / {b1:.2} % with 1,000, {a4:.2} / {b4:.2} with 4,000; {la1:.0} / {lb1:.0} and {la4:.0} / {lb4:.0} ms with resubmissions"
        ),
        passed: a4 > 2.0 * a1 && b4 > 2.0 * b1,
    }
}

fn flat(points: &[Point]) -> Verdict {
    let safe = points.iter().filter(|point| point.clients <= SAFE);
    let ratios = safe.map(|point| {
        let [wice, near] =
            [Protocol::Wice, Protocol::DbsmCluster].map(|line| point.of(line).sides[0].update.mean_ms);
        (wice, wice / (400.0 + near))
    });
    let ratios: Vec<(f64, f64)> = ratios.collect();
    let (least, most) = least_and_most(ratios.iter().map(|(latency, _)| *latency));
    let (low, high) = least_and_most(ratios.iter().map(|(_, ratio)| *ratio));
    Verdict {
        name: "R3",
        rule: "WICE, C_A, to 4,000 clients: latency within 10 % of 400 ms and execution (that of DBSM CLUSTER), and within 10 % of itself".into(),
        found: format!("{least:.0} to {most:.0} ms; {low:.3} to {high:.3} of 400 ms and execution"),
        passed: low > 0.9 && high < 1.1 && most < 1.1 * least,
    }
}

/// Outcomes of DBSM CLUSTER, WICE and DBSM over the link.
fn between(name: &'static str, which: &str, outcomes: [&RunResult; 3]) -> Verdict {
    let [near, wice, far] = outcomes.map(|outcome| outcome.sides[1]);
    let above = wice.abort_percent > near.abort_percent + noise(&near) + noise(&wice);
    let below = wice.abort_percent < far.abort_percent - noise(&far) - noise(&wice);
    Verdict {
        name,
        rule: format!("WICE, C_B, 4,000 clients: aborts between DBSM CLUSTER and {which}, strictly"),
        found: format!(
            "{:.2} % between {:.2} and {:.2}",
            wice.abort_percent, near.abort_percent, far.abort_percent
        ),
        passed: above && below,
    }
}

fn ratio(name: &'static str, line: Protocol, points: &[Point]) -> Verdict {
    let safe = points.iter().filter(|point| point.clients <= SAFE);
    let ratios = safe.flat_map(|point| {
        [0, 1].map(|side| {
            let [far, wice] = [line, Protocol::Wice].map(|line| point.of(line).sides[side].whole.mean_ms);
            far / wice
        })
    });
    let (least, most) = least_and_most(ratios);
    Verdict {
        name,
        rule: format!(
            "\"up to 2 times less latency\" than {}, to 4,000 clients, with resubmissions",
            line.name()
        ),
        found: format!("{least:.2} to {most:.2} times"),
        passed: (1.7..2.4).contains(&most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(abort_percent: f64) -> RunResult {
        let side = SideResult { abort_percent, committed: 10_000, ..SideResult::default() };
        RunResult { sides: [side; 2], ..RunResult::default() }
    }

    fn passes(near: f64, wice: f64, far: f64) -> bool {
        between("R4", "DBSM", [&outcome(near), &outcome(wice), &outcome(far)]).passed
    }

    #[test]
    fn between_is_more_than_noise_away_from_both_ends() {
        assert!(passes(0.5, 8.0, 16.0));
        assert!(!passes(0.5, 8.4, 8.9), "two standard errors of each are more than half a point");
        assert!(!passes(0.5, 0.6, 8.9));
    }

    #[test]
    fn aborts_rise_if_they_do_in_both_clusters() {
        let mut most = outcome(8.0);
        assert!(rises("R2", "", &outcome(1.0), &most).passed);
        most.sides[1].abort_percent = 1.5;
        assert!(!rises("R2", "", &outcome(1.0), &most).passed);
    }
}
