//! A log in memory: the bytes, checksums, segments and marks of a mapped one, without files.
//!
//! ```text
//!  0 ..... released ..... synced ........ durable ....... written ............. tail
//!          |  survives a loss of power    | promised to   | survives the death   | may survive it,
//!          |                              | readers       | of the process       | also half a record
//! ```
//! All segments lie in one vector, each at its offset. What the kernel would refuse (a full disk, a sync that fails) is switched by
//! the simulator. One suite holds this log and the mapped one to the same behaviour (`conformance`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pares_flow::Random;
use pares_log::record::{self, End};
use pares_log::{AppendError, Durability, Offset, OpenError};

/// Bytes before a segment's first record, as in the mapped log.
pub(super) const HEADER: u64 = 64;
/// What a device writes whole or not at all.
const SECTOR: usize = 512;
/// The kernel's number of an I/O error.
const EIO: i32 = 5;

/// A log, shared by its writer, its readers and the simulator.
#[derive(Clone, Debug)]
pub(crate) struct Log(Arc<Mutex<LogState>>);

impl Log {
    pub(crate) fn new(identity: u64, segment_bytes: u64, durability: Durability) -> Self {
        Self(Arc::new(Mutex::new(LogState::new(identity, segment_bytes, durability))))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, LogState> {
        // A process that is killed may be killed while it holds this; nothing is ever half done here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What there is of a log.
#[derive(Debug)]
pub(crate) struct LogState {
    /// Which log this is: another in its place has another.
    pub(crate) identity: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) durability: Durability,
    pub(crate) bytes: Vec<u8>,
    pub(crate) released: u64,
    pub(crate) synced: u64,
    pub(crate) durable: u64,
    pub(crate) written: u64,
    pub(crate) tail: u64,
    /// A sync under way, up to there.
    pub(crate) syncing: Option<u64>,
    /// Error number of the failure that poisoned it.
    pub(crate) poisoned: i32,
    /// Whether another log is copied here.
    pub(crate) is_mirror: bool,
    /// Whether a process writes it.
    pub(crate) is_held: bool,
    /// Whether the host lost power since it was last opened.
    pub(crate) lost_power: bool,
    /// Its writer is stopped: what it publishes shows when it continues.
    pub(crate) is_hidden: bool,
    pub(crate) is_full: bool,
    pub(crate) sync_fails: bool,
    pub(crate) lies: Lies,
}

/// What a broken device or library would do: the simulator's own defects, to see that they are found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lies {
    /// What is published is called durable, and a sync does nothing.
    pub(crate) durable_when_published: bool,
    /// A sync that fails is called done.
    pub(crate) failed_sync_is_done: bool,
    /// What a full disk refuses is called appended.
    pub(crate) full_is_appended: bool,
    /// What is appended is called durable, to its writer.
    pub(crate) durable_when_appended: bool,
    /// A mirror takes what does not follow; one calls durable what is written.
    pub(crate) mirror_has_gaps: bool,
    pub(crate) mirror_is_durable: bool,
}

impl LogState {
    fn new(identity: u64, segment_bytes: u64, durability: Durability) -> Self {
        Self {
            identity,
            segment_bytes,
            durability,
            bytes: vec![0; HEADER as usize],
            released: 0,
            synced: HEADER,
            durable: HEADER,
            written: HEADER,
            tail: HEADER,
            syncing: None,
            poisoned: 0,
            is_mirror: false,
            is_held: false,
            lost_power: false,
            is_hidden: false,
            is_full: false,
            sync_fails: false,
            lies: Lies::default(),
        }
    }

    pub(crate) fn base(&self, offset: u64) -> u64 {
        offset - offset % self.segment_bytes
    }

    /// The segment that the end mark `end` closes or lies in.
    pub(crate) fn base_of_end(&self, end: u64) -> u64 {
        self.base(end.saturating_sub(1))
    }

    /// What lies from `offset` to the end of its segment, as far as there is anything.
    pub(crate) fn rest(&self, offset: u64) -> &[u8] {
        let end = (self.base(offset) + self.segment_bytes).min(self.bytes.len() as u64);
        self.bytes.get(offset as usize..end as usize).unwrap_or_default()
    }

