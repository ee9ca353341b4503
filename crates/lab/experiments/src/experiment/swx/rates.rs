//! Figures 4 and 5: what the source emits, and what traders receive of it, by how quick they are.

use std::time::{Duration, Instant};

use pares_load::LabError;
use pares_os::clock::mono_ns;
use pares_text::{grouped, progress};
use serde::Serialize;

use super::super::Context;
use super::super::report::{Chart, Grid, Look, chart, csv, logarithmic, series};
use super::Charts;
use super::people::{Delays, Read, Source, Trader};
use crate::member::{Desk, LARGE};

/// Traders of each kind: twelve, as in the paper, where six or so are slow.
const TRADERS: u32 = 4;
/// How long a trader takes for a message, microseconds: none; what the paper's do; what the paper's slow workstations come to, 60 a second.
const KINDS: [(&str, u64); 3] = [("at once", 0), ("5 ms", 5_000), ("16.7 ms", 16_667)];
/// For a rate: as fast as the source can.
const FASTEST: u64 = 0;
/// Messages a second.
const LARGE_RATES: [u64; 11] = [10, 20, 40, 60, 80, 100, 200, 500, 1_000, 2_000, FASTEST];
/// Short messages, and how many a second; all traders read them at once.
const SMALL: usize = 64;
const SMALL_RATES: [u64; 5] = [1_000, 10_000, 50_000, 100_000, FASTEST];
const WARM_UP: Duration = Duration::from_millis(700);
const TIME: Duration = Duration::from_secs(3);

/// What came of one rate.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Point {
    bytes: usize,
    /// Messages a second that were asked for; none: as many as can be.
    target: Option<u64>,
    emitted: f64,
    /// Messages a second that a trader of each kind received.
    received: Vec<f64>,
    /// Of those who read at once.
    delays: Delays,
}

