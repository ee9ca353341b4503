//! Figures 4 and 5: how long a venue takes to join while the other trades.
//!
//! Time counts from the start of the process, as in the paper, and ends for a symbol when the venue has executed all that
//! the live one had executed a moment (one look, about 0.1 ms) before.

use std::time::{Duration, Instant};

use pares_load::{LabError, Stretch};
use pares_node::NodeId;
use pares_os::CountersReader;
use pares_text::grouped;
use pares_text::progress;
use pares_types::VenueId;
use rustix::process::Signal;
use serde::Serialize;

use super::Context;
use super::report::{Grid, Look, Report, chart, count, csv, linear, logarithmic, series};
use super::stage::{Setting, Stage, median};

/// Positions between checkpoints: as in the paper.
pub const CHECKPOINT_EVERY: u64 = 1_024;
const LIVE: VenueId = VenueId(0);
const JOINING: VenueId = VenueId(1);
/// How long the venue is away.
const AWAY: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(30);
const JOINS: usize = 5;

/// One join, milliseconds from the start of the process.
struct Join {
    symbols_ms: Vec<f64>,
    total_ms: f64,
    /// By the venue's own clock: since it began to open its files, until it had executed what was recorded then.
    own_ms: f64,
}

/// Several joins under one load.
#[derive(Clone, Debug, Serialize)]
struct Joins {
    rate: u64,
    gateways: u16,
    joins: usize,
    /// Per symbol, the median over the joins.
    symbols_ms: Vec<f64>,
    /// Until the last symbol: median and longest.
    total_ms: f64,
    total_max_ms: f64,
    /// By the venue's own clock, without the start of the process: median.
    own_ms: f64,
    /// Latency at clients while nobody joins, and while one does.
    quiet_p50_us: f64,
    quiet_p99_us: f64,
    joining_p50_us: f64,
    joining_p99_us: f64,
}

fn join(stage: &mut Stage) -> Result<Join, LabError> {
    let (role, live) = (NodeId::Venue(JOINING), stage.counters(LIVE)?);
    let supervisor = &mut stage.system.supervisor;
    supervisor.hold(role, true);
    supervisor.signal(role, Signal::KILL)?;
    stage.pause(AWAY)?;
    let supervisor = &mut stage.system.supervisor;
    // What it counted must not be taken for what its successor counts.
    let _ = std::fs::remove_file(supervisor.layout().counters(&role.to_string()));
    supervisor.hold(role, false);
    stage.load.observed().enter(Stretch::Disturbed);
    let begun = Instant::now();
    stage.system.supervisor.tick();
    let join = watch(stage, &live, begun)?;
    stage.load.observed().enter(Stretch::Quiet);
    Ok(join)
}

fn watch(stage: &mut Stage, live: &CountersReader, begun: Instant) -> Result<Join, LabError> {
    let mut ahead = positions(live);
    let mut symbols_ms = vec![None; ahead.len()];
    while begun.elapsed() < PATIENCE {
        let now_ahead = positions(live);
        let behind = stage.counters(JOINING).as_ref().map(positions).unwrap_or_default();
        let now_ms = begun.elapsed().as_secs_f64() * 1e3;
        for ((done, behind), ahead) in symbols_ms.iter_mut().zip(&behind).zip(&ahead) {
            if done.is_none() && behind >= ahead {
                *done = Some(now_ms);
            }
        }
        if let Some(symbols_ms) = symbols_ms.iter().copied().collect::<Option<Vec<f64>>>() {
            let total_ms = symbols_ms.iter().copied().fold(0.0, f64::max);
            return Ok(Join { symbols_ms, total_ms, own_ms: stage.resync_ms(JOINING)? });
        }
        ahead = now_ahead;
        stage.pause(Duration::from_micros(50))?;
    }
    Err(LabError::Failed(format!("venue-{JOINING} did not join within half a minute")))
}

/// By shard.
fn positions(venue: &CountersReader) -> Vec<u64> {
    venue.iter().filter(|(name, _)| name.starts_with("position-")).map(|(_, position)| position).collect()
}

fn measure(context: &Context, rate: u64, symbols: u32, gateways: u16) -> Result<Joins, LabError> {
    let setting =
        Setting { gateways, checkpoint_every: Some(CHECKPOINT_EVERY), ..Setting::new(rate, symbols) };
    let mut stage = Stage::start(&setting)?;
    // Long enough for a checkpoint to be there, even at 1,000 per second.
    stage.pause(context.time(Duration::from_millis(1_500)))?;
    let mut joins = Vec::new();
    for _ in 0..context.rounds(JOINS) {
        joins.push(join(&mut stage)?);
        stage.pause(Duration::from_millis(300))?;
    }
    let observed = stage.finish()?;
    let us = |phase, quantile| observed.latencies(phase).value_at_quantile(quantile) as f64 / 1e3;
    let symbol = |index: usize| median(joins.iter().map(|join| join.symbols_ms[index]));
    Ok(Joins {
        rate,
        gateways,
        joins: joins.len(),
        symbols_ms: (0..symbols as usize).map(symbol).collect(),
        total_ms: median(joins.iter().map(|join| join.total_ms)),
        total_max_ms: joins.iter().map(|join| join.total_ms).fold(0.0, f64::max),
        own_ms: median(joins.iter().map(|join| join.own_ms)),
        quiet_p50_us: us(Stretch::Quiet, 0.5),
        quiet_p99_us: us(Stretch::Quiet, 0.99),
        joining_p50_us: us(Stretch::Disturbed, 0.5),
        joining_p99_us: us(Stretch::Disturbed, 0.99),
    })
}

