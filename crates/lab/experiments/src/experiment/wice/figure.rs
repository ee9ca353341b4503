//! Figure 5: throughput, latency and abort rate of each cluster, by number of clients.

use pares_load::LabError;
use pares_text::grouped;
use pares_tpcc::{Protocol, RunResult, Setting, SideResult};
use serde::Serialize;

use super::{Scope, both};
use crate::experiment::Context;
use crate::experiment::report::{Grid, Look, chart, csv, linear, series};
use pares_chart::{Axis, Scale};

/// The paper's range.
pub(super) const CLIENTS: [u32; 6] = [60, 500, 1_000, 2_000, 4_000, 6_000];
pub(super) const RUNS: usize = CLIENTS.len() * Protocol::ALL.len();

/// All lines at one number of clients.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) clients: u32,
    outcomes: Vec<RunResult>,
}

impl Point {
    /// Runs all lines as they are set.
    pub(super) fn run(
        scope: &Scope,
        clients: u32,
        setting: impl Fn(Protocol) -> Setting,
    ) -> Result<Self, LabError> {
        let outcomes =
            Protocol::ALL.into_iter().map(|line| scope.run(&setting(line))).collect::<Result<_, _>>()?;
        Ok(Self { clients, outcomes })
    }

    pub(super) fn of(&self, line: Protocol) -> &RunResult {
        &self.outcomes[line as usize]
    }
}

impl Serialize for Point {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serde_json::Map::new();
        fields.insert("clients".into(), self.clients.into());
        for line in Protocol::ALL {
            fields.insert(line.name().into(), figures(self.of(line)));
        }
        fields.serialize(serializer)
    }
}

/// An outcome for programs.
pub(super) fn figures(outcome: &RunResult) -> serde_json::Value {
    let side = |side: &SideResult| {
        serde_json::json!({
            "per_minute": side.per_minute,
            "latency_mean_ms": side.update.mean_ms,
            "latency_p50_ms": side.update.p50_ms,
            "latency_p99_ms": side.update.p99_ms,
            "latency_with_resubmissions_mean_ms": side.whole.mean_ms,
            "reading_mean_ms": side.reading.mean_ms,
            "abort_percent": side.abort_percent,
            "aborts_waited_overrun_refused_percent": side.abort_percent_by_cause,
            "processor_percent": side.processor_percent,
            "link_percent": side.link_percent,
            "link_messages_per_commit": side.link_messages_per_commit,
        })
    };
    serde_json::json!({
        "C_A": side(&outcome.sides[0]),
        "C_B": side(&outcome.sides[1]),
        "versions": outcome.versions,
        "digest": format!("{:016x}", outcome.digest),
    })
}

pub(super) fn run(scope: &Scope) -> Result<Vec<Point>, LabError> {
    let point =
        |clients| Point::run(scope, clients, |line| scope.setting(Setting::new(line, clients, 0), false));
    CLIENTS.into_iter().map(point).collect()
}

/// What one of the six charts shows.
struct Plot {
    letter: char,
    side: usize,
    what: &'static str,
    label: &'static str,
    scale: Scale,
    value: fn(&SideResult) -> f64,
}

const THROUGHPUT: (&str, &str, Scale, fn(&SideResult) -> f64) =
    ("throughput", "transactions per minute", Scale::Linear, |side| side.per_minute);
const LATENCY: (&str, &str, Scale, fn(&SideResult) -> f64) =
    ("latency", "mean latency, ms", Scale::Log, |side| side.update.mean_ms);
const ABORTS: (&str, &str, Scale, fn(&SideResult) -> f64) =
    ("abort rate", "aborted, percent", Scale::Linear, |side| side.abort_percent);

fn plots() -> impl Iterator<Item = Plot> {
    let of_both = [THROUGHPUT, LATENCY, ABORTS].into_iter().flat_map(|kind| [(kind, 0), (kind, 1)]);
    of_both.zip('a'..).map(|(((what, label, scale, value), side), letter)| Plot {
        letter,
        side,
        what,
        label,
        scale,
        value,
    })
}

/// Writes charts and data; gives their files and what they show.
pub(super) fn write(context: &Context, points: &[Point]) -> Result<Vec<(String, String)>, LabError> {
    let mut charts = Vec::new();
    for Plot { letter, side, what, label, scale, value } in plots() {
        let cluster = ["C_A", "C_B"][side];
        let value = |point: &Point, line: Protocol| value(&point.of(line).sides[side]);
        let lines = Protocol::ALL.into_iter().map(|line| {
            let points = points.iter().map(|point| (f64::from(point.clients), value(point, line)));
            series(line.name(), Look::Line, points)
        });
        let title = format!("{letter}) {what}, clients of {cluster}");
        let x = linear("clients of both clusters");
        let chart = chart(title.clone(), x, Axis { label, scale }, lines.collect());
        let row = |point: &Point| {
            let values = Protocol::ALL.into_iter().map(|line| value(point, line));
            std::iter::once(f64::from(point.clients)).chain(values).collect()
        };
        let file = format!("wice5{letter}");
        let titles = "clients,dbsm_cluster,dbsm,dbsm_sequencer,wice";
        context.write(&file, &chart, &csv(titles, points.iter().map(row)))?;
        charts.push((file, title));
    }
    Ok(charts)
}

/// The figure as a table: C_A / C_B.
pub(super) fn grid<'a>(points: &'a [Point]) -> Grid {
    let lines = |point: &'a Point| Protocol::ALL.map(|line| (point.clients, line, point.of(line)));
    let all: Vec<_> = points.iter().flat_map(lines).collect();
    Grid::of(
        &all,
        &[
            (">clients", &|(clients, ..)| grouped((*clients).into())),
            ("", &|(_, line, _)| line.name().to_owned()),
            (">transactions per minute, C_A / C_B", &|(.., outcome)| {
                both(outcome, |side| side.per_minute, 0)
            }),
            (">latency, ms", &|(.., outcome)| both(outcome, |side| side.update.mean_ms, 0)),
            (">p99", &|(.., outcome)| both(outcome, |side| side.update.p99_ms, 0)),
            (">with resubmissions", &|(.., outcome)| both(outcome, |side| side.whole.mean_ms, 0)),
            (">read-only", &|(.., outcome)| both(outcome, |side| side.reading.mean_ms, 0)),
            (">aborted, %", &|(.., outcome)| both(outcome, |side| side.abort_percent, 2)),
            (">processors, %", &|(.., outcome)| both(outcome, |side| side.processor_percent, 0)),
            (">link, %", &|(.., outcome)| both(outcome, |side| side.link_percent, 0)),
        ],
    )
}
