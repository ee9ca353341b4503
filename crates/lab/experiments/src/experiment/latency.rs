//! Figures 7, 8 and 10: latency by throughput, with the sequencer on and off, with one gateway and with two.
//!
//! On and off alternate at each rate, so that a noisy stretch of the machine hits both; each figure is the median of the
//! rounds.

use std::time::Duration;

use pares_config::DurabilitySetting::{self, Disk, Os};
use pares_load::LabError;
use pares_text::progress;
use serde::Serialize;

use super::Context;
use super::report::{Chart, Grid, Look, Report, chart, count, csv, logarithmic, series};
use super::stage::{Sample, Setting, latencies};

/// The paper ends at 9,000.
const RATES: [u64; 6] = [1_000, 3_000, 5_000, 9_000, 30_000, 100_000];
const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(1);

/// One rate.
#[derive(Clone, Debug, Serialize)]
struct Point {
    symbols: u32,
    durability: DurabilitySetting,
    rate: u64,
    on: Sample,
    /// With the sequencer off, where that is legal.
    off: Option<Sample>,
    paper_on_ms: Option<f64>,
}

/// What the paper's text says of the mean latency at 9,000 requests per second.
fn paper_mean_ms(symbols: u32, gateways: u16, durability: DurabilitySetting, rate: u64) -> Option<f64> {
    match (rate, symbols, gateways, durability) {
        (9_000, 1, 1, Os) => Some(2.77),
        (9_000, 1, 1, Disk) => Some(3.73),
        (9_000, 10, 1, Os) => Some(5.36),
        (9_000, 10, 1, Disk) => Some(6.44),
        (9_000, 1, 2, Os) => Some(3.51),
        (9_000, 1, 2, Disk) => Some(5.01),
        (9_000, 10, 2, Os) => Some(11.02),
        (9_000, 10, 2, Disk) => Some(13.02),
        _ => None,
    }
}

fn measure(
    context: &Context,
    name: &'static str,
    symbols: u32,
    gateways: u16,
    durability: DurabilitySetting,
) -> Result<Vec<Point>, LabError> {
    let rates = context.some(&RATES);
    let mut points = Vec::new();
    for &rate in progress::over(name, rates) {
        let setting = Setting { gateways, durability, ..Setting::new(rate, symbols) };
        let (mut on, mut off) = (Vec::new(), Vec::new());
        for _ in 0..context.rounds(ROUNDS) {
            on.push(latencies(&setting, context.time(TIME))?.0);
            if gateways == 1 {
                off.push(latencies(&Setting { sequencer: false, ..setting }, context.time(TIME))?.0);
            }
        }
        points.push(Point {
            symbols,
            durability,
            rate,
            on: Sample::median(&on),
            off: (!off.is_empty()).then(|| Sample::median(&off)),
            paper_on_ms: paper_mean_ms(symbols, gateways, durability, rate),
        });
    }
    Ok(points)
}

/// Figures 7 and 8: (a) with `os`, (b) with `disk`.
///
/// # Errors
/// If a system fails.
pub fn sequencer(context: &Context, name: &'static str, symbols: u32) -> Result<Report, LabError> {
    let (mut points, mut charts) = (Vec::new(), Vec::new());
    for (letter, durability) in [("a", Os), ("b", Disk)] {
        let found = measure(context, name, symbols, 1, durability)?;
        let title = format!("Latency, {}, {}", count(symbols, "symbol"), word(durability));
        charts.push(write(context, format!("{name}{letter}"), title, &found)?);
        points.extend(found);
    }
    let (title, paper) = match symbols {
        1 => (
            "Figure 7: latency by throughput, one symbol",
            "(a) without and (b) with results stored. Total ordering adds at most 1.35 ms (9,000 per second, stored). Mean \
             latency at 9,000 per second: 2.77 ms and 3.73 ms; 9,000 is the highest rate.",
        ),
        _ => (
            "Figure 8: latency by throughput, ten symbols",
            "(a) without and (b) with results stored. Total ordering adds fewer than 0.1 ms, but 1.23 ms and 1.38 ms at 9,000 per \
             second, where the mean latency is 5.36 ms and 6.44 ms.",
        ),
    };
    Ok(report(name, title, paper, charts, &points))
}

