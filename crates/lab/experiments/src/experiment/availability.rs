//! Figure 3: one venue is killed, stays away for a while, and comes back; what does the other do, and what do clients see?

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_load::LabError;
use pares_node::NodeId;
use pares_types::VenueId;
use rustix::process::Signal;
use serde::Serialize;

use super::Context;
use super::joining::CHECKPOINT_EVERY;
use super::report::{Chart, Grid, Look, Report, chart, csv, linear, series};
use super::stage::{Setting, Stage, median, processed};

const RATE: u64 = 5_000;
const INTERVAL: Duration = Duration::from_millis(100);
const LIVE: VenueId = VenueId(0);
const VICTIM: VenueId = VenueId(1);

/// A tenth of a second.
struct Tenth {
    /// When it began.
    seconds: f64,
    /// Per second: by the venue that lives, by the one that is killed, by clients.
    rates: [f64; 3],
    gap_ms: f64,
    part: usize,
}

/// A part of the run.
#[derive(Serialize)]
struct Part {
    part: &'static str,
    seconds: f64,
    live_venue_median: f64,
    live_venue_min: f64,
    killed_venue_median: f64,
    answered_median: f64,
    answered_min: f64,
    longest_gap_ms: f64,
}

const PARTS: [&str; 3] = ["both venues", "one killed", "back again"];

/// Runs the experiment.
///
/// # Errors
/// If the system fails or loses something.
pub fn run(context: &Context) -> Result<Report, LabError> {
    let thousand = if context.quick { 80 } else { 1_000 };
    let (kill_at, restart_at, end_at) = (30 * thousand, 50 * thousand, 70 * thousand);
    let setting = Setting { checkpoint_every: Some(CHECKPOINT_EVERY), ..Setting::new(RATE, 1) };
    let mut run = Run::start(&setting)?;
    run.until(kill_at, 0)?;
    run.kill()?;
    run.until(restart_at, 1)?;
    run.stage.system.supervisor.hold(NodeId::Venue(VICTIM), false);
    run.marks.push((run.seconds(), "started again".into()));
    run.until(end_at, 2)?;
    let resync_ms = run.stage.resync_ms(VICTIM)?;
    let Run { stage, tenths, marks, .. } = run;
    stage.finish()?;
    let chart = picture(&tenths, marks);
    let rows = tenths.iter().map(|t| [&[t.seconds], &t.rates[..], &[t.gap_ms]].concat());
    context.write("fig3", &chart, &csv("seconds,venue_0,venue_1,answered,longest_gap_ms", rows))?;
    let parts: Vec<Part> = (0..PARTS.len()).map(|part| summary(&tenths, part)).collect();
    Ok(report(&parts, resync_ms))
}

struct Run {
    stage: Stage,
    begun: Instant,
    first: u64,
    /// Worked through by each venue and answered, a tenth of a second ago.
    before: [u64; 3],
    tenths: Vec<Tenth>,
    marks: Vec<(f64, String)>,
}

impl Run {
    fn start(setting: &Setting) -> Result<Self, LabError> {
        let stage = Stage::start(setting)?;
        let begun = Instant::now();
        let mut run = Self { stage, begun, first: 0, before: [0; 3], tenths: Vec::new(), marks: Vec::new() };
        run.before = run.counts();
        run.first = run.before[2];
        run.stage.load.observed().take_gap_max_ns();
        Ok(run)
    }

    fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// A venue that is not there has worked through nothing.
    fn counts(&self) -> [u64; 3] {
        let venue = |id| self.stage.counters(id).as_ref().map_or(0, processed);
        [venue(LIVE), venue(VICTIM), self.stage.load.observed().completed.load(Ordering::Relaxed)]
    }

