//! `pares bench sequencer`: what it costs to agree on a position.
//!
//! A decision is one compare-and-swap in memory shared by the venues (paper 1, section 3), so the figure to compare with is
//! a bare compare-and-swap on the same kind of memory in the same run: what remains is the price of the rules. Both are
//! measured alone and against a second process at the same words, in turns, so that a noisy second of the machine hits
//! all alike. Two that race freely soon part, and the one ahead is as good as alone; so the one ahead waits,
//! outside of what is timed, as venues wait for requests.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_load::{LabError, LabResult, ScratchDirectory, failed, print_figures};
use pares_os::Mapping;
use pares_os::clock::mono_ns;
use pares_sequencer::{ProposeError, Sequencer};
use pares_types::{Epoch, GatewayId, Position, RequestId, ShardId};
use pares_window::SharedWindow;
use serde::Serialize;

use super::peer::PeerProcess;

/// Positions of the window, and words of the bare one: as a system has by default.
const CAPACITY: usize = 65_536;
/// Positions timed together at least: reading the clock must not count.
const SAMPLE_POSITIONS: u64 = 64;
/// Decisions learnt in one call at most, as venues do.
const DECIDED_MAX: usize = 512;
/// How far ahead of the other one of two processes may begin a sample.
const LEAD_MAX: u64 = SAMPLE_POSITIONS;
const BATCHES: [usize; 3] = [1, 16, 256];
const ROUNDS: u32 = 10;

/// Arguments of `pares bench sequencer`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Total measuring time, seconds
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    /// `bare_swap` or `propose`.
    pub what: &'static str,
    /// Processes at it.
    pub processes: u64,
    /// Requests per proposal.
    pub batch: usize,
    /// Median time per position, nanoseconds.
    pub p50_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
    /// 99.9th percentile.
    pub p999_ns: f64,
    /// Median over the median of a bare compare-and-swap by as many processes.
    pub ratio: f64,
    /// Positions decided by this process's own proposals, out of those it learnt.
    pub won_share: f64,
    /// Positions measured.
    pub positions: u64,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If shared memory or the other process cannot be had.
pub fn run(args: &Args) -> LabResult {
    let figures = measure(Duration::from_secs(args.seconds))?;
    let figures = serde_json::json!({ "sample_positions": SAMPLE_POSITIONS, "figures": figures });
    print_figures(args.json, &figures);
    Ok(())
}

/// Runs the benchmark for about `time`.
///
/// # Errors
/// If shared memory or the other process cannot be had.
pub(crate) fn measure(time: Duration) -> Result<Vec<Figures>, LabError> {
    let scratch = ScratchDirectory::create(None)?;
    let mut subjects: Vec<Subject> = [1, 2].into_iter().flat_map(subjects).collect();
    let slice = time / ROUNDS / u32::try_from(subjects.len()).expect("a handful");
    for _ in pares_text::progress::over("measuring", 0..ROUNDS) {
        for subject in &mut subjects {
            subject.round(scratch.path(), slice)?;
        }
    }
    let bare_ps = |processes| {
        let bare = subjects.iter().find(|s| s.batch.is_none() && s.processes == processes);
        bare.expect("always among the subjects").times_ps.value_at_quantile(0.5).max(1)
    };
    Ok(subjects.iter().map(|subject| subject.figures(bare_ps(subject.processes))).collect())
}

fn subjects(processes: u64) -> impl Iterator<Item = Subject> {
    let batches = std::iter::once(None).chain(BATCHES.into_iter().map(Some));
    batches.map(move |batch| Subject { processes, batch, times_ps: histogram(), positions: 0, won: 0 })
}

/// Picoseconds, up to a second.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 1_000_000_000_000, 3).expect("constant bounds are valid")
}

/// One thing measured.
struct Subject {
    processes: u64,
    /// Requests per proposal; `None` is the bare compare-and-swap.
    batch: Option<usize>,
    times_ps: Histogram<u64>,
    positions: u64,
    won: u64,
}

