//! The one writer of a log.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pares_os::HistogramWriter;
use pares_os::clock::mono_ns;

use crate::config::{Config, Durability, payload_bytes_max};
use crate::error::{AppendError, OpenError};
use crate::marks::{Mark, Marks};
use crate::offset::Offset;
use crate::prepare::Preparer;
use crate::record::{self, Scan};

use crate::recover::{self, Recovery};
use crate::replace;
use crate::segment::{HEADER_BYTES, Making, Segment, Tail};
use crate::shared::{Shared, Syncer};

/// How long after a refusal for want of room the next attempt in line may cost a system call.
const FULL_RETRY_NS: u64 = 10_000_000;

/// Of the records of a batch, one of so many is timed, the first among them; and each one that begins a segment.
const TIMED_EVERY: u64 = 32;

/// The one writer of a log. Dropping it leaves the log as it is; what was appended but not published is kept if it is
/// whole.
#[derive(Debug)]
pub struct Writer {
    pub(crate) tail: Tail,
    payload_bytes_max: usize,
    latency: HistogramWriter,
    /// Counted since the last publish.
    appends: u64,
    bytes: u64,
    /// Not before this moment is a segment made in line again after there was no room for it.
    retry_full_ns: u64,
    /// Segments begun but not yet entered in the list that other threads see; nearly always empty.
    begun: Vec<Arc<Segment>>,
    preparer: Preparer,
    pub(crate) shared: Arc<Shared>,
}

impl Writer {
    /// Opens the log in `dir` for appending, creating directory and log as needed; cuts a torn tail.
    ///
    /// # Errors
    /// [`OpenError`]: another writer holds it, it is damaged below what was promised (nothing is cut then), poisoned, not
    /// a log, or the kernel refused.
    pub fn open(dir: &Path, config: Config) -> Result<(Writer, Recovery), OpenError> {
        config.check()?;
        if !config.existing {
            std::fs::create_dir_all(dir).map_err(OpenError::io("create", dir))?;
        } else if !dir.exists() {
            return Err(OpenError::Absent { dir: dir.to_owned() });
        }
        let lock = recover::lock(dir)?;
        replace::settle(dir, &*config.device)?;
        let (marks, tail, recovery) = recover::open(dir, &config)?;
        let latency = marks.append_latency();
        let payload_bytes_max = payload_bytes_max(marks.geometry().segment_bytes);
        let shared = Arc::new(Shared::new(dir.to_owned(), marks, config, tail.segment.clone(), lock));
        let preparer =
            Preparer::start(shared.clone()).map_err(OpenError::io("start the preparer of", dir))?;
        let (appends, bytes, retry_full_ns, begun) = (0, 0, 0, Vec::with_capacity(16));
        let writer = Writer {
            tail,
            payload_bytes_max,
            latency,
            appends,
            bytes,
            retry_full_ns,
            begun,
            preparer,
            shared,
        };
        Ok((writer, recovery))
    }

    /// Appends a record. Not readable before [`publish`](Writer::publish).
    ///
    /// # Errors
    /// [`AppendError`]; the log is then as before.
    #[inline]
    pub fn append(&mut self, payload: &[u8]) -> Result<Offset, AppendError> {
        self.append_with(payload.len(), |bytes| bytes.copy_from_slice(payload))
    }

    /// Appends a record of `len` bytes that `fill` writes in place (it gets zeros, or what an earlier `fill` that
    /// panicked left). Not readable before [`publish`](Writer::publish).
    ///
    /// # Errors
    /// [`AppendError`]; `fill` was not called and the log is as before.
    #[inline]
    pub fn append_with(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> Result<Offset, AppendError> {
        self.shared.check_poison()?;
        if len > self.payload_bytes_max {
            return Err(AppendError::TooLarge { len, max: self.payload_bytes_max });
        }
        let rolls = record::size(len) > self.tail.room();
        // Reading the clock twice takes as long as the record itself.
        let start = (rolls || self.appends.is_multiple_of(TIMED_EVERY)).then(mono_ns);
        if rolls {
            self.roll(start.unwrap_or_default())?;
        }
        let offset = self.tail.offset();
        self.tail.append(len, fill);
        self.appends += 1;
        self.bytes += len as u64;
        if let Some(start) = start {
            self.latency.record(mono_ns() - start);
        }
        Ok(Offset(offset))
    }

    /// Makes sure that the next `bytes` (records with their headers) can be appended without meeting a full disk,
    /// by rolling early if the current segment has no room for them. For a caller that cannot refuse once it has begun.
    ///
    /// # Errors
    /// [`AppendError::Full`] or [`AppendError::Poisoned`]; the log is as before.
    ///
    /// # Panics
    /// If `bytes` exceeds a quarter of a segment: reserving would waste more than it secures.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), AppendError> {
        assert!(
            bytes as u64 <= self.shared.geometry.segment_bytes / 4,
            "{bytes} bytes are too much to reserve"
        );
        self.shared.check_poison()?;
        if bytes > self.tail.room() { self.roll(mono_ns()) } else { Ok(()) }
    }

    /// Ends the current segment: the next record begins another. Nothing happens if none lies in it yet.
    ///
    /// # Errors
    /// [`AppendError::Full`] or [`AppendError::Poisoned`]; the log is as before.
    pub fn begin_segment(&mut self) -> Result<(), AppendError> {
        self.shared.check_poison()?;
        if self.tail.is_empty() { Ok(()) } else { self.roll(mono_ns()) }
    }

