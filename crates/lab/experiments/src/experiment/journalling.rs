//! Paper 5: the worst write of each second, and what a roll costs.
//!
//! The article wraps a timer around the write call of a journal and plots the maximum of each second. The same is done here to
//! the log, and in turns to a journal as the article describes its own: written to the end of a growing file, which is
//! replaced by a new one when it is full.

mod beside;
mod contest;
mod round_trip;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::Histogram;
use pares_load::{LabError, ScratchDirectory, failed};
use pares_log::{Config, Offset, Writer};
use pares_os::clock::mono_ns;
use pares_text::progress;
use serde::Serialize;

use crate::experiment::Context;
use crate::experiment::report::{Chart, Grid, Look, Report, chart, csv, linear, logarithmic, series};
use beside::BesideRaw;
pub use round_trip::echo;

const RECORDS_PER_SECOND: u64 = 20_000;
const RECORD_BYTES: usize = 256;
/// As the system's logs have by default.
const SEGMENT_BYTES: u64 = 16 << 20;
const SECOND_NS: u64 = 1_000_000_000;

/// Both journals in one second.
struct Second {
    log: Histogram<u64>,
    file: Histogram<u64>,
}

/// One journal over the run, microseconds.
#[derive(Clone, Debug, Serialize)]
struct Writes {
    journal: &'static str,
    best_us: f64,
    p50_us: f64,
    p999_us: f64,
    /// The median of the seconds' maxima: what the article calls background.
    background_us: f64,
    max_us: f64,
    rolls: u64,
    /// The worst write that rolled.
    roll_max_us: f64,
}

/// A journal in the manner of the article.
struct GrowingFile {
    dir: PathBuf,
    file: File,
    bytes: u64,
    rolls: u64,
}

impl GrowingFile {
    fn create(dir: &Path) -> std::io::Result<Self> {
        Ok(Self { dir: dir.to_owned(), file: File::create(dir.join("journal-0"))?, bytes: 0, rolls: 0 })
    }

    /// Whether it rolled.
    fn append(&mut self, record: &[u8]) -> std::io::Result<bool> {
        let rolls = self.bytes + record.len() as u64 > SEGMENT_BYTES;
        if rolls {
            self.rolls += 1;
            self.file = File::create(self.dir.join(format!("journal-{}", self.rolls)))?;
            self.bytes = 0;
        }
        self.bytes += record.len() as u64;
        self.file.write_all(record).map(|()| rolls)
    }
}

struct Run {
    seconds: Vec<Second>,
    log_rolls_ns: Histogram<u64>,
    file_rolls_ns: Histogram<u64>,
    /// When the log rolled, seconds.
    rolled_at: Vec<f64>,
}

fn measure(time: Duration, within: Option<&Path>) -> Result<Run, LabError> {
    let scratch = ScratchDirectory::create(within)?;
    let config = Config::default().segment_bytes(SEGMENT_BYTES);
    let (mut log, _) = Writer::open(&scratch.path().join("log"), config).map_err(failed("the log"))?;
    let mut file = GrowingFile::create(scratch.path()).map_err(LabError::io("creating a journal"))?;
    let record = [0x5a; RECORD_BYTES];
    let mut run =
        Run { seconds: Vec::new(), log_rolls_ns: empty(), file_rolls_ns: empty(), rolled_at: Vec::new() };
    let bar = progress::seconds("journal", time.as_secs());
    let begun_ns = mono_ns();
    for n in 0..time.as_secs() * RECORDS_PER_SECOND {
        let due_ns = begun_ns + n * SECOND_NS / RECORDS_PER_SECOND;
        while mono_ns() < due_ns {
            std::thread::yield_now();
        }
        let second = (n / RECORDS_PER_SECOND) as usize;
        if second == run.seconds.len() {
            run.seconds.push(Second { log: empty(), file: empty() });
            bar.set_position(second as u64 * 1_000);
        }
        run.append_to_log(&mut log, &record, second, begun_ns)?;
        let start_ns = mono_ns();
        let rolled = file.append(&record).map_err(LabError::io("writing a journal"))?;
        let taken_ns = mono_ns() - start_ns;
        run.seconds[second].file.saturating_record(taken_ns);
        if rolled {
            run.file_rolls_ns.saturating_record(taken_ns);
        }
    }
    bar.finish_and_clear();
    Ok(run)
}

impl Run {
    fn append_to_log(
        &mut self,
        log: &mut Writer,
        record: &[u8],
        second: usize,
        begun_ns: u64,
    ) -> Result<(), LabError> {
        let segment = log.tail().0 / SEGMENT_BYTES;
        let start_ns = mono_ns();
        log.append(record).map_err(failed("the log"))?;
        log.publish();
        let taken_ns = mono_ns() - start_ns;
        self.seconds[second].log.saturating_record(taken_ns);
        if log.tail().0 / SEGMENT_BYTES != segment {
            self.log_rolls_ns.saturating_record(taken_ns);
            self.rolled_at.push((start_ns - begun_ns) as f64 / 1e9);
            log.release_before(Offset(log.tail().0.saturating_sub(2 * SEGMENT_BYTES)));
        }
        Ok(())
    }

