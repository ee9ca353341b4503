//! The log against raw writes of the same bytes, in one run.
//!
//! Absolute figures of a shared machine say little; ratios taken in the same minute say something. So every figure of
//! the log comes with the raw one: a plain `pwrite` to a file that was allocated and zeroed beforehand, which is the
//! best that can be done without a log. The parts alternate in rounds, so that a noisy second hits both alike.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use pares_log::{Config, Durability, MarksReader, Writer};
use pares_os::clock::mono_ns;
use serde::Serialize;

/// Why a measurement could not be taken: a log that cannot be opened, written or read, or the raw file.
pub type BenchError = Box<dyn std::error::Error + Send + Sync>;

/// A distribution in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Distribution {
    /// Values measured.
    pub count: u64,
    /// Half are at most this.
    pub p50_us: f64,
    /// 99 of 100 are at most this.
    pub p99_us: f64,
    /// 999 of 1000 are at most this.
    pub p999_us: f64,
    /// The largest.
    pub max_us: f64,
}

impl Distribution {
    /// Of nanoseconds.
    pub(super) fn of(values: &Histogram<u64>) -> Self {
        let us = |quantile| values.value_at_quantile(quantile) as f64 / 1e3;
        let (count, max_us) = (values.len(), values.max() as f64 / 1e3);
        Self { count, p50_us: us(0.5), p99_us: us(0.99), p999_us: us(0.999), max_us }
    }
}

/// The log beside the raw writes of the same run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Comparison {
    /// Appending, publishing (and syncing) through the log.
    pub log: Distribution,
    /// The same bytes with `pwrite` (and `fdatasync`) to a zeroed file.
    pub raw: Distribution,
    /// The log's batches that began a new segment, out of those in `log`.
    pub rolls: Distribution,
    /// The log's batches that did not.
    pub between_rolls: Distribution,
    /// Rolls for which no segment was ready; 0 in a [`Tally`]'s comparison.
    pub rolls_unprepared: u64,
}

/// What to write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Bytes of each record's payload.
    pub record_bytes: usize,
    /// Records per batch: published, and synced if `durability` is `Disk`, together.
    pub batch: usize,
    /// Batches measured.
    pub batches: usize,
    /// Bytes per segment of the log.
    pub segment_bytes: u64,
    /// With or without a sync per batch.
    pub durability: Durability,
    /// Pause after each batch in nanoseconds (spinning): 0 measures a burst, which outruns the preparer.
    pub pause_ns: u64,
}

const ROUNDS: usize = 20;

/// Measures batches through a new log and through raw writes in turns, in the directory `dir`, whose content is removed.
///
/// # Errors
/// [`BenchError`] when the disk refuses.
pub fn compare(dir: &Path, load: Load) -> Result<Comparison, BenchError> {
    let mut contest = Contest::open(dir, load)?;
    let mut tally = Tally::default();
    for _ in 0..ROUNDS {
        contest.round(load.batches.div_ceil(ROUNDS), &mut tally)?;
    }
    let rolls_unprepared = contest.close()?;
    Ok(Comparison { rolls_unprepared, ..tally.comparison() })
}

/// A new log and a raw file side by side, written in turns, for callers that do something to the log between the rounds.
pub struct Contest {
    dir: PathBuf,
    load: Load,
    payload: Vec<u8>,
    writer: Writer,
    raw: Raw,
}

impl Contest {
    /// Creates both in the directory `dir`.
    ///
    /// # Errors
    /// [`BenchError`] when the disk refuses.
    pub fn open(dir: &Path, load: Load) -> Result<Contest, BenchError> {
        let config = Config::default().segment_bytes(load.segment_bytes).durability(load.durability);
        let (writer, _) = Writer::open(&dir.join("log"), config)?;
        let raw = Raw::create(&dir.join("raw"), load)?;
        Ok(Contest { dir: dir.to_owned(), load, payload: vec![0x5a; load.record_bytes], writer, raw })
    }

