//! The file of a window, byte by byte.
//!
//! ```text
//! byte     0  magic  "PARESWIN"  \
//!          8  layout version      |
//!         16  shard               |  written before the file gets its name,
//!         24  capacity W          |  never again
//!         32  epoch made for      |
//!         40  first position     /
//!        128  epoch in force: raised above "made for" when the file is given up
//!        256  recorded: the next unrecorded position
//!        384  vouched: (position << 1) | void, see pares_sequencer::Vouched
//!        512  number of voids
//!        520  void 0 + 1 | void 1 + 1 | ... | void 63 + 1      8 bytes each, 0: free
//!       4096  slot 0 | slot 1 | ... | slot W-1        16 bytes each, see pares_sequencer::Slot
//! ```
//! The changing things lie on cache lines of their own, two lines apart since processors fetch them in pairs; the voids, which
//! hardly ever change, share theirs.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pares_sequencer::{EPOCH_MAX, Memory, Slot, VOIDS_MAX, Vouched};
use pares_types::{Epoch, GatewayId, Position, RequestId, ShardId};

use crate::WindowError;
use pares_os::Mapping;

const MAGIC: u64 = u64::from_le_bytes(*b"PARESWIN");
pub(super) const VERSION: u64 = 2;

const AT_MAGIC: usize = 0;
pub(super) const AT_VERSION: usize = 8;
pub(super) const AT_SHARD: usize = 16;
pub(super) const AT_CAPACITY: usize = 24;
pub(super) const AT_EPOCH_MADE: usize = 32;
pub(super) const AT_FIRST: usize = 40;
pub(super) const AT_EPOCH: usize = 128;
const AT_RECORDED: usize = 256;
const AT_VOUCHED: usize = 384;
const AT_VOIDS: usize = 512;
const AT_VOID: usize = 520;
const AT_SLOTS: usize = 4096;
const _: () = assert!(AT_VOID + 8 * VOIDS_MAX <= AT_SLOTS);
const SLOT_BYTES: usize = 16;

/// The mapped file as the window's memory.
///
/// Why these orderings. Deciding is one compare-and-swap on one word, so *agreement* needs no ordering at
/// all: a word has one history. Ordering is needed between words:
/// - slot to slot: a venue that learns `p` may continue to `p + 1`, and relies on everything up to `p` being
///   decided. The swap that decided `p` releases, the load that learns it acquires, and by induction all
///   earlier slots are seen as decided.
/// - `recorded` to slots: a venue that sees `recorded > p` must see `p` decided (or reused), or it would
///   conclude that `p` was recorded before this epoch. The raise releases what its caller learnt, the
///   load acquires it.
/// - vouched word to table of voids: a venue that sees the word beyond a void sees the void in the table. Entering it
///   releases, the swap that moves the word on comes after and releases too, the load of the word acquires.
///
/// A stale slot (the load returned an earlier value) is harmless in any case: the swap compares with the
/// present.
#[derive(Clone, Debug)]
pub(super) struct SharedMemory {
    mapping: Arc<Mapping>,
    capacity: u64,
    made_for: Epoch,
}

impl SharedMemory {
    pub(super) fn write(
        path: &Path,
        shard: ShardId,
        capacity: usize,
        epoch: Epoch,
        first: Position,
    ) -> Result<Self, WindowError> {
        // Checks that epoch and first fit, before anything is written.
        let _fits = Slot::new(epoch, first, RequestId::new(GatewayId(0), 1));
        remove_leftover(path);
        let mapping = Mapping::create(path, AT_SLOTS + capacity * SLOT_BYTES)?.without_file();
        mapping.prefault(0..mapping.len());
        let words = [
            (AT_VERSION, VERSION),
            (AT_SHARD, u64::from(shard.0)),
            (AT_CAPACITY, capacity as u64),
            (AT_EPOCH_MADE, u64::from(epoch.0)),
            (AT_FIRST, first.0),
            (AT_EPOCH, u64::from(epoch.0)),
            (AT_RECORDED, first.0),
            (AT_VOUCHED, Vouched::good(first).to_bits()),
            (AT_MAGIC, MAGIC),
        ];
        for (offset, value) in words {
            // The rename that gives the file its name comes after, and orders this for those who open it.
            mapping.atomic_u64(offset).store(value, Ordering::Release);
        }
        Ok(Self { mapping: Arc::new(mapping), capacity: capacity as u64, made_for: epoch })
    }

    pub(super) fn open(path: &Path) -> Result<Self, WindowError> {
        let mapping = Mapping::open(path)?.without_file();
        let path = || path.to_owned();
        let damaged = |what| WindowError::Damaged { path: path(), what };
        if mapping.len() < AT_SLOTS || word(&mapping, AT_MAGIC) != MAGIC {
            return Err(WindowError::NotAWindow { path: path() });
        }
        let found = word(&mapping, AT_VERSION);
        if found != VERSION {
            return Err(WindowError::Version { path: path(), found });
        }
        check_header(&mapping).map_err(damaged)?;
        mapping.prefault(0..mapping.len());
        let (capacity, made_for) = (word(&mapping, AT_CAPACITY), epoch(word(&mapping, AT_EPOCH_MADE)));
        Ok(Self { mapping: Arc::new(mapping), capacity, made_for })
    }