/// Measures all rates.
///
/// # Errors
/// If a system fails.
pub(super) fn run(context: &Context) -> Result<Vec<Point>, LabError> {
    let (large, small) = (context.some(&LARGE_RATES), context.some(&SMALL_RATES));
    let bar = progress::steps("swx: rates", (large.len() + small.len()) as u64);
    let mut found = Vec::new();
    for (bytes, rates, kinds) in [(LARGE, large, &KINDS[..]), (SMALL, small, &KINDS[..1])] {
        for &rate in rates {
            let target = Some(rate).filter(|&rate| rate != FASTEST);
            found.push(measure(context, bytes, target, kinds)?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(found)
}

fn measure(
    context: &Context,
    bytes: usize,
    target: Option<u64>,
    kinds: &[(&str, u64)],
) -> Result<Point, LabError> {
    let (_desk, server) = Desk::running()?;
    let each = TRADERS as usize * KINDS.len() / kinds.len();
    let takes = kinds.iter().flat_map(|&(_, us)| std::iter::repeat_n(Duration::from_micros(us), each));
    let traders = (0..).zip(takes).map(|(index, takes)| Trader::start(server, index, takes));
    let traders = traders.collect::<Result<Vec<_>, _>>()?;
    let source = Source::start(server, target, bytes)?;
    std::thread::sleep(context.time(WARM_UP));
    let counts = || (source.emitted(), traders.iter().map(Trader::received).collect::<Vec<_>>());
    let (begun, from_ns, before) = (Instant::now(), mono_ns(), counts());
    std::thread::sleep(context.time(TIME));
    let (seconds, until_ns, after) = (begun.elapsed().as_secs_f64(), mono_ns(), counts());
    source.finish();
    let reads = traders.into_iter().map(Trader::finish).collect::<Vec<Vec<Read>>>();
    let gained = before.1.chunks(each).zip(after.1.chunks(each));
    let gained = gained.map(|(before, after)| after.iter().sum::<u64>() - before.iter().sum::<u64>());
    let stretch = from_ns..until_ns;
    Ok(Point {
        bytes,
        target,
        emitted: (after.0 - before.0) as f64 / seconds,
        received: gained.map(|messages| messages as f64 / each as f64 / seconds).collect(),
        delays: Delays::within(reads[..each].iter().flatten(), &[stretch]),
    })
}

/// Writes figures 4 and 5: the charts' names, and what they show.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn write(context: &Context, found: &[Point]) -> Result<Charts, LabError> {
    let shows =
        ["Messages a second asked for and emitted", "Messages a second emitted and received by a trader"];
    let rows = found.iter().map(|p| {
        let figures = [p.emitted, p.received[0], p.delays.p50_us, p.delays.p99_us];
        [p.bytes as f64, p.target.unwrap_or(0) as f64].into_iter().chain(figures).collect()
    });
    let data = csv("bytes,asked,emitted,received_at_once,p50_us,p99_us", rows);
    context.write("swx4", &emission(shows[0], found), &data)?;
    let large = found.iter().filter(|point| point.bytes == LARGE);
    let rows = large.map(|p| std::iter::once(p.emitted).chain(p.received.iter().copied()).collect());
    let data = csv("emitted,received_at_once,received_5_ms,received_16_7_ms", rows);
    context.write("swx5", &reception(shows[1], found), &data)?;
    Ok(["swx4", "swx5"].iter().zip(shows).map(|(file, shows)| ((*file).into(), shows.into())).collect())
}

/// Rates at which the paper measured.
fn paper_rates() -> impl Iterator<Item = f64> {
    (1..=10).map(|tens| f64::from(tens) * 10.0)
}

fn emission(title: &str, found: &[Point]) -> Chart {
    let line = |name: &str, bytes| {
        let points = found.iter().filter(|point: &&Point| point.bytes == bytes);
        let asked = |point: &Point| point.target.map_or(point.emitted, |rate| rate as f64);
        series(name, Look::Line, points.map(|point| (asked(point), point.emitted)))
    };
    let lines = vec![
        line("8 KiB, 12 traders of three kinds", LARGE),
        line("64 bytes, 12 traders that read at once", SMALL),
        series("the paper: as asked", Look::Crosses, paper_rates().map(|rate| (rate, rate))),
    ];
    let x = logarithmic("messages a second asked for (the last: as many as can be)");
    chart(title, x, logarithmic("messages a second emitted"), lines)
}

fn reception(title: &str, found: &[Point]) -> Chart {
    let line = |name: String, bytes, kind: usize| {
        let points = found.iter().filter(|point: &&Point| point.bytes == bytes);
        series(name, Look::Line, points.map(|point| (point.emitted, point.received[kind])))
    };
    let kinds = KINDS.iter().enumerate();
    let kinds = kinds.map(|(kind, (name, _))| line(format!("8 KiB, taken {}", takes(name)), LARGE, kind));
    let paper = paper_rates().map(|rate| (rate, rate.min(60.0)));
    let paper = series("the paper: slow traders stall at 60", Look::Crosses, paper);
    let lines = kinds.chain([line("64 bytes, taken at once".into(), SMALL, 0), paper]).collect();
    let y = logarithmic("messages a second received by a trader");
    chart(title, logarithmic("messages a second emitted"), y, lines)
}

fn takes(kind: &str) -> String {
    if kind == KINDS[0].0 { kind.to_owned() } else { format!("in {kind}") }
}

/// Ours beside the paper's.
pub(super) fn table(found: &[Point]) -> Grid {
    let rate = |rate: f64| grouped(rate.round() as u64);
    let kind = |point: &Point, kind: usize| point.received.get(kind).map_or("-".into(), |&of| rate(of));
    let paper = |point: &Point| match point.target {
        Some(..=60) if point.bytes == LARGE => "as asked; all as emitted",
        Some(61..=100) if point.bytes == LARGE => "as asked; fast ones as emitted, slow ones 60",
        _ => "-",
    };
    let delays = |point: &Point| format!("{:.0} / {:.0}", point.delays.p50_us, point.delays.p99_us);
    let asked = |point: &Point| point.target.map_or("as can be, from full queues".into(), grouped);
    Grid::of(
        found,
        &[
            (">bytes", &|point: &Point| grouped(point.bytes as u64 + 4)),
            (">asked for, messages/s", &asked),
            (">emitted", &|point| rate(point.emitted)),
            (">received by who takes each at once", &|point| kind(point, 0)),
            (">in 5 ms", &|point| kind(point, 1)),
            (">in 16.7 ms", &|point| kind(point, 2)),
            (">delay p50 / p99 of the first, us", &delays),
            ("the paper", &|point| paper(point).to_owned()),
        ],
    )
}
