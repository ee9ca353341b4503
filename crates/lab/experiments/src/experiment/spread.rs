//! Figure 9: how latencies are distributed at 1,000 requests per second.

use std::time::Duration;

use hdrhistogram::Histogram;
use pares_config::DurabilitySetting::{Disk, Os};
use pares_load::LabError;
use pares_text::progress;
use serde::Serialize;

use super::Context;
use super::report::{Grid, Look, Report, chart, count, csv, linear, series};
use super::stage::{Setting, latencies};

const RATE: u64 = 1_000;
/// `os` and `disk` take turns.
const ROUNDS: usize = 2;
const TIME: Duration = Duration::from_secs(5);
/// The paper has 100 us.
const BUCKET_US: u64 = 10;

/// One distribution.
#[derive(Clone, Debug, Serialize)]
struct Spread {
    symbols: u32,
    durability: &'static str,
    requests: u64,
    mean_us: f64,
    p50_us: f64,
    p90_us: f64,
    p99_us: f64,
    p999_us: f64,
    /// The fullest bucket of 10 us begins here.
    mode_us: u64,
}

/// Runs the experiment.
///
/// # Errors
/// If a system fails.
pub fn run(context: &Context) -> Result<Report, LabError> {
    let (mut spreads, mut charts) = (Vec::new(), Vec::new());
    for (file, symbols) in progress::over("fig9", [("fig9a", 1), ("fig9b", 10)]) {
        let (mut os, mut disk) = (empty(), empty());
        for _ in 0..context.rounds(ROUNDS) {
            for (durability, sum) in [(Os, &mut os), (Disk, &mut disk)] {
                let setting = Setting { durability, ..Setting::new(RATE, symbols) };
                sum.add(latencies(&setting, context.time(TIME))?.1)
                    .expect("a histogram that grows takes any value");
            }
        }
        let shows = format!("Latencies at 1,000 requests per second, {}", count(symbols, "symbol"));
        write(context, file, &shows, &os, &disk)?;
        charts.push((file.to_owned(), shows));
        spreads.push(summary(symbols, "os", &os));
        spreads.push(summary(symbols, "disk", &disk));
    }
    Ok(report(charts, &spreads))
}

fn empty() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are legal")
}

/// Percent of the requests in each bucket of 10 us, up to where one in a hundred is left.
fn buckets(of: &Histogram<u64>, up_to_ns: u64) -> Vec<f64> {
    let buckets = of.iter_linear(BUCKET_US * 1_000).map(|bucket| bucket.count_since_last_iteration());
    let count = (up_to_ns / (BUCKET_US * 1_000)) as usize + 1;
    let percent = buckets.map(|requests| requests as f64 * 100.0 / of.len().max(1) as f64);
    let mut percent: Vec<f64> = percent.take(count).collect();
    percent.resize(count, 0.0);
    percent
}

fn summary(symbols: u32, durability: &'static str, of: &Histogram<u64>) -> Spread {
    let us = |quantile| of.value_at_quantile(quantile) as f64 / 1e3;
    let fullest = buckets(of, of.max()).into_iter().enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    Spread {
        symbols,
        durability,
        requests: of.len(),
        mean_us: of.mean() / 1e3,
        p50_us: us(0.5),
        p90_us: us(0.9),
        p99_us: us(0.99),
        p999_us: us(0.999),
        mode_us: fullest.map_or(0, |(bucket, _)| bucket as u64 * BUCKET_US),
    }
}

fn write(
    context: &Context,
    file: &str,
    title: &str,
    os: &Histogram<u64>,
    disk: &Histogram<u64>,
) -> Result<(), LabError> {
    let up_to_ns = os.value_at_quantile(0.98).max(disk.value_at_quantile(0.98));
    let (os, disk) = (buckets(os, up_to_ns), buckets(disk, up_to_ns));
    let at = |bucket: usize| (bucket as u64 * BUCKET_US) as f64;
    let line = |name: &str, percent: &[f64]| {
        let points = percent.iter().enumerate().map(|(bucket, &percent)| (at(bucket), percent));
        series(name, Look::Steps, points)
    };
    let x = linear("latency, microseconds (up to the 98th percentile)");
    let y = linear("percent of requests, per 10 us");
    let chart = chart(title, x, y, vec![line("os", &os), line("disk", &disk)]);
    let rows = os.iter().zip(&disk).enumerate().map(|(bucket, (os, disk))| vec![at(bucket), *os, *disk]);
    context.write(file, &chart, &csv("from_us,os_percent,disk_percent", rows))
}

fn report(charts: Vec<(String, String)>, spreads: &[Spread]) -> Report {
    let us = |us: f64| format!("{us:.0}");
    let grid = Grid::of(
        spreads,
        &[
            (">symbols", &|of: &Spread| of.symbols.to_string()),
            ("durability", &|of| of.durability.to_owned()),
            (">requests", &|of| of.requests.to_string()),
            (">fullest bucket, us", &|of| of.mode_us.to_string()),
            (">mean, us", &|of| us(of.mean_us)),
            (">p50", &|of| us(of.p50_us)),
            (">p90", &|of| us(of.p90_us)),
            (">p99", &|of| us(of.p99_us)),
            (">p99.9", &|of| us(of.p999_us)),
            (">the paper, us", &|_| "mostly 1,000 and 1,100, mean 1,250 to 1,280".to_owned()),
        ],
    );
    Report {
        name: "fig9",
        title: "Figure 9: distribution of latencies at 1,000 requests per second",
        paper: "20,000 requests at 1,000 per second, (a) one symbol and (b) ten, with and without results stored: most are at 1.0 \
                and 1.1 ms, the mean is between 1.25 and 1.28 ms.",
        here: "The same with `os` and `disk`, in buckets of 10 us instead of 100.".into(),
        charts,
        grids: vec![grid],
        figures: serde_json::json!(spreads),
    }
}
