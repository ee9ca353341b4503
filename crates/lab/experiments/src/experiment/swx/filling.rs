//! Figures 7 and 8: what a server that is filled costs the traders of the one that fills it.

use std::ops::Range;
use std::time::{Duration, Instant};

use pares_load::{LabError, LabResult, Worker};
use pares_os::CountersReader;
use pares_os::clock::mono_ns;
use pares_text::progress;
use serde::Serialize;

use super::super::Context;
use super::super::report::{Chart, Grid, Look, chart, csv, linear, series};
use super::super::stage::median;
use super::Charts;
use super::one_thread::{self, Way};
use super::people::{Delays, Read, Source, Trader, read_by};
use crate::member::{Desk, GIVES, LARGE, TAKES};

/// As in the paper.
const TRADERS: u32 = 10;
/// Ten times the paper's, so that a transfer of some tenths of a second is seen by enough messages.
const RATE: u64 = 500;
/// What waited behind a black-out comes in one step: charts end here.
const SHOWN_MAX: f64 = 3.0 * RATE as f64;
const PAUSE: Duration = Duration::from_millis(50);
const CHUNK_BYTES: usize = 32 << 10;
/// Messages of 8 KiB in 20 MiB and in 1 GiB.
const SMALL: u64 = 2_560;
const LARGE_STATE: u64 = 131_072;
const BEFORE: Duration = Duration::from_secs(3);
const AFTER: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(180);

/// A state, and a way to give it; none: as the server that ships does.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    way: Option<Way>,
    messages: u64,
    rounds: usize,
    paper: &'static str,
}

const BLOCK: Case = Case {
    name: "in one block",
    way: Some(Way::Block),
    messages: SMALL,
    rounds: 5,
    paper: "black-out, then a saw",
};
const CHUNKS: Case = Case {
    name: "in chunks of 32 KiB without pause",
    way: Some(Way::Chunks(CHUNK_BYTES)),
    paper: "the same",
    ..BLOCK
};
const PAUSED: Case = Case {
    name: "in chunks of 32 KiB with pauses of 50 ms",
    way: Some(Way::Paused(CHUNK_BYTES, PAUSE)),
    rounds: 1,
    paper: "not hindered",
    ..BLOCK
};
const SHIPS: Case = Case { name: "by the server that ships", way: None, paper: "-", ..BLOCK };
const CASES: [Case; 6] = [
    BLOCK,
    CHUNKS,
    PAUSED,
    SHIPS,
    Case { messages: LARGE_STATE, rounds: 1, paper: "worse", ..BLOCK },
    Case { messages: LARGE_STATE, rounds: 2, ..SHIPS },
];

/// So many messages of 8 KiB.
fn size(messages: u64) -> String {
    match messages >> 7 {
        mib if mib >= 1_024 => format!("{} GiB", mib >> 10),
        mib => format!("{mib} MiB"),
    }
}

/// What a transfer came to, over some rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Filled {
    way: String,
    mib: f64,
    rounds: usize,
    /// From the start of the server that is filled until it has all: the median.
    seconds: f64,
    before: Delays,
    during: Delays,
    /// The longest time in which no trader read anything.
    gap_before_ms: f64,
    gap_during_ms: f64,
    #[serde(skip)]
    paper: &'static str,
}

/// One transfer.
struct Round {
    reads: Vec<Read>,
    before: Range<u64>,
    during: Range<u64>,
}

/// Measures all ways and writes the charts: what they show.
///
/// # Errors
/// If a system fails.
pub(super) fn run(context: &Context) -> Result<(Vec<Filled>, Charts), LabError> {
    let bar = progress::steps(
        "swx: filling a server",
        CASES.iter().map(|case| context.rounds(case.rounds) as u64).sum(),
    );
    let (mut found, mut firsts) = (Vec::new(), Vec::new());
    for case in CASES {
        let mut rounds = Vec::new();
        for _ in 0..context.rounds(case.rounds) {
            rounds.push(round(context, case)?);
            bar.inc(1);
        }
        found.push(summary(context, case, &rounds));
        firsts.push(rounds.swap_remove(0));
    }
    bar.finish_and_clear();
    Ok((found, write(context, &firsts)?))
}