    /// Begins the next segment, of a mirror whose source has.
    pub(crate) fn begin_next_segment(&mut self) -> Result<(), AppendError> {
        self.roll(mono_ns())
    }

    /// Appends records of a source, sealed there for this place. There must be room.
    pub(crate) fn append_records(&mut self, bytes: &[u8], scan: Scan) -> Result<(), AppendError> {
        self.tail.append_sealed(bytes).map_err(|error| match error.kind() {
            ErrorKind::StorageFull => self.full(),
            _ => self.marks().poison(&error),
        })?;
        self.appends += scan.records;
        self.bytes += scan.payload_bytes;
        Ok(())
    }

    /// Makes everything appended so far readable. With [`Durability::Os`] that is also durable.
    ///
    /// One store for readers, however many records: publish per batch.
    #[inline]
    pub fn publish(&mut self) -> Offset {
        let end = self.tail.offset();
        let marks = &self.shared.marks;
        if self.appends > 0 {
            if !self.begun.is_empty() {
                self.shared.try_enter(&mut self.begun);
            }
            marks.set(Mark::Written, end);
            if self.shared.config.promises_when_published() {
                marks.set(Mark::Durable, end);
            }
            marks.add(Mark::Appends, std::mem::take(&mut self.appends));
            marks.add(Mark::Bytes, std::mem::take(&mut self.bytes));
            marks.add(Mark::Publishes, 1);
        }
        Offset(end)
    }

    /// Publishes, and waits until everything is on the device; raises `synced`, and `durable` if the setting is
    /// [`Durability::Disk`]. A duty cycle that must not wait gives its [`Syncer`] to another thread instead.
    ///
    /// # Errors
    /// [`AppendError::Poisoned`]: published but not durable; the log takes nothing more.
    pub fn sync(&mut self) -> Result<Offset, AppendError> {
        self.publish();
        self.shared.sync_to_written()
    }

    /// A handle to sync from another thread.
    pub fn syncer(&self) -> Syncer {
        Syncer { shared: self.shared.clone() }
    }

    /// Gives up everything below `offset`, in whole segments, never the current one. The files are unlinked in the
    /// background; readers in the middle of one finish it. Returns where the log begins now.
    pub fn release_before(&mut self, offset: Offset) -> Offset {
        let marks = &self.shared.marks;
        let published = self.shared.geometry.base_of_end(marks.get(Mark::Written));
        let base = self.shared.geometry.base(offset.0).min(self.tail.segment.base).min(published);
        if base > marks.get(Mark::Released) {
            marks.set(Mark::Released, base);
        }
        Offset(marks.get(Mark::Released))
    }

    /// Where the next record goes (or, at the end of a segment, at the earliest).
    pub fn tail(&self) -> Offset {
        Offset(self.tail.offset())
    }

    /// Readable below this.
    pub fn written(&self) -> Offset {
        Offset(self.marks().get(Mark::Written))
    }

    /// Kept below this, as the durability setting promises.
    pub fn durable(&self) -> Offset {
        Offset(self.marks().get(Mark::Durable))
    }

    /// Longest payload this log takes, in bytes.
    pub fn payload_bytes_max(&self) -> usize {
        self.payload_bytes_max
    }

    fn marks(&self) -> &Marks {
        &self.shared.marks
    }

    /// Moves to the next segment: a pointer's change if it lies ready.
    #[cold]
    fn roll(&mut self, now_ns: u64) -> Result<(), AppendError> {
        let base = self.tail.segment.base + self.shared.geometry.segment_bytes;
        let next = match self.preparer.take(base) {
            Some(ready) => ready,
            None => self.make_in_line(base, now_ns)?,
        };
        self.tail.seal();
        self.begun.push(next.clone());
        self.shared.current_base.store(base, Ordering::Release);
        self.shared.try_enter(&mut self.begun);
        self.tail = Tail::new(next, HEADER_BYTES);
        self.shared.marks.add(Mark::Rolls, 1);
        Ok(())
    }

    fn make_in_line(&mut self, base: u64, now_ns: u64) -> Result<Arc<Segment>, AppendError> {
        if self.shared.config.prepared_only || now_ns < self.retry_full_ns {
            return Err(self.full());
        }
        match self.make(base) {
            Ok(segment) => {
                self.marks().add(Mark::RollsUnprepared, 1);
                Ok(Arc::new(segment))
            }
            Err(e) if e.is_full() => {
                self.retry_full_ns = now_ns + FULL_RETRY_NS;
                Err(self.full())
            }
            Err(pares_os::MapError::Io { source, .. }) => Err(self.marks().poison(&source)),
            Err(e) => Err(self.marks().poison(&std::io::Error::other(e))),
        }
    }

    fn make(&self, base: u64) -> Result<Segment, pares_os::MapError> {
        let (keeping, geometry) = (self.shared.keeping(), self.shared.geometry);
        let synced = self.shared.config.durability == Durability::Disk;
        Making { keeping, geometry, temporary: "roll.tmp", synced, pause: None }.make(base)
    }

    fn full(&self) -> AppendError {
        self.marks().add(Mark::Full, 1);
        AppendError::Full
    }
}
