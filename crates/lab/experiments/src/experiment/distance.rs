//! Figure 6 and table 1: how far apart the venues are. If the one ahead dies, the other must first make up the distance.

use std::time::{Duration, Instant};

use pares_load::{LabError, Rate};
use pares_text::grouped;
use pares_text::progress;
use pares_types::VenueId;
use serde::Serialize;

use super::Context;
use super::report::{Chart, Grid, Look, Report, Series, chart, csv, linear, series};
use super::stage::{Setting, Stage, latencies, processed};

const RATES: [u64; 3] = [5_000, 9_000, 100_000];

/// How many requests venue 0 is ahead of venue 1, every `interval`.
fn distances(rate: u64, interval: Duration, time: Duration) -> Result<Vec<(f64, i64)>, LabError> {
    let mut stage = Stage::start(&Setting::new(rate, 1))?;
    let (first, second) = (stage.counters(VenueId(0))?, stage.counters(VenueId(1))?);
    let begun = Instant::now();
    let mut found = Vec::new();
    for n in 1..=(time.as_nanos() / interval.as_nanos()) as u32 {
        stage.pause_until(begun + interval * n + off_beat(n))?;
        // Both move while they are read: the first is read before and after the second.
        let (before, other, after) = (processed(&first), processed(&second), processed(&first));
        let distance = i64::midpoint(before as i64, after as i64) - other as i64;
        found.push((begun.elapsed().as_secs_f64(), distance));
    }
    stage.finish()?;
    Ok(found)
}

/// Up to a millisecond, so that the samples are not in step with the requests: the golden ratio's multiples spread evenly.
fn off_beat(n: u32) -> Duration {
    Duration::from_millis(1).mul_f64((f64::from(n) * 0.618_033_988_75).fract())
}

/// The highest rate at which a pair of venues answers: the speed at which a distance is made up, as the paper has it.
fn highest_rate(context: &Context) -> Result<f64, LabError> {
    let setting = Setting { rate: Rate::Max, ..Setting::new(1, 1) };
    Ok(latencies(&setting, context.time(Duration::from_secs(3)))?.0.throughput)
}

/// What the samples at one rate say.
#[derive(Clone, Debug, Serialize)]
struct Summary {
    rate: u64,
    samples: usize,
    first_ahead: usize,
    second_ahead: usize,
    max_gap: u64,
    mean_gap: f64,
    max_delay_ms: f64,
    mean_delay_ms: f64,
}

impl Summary {
    fn of(rate: u64, found: &[(f64, i64)], highest_rate: f64) -> Self {
        let max_gap = found.iter().map(|(_, distance)| distance.unsigned_abs()).max().unwrap_or(0);
        let sum: u64 = found.iter().map(|(_, distance)| distance.unsigned_abs()).sum();
        let mean_gap = sum as f64 / found.len().max(1) as f64;
        Self {
            rate,
            samples: found.len(),
            first_ahead: found.iter().filter(|(_, distance)| *distance > 0).count(),
            second_ahead: found.iter().filter(|(_, distance)| *distance < 0).count(),
            max_gap,
            mean_gap,
            max_delay_ms: max_gap as f64 / highest_rate * 1e3,
            mean_delay_ms: mean_gap / highest_rate * 1e3,
        }
    }
}

/// Figure 6.
///
/// # Errors
/// If a system fails.
pub fn over_time(context: &Context) -> Result<Report, LabError> {
    const INTERVAL: Duration = Duration::from_millis(250);
    let highest_rate = highest_rate(context)?;
    let (mut summaries, mut charts) = (Vec::new(), Vec::new());
    for (rate, letter) in progress::over("fig6", RATES.into_iter().zip(["a", "b", "c"])) {
        let found = distances(rate, INTERVAL, context.time(Duration::from_secs(15)))?;
        let name = format!("fig6{letter}");
        let rows = found.iter().map(|&(seconds, distance)| vec![seconds, distance as f64]);
        context.write(&name, &bars(rate, &found), &csv("seconds,venue_0_ahead", rows))?;
        charts.push((name, format!("distance between the venues at {} requests per second", grouped(rate))));
        summaries.push(Summary::of(rate, &found, highest_rate));
    }
    let paper = |summary: &Summary| if summary.rate == 9_000 { "largest 21, 2.3 ms" } else { "-" };
    Ok(Report {
        name: "fig6",
        title: "Figure 6: distance between the venues",
        paper: "The difference of the venues' positions, every 5 s for about two minutes, results stored: the venues take turns \
                at leading; at 9,000 per second the largest distance is about 21 requests, 2.3 ms to make up.",
        here: format!(
            "The same every 250 ms, one symbol, looked at from the same cores; made up at the highest rate measured in the same run, {} per second.",
            grouped(highest_rate as u64)
        ),
        charts,
        grids: vec![table(&summaries, paper)],
        figures: serde_json::json!({ "highest_rate": highest_rate as u64, "rates": summaries }),
    })
}