    /// The log's directory.
    pub fn log_dir(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Writes so many batches through the log, then as many raw.
    ///
    /// # Errors
    /// [`BenchError`] when the disk refuses.
    pub fn round(&mut self, batches: usize, tally: &mut Tally) -> Result<(), BenchError> {
        let Contest { load, payload, writer, raw, .. } = self;
        for _ in 0..batches {
            let segment = writer.tail().0 / load.segment_bytes;
            let taken = timed(|| log_batch(writer, payload, *load))?;
            tally.on_log(taken, writer.tail().0 / load.segment_bytes != segment);
            spin(load.pause_ns);
        }
        for _ in 0..batches {
            tally.raw.saturating_record(timed(|| raw.batch(payload, *load))?);
            spin(load.pause_ns);
        }
        Ok(())
    }

    /// Removes both, and says for how many rolls no segment was ready.
    ///
    /// # Errors
    /// [`BenchError`] when they cannot be removed.
    pub fn close(self) -> Result<u64, BenchError> {
        let rolls_unprepared = MarksReader::open(&self.log_dir())?.stats().rolls_unprepared;
        let (log, raw) = (self.log_dir(), self.dir.join("raw"));
        drop(self);
        std::fs::remove_dir_all(log)?;
        std::fs::remove_file(raw)?;
        Ok(rolls_unprepared)
    }
}

/// What rounds of a [`Contest`] took: one tally per condition that is compared.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    log: Histogram<u64>,
    raw: Histogram<u64>,
    rolls: Histogram<u64>,
    between_rolls: Histogram<u64>,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { log: histogram(), raw: histogram(), rolls: histogram(), between_rolls: histogram() }
    }
}

impl Tally {
    fn on_log(&mut self, taken_ns: u64, rolled: bool) {
        self.log.saturating_record(taken_ns);
        let part = if rolled { &mut self.rolls } else { &mut self.between_rolls };
        part.saturating_record(taken_ns);
    }

    /// The distributions so far.
    pub fn comparison(&self) -> Comparison {
        Comparison {
            log: Distribution::of(&self.log),
            raw: Distribution::of(&self.raw),
            rolls: Distribution::of(&self.rolls),
            between_rolls: Distribution::of(&self.between_rolls),
            rolls_unprepared: 0,
        }
    }
}

fn log_batch(writer: &mut Writer, payload: &[u8], load: Load) -> Result<(), BenchError> {
    for _ in 0..load.batch {
        writer.append(payload)?;
    }
    match load.durability {
        Durability::Os => writer.publish(),
        Durability::Disk => writer.sync()?,
    };
    Ok(())
}

/// A zeroed file, written from front to back and again.
struct Raw {
    file: File,
    at: u64,
    len: u64,
}

impl Raw {
    fn create(path: &Path, load: Load) -> io::Result<Raw> {
        let len = load.segment_bytes.max((load.batch * load.record_bytes) as u64);
        let file = File::create(path)?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, len)?;
        for at in (0..len).step_by(4096) {
            file.write_all_at(&[0; 4096], at)?;
        }
        file.sync_all()?;
        Ok(Raw { file, at: 0, len })
    }

    fn batch(&mut self, payload: &[u8], load: Load) -> Result<(), BenchError> {
        if self.at + (load.batch * payload.len()) as u64 > self.len {
            self.at = 0;
        }
        for _ in 0..load.batch {
            self.file.write_all_at(payload, self.at)?;
            self.at += payload.len() as u64;
        }
        if load.durability == Durability::Disk {
            self.file.sync_data()?;
        }
        Ok(())
    }
}

fn timed(work: impl FnOnce() -> Result<(), BenchError>) -> Result<u64, BenchError> {
    let start = mono_ns();
    work()?;
    Ok(mono_ns() - start)
}

fn spin(ns: u64) {
    let start = mono_ns();
    while mono_ns() - start < ns {
        std::hint::spin_loop();
    }
}

pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("constant bounds are legal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_batch_of_both_kinds_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        for durability in [Durability::Os, Durability::Disk] {
            let load = Load {
                record_bytes: 256,
                batch: 4,
                batches: 100,
                segment_bytes: 16384,
                durability,
                pause_ns: 0,
            };
            let found = compare(dir.path(), load).unwrap();
            assert_eq!((found.log.count, found.raw.count), (100, 100));
            assert!(found.rolls.count >= 5);
            assert_eq!(found.rolls.count + found.between_rolls.count, 100);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
