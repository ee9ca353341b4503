//! The marks of a log: how far it is written, durable, synced and released, and how it is doing.
//!
//! One mapped file, so that a reader learns of new records with a load, and any process can see from outside how a
//! running, stopped or dead writer stands. The written mark has 128 bytes to itself: readers poll it, and a counter beside
//! it would be taken from the writer's cache each time.
//!
//! ```text
//!   0    magic "PARESLOG" | version u32 | durability u32 | segment_bytes u64 | writer pid u32 | - | boot id (16) | mirror u32
//!   128  written                                                                       by publish
//!   256  durable | synced | syncs                                                     by publish or sync
//!   320  appends | bytes | publishes | rolls | rolls unprepared | full                by the writer
//!   384  released | segments prepared | prepare failures                              by release and the preparer
//!   448  poisoned (error number, u32)
//!   512  append latency histogram, then sync latency histogram
//! ```

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hdrhistogram::Histogram;
use pares_os::{HISTOGRAM_BYTES, HistogramReader, HistogramWriter, MapError, Mapping};

use crate::config::{Config, Durability};
use crate::error::{AppendError, OTHER_VERSION, OpenError, ReadError};
use crate::offset::{Geometry, Offset};

const MAGIC: u64 = u64::from_le_bytes(*b"PARESLOG");
const VERSION: u32 = 1;

const AT_VERSION: usize = 8;
const AT_DURABILITY: usize = 12;
const AT_SEGMENT_BYTES: usize = 16;
const AT_PID: usize = 24;
const AT_BOOT: usize = 32;
const AT_MIRROR: usize = 48;
const AT_POISONED: usize = 448;
const AT_APPEND_LATENCY: usize = 512;
const AT_SYNC_LATENCY: usize = AT_APPEND_LATENCY + HISTOGRAM_BYTES;
const MARKS_BYTES: usize = AT_SYNC_LATENCY + HISTOGRAM_BYTES;

/// The 64-bit words, by the byte they lie at.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(crate) enum Mark {
    Written = 128,
    Appends = 320,
    Bytes = 328,
    Publishes = 336,
    Rolls = 344,
    RollsUnprepared = 352,
    Full = 360,
    Durable = 256,
    Synced = 264,
    Syncs = 272,
    Released = 384,
    Prepared = 392,
    PrepareFailures = 400,
}

/// The marks file, mapped for writing by the owner and for reading by all other processes.
#[derive(Debug, Clone)]
pub(crate) struct Marks {
    map: Arc<Mapping>,
}

impl Marks {
    /// Creates the marks of an empty log; complete on the device before it carries its name.
    pub(crate) fn create(dir: &Path, config: &Config, first: u64) -> Result<Marks, OpenError> {
        let (path, fresh) = (dir.join("marks"), dir.join("marks.tmp"));
        if fresh.exists() {
            std::fs::remove_file(&fresh).map_err(OpenError::io("remove", &fresh))?;
        }
        let marks = Marks { map: Arc::new(Mapping::create(&fresh, MARKS_BYTES)?) };
        marks.map.atomic_u32(AT_VERSION).store(VERSION, Ordering::Relaxed);
        marks.map.atomic_u64(AT_SEGMENT_BYTES).store(config.segment_bytes, Ordering::Relaxed);
        for mark in [Mark::Written, Mark::Durable, Mark::Synced] {
            marks.set(mark, first);
        }
        if let Some(released) = config.mirror_from {
            marks.set(Mark::Released, released);
            marks.set_mirror(true);
        }
        marks.map.atomic_u64(0).store(MAGIC, Ordering::Release);
        config.device.sync(&fresh, marks.file()).map_err(OpenError::io("sync", &fresh))?;
        std::fs::rename(&fresh, &path).map_err(OpenError::io("rename", &path))?;
        config.device.sync_dir(dir).map_err(|error| {
            marks.poison(&error);
            let _best_effort = config.device.sync(&path, marks.file());
            OpenError::io("sync", dir)(error)
        })?;
        Ok(marks)
    }

    /// Opens the marks for writing; `None` if there are none.
    pub(crate) fn open(dir: &Path) -> Result<Option<Marks>, OpenError> {
        let path = dir.join("marks");
        if !path.exists() {
            return Ok(None);
        }
        let map = Mapping::open(&path)?;
        match Marks::check(map) {
            Ok(marks) => Ok(Some(marks)),
            Err(what) => Err(OpenError::Foreign { path, what }),
        }
    }

