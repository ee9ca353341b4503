//! Measuring the log against raw writes of the same bytes, in one run (`pares bench journal`).
//!
//! Absolute figures of a shared machine say little; ratios taken in the same minute say something. So every figure of
//! the log comes with the raw one: a plain `pwrite` to a file that was allocated and zeroed beforehand, which is the
//! best that can be done without a log. The parts alternate in rounds, so that a noisy second hits both alike.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hdrhistogram::Histogram;
use pares_shm::clock::mono_ns;

use crate::{AppendError, Config, Durability, MarksReader, Offset, OpenError, ReadError, Reader, Writer};

/// Why a measurement could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The log could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Appending or syncing failed.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The raw file could not be written.
    #[error("the raw file: {0}")]
    Io(#[from] io::Error),
}

/// A distribution in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Percentiles {
    /// Values measured.
    pub count: u64,
    /// Half are at most this.
    pub p50_ns: u64,
    /// 99 of 100 are at most this.
    pub p99_ns: u64,
    /// 999 of 1000 are at most this.
    pub p999_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

impl Percentiles {
    fn of(values: &Histogram<u64>) -> Percentiles {
        Percentiles {
            count: values.len(),
            p50_ns: values.value_at_quantile(0.5),
            p99_ns: values.value_at_quantile(0.99),
            p999_ns: values.value_at_quantile(0.999),
            max_ns: values.max(),
        }
    }
}

/// The log beside the raw writes of the same run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Comparison {
    /// Appending, publishing (and syncing) through the log.
    pub log: Percentiles,
    /// The same bytes with `pwrite` (and `fdatasync`) to a zeroed file.
    pub raw: Percentiles,
    /// The log's appends that began a new segment, out of those in `log`.
    pub rolls: Percentiles,
    /// Rolls for which no segment was ready.
    pub rolls_unprepared: u64,
}

/// What to write.
#[derive(Debug, Clone, Copy)]
pub struct Load {
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
    let config = Config::default().segment_bytes(load.segment_bytes).durability(load.durability);
    let (mut writer, _) = Writer::open(&dir.join("log"), config)?;
    let mut raw = Raw::create(&dir.join("raw"), load)?;
    let (mut log_ns, mut raw_ns, mut roll_ns) = (histogram(), histogram(), histogram());
    let payload = vec![0x5a; load.record_bytes];
    for _ in 0..ROUNDS {
        for _ in 0..load.batches.div_ceil(ROUNDS) {
            let segment = writer.tail().0 / load.segment_bytes;
            let taken = timed(|| log_batch(&mut writer, &payload, load))?;
            log_ns.saturating_record(taken);
            if writer.tail().0 / load.segment_bytes != segment {
                roll_ns.saturating_record(taken);
            }
            spin(load.pause_ns);
        }
        for _ in 0..load.batches.div_ceil(ROUNDS) {
            raw_ns.saturating_record(timed(|| raw.batch(&payload, load))?);
            spin(load.pause_ns);
        }
    }
    let rolls_unprepared = MarksReader::open(&dir.join("log"))?.stats().rolls_unprepared;
    drop(writer);
    std::fs::remove_dir_all(dir.join("log"))?;
    std::fs::remove_file(dir.join("raw"))?;
    let (log, raw) = (Percentiles::of(&log_ns), Percentiles::of(&raw_ns));
    Ok(Comparison { log, raw, rolls: Percentiles::of(&roll_ns), rolls_unprepared })
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

/// Measures round trips between two threads through two logs, both spinning: the echo answers every record.
///
/// # Errors
/// [`BenchError`] when the disk refuses.
pub fn round_trip(dir: &Path, record_bytes: usize, rounds: usize) -> Result<Percentiles, BenchError> {
    let (ping, pong) = (dir.join("ping"), dir.join("pong"));
    let config = Config::default().segment_bytes(16 << 20);
    let (mut writer, _) = Writer::open(&ping, config.clone())?;
    let (mut answers, _) = Writer::open(&pong, config)?;
    let mut requests = Reader::open(&ping, Offset::START)?;
    let mut reader = Reader::open(&pong, Offset::START)?;
    let stop = AtomicBool::new(false);
    let payload = vec![0x5a; record_bytes];
    let measured = std::thread::scope(|s| {
        let echo = s.spawn(|| echo(&mut requests, &mut answers, &stop));
        let measured = ask(&mut writer, &mut reader, &payload, rounds, || echo.is_finished());
        stop.store(true, Ordering::Relaxed);
        echo.join().expect("the echo does not panic")?;
        measured
    });
    std::fs::remove_dir_all(ping)?;
    std::fs::remove_dir_all(pong)?;
    measured
}

fn ask(
    writer: &mut Writer,
    reader: &mut Reader,
    payload: &[u8],
    rounds: usize,
    gone: impl Fn() -> bool,
) -> Result<Percentiles, BenchError> {
    let mut trips = histogram();
    for _ in 0..rounds {
        let start = mono_ns();
        writer.append(payload)?;
        writer.publish();
        let mut looks = 0u32;
        while reader.next()?.is_none() {
            std::hint::spin_loop();
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(1 << 20) && gone() {
                return Ok(Percentiles::of(&trips));
            }
        }
        trips.saturating_record(mono_ns() - start);
    }
    Ok(Percentiles::of(&trips))
}

fn echo(requests: &mut Reader, answers: &mut Writer, stop: &AtomicBool) -> Result<(), BenchError> {
    while !stop.load(Ordering::Relaxed) {
        match requests.next()? {
            Some(request) => {
                answers.append(request.payload)?;
                answers.publish();
            }
            None => std::hint::spin_loop(),
        }
    }
    Ok(())
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

fn histogram() -> Histogram<u64> {
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
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn every_round_trip_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(round_trip(dir.path(), 64, 100).unwrap().count, 100);
    }
}
