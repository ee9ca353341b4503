//! Figure 6: quick traders while others keep up, are slow, are stopped and are killed.
//!
//! The four states take turns, twice, so that what else happens on the machine falls on all of them.

use std::ops::Range;
use std::time::{Duration, Instant};

use pares_load::{LabError, LabResult};
use pares_os::clock::mono_ns;
use pares_text::progress;
use rustix::process::Signal;
use serde::Serialize;

use super::super::Context;
use super::super::report::{Chart, Grid, Look, chart, csv, linear, series};
use super::people::{Delays, Read, Source, Trader, read_by};
use super::trader::Process;
use crate::member::{Desk, GIVES, LARGE};

/// Quick ones, and others.
const TRADERS: u32 = 6;
/// Messages a second: more than a slow trader takes, which is 200.
const RATE: u64 = 500;
const SLOW: Duration = Duration::from_millis(5);
/// The states of the others, and a word for each.
const STATES: [(&str, &str); 4] = [
    ("keep up", "keep up"),
    ("take 5 ms a message", "slow"),
    ("are stopped", "stopped"),
    ("are killed, one after the other", "killed"),
];
/// Longer than a server waits for one that takes nothing.
const TIME: Duration = Duration::from_secs(7);
/// What a change of states costs (processes start) does not count.
const SETTLED: Duration = Duration::from_millis(700);
const ROUNDS: usize = 2;
const SAMPLE: Duration = Duration::from_millis(200);
/// Others' names begin here.
const OTHERS: u32 = 1_000;

/// What came of one state of the others.
#[derive(Clone, Debug, Serialize)]
pub(super) struct State {
    others: &'static str,
    /// Messages a second of a quick trader, and of another.
    quick: f64,
    other: f64,
    delays: Delays,
}

/// Messages a second at an instant.
#[derive(Clone, Copy, Debug)]
struct Instantaneous {
    seconds: f64,
    emitted: f64,
    quick: f64,
    other: f64,
}

/// What is counted so far.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    emitted: u64,
    quick: u64,
    other: u64,
}

/// A system with its traders.
struct Floor {
    source: Source,
    quick: Vec<Trader>,
    others: Vec<Process>,
    /// Others that were there before.
    names: u32,
    /// What those received that are gone.
    gone: u64,
    desk: Desk,
}

impl Floor {
    fn open() -> Result<Self, LabError> {
        let (desk, server) = Desk::running()?;
        let quick = Trader::start_quick(server, TRADERS)?;
        let source = Source::start(server, Some(RATE), LARGE)?;
        Ok(Self { source, quick, others: Vec::new(), names: OTHERS, gone: 0, desk })
    }

    /// Others take the place of those that were there.
    fn replace_others(&mut self, takes: Duration) -> LabResult {
        self.gone = self.others_received();
        self.others.clear();
        let (run, server) = (self.desk.layout.run(), self.desk.address(GIVES)?);
        for _ in 0..TRADERS {
            self.others.push(Process::start(&run, server, self.names, takes)?);
            self.names += 1;
        }
        Ok(())
    }

    fn others_received(&self) -> u64 {
        self.gone + self.others.iter().map(Process::received).sum::<u64>()
    }

    fn counts(&self) -> Counts {
        let quick = self.quick.iter().map(Trader::received).sum();
        Counts { emitted: self.source.emitted(), quick, other: self.others_received() }
    }

    fn enter(&mut self, state: usize) -> LabResult {
        match state {
            0 => self.replace_others(Duration::ZERO),
            2 => {
                self.others.iter().for_each(|other| other.signal(Signal::STOP));
                Ok(())
            }
            _ => self.replace_others(SLOW),
        }
    }
}

fn rates(from: Counts, to: Counts, seconds: f64) -> (f64, f64, f64) {
    let rate = |from: u64, to: u64| to.saturating_sub(from) as f64 / seconds.max(1e-9);
    let each = f64::from(TRADERS);
    (rate(from.emitted, to.emitted), rate(from.quick, to.quick) / each, rate(from.other, to.other) / each)
}

/// The measured stretch of a state: what it was, when, and the rates of quick traders and others.
struct Stretch {
    state: usize,
    range: Range<u64>,
    quick: f64,
    other: f64,
}

/// All that is measured while the states take turns.
struct Turns {
    begun: Instant,
    line: Vec<Instantaneous>,
    marks: Vec<(f64, String)>,
    stretches: Vec<Stretch>,
}