/// Figure 10: (a) one symbol, (b) ten, each with `os` and with `disk`.
///
/// # Errors
/// If a system fails.
pub fn two_gateways(context: &Context) -> Result<Report, LabError> {
    let (mut points, mut charts) = (Vec::new(), Vec::new());
    for (letter, symbols) in [("a", 1), ("b", 10)] {
        for durability in [Os, Disk] {
            let found = measure(context, "fig10", symbols, 2, durability)?;
            let title =
                format!("Latency with two gateways, {}, {}", count(symbols, "symbol"), word(durability));
            let file = format!("fig10{letter}-{}", word(durability));
            charts.push(write(context, file, title, &found)?);
            points.extend(found);
        }
    }
    let paper = "With two gateways the sequencer is needed. Mean latency at 9,000 per second, not stored and stored: (a) one \
                 symbol 3.51 ms and 5.01 ms; (b) ten symbols 11.02 ms and 13.02 ms. Below that much as with one gateway.";
    Ok(report("fig10", "Figure 10: latency by throughput, two gateways", paper, charts, &points))
}

fn word(durability: DurabilitySetting) -> String {
    pares_text::name(&durability)
}

fn write(
    context: &Context,
    file: String,
    title: String,
    points: &[Point],
) -> Result<(String, String), LabError> {
    let off = |point: &Point| point.off.unwrap_or_default();
    let rows = points.iter().map(|p| {
        let samples =
            [p.on, off(p)].into_iter().flat_map(|s| [s.throughput, s.mean_us, s.p50_us, s.p99_us, s.max_us]);
        std::iter::once(p.rate as f64).chain(samples).collect()
    });
    let titles = "rate,on_throughput,on_mean_us,on_p50_us,on_p99_us,on_max_us,\
                  off_throughput,off_mean_us,off_p50_us,off_p99_us,off_max_us";
    let shows = title.clone();
    context.write(&file, &picture(title, points), &csv(titles, rows))?;
    Ok((file, shows))
}

fn picture(title: String, points: &[Point]) -> Chart {
    let line = |name: &str, us: &dyn Fn(&Point) -> Option<f64>, look| {
        let found = points.iter().filter_map(|point| Some((point.rate as f64, us(point)?)));
        series(name, look, found)
    };
    let mut lines = vec![
        line("sequencer on, mean", &|p| Some(p.on.mean_us), Look::Line),
        line("off, mean", &|p| Some(p.off?.mean_us), Look::Line),
        line("on, median", &|p| Some(p.on.p50_us), Look::Line),
        line("off, median", &|p| Some(p.off?.p50_us), Look::Line),
        line("the paper, mean", &|p| Some(p.paper_on_ms? * 1e3), Look::Crosses),
    ];
    lines.retain(|line| !line.points.is_empty());
    chart(title, logarithmic("requests per second"), logarithmic("latency, microseconds"), lines)
}

fn report(
    name: &'static str,
    title: &'static str,
    paper: &'static str,
    charts: Vec<(String, String)>,
    points: &[Point],
) -> Report {
    let us = |value: f64| format!("{value:.1}");
    let off =
        |point: &Point, figure: fn(&Sample) -> f64| point.off.map_or("-".into(), |off| us(figure(&off)));
    let difference = |point: &Point, figure: fn(&Sample) -> f64| {
        point.off.map_or("-".into(), |off| format!("{:+.1}", figure(&point.on) - figure(&off)))
    };
    let grid = Grid::of(
        points,
        &[
            (">symbols", &|point: &Point| point.symbols.to_string()),
            ("durability", &|point| word(point.durability)),
            (">requests/s", &|point| point.rate.to_string()),
            (">on: mean, us", &|point| us(point.on.mean_us)),
            (">off: mean", &|point| off(point, |s| s.mean_us)),
            (">difference", &|point| difference(point, |s| s.mean_us)),
            (">on: p50", &|point| us(point.on.p50_us)),
            (">off: p50", &|point| off(point, |s| s.p50_us)),
            (">difference", &|point| difference(point, |s| s.p50_us)),
            (">on: p99", &|point| us(point.on.p99_us)),
            (">off: p99", &|point| off(point, |s| s.p99_us)),
            (">the paper, on: mean, us", &|point| {
                point.paper_on_ms.map_or("-".into(), |ms| format!("{:.0}", ms * 1e3))
            }),
        ],
    );
    let what = "latency from the scheduled send time at the client, over TCP, to the answer there (the paper: from gateway to gateway); \
                `os` stands for not stored, `disk` for stored. Medians of the rounds, on and off in turns.";
    Report {
        name,
        title,
        paper,
        here: what.into(),
        charts,
        grids: vec![grid],
        figures: serde_json::json!(points),
    }
}