impl Subject {
    fn round(&mut self, dir: &Path, slice: Duration) -> LabResult {
        let (path, pair) = (dir.join("words"), Pair::create(dir)?);
        let batch = self.batch.map(|batch| batch.to_string());
        let arguments = ["contend", text(dir)?].into_iter().chain(batch.as_deref()).collect::<Vec<_>>();
        match self.batch {
            None => {
                let mut swap = BareSwap::create(&path)?;
                let _peer = self.peer(&arguments)?;
                self.sample(slice, &pair, &mut || swap.turn());
                self.won += swap.won;
            }
            Some(batch) => {
                let mut proposer = Proposer::create(&path)?;
                let _peer = self.peer(&arguments)?;
                self.sample(slice, &pair, &mut || proposer.turn(batch));
                self.won += proposer.won;
            }
        }
        std::fs::remove_file(&path).map_err(LabError::io("removing the window"))?;
        std::fs::remove_file(pair_path(dir)).map_err(LabError::io("removing the processes' positions"))
    }

    fn peer(&self, arguments: &[&str]) -> Result<Option<PeerProcess>, LabError> {
        (self.processes == 2).then(|| PeerProcess::start(arguments)).transpose()
    }

    fn sample(&mut self, slice: Duration, pair: &Pair, turn: &mut dyn FnMut() -> u64) {
        let (begun, mut position) = (Instant::now(), 0);
        while begun.elapsed() < slice {
            if self.processes == 2 && !pair.may_go_on(0, position) {
                std::thread::yield_now();
                continue;
            }
            let start_ns = mono_ns();
            let positions = one_sample(turn);
            self.times_ps.saturating_record((mono_ns() - start_ns) * 1_000 / positions);
            position += positions;
        }
        self.positions += position;
    }

    fn figures(&self, bare_ps: u64) -> Figures {
        let ns = |quantile| self.times_ps.value_at_quantile(quantile) as f64 / 1e3;
        Figures {
            what: if self.batch.is_none() { "bare_swap" } else { "propose" },
            processes: self.processes,
            batch: self.batch.unwrap_or(1),
            p50_ns: ns(0.5),
            p99_ns: ns(0.99),
            p999_ns: ns(0.999),
            ratio: self.times_ps.value_at_quantile(0.5) as f64 / bare_ps as f64,
            won_share: self.won as f64 / self.positions.max(1) as f64,
            positions: self.positions,
        }
    }
}

fn text(path: &Path) -> Result<&str, LabError> {
    path.to_str().ok_or_else(|| LabError::Usage("the temporary directory's name is not UTF-8".into()))
}

/// The second process: proposes, or swaps if `batch` is `None`, until killed.
///
/// # Errors
/// If the first process has prepared nothing in `dir`.
pub fn contend(dir: &Path, batch: Option<usize>) -> LabResult {
    let path = dir.join("words");
    let pair = Pair { positions: Mapping::open(&pair_path(dir)).map_err(failed("the positions"))? };
    let mut turn: Box<dyn FnMut() -> u64> = match batch {
        None => {
            let mut swap = BareSwap::open(&path)?;
            Box::new(move || swap.turn())
        }
        Some(batch) => {
            let mut proposer = Proposer::open(&path, GatewayId(1))?;
            Box::new(move || proposer.turn(batch))
        }
    };
    super::peer::ready()?;
    let mut position = 0;
    loop {
        match pair.may_go_on(1, position) {
            true => position += one_sample(&mut turn),
            false => std::thread::yield_now(),
        }
    }
}

/// Turns until enough positions are decided; how many that is.
fn one_sample(turn: &mut dyn FnMut() -> u64) -> u64 {
    let mut positions = 0;
    while positions < SAMPLE_POSITIONS {
        positions += turn();
    }
    positions
}