    pub(crate) fn open_read_only(dir: &Path) -> Result<Marks, ReadError> {
        let path = dir.join("marks");
        let map = match Mapping::open_read_only(&path) {
            Err(MapError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(ReadError::NotYet { dir: dir.to_owned() });
            }
            other => other?,
        };
        Marks::check(map).map_err(|what| ReadError::Foreign { path, what })
    }

    fn check(map: Mapping) -> Result<Marks, &'static str> {
        if map.len() != MARKS_BYTES || map.load_u64(0, Ordering::Acquire) != MAGIC {
            return Err("these are no marks");
        }
        if map.load_u32(AT_VERSION, Ordering::Relaxed) != VERSION {
            return Err(OTHER_VERSION);
        }
        let segment_bytes = map.load_u64(AT_SEGMENT_BYTES, Ordering::Relaxed);
        if !(4096..=1 << 30).contains(&segment_bytes) || !segment_bytes.is_multiple_of(4096) {
            return Err("the segment size in the marks is not legal");
        }
        // In this order: both only rise, and a writer releases nothing that it has not written.
        let released = map.load_u64(Mark::Released as usize, Ordering::Acquire);
        let written = map.load_u64(Mark::Written as usize, Ordering::Acquire);
        if released > written || !released.is_multiple_of(segment_bytes) {
            return Err("the marks contain a wrong release offset");
        }
        Ok(Marks { map: Arc::new(map) })
    }

    pub(crate) fn geometry(&self) -> Geometry {
        Geometry { segment_bytes: self.map.load_u64(AT_SEGMENT_BYTES, Ordering::Relaxed) }
    }

    /// Loads a mark; what lies below it is visible to the caller.
    #[inline]
    pub(crate) fn get(&self, mark: Mark) -> u64 {
        self.map.load_u64(mark as usize, Ordering::Acquire)
    }

    /// Stores a mark; what was done before is visible to those who load it.
    #[inline]
    pub(crate) fn set(&self, mark: Mark, value: u64) {
        self.map.atomic_u64(mark as usize).store(value, Ordering::Release);
    }

    /// Adds to a counter that only this thread writes.
    #[inline]
    pub(crate) fn add(&self, mark: Mark, increment: u64) {
        self.set(mark, self.get(mark).wrapping_add(increment));
    }

    /// The error number of the failure that poisoned the log; zero if none did.
    #[inline]
    pub(crate) fn poisoned(&self) -> i32 {
        self.map.load_u32(AT_POISONED, Ordering::Acquire).cast_signed()
    }

    /// Poisons the log; the first failure stays the one on record.
    pub(crate) fn poison(&self, error: &std::io::Error) -> AppendError {
        let errno = error.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error()).cast_unsigned();
        let word = self.map.atomic_u32(AT_POISONED);
        let first = word.compare_exchange(0, errno, Ordering::AcqRel, Ordering::Acquire);
        AppendError::Poisoned { errno: first.map_or_else(|earlier| earlier, |_| errno).cast_signed() }
    }

    pub(crate) fn clear_poison(&self) {
        self.map.atomic_u32(AT_POISONED).store(0, Ordering::Release);
    }

    /// Whether another log is copied here.
    pub(crate) fn is_mirror(&self) -> bool {
        self.map.load_u32(AT_MIRROR, Ordering::Relaxed) != 0
    }

    pub(crate) fn set_mirror(&self, is_mirror: bool) {
        self.map.atomic_u32(AT_MIRROR).store(is_mirror.into(), Ordering::Release);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.map.load_u32(AT_PID, Ordering::Relaxed)
    }

    pub(crate) fn durability(&self) -> Option<Durability> {
        match self.map.load_u32(AT_DURABILITY, Ordering::Relaxed) {
            1 => Some(Durability::Os),
            2 => Some(Durability::Disk),
            _ => None,
        }
    }

    /// Enters who writes from now on.
    pub(crate) fn sign(&self, durability: Durability, boot: u128) {
        self.map.atomic_u32(AT_DURABILITY).store(durability as u32, Ordering::Relaxed);
        self.map.atomic_u32(AT_PID).store(std::process::id(), Ordering::Relaxed);
        self.map.atomic_u64(AT_BOOT).store(boot as u64, Ordering::Relaxed);
        self.map.atomic_u64(AT_BOOT + 8).store((boot >> 64) as u64, Ordering::Relaxed);
    }

    /// Which boot of the host the last writer ran in.
    pub(crate) fn boot(&self) -> u128 {
        let half = |at| u128::from(self.map.load_u64(at, Ordering::Relaxed));
        half(AT_BOOT) | half(AT_BOOT + 8) << 64
    }

    pub(crate) fn file(&self) -> &std::fs::File {
        self.map.file()
    }

    pub(crate) fn append_latency(&self) -> HistogramWriter {
        HistogramWriter::new(self.map.clone(), AT_APPEND_LATENCY)
    }

    pub(crate) fn sync_latency(&self) -> HistogramWriter {
        HistogramWriter::new(self.map.clone(), AT_SYNC_LATENCY)
    }
}