fn bars(rate: u64, found: &[(f64, i64)]) -> Chart {
    let points = found.iter().map(|&(seconds, distance)| (seconds, distance as f64));
    let look = Look::Bars { width: 0.16, shift: -0.08 };
    let bars = series("venue 0 ahead (above), venue 1 ahead (below)", look, points);
    let title = format!("Distance between the venues, {} requests per second", grouped(rate));
    chart(title, linear("seconds"), linear("requests venue 0 is ahead of venue 1"), vec![bars])
}

/// Table 1.
///
/// # Errors
/// If a system fails.
pub fn extremes(context: &Context) -> Result<Report, LabError> {
    const INTERVAL: Duration = Duration::from_millis(10);
    let highest_rate = highest_rate(context)?;
    let time = context.time(Duration::from_secs_f64(context.minutes * 60.0));
    let (mut summaries, mut lines) = (Vec::new(), Vec::new());
    for rate in progress::over("table1", RATES) {
        let found = distances(rate, INTERVAL, time)?;
        summaries.push(Summary::of(rate, &found, highest_rate));
        let name = format!("{} requests per second", grouped(rate));
        lines.push(series(name, Look::Steps, shares(&found)));
    }
    let rows = (0..lines[0].points.len()).map(|i| {
        std::iter::once(lines[0].points[i].0).chain(lines.iter().map(|line| line.points[i].1)).collect()
    });
    let data = csv("share_percent,gap_5000,gap_9000,gap_100000", rows.collect::<Vec<_>>());
    context.write("table1", &spread(lines), &data)?;
    let paper = |summary: &Summary| match summary.rate {
        5_000 => "57, 6.3 ms; mean 3, 0.3 ms",
        9_000 => "81, 9.0 ms; mean 7, 0.8 ms",
        _ => "-",
    };
    Ok(Report {
        name: "table1",
        title: "Table 1: largest and mean distance between the venues",
        paper: "Over 30 minutes, sampled every 5 s: at 5,000 per second at most 57 requests (6.3 ms to make up), 3 on average; at \
                9,000 at most 81 (9.0 ms), 7 on average. The time to make up is the distance over the highest rate, 9,000.",
        here: format!(
            "{} s at each rate, sampled every 10 ms, one symbol; the highest rate is {} per second.",
            time.as_secs_f64(),
            grouped(highest_rate as u64)
        ),
        charts: vec![("table1".into(), "distance between the venues by share of samples".into())],
        grids: vec![table(&summaries, paper)],
        figures: serde_json::json!({ "highest_rate": highest_rate as u64, "rates": summaries }),
    })
}

/// The distance that so many percent of the samples do not exceed.
fn shares(found: &[(f64, i64)]) -> Vec<(f64, f64)> {
    let mut gaps: Vec<u64> = found.iter().map(|(_, distance)| distance.unsigned_abs()).collect();
    gaps.sort_unstable();
    let at = |percent: usize| gaps.get((gaps.len().max(1) - 1) * percent / 100).copied().unwrap_or(0);
    (0..=100).map(|percent| (percent as f64, at(percent) as f64)).collect()
}

fn spread(lines: Vec<Series>) -> Chart {
    let (x, y) = (linear("percent of samples that do not exceed"), linear("requests between the venues"));
    chart("Distance between the venues", x, y, lines)
}

fn table(summaries: &[Summary], paper: impl Fn(&Summary) -> &'static str) -> Grid {
    Grid::of(
        summaries,
        &[
            (">requests/s", &|at: &Summary| at.rate.to_string()),
            (">samples", &|at| at.samples.to_string()),
            (">venue 0 / 1 ahead", &|at| format!("{} / {}", at.first_ahead, at.second_ahead)),
            (">largest distance, requests", &|at| at.max_gap.to_string()),
            (">to make up, ms", &|at| format!("{:.3}", at.max_delay_ms)),
            (">mean distance", &|at| format!("{:.2}", at.mean_gap)),
            (">to make up, ms", &|at| format!("{:.4}", at.mean_delay_ms)),
            (">the paper", &|at| paper(at).to_owned()),
        ],
    )
}
