//! A file mapped as memory, shared between processes.
//!
//! The obvious way to share state between processes is a socket or a pipe, and both make the writer wait
//! for the slowest reader. A mapped file does not: stores go to the page cache, loads come from it, and
//! what was stored outlives the process that stored it. Two dangers come with it, and this module is where
//! they are kept out:
//!
//! - *SIGBUS.* A store to a page that the file system cannot back kills the process. So [`Mapping::create`]
//!   allocates every block before it maps, and a full disk is an error there instead of a signal later.
//! - *Aliasing.* The compiler must not see a plain reference to memory that another process changes. So words
//!   that change are reached as atomics only, and [`Mapping::bytes`] hands out ranges under a contract:
//!   a reader of a range has first seen, through an acquiring load, that its one writer is done with it.
//!
//! All unsafe code of the crate is here and in `scheduling`.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use portable_atomic::AtomicU128;
use rustix::fs::FallocateFlags;
use rustix::mm::{Advice, MapFlags, ProtFlags};

pub use crate::error::MapError;

/// Bytes per page; offsets given to the kernel are rounded to it.
pub const PAGE: usize = 4096;

/// A whole file as memory shared with every other process that maps it.
///
/// Unmapped when dropped; the file stays.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
    writable: bool,
    /// None if it is never synced: the memory needs no descriptor.
    file: Option<File>,
}