    pub(super) fn constant(&self, offset: usize) -> u64 {
        word(&self.mapping, offset)
    }

    /// Overwrites a header word, to damage it.
    #[cfg(test)]
    pub(super) fn set(&self, offset: usize, value: u64) {
        self.mapping.atomic_u64(offset).store(value, Ordering::Release);
    }

    /// Gives the memory up for the newer epoch `current`: no slot keeps a value that a sleeper could have
    /// loaded.
    pub(super) fn give_up(&self, current: Epoch) {
        self.mapping.atomic_u64(AT_EPOCH).fetch_max(u64::from(current.0), Ordering::AcqRel);
        let fence = Slot::fence(current).to_bits();
        for index in 0..self.capacity {
            self.mapping.atomic_u128(slot_at(index)).swap(fence, Ordering::AcqRel);
        }
    }
}

impl Memory for SharedMemory {
    #[inline]
    fn capacity(&self) -> u64 {
        self.capacity
    }

    #[inline]
    fn load(&self, index: u64) -> Slot {
        Slot::from_bits(self.mapping.atomic_u128(slot_at(index)).load(Ordering::Acquire))
    }

    #[inline]
    fn compare_exchange(&self, index: u64, expected: Slot, new: Slot) -> Result<(), Slot> {
        let slot = self.mapping.atomic_u128(slot_at(index));
        match slot.compare_exchange(expected.to_bits(), new.to_bits(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(found) => Err(Slot::from_bits(found)),
        }
    }

    #[inline]
    fn recorded(&self) -> Position {
        Position(self.mapping.load_u64(AT_RECORDED, Ordering::Acquire))
    }

    #[inline]
    fn raise_recorded(&self, to: Position) {
        self.mapping.atomic_u64(AT_RECORDED).fetch_max(to.0, Ordering::AcqRel);
    }

    #[inline]
    fn vouched(&self) -> Vouched {
        Vouched::from_bits(self.mapping.load_u64(AT_VOUCHED, Ordering::Acquire))
    }

    #[inline]
    fn compare_exchange_vouched(&self, expected: Vouched, new: Vouched) -> Result<(), Vouched> {
        let word = self.mapping.atomic_u64(AT_VOUCHED);
        word.compare_exchange(expected.to_bits(), new.to_bits(), Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(Vouched::from_bits)
    }

    #[inline]
    fn voids(&self) -> usize {
        // Never more than there are places, whatever a process scribbled there.
        (self.mapping.load_u64(AT_VOIDS, Ordering::Acquire) as usize).min(VOIDS_MAX)
    }

    fn void(&self, index: usize) -> Position {
        let entered = self.mapping.load_u64(void_at(index), Ordering::Acquire);
        Position(entered.checked_sub(1).expect("a void is entered before it is counted"))
    }

    fn add_void(&self, index: usize, position: Position) {
        let place = self.mapping.atomic_u64(void_at(index));
        let _taken = place.compare_exchange(0, position.0 + 1, Ordering::AcqRel, Ordering::Acquire);
        let (count, counted) = (index as u64, index as u64 + 1);
        let number = self.mapping.atomic_u64(AT_VOIDS);
        let _counted = number.compare_exchange(count, counted, Ordering::AcqRel, Ordering::Acquire);
    }

    #[inline]
    fn epoch(&self) -> Epoch {
        epoch(self.mapping.load_u64(AT_EPOCH, Ordering::Acquire))
    }

    fn made_for(&self) -> Epoch {
        self.made_for
    }
}

fn check_header(mapping: &Mapping) -> Result<(), &'static str> {
    let capacity = word(mapping, AT_CAPACITY);
    let slots = (mapping.len() - AT_SLOTS) / SLOT_BYTES;
    let epochs = 1..=u64::from(EPOCH_MAX.0);
    if !capacity.is_power_of_two() || usize::try_from(capacity) != Ok(slots) {
        Err("its length does not fit its capacity")
    } else if u16::try_from(word(mapping, AT_SHARD)).is_err() {
        Err("no such shard")
    } else if ![AT_EPOCH_MADE, AT_EPOCH].iter().all(|&at| epochs.contains(&word(mapping, at))) {
        Err("no such epoch")
    } else if word(mapping, AT_RECORDED) < word(mapping, AT_FIRST) {
        Err("recorded before its first position")
    } else {
        Ok(())
    }
}

fn remove_leftover(path: &Path) {
    // If it cannot be removed, mapping it will fail too and say why; a file that is not there is the
    // ordinary case.
    let _ordinarily_not_there = fs::remove_file(path);
}

fn word(mapping: &Mapping, offset: usize) -> u64 {
    mapping.load_u64(offset, Ordering::Acquire)
}

fn epoch(word: u64) -> Epoch {
    Epoch(u32::try_from(word).expect("epochs were checked at open and only raised to valid ones"))
}

fn void_at(index: usize) -> usize {
    assert!(index < VOIDS_MAX, "void {index} of {VOIDS_MAX}");
    AT_VOID + index * 8
}

#[inline]
fn slot_at(index: u64) -> usize {
    AT_SLOTS + index as usize * SLOT_BYTES
}