/// The marks of a log as any process may read them, while its writer runs or after it died.
#[derive(Debug, Clone)]
pub struct MarksReader {
    marks: Marks,
}

/// The marks and counters of a log at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStats {
    /// Readable below this.
    pub written: Offset,
    /// Kept below this, as the durability setting promises.
    pub durable: Offset,
    /// On the device below this.
    pub synced: Offset,
    /// The log begins here.
    pub released: Offset,
    /// Error number of the failure that poisoned the log; zero if none did.
    pub poisoned: i32,
    /// The setting of the last writer; `None` before the first.
    pub durability: Option<Durability>,
    /// Bytes per segment.
    pub segment_bytes: u64,
    /// Process that writes or wrote last.
    pub writer_pid: u32,
    /// Records appended since the log was created, as of the last publish.
    pub appends: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Times a batch was made readable.
    pub publishes: u64,
    /// Times a batch was synced to the device.
    pub syncs: u64,
    /// Segments begun after the first.
    pub rolls: u64,
    /// Rolls for which no segment was ready, so that the writer made it in line.
    pub rolls_unprepared: u64,
    /// Appends refused because there was no room, or no descriptor, for another segment.
    pub refused_full: u64,
    /// Segments made ahead.
    pub segments_prepared: u64,
    /// Times making one ahead failed (it is retried).
    pub prepare_failures: u64,
}

impl MarksReader {
    /// Opens the marks of the log in `dir`.
    ///
    /// # Errors
    /// [`ReadError::NotYet`] while there is no log, `Foreign` or `Map` if it cannot be read.
    pub fn open(dir: &Path) -> Result<MarksReader, ReadError> {
        Ok(MarksReader { marks: Marks::open_read_only(dir)? })
    }

    pub(crate) fn of(marks: &Marks) -> MarksReader {
        MarksReader { marks: marks.clone() }
    }

    /// All marks and counters, read one after the other.
    pub fn stats(&self) -> LogStats {
        let get = |mark| self.marks.get(mark);
        let offset = |mark| Offset(get(mark));
        LogStats {
            written: offset(Mark::Written),
            durable: offset(Mark::Durable),
            synced: offset(Mark::Synced),
            released: offset(Mark::Released),
            poisoned: self.marks.poisoned(),
            durability: self.marks.durability(),
            segment_bytes: self.marks.geometry().segment_bytes,
            writer_pid: self.marks.pid(),
            appends: get(Mark::Appends),
            payload_bytes: get(Mark::Bytes),
            publishes: get(Mark::Publishes),
            syncs: get(Mark::Syncs),
            rolls: get(Mark::Rolls),
            rolls_unprepared: get(Mark::RollsUnprepared),
            refused_full: get(Mark::Full),
            segments_prepared: get(Mark::Prepared),
            prepare_failures: get(Mark::PrepareFailures),
        }
    }

    /// Time inside `append`, in nanoseconds, since the log was created: of the first record of each batch, of one in 32 behind it, and of
    /// each that began a segment.
    pub fn append_latency(&self) -> Histogram<u64> {
        HistogramReader::new(self.marks.map.clone(), AT_APPEND_LATENCY).snapshot()
    }

    /// Time of each sync to the device in nanoseconds.
    pub fn sync_latency(&self) -> Histogram<u64> {
        HistogramReader::new(self.marks.map.clone(), AT_SYNC_LATENCY).snapshot()
    }
}