impl Case {
    fn messages(&self, context: &Context) -> u64 {
        if context.quick { self.messages / 20 } else { self.messages }
    }

    /// How much, and how.
    fn shown(&self, context: &Context) -> String {
        format!("{} {}", size(self.messages(context)), self.name)
    }
}

fn round(context: &Context, case: Case) -> Result<Round, LabError> {
    let messages = case.messages(context);
    let mut desk = Desk::with_stream(messages)?;
    let giver = match case.way {
        None => desk.start(GIVES).map(|()| None)?,
        Some(way) => Some(one_thread::start(&desk, way)?),
    };
    let server = desk.address(GIVES)?;
    let traders = Trader::start_quick(server, TRADERS)?;
    let source = Source::start(server, Some(RATE), LARGE)?;
    std::thread::sleep(context.time(Duration::from_millis(500)));
    let from_ns = mono_ns();
    std::thread::sleep(context.time(BEFORE));
    let begun_ns = mono_ns();
    desk.start(TAKES)?;
    await_filled(&desk, messages)?;
    let until_ns = mono_ns();
    std::thread::sleep(context.time(AFTER));
    source.finish();
    let mut reads = read_by(traders);
    reads.sort_unstable_by_key(|read| read.read_ns);
    giver.map_or(Ok(()), Worker::finish)?;
    [TAKES, GIVES].into_iter().try_for_each(|server| desk.end(server))?;
    Ok(Round { reads, before: from_ns..begun_ns, during: begun_ns..until_ns })
}