// SAFETY: the memory is shared between processes anyway, so a thread more makes no difference: words are only
// reached as atomics, and ranges under the contracts of `bytes` (published) and `write`/`slice_mut`
// (single writer). The pointer itself never changes.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Creates the file (mode 0600) or opens it, makes it at least `len` bytes with every block allocated, and
    /// maps the first `len` bytes read-write. New bytes are zero, old ones are kept.
    ///
    /// # Errors
    /// [`MapError::Io`]; with `StorageFull` the file may exist at its full length but without blocks, and a
    /// later `create` continues from there.
    ///
    /// # Panics
    /// If `len` is zero.
    pub fn create(path: &Path, len: usize) -> Result<Mapping, MapError> {
        assert!(len > 0, "a mapping has at least one byte");
        let fail = |step| move |source| MapError::Io { step, path: path.to_owned(), source };
        let file = crate::open_file(OpenOptions::new().read(true).write(true).create(true).mode(0o600), path);
        let file = file.map_err(fail("open"))?;
        allocate(&file, len).map_err(fail("allocate"))?;
        Mapping::from_file(file, len, true).map_err(fail("map"))
    }

    /// Maps an existing file read-write, whole.
    ///
    /// # Errors
    /// [`MapError::Io`], or [`MapError::Empty`] while its creator has not sized it.
    pub fn open(path: &Path) -> Result<Mapping, MapError> {
        Mapping::open_existing(path, true)
    }

    /// Maps an existing file for reading only: no mistake of this process can change it. The file is closed.
    ///
    /// # Errors
    /// [`MapError::Io`], or [`MapError::Empty`] while its creator has not sized it.
    pub fn open_read_only(path: &Path) -> Result<Mapping, MapError> {
        Mapping::open_existing(path, false)
    }

    fn open_existing(path: &Path, writable: bool) -> Result<Mapping, MapError> {
        let fail = |step| move |source| MapError::Io { step, path: path.to_owned(), source };
        let file = crate::open_file(OpenOptions::new().read(true).write(writable), path);
        let file = file.map_err(fail("open"))?;
        let bytes = file.metadata().map_err(fail("size"))?.len();
        let len = usize::try_from(bytes).expect("a file that can be mapped fits the address space");
        if len == 0 {
            return Err(MapError::Empty { path: path.to_owned() });
        }
        if writable {
            allocate(&file, len).map_err(fail("allocate"))?;
        }
        Mapping::from_file(file, len, writable).map_err(fail("map"))
    }

    fn from_file(file: File, len: usize, writable: bool) -> io::Result<Mapping> {
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing that Rust knows of.
        let start =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, &file, 0)? };
        let start = NonNull::new(start.cast()).expect("mmap never returns null without MAP_FIXED");
        let file = writable.then_some(file);
        Ok(Mapping { start, len, writable, file })
    }

    /// Closes the file: for memory that is never synced. A process may have few descriptors.
    #[must_use]
    pub fn without_file(mut self) -> Mapping {
        self.file = None;
        self
    }

    /// Mapped bytes, at least 1.
    // A mapping is never empty, so `is_empty` would always say no.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether this process may store to it.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// The mapped file, for calls that work on files (rename is by path, sync by this).
    ///
    /// # Panics
    /// If it is mapped for reading only, or [closed](Mapping::without_file).
    pub fn file(&self) -> &File {
        self.file.as_ref().expect("what is synced keeps its file")
    }

    /// The 32-bit word at byte `offset`, to load, store and compare-and-swap.
    ///
    /// # Panics
    /// If the mapping is read-only (use [`Mapping::load_u32`]), or `offset` is not a multiple of 4 inside it.
    #[inline]
    pub fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
        assert!(self.writable, "a word of a read-only mapping can only be loaded");
        // SAFETY: in bounds and aligned (asserted by `word`), mapped as long as `self`, only reached as atomic.
        unsafe { AtomicU32::from_ptr(self.word(offset, 4).cast()) }
    }

    /// The 64-bit word at byte `offset`, to load, store and compare-and-swap.
    ///
    /// # Panics
    /// If the mapping is read-only (use [`Mapping::load_u64`]), or `offset` is not a multiple of 8 inside it.
    #[inline]
    pub fn atomic_u64(&self, offset: usize) -> &AtomicU64 {
        assert!(self.writable, "a word of a read-only mapping can only be loaded");
        // SAFETY: in bounds and aligned (asserted by `word`), mapped as long as `self`, only reached as atomic.
        unsafe { AtomicU64::from_ptr(self.word(offset, 8).cast()) }
    }

    /// The 128-bit word at byte `offset`.
    ///
    /// # Panics
    /// If the mapping is read-only (even a load may be done with a store on processors without a plain 128-bit
    /// load), if `offset` is not a multiple of 16 inside it, or if this processor has no 128-bit compare-and-swap:
    /// the library's fallback is a lock in this process, which would not exclude other processes.
    #[inline]
    pub fn atomic_u128(&self, offset: usize) -> &AtomicU128 {
        assert!(self.writable, "a 128-bit word needs a read-write mapping");
        assert!(AtomicU128::is_lock_free(), "this processor has no 128-bit compare-and-swap");
        // SAFETY: in bounds and aligned (asserted by `word`), mapped as long as `self`, only reached as atomic.
        unsafe { AtomicU128::from_ptr(self.word(offset, 16).cast()) }
    }

    /// Loads the 32-bit word at byte `offset`; works on read-only mappings.
    ///
    /// # Panics
    /// If `offset` is not a multiple of 4 inside the mapping.
    #[inline]
    pub fn load_u32(&self, offset: usize, order: Ordering) -> u32 {
        // SAFETY: in bounds and aligned (asserted by `word`); only loaded, which read-only memory allows.
        unsafe { AtomicU32::from_ptr(self.word(offset, 4).cast()) }.load(order)
    }

    /// Loads the 64-bit word at byte `offset`; works on read-only mappings.
    ///
    /// # Panics
    /// If `offset` is not a multiple of 8 inside the mapping.
    #[inline]
    pub fn load_u64(&self, offset: usize, order: Ordering) -> u64 {
        // SAFETY: in bounds and aligned (asserted by `word`); only loaded, which read-only memory allows.
        unsafe { AtomicU64::from_ptr(self.word(offset, 8).cast()) }.load(order)
    }

    /// A range of bytes to read.
    ///
    /// Contract: the caller has seen, through an acquiring load, that the writer published the range and will
    /// not change it while the slice lives. (The crates that build on this keep it by append-only layouts; a range
    /// whose content cannot be trusted, because its file may be damaged or its writer gone mad, is validated by
    /// checksum and never interpreted as anything but bytes.)
    ///
    /// # Panics
    /// If the range is not inside the mapping.
    #[inline]
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.check(&range);
        // SAFETY: in bounds, mapped as long as `self`, any bit pattern is a u8; nothing writes to it by the contract.
        unsafe { slice::from_raw_parts(self.start.as_ptr().add(range.start), range.len()) }
    }

    /// Copies `data` to byte `offset`, for the owner of a mapping that no other writes.
    ///
    /// # Panics
    /// If the range is not inside the mapping, or the mapping is read-only.
    pub fn write(&mut self, offset: usize, data: &[u8]) {
        // SAFETY: `&mut self` excludes this process' other uses; other processes read published ranges only.
        unsafe { self.slice_mut(offset..offset + data.len()) }.copy_from_slice(data);
    }

    /// A range of bytes to write through a mapping that is shared inside this process (for example with a
    /// thread that faults pages in ahead of the writer).
    ///
    /// # Panics
    /// If the range is not inside the mapping, or the mapping is read-only.
    ///
    /// # Safety
    /// The caller is the only writer of the range among all threads and processes, holds no other reference to any
    /// part of it, and readers do not read it before it is published.
    #[allow(clippy::mut_from_ref)]
    #[inline]
    pub unsafe fn slice_mut(&self, range: Range<usize>) -> &mut [u8] {
        assert!(self.writable, "the mapping is read-only");
        self.check(&range);
        // SAFETY: in bounds, mapped as long as `self`, exclusive by the caller's contract.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().add(range.start), range.len()) }
    }

    /// Makes the pages of `range` present and writable, so that the first store to each costs no fault.
    /// Content is unchanged. Best effort: an old kernel only reads them in.
    ///
    /// # Panics
    /// If the range is not inside the mapping.
    pub fn prefault(&self, range: Range<usize>) {
        self.check(&range);
        let advice = if self.writable { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
        if self.advise_pages(&range, advice).is_err() {
            self.touch(&range);
        }
    }

    /// One load per page: brings it in, but the first store still takes a (cheap) fault.
    fn touch(&self, range: &Range<usize>) {
        for offset in range.clone().step_by(PAGE) {
            std::hint::black_box(self.load_u32(offset & !3, Ordering::Relaxed));
        }
    }

    fn advise_pages(&self, range: &Range<usize>, advice: Advice) -> io::Result<()> {
        let first = range.start / PAGE * PAGE;
        let len = range.end - first;
        if len == 0 {
            return Ok(());
        }
        // SAFETY: the range is inside the mapping, and none of the advices used changes content or access.
        unsafe { rustix::mm::madvise(self.start.as_ptr().add(first).cast(), len, advice)? };
        Ok(())
    }

    #[inline]
    fn check(&self, range: &Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} is outside the mapping");
    }

    #[inline]
    fn word(&self, offset: usize, size: usize) -> *mut u8 {
        assert!(offset.is_multiple_of(size), "word at {offset} is not aligned to {size}");
        assert!(offset.checked_add(size).is_some_and(|end| end <= self.len), "word at {offset} is outside");
        // SAFETY: in bounds by the assertion above.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range came from mmap, and no reference into it outlives `self`.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "unmapping what was mapped cannot fail");
    }
}

/// Grows the file to `len` if shorter and gives every byte of it a block.
fn allocate(file: &File, len: usize) -> io::Result<()> {
    let old = file.metadata()?.len();
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len as u64) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP) => fill_with_zeros(file, old, len as u64),
        Err(e) => Err(e.into()),
    }
}

/// For file systems without fallocate: blocks come from writing zeros past the old end.
fn fill_with_zeros(file: &File, from: u64, to: u64) -> io::Result<()> {
    let zeros = [0; PAGE];
    let mut at = from;
    while at < to {
        let n = (to - at).min(PAGE as u64);
        file.write_all_at(&zeros[..n as usize], at)?;
        at += n;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