    pub(crate) fn payload_bytes_max(&self) -> usize {
        pares_log::payload_bytes_max(self.segment_bytes)
    }

    pub(super) fn check_poison(&self) -> Result<(), AppendError> {
        match self.poisoned {
            0 => Ok(()),
            errno => Err(AppendError::Poisoned { errno }),
        }
    }

    /// Bytes left in the segment being written.
    pub(super) fn room(&self) -> u64 {
        self.base_of_end(self.tail) + self.segment_bytes - self.tail
    }

    pub(crate) fn append_with(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Offset, AppendError> {
        self.check_poison()?;
        let max = self.payload_bytes_max();
        if len > max {
            return Err(AppendError::TooLarge { len, max });
        }
        let size = record::size(len) as u64;
        if self.is_full && self.lies.full_is_appended {
            return Ok(Offset(self.tail));
        }
        if self.is_full {
            return Err(AppendError::Full);
        }
        if size > self.room() {
            self.roll();
        }
        let at = self.tail;
        self.bytes.resize((at + size) as usize, 0);
        let bytes = &mut self.bytes[at as usize..];
        fill(&mut bytes[record::HEADER_BYTES..record::HEADER_BYTES + len]);
        record::seal(bytes, at, len);
        self.tail += size;
        Ok(Offset(at))
    }

    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), AppendError> {
        assert!(bytes as u64 <= self.segment_bytes / 4, "{bytes} bytes are too much to reserve");
        self.check_poison()?;
        if self.is_full && !self.lies.full_is_appended {
            return Err(AppendError::Full);
        }
        if bytes as u64 > self.room() {
            self.roll();
        }
        Ok(())
    }

    pub(crate) fn begin_segment(&mut self) -> Result<(), AppendError> {
        self.check_poison()?;
        if self.is_full && !self.lies.full_is_appended {
            return Err(AppendError::Full);
        }
        if self.tail > self.base_of_end(self.tail) + HEADER {
            self.roll();
        }
        Ok(())
    }

    pub(super) fn roll(&mut self) {
        let next = self.base_of_end(self.tail) + self.segment_bytes;
        let at = self.tail;
        self.bytes.resize((next + HEADER) as usize, 0);
        if at < next {
            record::seal_pad(&mut self.bytes[at as usize..next as usize], at);
        }
        self.tail = next + HEADER;
    }

    pub(crate) fn publish(&mut self) -> Offset {
        if !self.is_hidden {
            self.written = self.tail;
            if self.durability == Durability::Os || self.lies.durable_when_published {
                self.durable = self.tail;
            }
        }
        Offset(self.tail)
    }

    /// A sync of what is published begins; with durability `Os` it is done at once. Says up to where, if it takes time.
    pub(crate) fn begin_sync(&mut self) -> Result<Option<u64>, AppendError> {
        self.check_poison()?;
        if self.lies.durable_when_published {
            return Ok(None);
        }
        let to = self.written;
        if std::mem::take(&mut self.sync_fails) {
            if self.lies.failed_sync_is_done {
                self.durable = to;
                return Ok(None);
            }
            self.poisoned = EIO;
            return Err(AppendError::Poisoned { errno: EIO });
        }
        self.syncing = Some(to);
        Ok(Some(to))
    }

    /// The device has what is below `to`, whether or not the writer still lives.
    pub(crate) fn end_sync(&mut self, to: u64) {
        self.syncing = self.syncing.filter(|&until| until > to);
        self.synced = self.synced.max(to);
        if self.durability == Durability::Disk {
            self.durable = self.durable.max(to);
        }
    }

    pub(crate) fn release_before(&mut self, offset: u64) -> Offset {
        let base = self.base(offset).min(self.base_of_end(self.tail)).min(self.base_of_end(self.written));
        self.released = self.released.max(base);
        Offset(self.released)
    }