/// Figure 4.
///
/// # Errors
/// If a system fails or a venue does not join.
pub fn one_symbol(context: &Context) -> Result<Report, LabError> {
    const RATES: [u64; 8] = [1_000, 3_000, 5_000, 7_000, 9_000, 20_000, 50_000, 100_000];
    let rates = context.some(&RATES);
    let mut found = Vec::new();
    for &rate in progress::over("fig4", rates) {
        found.push(measure(context, rate, 1, 1)?);
    }
    let line = |name: &str, ms: fn(&Joins) -> f64| {
        series(name, Look::Line, found.iter().map(|joins| (joins.rate as f64, ms(joins))))
    };
    let paper = [(1_000.0, 5.0), (9_000.0, 5.0)];
    let lines = vec![
        line("median", |joins| joins.total_ms),
        line("longest", |joins| joins.total_max_ms),
        series("the paper: below 5 ms from 1,000 to 9,000", Look::Line, paper),
    ];
    let (x, y) = (logarithmic("requests per second"), linear("milliseconds from the start of its process"));
    let chart = chart("Time for a venue to join, one symbol", x, y, lines);
    let rows = found
        .iter()
        .map(|j| vec![j.rate as f64, j.total_ms, j.total_max_ms, j.own_ms, j.quiet_p99_us, j.joining_p99_us]);
    context.write(
        "fig4",
        &chart,
        &csv("rate,median_ms,longest_ms,own_ms,quiet_p99_us,joining_p99_us", rows),
    )?;
    let paper = |joins: &Joins| if joins.rate <= 9_000 { "below 5" } else { "-" }.to_owned();
    Ok(Report {
        name: "fig4",
        title: "Figure 4: joining, one symbol",
        paper: "A venue is started while a gateway sends requests for one symbol to both; checkpoints every 1,024 requests. \
                Below 5 ms at all rates, up to 9,000 per second.",
        here: "The same, from the start of the process until it has executed all that the live venue had executed 0.1 ms \
               before. By its own clock: without the start of the process, until it had executed what was recorded then."
            .into(),
        charts: vec![("fig4".into(), "time to join by throughput".into())],
        grids: vec![table(&found, paper)],
        figures: serde_json::json!(found),
    })
}

/// Figure 5: (a) to (c) as in the paper, and two with more load.
const LOADS: [(&str, u64, u16, &str); 5] = [
    ("(a)", 1_000, 1, "each below 30, all below 35"),
    ("(b)", 9_000, 1, "each below 700, all about 800"),
    ("(c)", 1_000, 4, "each 30 to 121, all about 150"),
    ("(d)", 100_000, 1, "-"),
    ("(e)", 100_000, 4, "-"),
];

/// Figure 5.
///
/// # Errors
/// If a system fails or a venue does not join.
pub fn ten_symbols(context: &Context) -> Result<Report, LabError> {
    let mut found = Vec::new();
    for (_, rate, gateways, _) in progress::over("fig5", LOADS) {
        found.push(measure(context, rate, 10, gateways)?);
    }
    let lines = LOADS.iter().zip(&found).map(|((letter, rate, gateways, _), joins)| {
        let name =
            format!("{letter} {} per second, {}", grouped(*rate), count(u32::from(*gateways), "gateway"));
        series(name, Look::Line, (1..).map(f64::from).zip(joins.symbols_ms.iter().copied()))
    });
    let (x, y) = (linear("symbol"), linear("milliseconds from the start of its process"));
    let chart = chart("Time for a venue to join, each of ten symbols", x, y, lines.collect());
    let rows = (0..10).map(|symbol| {
        std::iter::once(symbol as f64 + 1.0)
            .chain(found.iter().map(|joins| joins.symbols_ms[symbol]))
            .collect()
    });
    context.write("fig5", &chart, &csv("symbol,a_ms,b_ms,c_ms,d_ms,e_ms", rows))?;
    let paper = |joins: &Joins| {
        let load = LOADS.iter().find(|load| (load.1, load.2) == (joins.rate, joins.gateways));
        load.map_or("-", |load| load.3).to_owned()
    };
    Ok(Report {
        name: "fig5",
        title: "Figure 5: joining, ten symbols",
        paper: "With ten symbols: (a) 1,000 per second from one gateway: each symbol below 30 ms, all below 35 ms. (b) 9,000: \
                each below 700 ms, all about 800 ms. (c) 1,000 per second from four gateways: 30 to 121 ms, all about 150 ms.",
        here: "The same, and 100,000 per second from one gateway (d) and from four (e).".into(),
        charts: vec![("fig5".into(), "time to join, each of ten symbols".into())],
        grids: vec![table(&found, paper)],
        figures: serde_json::json!(found),
    })
}

fn table(found: &[Joins], paper: impl Fn(&Joins) -> String) -> Grid {
    let ms = |value: f64| format!("{value:.1}");
    let us = |p50: f64, p99: f64| format!("{p50:.0} / {p99:.0}");
    let each = |joins: &Joins| {
        let least = joins.symbols_ms.iter().copied().fold(f64::INFINITY, f64::min);
        let most = joins.symbols_ms.iter().copied().fold(0.0, f64::max);
        format!("{} to {}", ms(least), ms(most))
    };
    Grid::of(
        found,
        &[
            (">requests/s", &|joins: &Joins| joins.rate.to_string()),
            (">gateways", &|joins| joins.gateways.to_string()),
            (">each symbol, ms (medians)", &each),
            (">all, ms (median)", &|joins| ms(joins.total_ms)),
            (">longest", &|joins| ms(joins.total_max_ms)),
            (">by its own clock", &|joins| ms(joins.own_ms)),
            (">the paper, ms", &paper),
            (">latency p50 / p99, nobody joins, us", &|joins| us(joins.quiet_p50_us, joins.quiet_p99_us)),
            (">one joins", &|joins| us(joins.joining_p50_us, joins.joining_p99_us)),
        ],
    )
}
