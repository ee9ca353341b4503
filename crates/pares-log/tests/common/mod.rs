//! What several test files need.
#![allow(dead_code, clippy::unwrap_used)] // each file uses a part of it; helpers of tests unwrap

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pares_log::{Config, Offset, Reader};

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

/// The file of the segment that begins at `base`.
pub(crate) fn segment_file(dir: &Path, base: u64) -> PathBuf {
    dir.join(format!("{base:020}.seg"))
}

/// Makes the host look rebooted since the log was written: the page cache is not to be trusted any more.
pub(crate) fn lose_power(dir: &Path) {
    let marks = std::fs::File::options().write(true).open(dir.join("marks")).unwrap();
    marks.write_all_at(&[0xaa; 16], 32).unwrap();
}

/// Overwrites bytes of a segment file.
pub(crate) fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    std::fs::File::options().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

/// Flips one bit of a file.
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
