//! The log beside what the machine can do at best.
//!
//! Absolute figures of a machine that others use too say little, so each comes with the same bytes written raw, in turns
//! with it: `pwrite` to a file that was allocated and zeroed beforehand, which is the best that can be done without a log.

use std::path::Path;

use pares_load::{LabError, ScratchDirectory, failed};
use pares_log::Durability;
use rustix::process::Signal;
use serde::Serialize;

use super::contest::{Comparison, Contest, Distribution, Load, Tally};
use super::{contest, round_trip};
use crate::bench::peer::PeerProcess;

const RECORD_BYTES: usize = 256;
const GROUP: usize = 64;
/// Rounds in which a reader is started, stopped and killed.
const READER_ROUNDS: usize = 10;
const ROUND_TRIP_BYTES: usize = 64;

/// The log beside raw writes in the same rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BesideLoad {
    /// Through the log.
    pub log: Distribution,
    /// Raw.
    pub raw: Distribution,
    /// Median over median.
    pub ratio_p50: f64,
    /// 99th percentile over 99th percentile.
    pub ratio_p99: f64,
}

impl From<Comparison> for BesideLoad {
    fn from(of: Comparison) -> Self {
        // The clock ticks in nanoseconds.
        let ratio = |log_us: f64, raw_us: f64| log_us / raw_us.max(0.001);
        Self {
            log: of.log,
            raw: of.raw,
            ratio_p50: ratio(of.log.p50_us, of.raw.p50_us),
            ratio_p99: ratio(of.log.p99_us, of.raw.p99_us),
        }
    }
}

/// Appends that began a new segment beside those that did not.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rolls {
    /// Appends that began one.
    pub rolls: Distribution,
    /// Appends that did not.
    pub between: Distribution,
    /// Raw writes in the same rounds, which never roll.
    pub raw: Distribution,
    /// Rolls for which no segment was ready.
    pub unprepared: u64,
}

/// The same writes while a reader process does different things.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Readers {
    /// No reader.
    pub none: BesideLoad,
    /// One that reads along, yielding when it has read all.
    pub reading: BesideLoad,
    /// One stopped by SIGSTOP.
    pub stopped: BesideLoad,
    /// One just killed.
    pub killed: BesideLoad,
}

/// What the benchmark gave.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BesideRaw {
    /// A record of 256 B appended and published, beside `pwrite` of 256 B.
    pub append: BesideLoad,
    /// 64 records of 256 B made durable together, beside 64 `pwrite` and one `fdatasync`.
    pub group_commit: BesideLoad,
    /// Appends 5 us apart, with a segment of 4 MiB full every 15,000.
    pub rolls: Rolls,
    /// Appends while a reader process reads, is stopped, is killed.
    pub append_with_reader: Readers,
    /// Group commits likewise.
    pub group_commit_with_reader: Readers,
    /// A record of 64 B to another process and back, both spinning.
    pub round_trip: Distribution,
}

/// Runs the benchmark with so many appends in each part.
///
/// # Errors
/// If the disk refuses or the other process cannot be had.
pub fn measure(within: Option<&Path>, records: usize) -> Result<BesideRaw, LabError> {
    let scratch = ScratchDirectory::create(within)?;
    let dir = scratch.path();
    let bar = pares_text::progress::steps("measuring", 6);
    let append = compare(dir, appends(records))?.into();
    bar.inc(1);
    let group_commit = compare(dir, commits(records))?.into();
    bar.inc(1);
    let rolls = rolls(dir, records)?;
    bar.inc(1);
    let append_with_reader = with_reader(dir, appends(records))?;
    bar.inc(1);
    let group_commit_with_reader = with_reader(dir, commits(records))?;
    bar.inc(1);
    let round_trip = round_trip(dir, records)?;
    bar.finish_and_clear();
    Ok(BesideRaw { append, group_commit, rolls, append_with_reader, group_commit_with_reader, round_trip })
}

fn appends(records: usize) -> Load {
    Load {
        record_bytes: RECORD_BYTES,
        batch: 1,
        batches: records,
        segment_bytes: 64 << 20,
        durability: Durability::Os,
        pause_ns: 0,
    }
}

fn commits(records: usize) -> Load {
    Load { batch: GROUP, batches: (records / GROUP / 2).max(20), durability: Durability::Disk, ..appends(0) }
}

fn compare(dir: &Path, load: Load) -> Result<Comparison, LabError> {
    contest::compare(dir, load).map_err(failed("the comparison"))
}

fn rolls(dir: &Path, records: usize) -> Result<Rolls, LabError> {
    let records = records.max(40_000); // some rolls at least
    let found = compare(dir, Load { segment_bytes: 4 << 20, pause_ns: 5_000, ..appends(records) })?;
    Ok(Rolls {
        rolls: found.rolls,
        between: found.between_rolls,
        raw: found.raw,
        unprepared: found.rolls_unprepared,
    })
}

fn with_reader(dir: &Path, load: Load) -> Result<Readers, LabError> {
    let batches = (load.batches / READER_ROUNDS).max(1);
    let mut contest = Contest::open(dir, load).map_err(failed("the comparison"))?;
    let mut tallies = [(); 4].map(|()| Tally::default());
    let log = contest.log_dir();
    let log = log.to_str().ok_or_else(|| LabError::Usage("the directory's name is not UTF-8".into()))?;
    for _ in 0..READER_ROUNDS {
        let [none, reading, stopped, killed] = &mut tallies;
        let mut round = |tally| contest.round(batches, tally).map_err(failed("the comparison"));
        round(none)?;
        let reader = PeerProcess::start(&["read", log])?;
        round(reading)?;
        reader.signal(Signal::STOP);
        round(stopped)?;
        drop(reader);
        round(killed)?;
    }
    contest.close().map_err(failed("the comparison"))?;
    let [none, reading, stopped, killed] = tallies.map(|tally| tally.comparison().into());
    Ok(Readers { none, reading, stopped, killed })
}

fn round_trip(dir: &Path, rounds: usize) -> Result<Distribution, LabError> {
    let text = dir.to_str().ok_or_else(|| LabError::Usage("the directory's name is not UTF-8".into()))?;
    let mut echo = PeerProcess::start(&["echo", text])?;
    round_trip::ask(dir, ROUND_TRIP_BYTES, rounds, || echo.is_gone()).map_err(failed("the round trip"))
}