    /// Its process died: what was published stays, of the rest as much as chance has it, perhaps half a record.
    pub(crate) fn process_died(&mut self, random: &mut Random, torn: bool) {
        let unpublished = self.tail - self.written;
        let kept = if torn { random.below(unpublished + 1) } else { unpublished * random.below(2) };
        let kept = self.written + kept;
        self.bytes.truncate(kept as usize);
        (self.is_held, self.is_hidden) = (false, false);
    }

    /// The host lost power: what was synced stays; of what was not, each sector may or may not have reached the device.
    pub(crate) fn power_failed(&mut self, random: &mut Random) {
        let keep_permille = [0, 500, 1_000][random.index(3)];
        let from = (self.synced as usize).next_multiple_of(SECTOR).min(self.bytes.len());
        for sector in self.bytes[from..].chunks_mut(SECTOR) {
            if !random.chance(keep_permille) {
                sector.fill(0);
            }
        }
        // That a mirror lies on its device makes nothing durable of which its source has not said so.
        let durable = if self.is_mirror { self.synced.min(self.durable) } else { self.synced };
        (self.written, self.durable, self.lost_power, self.syncing) = (self.synced, durable, true, None);
    }

    /// Opens it to write, as `pares_log::Writer::open`: cuts a torn tail, refuses damage.
    pub(crate) fn open(&mut self, durability: Durability) -> Result<(), OpenError> {
        if self.is_held {
            return Err(OpenError::Locked { dir: "memory".into(), pid: 0 });
        }
        if self.poisoned != 0 {
            return Err(OpenError::Poisoned { errno: self.poisoned, synced: Offset(self.synced) });
        }
        let trusted = if self.lost_power { self.synced } else { self.written };
        let end = self.find_tail(trusted)?;
        self.bytes.truncate(end as usize);
        if std::mem::take(&mut self.sync_fails) {
            self.poisoned = EIO;
            return Err(OpenError::Poisoned { errno: EIO, synced: Offset(self.synced) });
        }
        if self.lost_power || durability == Durability::Disk {
            self.synced = end;
        }
        let durable = if self.is_mirror { end.min(self.durable) } else { end };
        (self.written, self.durable, self.tail) = (end, durable, end);
        (self.durability, self.lost_power, self.is_held, self.syncing) = (durability, false, true, None);
        Ok(())
    }

    /// Where what is whole ends, from the segment of the trusted mark on.
    fn find_tail(&mut self, trusted: u64) -> Result<u64, OpenError> {
        let mut base = self.base_of_end(trusted).max(self.released);
        loop {
            let end = (base + self.segment_bytes) as usize;
            if self.bytes.len() < end {
                self.bytes.resize(end, 0);
            }
            let scan = record::scan(&self.bytes[base as usize..end], base, HEADER as usize, usize::MAX);
            if scan.end == End::Sealed {
                base += self.segment_bytes;
                continue;
            }
            let found = base + scan.position as u64;
            if found < trusted {
                let what = "not what was written".into();
                return Err(OpenError::Damaged { offset: Offset(found), promised: Offset(trusted), what });
            }
            return Ok(found);
        }
    }

    /// With everything down: `pares journal cut` at what is known to be on the device, or at a record's boundary below.
    pub(crate) fn cut_to_synced(&mut self) {
        self.bytes.truncate(self.synced as usize);
        (self.written, self.durable, self.tail) = (self.synced, self.synced, self.synced);
        (self.poisoned, self.lost_power) = (0, false);
    }

    /// Another record lies in the place of one that is as long, sealed as any.
    pub(crate) fn overwrite(&mut self, offset: u64, payload: &[u8]) {
        let bytes = &mut self.bytes[offset as usize..];
        bytes[record::HEADER_BYTES..record::HEADER_BYTES + payload.len()].copy_from_slice(payload);
        record::seal(bytes, offset, payload.len());
    }

    /// Flips bits of a byte below the written mark; says whether there was one.
    pub(crate) fn flip(&mut self, random: &mut Random) -> bool {
        let from = self.base_of_end(self.released.max(1)) + HEADER;
        if self.written <= from {
            return false;
        }
        let at = from + random.below(self.written - from);
        self.bytes[at as usize] ^= 1 << random.below(8);
        true
    }
}
