//! What several test files need.
#![allow(dead_code, clippy::unwrap_used)] // each file uses a part of it; helpers of tests unwrap

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pares_log::{Config, Device, Offset, Reader, Writer};
use pares_os::{MapError, Mapping};
use tempfile::{TempDir, tempdir};

pub(crate) const EIO: i32 = 5;
pub(crate) const ENFILE: i32 = 23;
pub(crate) const EMFILE: i32 = 24;
pub(crate) const ENOSPC: i32 = 28;

/// A device that fails on demand. Error numbers are as the kernel would give them, zero for none.
#[derive(Debug, Default)]
pub(crate) struct Sick {
    /// For every sync.
    pub(crate) sync: AtomicI32,
    /// For every sync of a directory.
    pub(crate) sync_dir: AtomicI32,
    /// For every segment, made ahead or in line.
    pub(crate) make: AtomicI32,
    /// For segments made ahead, so that the writer has to make them in line.
    pub(crate) ahead: AtomicI32,
}

fn check(fault: &AtomicI32) -> io::Result<()> {
    match fault.load(Ordering::Relaxed) {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

impl Device for Sick {
    fn sync(&self, _path: &Path, file: &File) -> io::Result<()> {
        check(&self.sync)?;
        file.sync_data()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        check(&self.sync_dir)?;
        File::open(dir)?.sync_all()
    }

    fn make(&self, path: &Path, len: usize) -> Result<Mapping, MapError> {
        let ahead = if path.ends_with("next.tmp") { check(&self.ahead) } else { Ok(()) };
        let made = if path.ends_with("open.tmp") { Ok(()) } else { check(&self.make) };
        ahead.and(made).map_err(|source| MapError::Io { step: "make", path: path.to_owned(), source })?;
        Mapping::create(path, len)
    }
}

/// A device on which one of the syncs of one thread fails, and remembers what it was asked to sync.
#[derive(Debug)]
pub(crate) struct FailsOnce {
    thread: ThreadId,
    at: usize,
    synced: Mutex<Vec<PathBuf>>,
}

impl FailsOnce {
    /// The sync number `at` of this thread, 0 for the first.
    pub(crate) fn at(at: usize) -> FailsOnce {
        FailsOnce { thread: std::thread::current().id(), at, synced: Mutex::default() }
    }

    /// What could not be synced.
    pub(crate) fn failed(&self) -> Option<PathBuf> {
        self.synced.lock().unwrap().get(self.at).cloned()
    }

    fn on_sync(&self, path: &Path) -> io::Result<()> {
        let mut synced = self.synced.lock().unwrap();
        if self.thread != std::thread::current().id() {
            return Ok(());
        }
        synced.push(path.to_owned());
        if synced.len() == self.at + 1 { Err(io::Error::from_raw_os_error(EIO)) } else { Ok(()) }
    }
}

impl Device for FailsOnce {
    fn sync(&self, path: &Path, file: &File) -> io::Result<()> {
        self.on_sync(path)?;
        file.sync_data()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.on_sync(dir)?;
        File::open(dir)?.sync_all()
    }
}

/// A device on which the preparing thread's sync of the directory takes until it is let go, and that counts those of others.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) waiting: AtomicBool,
    pub(crate) let_go: AtomicBool,
    pub(crate) others: Mutex<u32>,
}

impl Device for Held {
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if std::thread::current().name() == Some("log-prepare") {
            self.waiting.store(true, Ordering::Release);
            wait_until(|| self.let_go.load(Ordering::Acquire));
        } else {
            *self.others.lock().unwrap() += 1;
        }
        File::open(dir)?.sync_all()
    }
}

/// Segments so short that a few records fill them.
pub(crate) fn small() -> Config {
    Config::default().segment_bytes(4096)
}

/// A payload that names its number and has no zero byte, so that every cut byte shows.
pub(crate) fn numbered(n: u32) -> Vec<u8> {
    let mut payload = (n | 0x8080_8080).to_le_bytes().to_vec();
    payload.resize(8 + (n as usize * 40) % 320, n as u8 | 1);
    payload
}

/// Everything published from the first record on.
pub(crate) fn payloads(dir: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(dir, Offset::START).unwrap();
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push(record.payload.to_vec());
    }
    all
}

/// Writes records 0..n, publishes, closes; returns where each begins and where the last ends.
pub(crate) fn write(dir: &Path, n: u32) -> Vec<Offset> {
    let (mut writer, _) = Writer::open(dir, small()).unwrap();
    let mut offsets: Vec<_> = (0..n).map(|i| writer.append(&numbered(i)).unwrap()).collect();
    offsets.push(writer.publish());
    offsets
}

/// The same in a directory of its own.
pub(crate) fn written(n: u32) -> (TempDir, Vec<Offset>) {
    let dir = tempdir().unwrap();
    let offsets = write(dir.path(), n);
    (dir, offsets)
}

/// What `write` wrote, without the records that `is_gone`.
pub(crate) fn without(offsets: &[Offset], is_gone: impl Fn(usize) -> bool) -> Vec<(Offset, Vec<u8>)> {
    let left = (0..offsets.len() - 1).filter(|&i| !is_gone(i));
    left.map(|i| (offsets[i], numbered(i as u32))).collect()
}

pub(crate) fn segment_file(dir: &Path, base: u64) -> PathBuf {
    dir.join(format!("{base:020}.seg"))
}

/// Makes the host look rebooted since the log was written: the page cache is not to be trusted any more.
pub(crate) fn lose_power(dir: &Path) {
    let marks = std::fs::File::options().write(true).open(dir.join("marks")).unwrap();
    marks.write_all_at(&[0xaa; 16], 32).unwrap();
}

pub(crate) fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    std::fs::File::options().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

pub(crate) fn flip_bit(path: &Path, at: u64) {
    let mut byte = [0];
    std::fs::File::open(path).unwrap().read_exact_at(&mut byte, at).unwrap();
    overwrite(path, at, &[byte[0] ^ 0x10]);
}

/// For what another thread or process does in its own time: only its never happening reaches the deadline.
pub(crate) fn wait_until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "it never happened");
        std::thread::sleep(Duration::from_millis(1));
    }
}
