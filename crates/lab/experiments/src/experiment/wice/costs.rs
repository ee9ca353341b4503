//! The figure with processor times that were measured: those of `pares bench tpcc --costs`, beside the paper's.
//!
//! The paper's times are those of PostgreSQL on a processor of 2.4 GHz, and it does not say what applying takes. Both are measured by the benchmark, of
//! each kind of transaction, on sites that do all that a site does: certification, two logs, TLS and the store are in it.

use std::path::Path;

use pares_load::LabError;
use pares_text::grouped;
use pares_tpcc::{Kind, MeasuredCosts, Protocol, RunResult, Setting};

use super::figure::{CLIENTS, figures};
use super::{Scope, both};
use crate::experiment::Context;
use crate::experiment::report::{Grid, Report};

/// Those between which costs change something.
const SHOWN: [Protocol; 3] = [Protocol::DbsmCluster, Protocol::Dbsm, Protocol::Wice];
/// Beyond the paper's range: where a processor that is faster may be exhausted.
const MORE_CLIENTS: [u32; 2] = [12_000, 24_000];
/// The paper's means, ms, in the order of [`Kind::ALL`].
const PAPER_MS: [f64; 5] = [11.64, 2.26, 143.70, 1.66, 2.09];

/// One number of clients and one line, with the paper's times and with those that were measured.
struct Beside {
    clients: u32,
    line: Protocol,
    /// Not run where the paper's processors are exhausted anyway.
    paper: Option<RunResult>,
    measured: RunResult,
}

/// Runs the lines with both.
///
/// # Errors
/// If the file has no costs, or a history is not one-copy snapshot isolation.
pub fn run(context: &Context, file: &Path) -> Result<Report, LabError> {
    let bench = read(file)?;
    let costs = costs(&bench).ok_or_else(|| {
        let file = file.display();
        LabError::Usage(format!("{file} has no costs: `pares bench tpcc --costs --json` prints them"))
    })?;
    let clients = || [FEW_AND_SAFE.as_slice(), &CLIENTS[CLIENTS.len() - 1..], &MORE_CLIENTS].concat();
    let scope = Scope::new(context, clients().len() * SHOWN.len() * 2 - MORE_CLIENTS.len() * SHOWN.len());
    let mut all = Vec::new();
    for clients in clients() {
        for line in SHOWN {
            let setting = scope.setting(Setting::new(line, clients, 0), true);
            let paper = (!MORE_CLIENTS.contains(&clients)).then(|| scope.run(&setting)).transpose()?;
            let measured = scope.run(&Setting { costs: Some(costs), ..setting })?;
            all.push(Beside { clients, line, paper, measured });
        }
    }
    scope.bar.finish_and_clear();
    Ok(Report {
        name: "wice-costs",
        title: "Paper 3, figure 5, with measured processor times",
        paper: "Processor times are those of PostgreSQL on one processor of 2.4 GHz (Table 1); what applying takes at the other servers is not given.",
        here: here(&bench),
        charts: Vec::new(),
        grids: vec![times(&costs), grid(&all)],
        figures: json(&all, bench),
    })
}

/// Below the knee.
const FEW_AND_SAFE: [u32; 2] = [super::unknowns::FEW, super::unknowns::SAFE];

fn read(file: &Path) -> Result<serde_json::Value, LabError> {
    let bytes = std::fs::read(file).map_err(LabError::io(format!("reading {}", file.display())))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| LabError::Usage(format!("{} is not JSON: {error}", file.display())))
}

fn costs(bench: &serde_json::Value) -> Option<MeasuredCosts> {
    let of = |kind: Kind, what: &str| {
        let us = bench.get("costs")?.get(kind.name())?.get(what)?.as_f64()?;
        (us >= 0.0).then_some((us * 1e3) as u64)
    };
    let mut costs = MeasuredCosts::default();
    for kind in Kind::ALL {
        costs.execute_ns[kind as usize] = of(kind, "execute_us")?.max(1);
        costs.apply_ns[kind as usize] = of(kind, "apply_us")?;
    }
    Some(costs)
}

fn here(bench: &serde_json::Value) -> String {
    format!(
        "The simulation of the section before, at half its length, with the times that `pares bench tpcc --costs` measured of {} clusters of {} sites over {} at a round trip of {} ms, \
         and with the paper's. A server of the simulation has one processor, and a site uses several; so exhausted means a processor's worth of work here.",
        bench["clusters"],
        bench["sites"],
        bench["store"].as_str().unwrap_or("?"),
        bench["rtt_ms"]
    )
}

fn times(costs: &MeasuredCosts) -> Grid {
    let ms = |ns: u64| format!("{:.2}", ns as f64 / 1e6);
    let paper = |kind: &Kind| PAPER_MS[*kind as usize];
    let assumed = |kind: &Kind| format!("{:.2}", paper(kind) * 0.02);
    Grid::of(
        &Kind::ALL,
        &[
            ("", &|kind| kind.name().to_owned()),
            (">executing, ms: paper, mean", &|kind| format!("{:.2}", paper(kind))),
            (">measured", &|kind| ms(costs.execute_ns[*kind as usize])),
            (">applying, ms: assumed, 2 %", &|kind| {
                if kind.reads_only() { String::new() } else { assumed(kind) }
            }),
            (">measured", &|kind| ms(costs.apply_ns[*kind as usize])),
        ],
    )
}

fn grid<'a>(all: &'a [Beside]) -> Grid {
    let of = |beside: &'a Beside| {
        let paper = beside.paper.as_ref().map(|outcome| (beside, "paper", outcome));
        paper.into_iter().chain([(beside, "measured", &beside.measured)])
    };
    let all: Vec<_> = all.iter().flat_map(of).collect();
    Grid::of(
        &all,
        &[
            (">clients", &|(beside, ..)| grouped(beside.clients.into())),
            ("", &|(beside, ..)| beside.line.name().to_owned()),
            ("processor times", &|(_, which, _)| (*which).to_owned()),
            (">transactions per minute, C_A / C_B", &|(.., outcome)| {
                both(outcome, |side| side.per_minute, 0)
            }),
            (">latency, ms", &|(.., outcome)| both(outcome, |side| side.update.mean_ms, 0)),
            (">aborted, %", &|(.., outcome)| both(outcome, |side| side.abort_percent, 2)),
            (">processors, %", &|(.., outcome)| both(outcome, |side| side.processor_percent, 0)),
            (">link, %", &|(.., outcome)| both(outcome, |side| side.link_percent, 0)),
        ],
    )
}

fn json(all: &[Beside], bench: serde_json::Value) -> serde_json::Value {
    let point = |beside: &Beside| {
        serde_json::json!({
            "clients": beside.clients,
            "line": beside.line.name(),
            "paper": beside.paper.as_ref().map(figures),
            "measured": figures(&beside.measured),
        })
    };
    serde_json::json!({ "bench": bench, "points": all.iter().map(point).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read_from_what_the_benchmark_prints() {
        let kind = serde_json::json!({ "execute_us": 250.5, "apply_us": 80.0 });
        let mut bench = serde_json::json!({ "costs": {} });
        assert_eq!(costs(&bench), None);
        for of in Kind::ALL {
            bench["costs"][of.name()] = kind.clone();
        }
        let found = costs(&bench).unwrap();
        assert_eq!((found.execute_ns, found.apply_ns), ([250_500; 5], [80_000; 5]));
        bench["costs"]["payment"]["apply_us"] = (-1.0).into();
        assert_eq!(costs(&bench), None);
    }
}
