//! Waking a parked process without ever waiting for it.
//!
//! A node that tails logs has nothing to sleep on: a writer only stores. Spinning costs a core, timers cost
//! milliseconds, and any message to "please wake up" makes the writer depend on its readers. So a listener that
//! finds nothing to do says so in one shared word, and a writer that has published looks at the word: a load when
//! all listeners are awake, one system call when one sleeps.
//!
//! ```text
//!   file "bells": 65 slots of 64 bytes            listener                  ringer
//!   +--------+------+-----------+--------+        parked = next nap        publish
//!   | parked | kind | rings u64 | unused |        fence SeqCst             fence SeqCst
//!   +--------+------+-----------+--------+        look at the inputs again if parked != 0: wake it,
//!   0        4      8           16      64        nothing? sleep              parked = 0
//! ```
//!
//! *No wake is lost.* Both sides store first, then look at what the other stored, with a sequentially consistent
//! fence between (Dekker). The fences have one order. If the listener's comes first, the ringer's load follows it
//! and sees `parked != 0`: it wakes. If the ringer's comes first, the listener's second look follows it and sees what
//! was published: it does not sleep.
//!
//! *A ringer may be killed or stopped at any instruction* without taking the wake with it. With "clear the word, then
//! wake" a ringer that stops in between leaves a sleeper that all others believe awake. So clearing and waking are
//! one step of the kernel for a futex (`FUTEX_WAKE_OP`), and for a pipe the byte goes in first and the word is
//! cleared after, by compare-and-swap against the nap it was written for: a ringer that slept between the
//! two cannot clear the word of a later nap. A pipe remembers its byte until it is read, and the kernel puts a futex
//! to sleep only while the word still names this nap.
//!
//! *A dead or stopped listener costs nothing.* The first ringer clears its word and wakes no process; after that
//! ringing is a load. A pipe that no process drains fills and refuses further bytes, which is fine: a full pipe is a wake
//! that is already under way.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::thread::futex;

use crate::mapping::{MapError, Mapping};

/// How many listeners one directory has room for.
pub const SLOTS: usize = 74;

const SLOT_BYTES: usize = 64;
const PARKED: usize = 0;
const KIND: usize = 4;
const RINGS: usize = 8;

/// How a listener sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BellKind {
    /// On a futex: the cheapest, for a node whose only inputs are mapped.
    Futex = 1,
    /// On a named pipe: for a node that sleeps in epoll because it also has sockets.
    Fifo = 2,
}

/// The bells of one system: a file that all its processes map.
#[derive(Debug, Clone)]
pub struct Bells {
    map: Arc<Mapping>,
    dir: PathBuf,
}

impl Bells {
    /// Creates the bells of a directory, or opens what is there; any process may be first.
    ///
    /// # Errors
    /// [`MapError`] when the directory is missing or full.
    pub fn create(dir: &Path) -> Result<Bells, MapError> {
        let map = Mapping::create(&dir.join("bells"), SLOTS * SLOT_BYTES)?.without_file();
        Ok(Bells { map: Arc::new(map), dir: dir.to_owned() })
    }

    /// Opens the bells of a directory in which another process created them.
    ///
    /// # Errors
    /// [`MapError`], for which `is_not_yet` holds while no process has created them.
    pub fn open(dir: &Path) -> Result<Bells, MapError> {
        if !dir.join("bells").exists() {
            return Err(Mapping::open(&dir.join("bells")).expect_err("the file is missing"));
        }
        Bells::create(dir)
    }

    /// Takes over a slot as its listener. The one who listened there before, if any, is dead: slots are given out
    /// by the system's configuration.
    ///
    /// # Errors
    /// When the named pipe of a [`BellKind::Fifo`] cannot be made or opened.
    ///
    /// # Panics
    /// If `slot` is not below [`SLOTS`].
    pub fn listen(&self, slot: usize, kind: BellKind) -> io::Result<Bell> {
        let fifo = match kind {
            BellKind::Futex => None,
            BellKind::Fifo => Some(open_fifo(&self.dir, slot)?),
        };
        self.parked(slot).store(0, Ordering::SeqCst);
        self.word(slot, KIND).store(kind as u32, Ordering::Release);
        // Naps are numbered from an arbitrary start, so that a ringer which slept since the last listener of this slot
        // does not take a nap of the new one for the one it meant.
        let nap = crate::clock::mono_ns() as u32;
        Ok(Bell { bells: self.clone(), slot, fifo, nap })
    }

    /// A handle to ring any of the bells; each thread that rings has its own.
    pub fn ringer(&self) -> Ringer {
        Ringer { bells: self.clone(), fifos: std::array::from_fn(|_| None) }
    }

    /// How often ringers woke the listener of a slot.
    ///
    /// # Panics
    /// If `slot` is not below [`SLOTS`].
    pub fn rings(&self, slot: usize) -> u64 {
        self.rings_word(slot).load(Ordering::Relaxed)
    }

    fn parked(&self, slot: usize) -> &AtomicU32 {
        self.word(slot, PARKED)
    }

    fn word(&self, slot: usize, field: usize) -> &AtomicU32 {
        assert!(slot < SLOTS, "slot {slot} of {SLOTS} bells");
        self.map.atomic_u32(slot * SLOT_BYTES + field)
    }