/// Waits until the server has taken so many messages from its peer.
fn await_filled(desk: &Desk, messages: u64) -> LabResult {
    let (path, begun) = (desk.layout.counters(&format!("member-{TAKES}")), Instant::now());
    let filled = || CountersReader::open(&path).ok().and_then(|counters| counters.get("filled")).unwrap_or(0);
    while filled() < messages {
        if begun.elapsed() > PATIENCE {
            return Err(LabError::Failed(format!(
                "after {PATIENCE:?} a server has {} of {messages}",
                filled()
            )));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn summary(context: &Context, case: Case, rounds: &[Round]) -> Filled {
    let stretch = |of: fn(&Round) -> &Range<u64>| {
        let ranges: Vec<Range<u64>> = rounds.iter().map(|round| of(round).clone()).collect();
        let delays = Delays::within(rounds.iter().flat_map(|round| &round.reads), &ranges);
        (delays, rounds.iter().map(|round| longest_gap_ms(&round.reads, of(round))).fold(0.0, f64::max))
    };
    let ((before, gap_before_ms), (during, gap_during_ms)) =
        (stretch(|round| &round.before), stretch(|round| &round.during));
    let took = |round: &Round| (round.during.end - round.during.start) as f64 / 1e9;
    Filled {
        way: case.shown(context),
        mib: (case.messages(context) * (LARGE as u64 + 4)) as f64 / f64::from(1 << 20),
        rounds: rounds.len(),
        seconds: median(rounds.iter().map(took)),
        before,
        during,
        gap_before_ms,
        gap_during_ms,
        paper: case.paper,
    }
}

/// The longest time between two reads, of which the later is of a message that was due within the stretch.
fn longest_gap_ms(reads: &[Read], within: &Range<u64>) -> f64 {
    let pairs = reads.windows(2).filter(|pair| within.contains(&pair[1].due_ns));
    pairs.map(|pair| pair[1].read_ns - pair[0].read_ns).max().unwrap_or(0) as f64 / 1e6
}

/// A chart of some cases, seconds around the start of the transfer.
struct Plot {
    file: &'static str,
    shows: &'static str,
    cases: &'static [usize],
    bin: Duration,
    seconds: Range<f64>,
}

const PLOTS: [Plot; 3] = [
    Plot {
        file: "swx7",
        shows: "in steps of 20 ms",
        cases: &[0, 1, 2, 3],
        bin: Duration::from_millis(20),
        seconds: -0.4..0.8,
    },
    Plot {
        file: "swx8",
        shows: "in chunks with pauses",
        cases: &[2],
        bin: Duration::from_millis(250),
        seconds: -3.0..60.0,
    },
    Plot {
        file: "swx8-gib",
        shows: "in steps of 100 ms",
        cases: &[4, 5],
        bin: Duration::from_millis(100),
        seconds: -3.0..60.0,
    },
];

impl Plot {
    fn title(&self, context: &Context) -> String {
        let given = size(CASES[self.cases[0]].messages(context));
        format!("Received while a state of {given} is given, {}", self.shows)
    }
}

fn write(context: &Context, firsts: &[Round]) -> Result<Charts, LabError> {
    for plot in &PLOTS {
        let lines: Vec<Vec<(f64, f64)>> = plot.cases.iter().map(|&case| plot.line(&firsts[case])).collect();
        let named = plot.cases.iter().map(|&case| CASES[case].shown(context));
        let shown = named.zip(&lines).map(|(name, line)| {
            series(name, Look::Steps, line.iter().map(|&(at, rate)| (at, rate.min(SHOWN_MAX))))
        });
        let x = linear("seconds since the server that is filled was started");
        let y = linear("messages a second received by a trader, up to 1,500");
        let marks = vec![(0.0, "started".into())];
        let chart = Chart { marks, ..chart(plot.title(context), x, y, shown.collect()) };
        let rows = lines.iter().zip(plot.cases).flat_map(|(line, &case)| {
            line.iter().map(move |&(seconds, rate)| vec![case as f64 + 1.0, seconds, rate])
        });
        context.write(plot.file, &chart, &csv("case,seconds,received", rows))?;
    }
    Ok(PLOTS.iter().map(|plot| (plot.file.to_owned(), plot.title(context))).collect())
}

impl Plot {
    /// Messages a second that a trader received in each bin.
    fn line(&self, round: &Round) -> Vec<(f64, f64)> {
        let bin = self.bin.as_secs_f64();
        let since = |ns: u64| (ns as f64 - round.during.start as f64) / 1e9;
        let last = round.reads.last().map_or(0.0, |read| since(read.read_ns));
        let first = round.reads.first().map_or(0.0, |read| since(read.read_ns));
        let (from, to) = (self.seconds.start.max(first + bin), self.seconds.end.min(last - bin));
        let mut bins = vec![0_u32; ((to - from) / bin).max(1.0) as usize];
        for read in &round.reads {
            let bin = ((since(read.read_ns) - from) / bin).floor();
            if let Some(count) = (bin >= 0.0).then(|| bins.get_mut(bin as usize)).flatten() {
                *count += 1;
            }
        }
        let rate = |count: u32| f64::from(count) / f64::from(TRADERS) / bin;
        bins.iter().enumerate().map(|(index, &count)| (from + index as f64 * bin, rate(count))).collect()
    }
}

/// Ours beside the paper's.
pub(super) fn table(found: &[Filled]) -> Grid {
    let us = |delays: &Delays| format!("{:.0} / {:.0}", delays.p50_us, delays.p99_us);
    let ratio = |filled: &Filled| filled.during.p99_us / filled.before.p99_us.max(1.0);
    Grid::of(
        found,
        &[
            ("a state of", &|filled: &Filled| filled.way.clone()),
            (">seconds", &|filled| format!("{:.2}", filled.seconds)),
            (">MiB/s", &|filled| format!("{:.0}", filled.mib / filled.seconds)),
            (">delay before, p50 / p99, us", &|filled| us(&filled.before)),
            (">during", &|filled| us(&filled.during)),
            (">p99, of that before", &|filled| format!("{:.2}", ratio(filled))),
            (">nobody reads anything, longest, before, ms", &|filled| format!("{:.0}", filled.gap_before_ms)),
            (">during", &|filled| format!("{:.0}", filled.gap_during_ms)),
            ("the paper", &|filled| filled.paper.to_owned()),
        ],
    )
}