/// How far each of two processes is.
struct Pair {
    positions: Mapping,
}

fn pair_path(dir: &Path) -> PathBuf {
    dir.join("positions")
}

impl Pair {
    fn create(dir: &Path) -> Result<Self, LabError> {
        Ok(Self { positions: Mapping::create(&pair_path(dir), 256).map_err(failed("the positions"))? })
    }

    /// Says how far process `own` (0 or 1) is, and whether it is not too far ahead.
    fn may_go_on(&self, own: usize, position: u64) -> bool {
        self.positions.atomic_u64(own * 128).store(position, Ordering::Relaxed);
        position <= self.positions.load_u64((1 - own) * 128, Ordering::Relaxed) + LEAD_MAX
    }
}

/// A venue reduced to its proposals: conforms to what is decided, and records at once what it has learnt.
struct Proposer {
    window: SharedWindow,
    gateway: GatewayId,
    position: u64,
    /// Of its own requests, how many are decided.
    won: u64,
    batch: Vec<RequestId>,
    decided: Vec<RequestId>,
}

impl Proposer {
    fn create(path: &Path) -> Result<Self, LabError> {
        let window = SharedWindow::create(path, ShardId(0), CAPACITY, Epoch(1), Position(0))
            .map_err(failed("the window"))?;
        Ok(Self::new(window, GatewayId(0)))
    }

    fn open(path: &Path, gateway: GatewayId) -> Result<Self, LabError> {
        Ok(Self::new(SharedWindow::open(path).map_err(failed("the window"))?, gateway))
    }

    fn new(window: SharedWindow, gateway: GatewayId) -> Self {
        let (batch, decided) = (Vec::with_capacity(DECIDED_MAX), Vec::with_capacity(DECIDED_MAX));
        Self { window, gateway, position: 0, won: 0, batch, decided }
    }

    /// Proposes its next requests and conforms to what is decided; how many positions that was.
    fn turn(&mut self, batch: usize) -> u64 {
        self.batch.clear();
        self.batch.extend((1..=batch as u64).map(|n| RequestId::new(self.gateway, self.won + n)));
        self.decided.clear();
        let first = Position(self.position);
        let result = self.window.propose(first, &self.batch, DECIDED_MAX, &mut self.decided);
        let learnt = self.decided.len() as u64;
        self.won += self.decided.iter().filter(|id| id.gateway() == self.gateway).count() as u64;
        self.position += learnt;
        if let Err(ProposeError::TooFarBehind { oldest }) = result {
            // A venue would read the record; here there is none.
            self.position = oldest.0;
        }
        if self.position - self.window.recorded().0.min(self.position) > CAPACITY as u64 / 4 {
            self.window.raise_recorded(Position(self.position));
        }
        learnt
    }
}

/// Nothing but the compare-and-swap: one word per position, no rules.
struct BareSwap {
    words: Mapping,
    position: usize,
    won: u64,
}

impl BareSwap {
    fn create(path: &Path) -> Result<Self, LabError> {
        let words = Mapping::create(path, CAPACITY * 16).map_err(failed("the words"))?;
        words.prefault(0..words.len());
        Ok(Self { words, position: 0, won: 0 })
    }

    fn open(path: &Path) -> Result<Self, LabError> {
        let words = Mapping::open(path).map_err(failed("the words"))?;
        Ok(Self { words, position: 0, won: 0 })
    }

    /// Swaps the next word from what the last round left there, or finds it swapped; always one position.
    fn turn(&mut self) -> u64 {
        let (lap, slot) = ((self.position / CAPACITY) as u128, self.position % CAPACITY);
        let word = self.words.atomic_u128(slot * 16);
        let swapped = word.compare_exchange(lap, lap + 1, Ordering::AcqRel, Ordering::Acquire);
        self.won += u64::from(swapped.is_ok());
        self.position += 1;
        1
    }
}