impl Turns {
    fn take(&mut self, floor: &mut Floor, state: usize, time: Duration) -> LabResult {
        self.marks.push((self.begun.elapsed().as_secs_f64(), STATES[state].1.to_owned()));
        floor.enter(state)?;
        let entered = Instant::now();
        self.watch(floor, entered + SETTLED.min(time / 4), |_, _| {});
        let (from_ns, from, settled) = (mono_ns(), floor.counts(), Instant::now());
        let mut killed = 0;
        self.watch(floor, entered + time, |floor, now| {
            let due = (now - settled).as_secs_f64() / time.as_secs_f64() * f64::from(TRADERS) * 1.2;
            while state == 3 && killed < floor.others.len() && killed < due as usize {
                floor.others[killed].signal(Signal::KILL);
                killed += 1;
            }
        });
        let (_, quick, other) = rates(from, floor.counts(), settled.elapsed().as_secs_f64());
        self.stretches.push(Stretch { state, range: from_ns..mono_ns(), quick, other });
        Ok(())
    }

    /// Samples until then.
    fn watch(&mut self, floor: &mut Floor, until: Instant, mut act: impl FnMut(&mut Floor, Instant)) {
        let (mut last, mut at) = (floor.counts(), Instant::now());
        while at < until {
            std::thread::sleep(SAMPLE.min(until - at));
            let (counts, now) = (floor.counts(), Instant::now());
            let (emitted, quick, other) = rates(last, counts, (now - at).as_secs_f64());
            let seconds = self.begun.elapsed().as_secs_f64();
            self.line.push(Instantaneous { seconds, emitted, quick, other });
            (last, at) = (counts, now);
            act(floor, now);
        }
    }
}

/// Measures, and writes the chart.
///
/// # Errors
/// If a system fails.
pub(super) fn run(context: &Context, title: &str) -> Result<Vec<State>, LabError> {
    let rounds = context.rounds(ROUNDS);
    let bar = progress::steps("swx: slow traders", (rounds * STATES.len()) as u64);
    let mut floor = Floor::open()?;
    let mut turns =
        Turns { begun: Instant::now(), line: Vec::new(), marks: Vec::new(), stretches: Vec::new() };
    for _ in 0..rounds {
        for state in 0..STATES.len() {
            turns.take(&mut floor, state, context.time(TIME))?;
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    write(context, title, &turns)?;
    let Floor { source, quick, others, .. } = floor;
    source.finish();
    drop(others);
    let reads = read_by(quick);
    Ok((0..STATES.len()).map(|state| summary(state, &turns.stretches, &reads)).collect())
}

fn summary(state: usize, stretches: &[Stretch], reads: &[Read]) -> State {
    let of: Vec<&Stretch> = stretches.iter().filter(|stretch| stretch.state == state).collect();
    let mean = |rate: fn(&Stretch) -> f64| of.iter().map(|s| rate(s)).sum::<f64>() / of.len().max(1) as f64;
    let ranges: Vec<Range<u64>> = of.iter().map(|stretch| stretch.range.clone()).collect();
    State {
        others: STATES[state].0,
        quick: mean(|stretch| stretch.quick),
        other: mean(|stretch| stretch.other),
        delays: Delays::within(reads, &ranges),
    }
}

fn write(context: &Context, title: &str, turns: &Turns) -> LabResult {
    let line = |name: &str, rate: fn(&Instantaneous) -> f64| {
        series(name, Look::Steps, turns.line.iter().map(|at| (at.seconds, rate(at))))
    };
    let lines = vec![
        line("emitted", |at| at.emitted),
        line("received by a quick trader", |at| at.quick),
        line("received by another", |at| at.other),
    ];
    // What the states of the second round are, the first has said.
    let marks = turns.marks.iter().enumerate().map(|(index, mark)| named_once(index, mark)).collect();
    let chart = Chart { marks, ..chart(title, linear("seconds"), linear("messages a second"), lines) };
    let rows = turns.line.iter().map(|at| vec![at.seconds, at.emitted, at.quick, at.other]);
    context.write("swx6", &chart, &csv("seconds,emitted,received_quick,received_other", rows))
}

fn named_once(index: usize, (at, text): &(f64, String)) -> (f64, String) {
    (*at, if index < STATES.len() { text.clone() } else { String::new() })
}

/// Ours beside the paper's.
pub(super) fn table(found: &[State]) -> Grid {
    let base = found.first().map_or(0.0, |state| state.delays.p99_us);
    let paper = |state: &State| match state.others == STATES[1].0 {
        true => "70 emitted, fast ones 70, slow ones a saw".to_owned(),
        false => "-".to_owned(),
    };
    let delays = |state: &State| format!("{:.0} / {:.0}", state.delays.p50_us, state.delays.p99_us);
    Grid::of(
        found,
        &[
            ("six others", &|state: &State| state.others.to_owned()),
            (">received by each of six quick ones, messages/s", &|state| format!("{:.1}", state.quick)),
            (">by each of the others", &|state| format!("{:.1}", state.other)),
            (">delay of quick ones, p50 / p99, us", &delays),
            (">p99, of the first row", &|state| format!("{:.2}", state.delays.p99_us / base)),
            ("the paper, messages/s", &paper),
        ],
    )
}