    /// Looks on until so many requests are answered.
    fn until(&mut self, answered: u64, part: usize) -> Result<(), LabError> {
        while self.before[2] - self.first < answered {
            let due = self.begun + INTERVAL * (self.tenths.len() as u32 + 1);
            self.stage.pause_until(due)?;
            let now = self.counts();
            let rate = |i: usize| now[i].saturating_sub(self.before[i]) as f64 / INTERVAL.as_secs_f64();
            let gap_ms = self.stage.load.observed().take_gap_max_ns() as f64 / 1e6;
            let rates = [rate(0), rate(1), rate(2)];
            let seconds = self.tenths.len() as f64 * INTERVAL.as_secs_f64();
            self.tenths.push(Tenth { seconds, rates, gap_ms, part });
            self.before = now;
        }
        Ok(())
    }

    fn kill(&mut self) -> Result<(), LabError> {
        let supervisor = &mut self.stage.system.supervisor;
        supervisor.hold(NodeId::Venue(VICTIM), true);
        supervisor.signal(NodeId::Venue(VICTIM), Signal::KILL)?;
        self.marks.push((self.begun.elapsed().as_secs_f64(), "killed".into()));
        // What it counted must not be taken for what its successor counts.
        let _ = std::fs::remove_file(supervisor.layout().counters(&NodeId::Venue(VICTIM).to_string()));
        self.before[1] = 0;
        Ok(())
    }
}

fn summary(tenths: &[Tenth], part: usize) -> Part {
    let of: Vec<&Tenth> = tenths.iter().filter(|tenth| tenth.part == part).collect();
    let middle = |i: usize| median(of.iter().map(|tenth| tenth.rates[i]));
    let least = |i: usize| of.iter().map(|tenth| tenth.rates[i]).fold(f64::INFINITY, f64::min);
    Part {
        part: PARTS[part],
        seconds: of.len() as f64 * INTERVAL.as_secs_f64(),
        live_venue_median: middle(0),
        live_venue_min: least(0),
        killed_venue_median: middle(1),
        answered_median: middle(2),
        answered_min: least(2),
        longest_gap_ms: of.iter().map(|tenth| tenth.gap_ms).fold(0.0, f64::max),
    }
}

fn picture(tenths: &[Tenth], marks: Vec<(f64, String)>) -> Chart {
    let rates = |name: &str, index: usize| {
        series(name, Look::Steps, tenths.iter().map(|tenth| (tenth.seconds, tenth.rates[index])))
    };
    let lines = vec![
        rates("venue 1 (killed): requests worked through", 1),
        rates("venue 0: requests worked through", 0),
        rates("clients: requests answered", 2),
    ];
    let title = "A venue is killed and comes back, 5,000 requests per second";
    let (x, y) = (linear("seconds"), linear("requests per second, over 100 ms"));
    Chart { marks, ..chart(title, x, y, lines) }
}

fn report(parts: &[Part], resync_ms: f64) -> Report {
    let whole = |value: f64| format!("{value:.0}");
    let grid = Grid::of(
        parts,
        &[
            ("", &|part: &Part| part.part.to_owned()),
            (">seconds", &|part| format!("{:.1}", part.seconds)),
            (">live venue /s, median of 100 ms", &|part| whole(part.live_venue_median)),
            (">least", &|part| whole(part.live_venue_min)),
            (">killed venue /s, median", &|part| whole(part.killed_venue_median)),
            (">answered /s, median", &|part| whole(part.answered_median)),
            (">least", &|part| whole(part.answered_min)),
            (">longest gap between answers, ms", &|part| format!("{:.2}", part.longest_gap_ms)),
        ],
    );
    Report {
        name: "fig3",
        title: "Figure 3: a venue is killed and comes back",
        paper: "One gateway sends about 5,000 requests per second to two venues; after 30,000 requests one fails, after \
                50,000 it is started again. The other goes on at roughly 5,000 per second \"as if nothing happened\" (no \
                numbers beyond the plot).",
        here: format!(
            "The same, with `kill -9`. The killed venue was back in step {resync_ms:.1} ms after it began to open its files \
             (its peak is the catching up); nothing was lost or answered twice."
        ),
        charts: vec![("fig3".into(), "requests per second of both venues and of clients, over time".into())],
        grids: vec![grid],
        figures: serde_json::json!({ "parts": parts, "resync_ms": resync_ms }),
    }
}