    fn rings_word(&self, slot: usize) -> &AtomicU64 {
        self.map.atomic_u64(slot * SLOT_BYTES + RINGS)
    }
}

/// Opens the pipe of a slot, making it first if needed. Both ends at once and non-blocking, so that neither
/// opening nor writing waits for another process.
fn open_fifo(dir: &Path, slot: usize) -> io::Result<File> {
    let path = dir.join(format!("bell-{slot}.fifo"));
    match rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(e) => return Err(e.into()),
    }
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

/// The listener's end of a bell.
///
/// Use: [`prepare`](Bell::prepare), look at every input once more, then either [`cancel`](Bell::cancel) because
/// there was something, or sleep: [`wait`](Bell::wait) on a futex; epoll on [`fd`](Bell::fd) and then
/// [`drain`](Bell::drain) with a pipe.
#[derive(Debug)]
pub struct Bell {
    bells: Bells,
    slot: usize,
    fifo: Option<File>,
    /// Names the present or last nap; never 0, which means awake.
    nap: u32,
}

impl Bell {
    /// The slot that ringers name it by.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Announces that the listener is about to sleep. From here on it must look at all its inputs once more.
    pub fn prepare(&mut self) {
        self.nap = self.nap.checked_add(1).unwrap_or(1);
        self.bells.parked(self.slot).store(self.nap, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Takes the announcement back: there was something after all.
    pub fn cancel(&self) {
        self.bells.parked(self.slot).store(0, Ordering::SeqCst);
    }

    /// Sleeps until rung or `timeout`; returns whether it was rung. Early returns happen and are harmless.
    ///
    /// # Panics
    /// If this bell is a pipe: sleep in epoll on [`Bell::fd`] instead.
    pub fn wait(&self, timeout: Duration) -> bool {
        assert!(self.fifo.is_none(), "a pipe bell is waited for in epoll");
        let word = self.bells.parked(self.slot);
        let limit = rustix::time::Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // The word alone tells every outcome apart.
        let _any = futex::wait(word, futex::Flags::empty(), self.nap, Some(&limit));
        word.swap(0, Ordering::SeqCst) == 0
    }

    /// The descriptor to register for readability; `None` for a futex bell.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fifo.as_ref().map(AsFd::as_fd)
    }

    /// After sleeping: takes the announcement back and empties the pipe, so that epoll reports the next ring.
    pub fn drain(&self) {
        self.cancel();
        let Some(mut pipe) = self.fifo.as_ref() else { return };
        let mut bytes = [0; 64];
        while matches!(pipe.read(&mut bytes), Ok(n) if n == bytes.len()) {}
    }
}

/// A ringer's end of all bells.
#[derive(Debug)]
pub struct Ringer {
    bells: Bells,
    fifos: [Option<File>; SLOTS],
}

impl Ringer {
    /// Wakes the listener of `slot` if it sleeps; call after publishing. Returns whether it had to.
    ///
    /// Never waits. A load when the listener is awake, stopped or dead.
    ///
    /// # Panics
    /// If `slot` is not below [`SLOTS`].
    #[inline]
    pub fn ring(&mut self, slot: usize) -> bool {
        fence(Ordering::SeqCst);
        let nap = self.bells.parked(slot).load(Ordering::Relaxed);
        if nap != 0 {
            self.wake(slot, nap);
        }
        nap != 0
    }

    /// The same right behind a [`ring`](Ringer::ring), whose fence comes between what was published and this look, too: a load alone.
    ///
    /// # Panics
    /// If `slot` is not below [`SLOTS`].
    #[inline]
    pub fn ring_too(&mut self, slot: usize) {
        let nap = self.bells.parked(slot).load(Ordering::Relaxed);
        if nap != 0 {
            self.wake(slot, nap);
        }
    }

    #[cold]
    fn wake(&mut self, slot: usize, nap: u32) {
        self.bells.rings_word(slot).fetch_add(1, Ordering::Relaxed);
        if self.bells.word(slot, KIND).load(Ordering::Acquire) == BellKind::Fifo as u32 {
            self.wake_fifo(slot, nap);
        } else {
            wake_futex(self.bells.parked(slot));
        }
    }

    fn wake_fifo(&mut self, slot: usize, nap: u32) {
        if self.fifos[slot].is_none() {
            self.fifos[slot] = open_fifo(&self.bells.dir, slot).ok();
        }
        // Out of descriptors: the word stays, and the next ring tries again.
        let Some(pipe) = self.fifos[slot].as_mut() else { return };
        // A full pipe (WouldBlock) already holds a wake.
        let _written_or_full = pipe.write(&[1]);
        // Fails when the listener is up already: then the word is none of ours.
        let _cleared = self.bells.parked(slot).compare_exchange(nap, 0, Ordering::SeqCst, Ordering::Relaxed);
    }
}

/// Clears the word and wakes what sleeps on it, in one step of the kernel.
fn wake_futex(word: &AtomicU32) {
    let plain = futex::Flags::empty();
    // The comparison asks for further sleepers on the same word, of which there are none: one listener per slot.
    let woken = futex::wake_op(word, plain, 1, 0, word, futex::WakeOp::Set, futex::WakeOpCmp::Eq, 0, 0);
    debug_assert!(woken.is_ok(), "waking on a mapped word cannot fail: {woken:?}");
}

#[cfg(test)]
mod tests;