    fn writes(
        &self,
        journal: &'static str,
        of: fn(&Second) -> &Histogram<u64>,
        rolls: &Histogram<u64>,
    ) -> Writes {
        let mut all = empty();
        for second in &self.seconds {
            all.add(of(second)).expect("equal bounds");
        }
        let us = |ns: u64| ns as f64 / 1e3;
        let background =
            crate::experiment::stage::median(self.seconds.iter().map(|second| us(of(second).max())));
        Writes {
            journal,
            best_us: us(all.min()),
            p50_us: us(all.value_at_quantile(0.5)),
            p999_us: us(all.value_at_quantile(0.999)),
            background_us: background,
            max_us: us(all.max()),
            rolls: rolls.len(),
            roll_max_us: us(rolls.max()),
        }
    }
}

fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60 * SECOND_NS, 3).expect("constant bounds are valid")
}

/// Runs the experiment.
///
/// # Errors
/// If the disk refuses.
pub fn run(context: &Context) -> Result<Report, LabError> {
    let seconds = if context.quick { 4 } else { 30 };
    let run = measure(Duration::from_secs(seconds), context.dir.as_deref())?;
    let bench = beside::measure(context.dir.as_deref(), if context.quick { 10_000 } else { 100_000 })?;
    let writes = [
        run.writes("the log", |second| &second.log, &run.log_rolls_ns),
        run.writes("a growing file", |second| &second.file, &run.file_rolls_ns),
    ];
    let us = |of: &Histogram<u64>| of.max() as f64 / 1e3;
    let rows = run.seconds.iter().enumerate().map(|(second, s)| vec![second as f64, us(&s.log), us(&s.file)]);
    context.write("journal", &picture(&run), &csv("second,log_max_us,growing_file_max_us", rows))?;
    Ok(report(&writes, &bench))
}

fn picture(run: &Run) -> Chart {
    let line = |name: &str, of: fn(&Second) -> &Histogram<u64>| {
        let worst = run.seconds.iter().map(|second| of(second).max() as f64 / 1e3);
        series(name, Look::Line, (0..).map(f64::from).zip(worst))
    };
    let title = "The worst write of each second, 20,000 records of 256 B per second";
    let x = linear("seconds (vertical lines: the log rolls to its next segment)");
    let lines = vec![
        line("the log", |second| &second.log),
        line("a growing file, rolled in line", |second| &second.file),
    ];
    let marks = run.rolled_at.iter().map(|&at| (at, String::new())).collect();
    Chart { marks, ..chart(title, x, logarithmic("microseconds"), lines) }
}

fn report(writes: &[Writes], bench: &BesideRaw) -> Report {
    let paper = ["4 to 5", "-", "-", "10 to 20", "300", "-", "300"];
    let row = |of: &Writes| {
        let us = |value: f64| format!("{value:.2}");
        let times = [of.best_us, of.p50_us, of.p999_us, of.background_us, of.max_us].map(us);
        std::iter::once(of.journal.to_owned())
            .chain(times)
            .chain([of.rolls.to_string(), us(of.roll_max_us)])
            .collect()
    };
    let article = std::iter::once("the article, last step").chain(paper).map(str::to_owned).collect();
    let head = vec![
        "microseconds",
        ">best",
        ">p50",
        ">p99.9",
        ">median of the seconds' worst",
        ">worst",
        ">rolls",
        ">worst that rolled",
    ];
    Report {
        name: "journal",
        title: "Paper 5: journalling",
        paper: "Maximum time of a write call in each second, to the page cache. Kernel 2.6.32 with ext3: background 200 to 400 us, \
                spikes to 1 ms, best 10 us. Kernel 3.17 with ext4: 50 to 100 us, spikes of 200 us. New hardware: 10 to 20 us, best \
                4 to 5 us, spikes of 300 us, which are the rolls to a new file.",
        here: "20,000 records of 256 B per second into the log (appended and published), and in turns to the end of a growing file \
               that is replaced when it holds as much as a segment. The second table sets the log beside the same bytes \
               written raw into a file prepared beforehand."
            .into(),
        charts: vec![("journal".into(), "the worst write of each second".into())],
        grids: vec![
            Grid { head, rows: writes.iter().map(row).chain(std::iter::once(article)).collect() },
            beside(bench),
        ],
        figures: serde_json::json!({ "writes": writes, "beside_raw": bench }),
    }
}

fn beside(bench: &BesideRaw) -> Grid {
    let us = |value: f64| format!("{value:.2}");
    let row = |what: &str, of: &beside::BesideLoad| {
        let figures =
            [of.log.p50_us, of.log.p99_us, of.raw.p50_us, of.raw.p99_us, of.ratio_p50, of.ratio_p99];
        std::iter::once(what.to_owned()).chain(figures.map(us)).collect()
    };
    let alone = |what: &str, of: &contest::Distribution| {
        let dash = || "-".to_owned();
        vec![what.to_owned(), us(of.p50_us), us(of.p99_us), dash(), dash(), dash(), dash()]
    };
    let rows = vec![
        row("append 256 B (`os`)", &bench.append),
        row("group commit of 64 x 256 B (`disk`)", &bench.group_commit),
        row("append, a reader reads", &bench.append_with_reader.reading),
        row("append, the reader is stopped", &bench.append_with_reader.stopped),
        row("append, the reader is killed", &bench.append_with_reader.killed),
        row("group commit, the reader is stopped", &bench.group_commit_with_reader.stopped),
        row("group commit, the reader is killed", &bench.group_commit_with_reader.killed),
        alone("append that rolls", &bench.rolls.rolls),
        alone("append that does not", &bench.rolls.between),
        alone("round trip between two processes", &bench.round_trip),
    ];
    let head = vec!["microseconds", ">log p50", ">p99", ">raw p50", ">p99", ">log / raw, p50", ">p99"];
    Grid { head, rows }
}
