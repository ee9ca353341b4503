//! Numbers of a running node that any process may read from outside.
//!
//! A node that must be asked for its state answers late exactly when the answer matters. So each node keeps its
//! counters in a mapped file, one store each, and `pares stat` reads them from a live, stuck or dead node alike.
//!
//! ```text
//!   0      8       12      16            128                256
//!   +------+-------+-------+--- - - ---+------------------+------------------+- - -
//!   |magic |version| count | owner     | entry 0          | entry 1          |
//!   +------+-------+-------+--- - - ---+------------------+------------------+- - -
//!   owner: utf-8, zero padded
//!   entry: name (56 bytes utf-8, zero padded) | value u64 | unused 64
//! ```
//!
//! An entry fills two cache lines, so that counters of different threads share none. The owner, where there is one, tells a file that was copied from one that is in its place.

use std::path::Path;
use std::sync::atomic::Ordering;

use crate::mapping::{MapError, Mapping};

const MAGIC: u64 = u64::from_le_bytes(*b"PARESCNT");
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 128;
const ENTRY_BYTES: usize = 128;
/// Longest name of a counter in bytes.
pub const NAME_BYTES: usize = 56;
const OWNER_AT: usize = 16;
/// Longest name of an owner in bytes.
pub const OWNER_BYTES: usize = HEADER_BYTES - OWNER_AT;

/// The node's end: the only writer.
#[derive(Debug)]
pub struct CountersWriter {
    map: Mapping,
    count: usize,
}

impl CountersWriter {
    /// Creates the file with one counter per name, all zero, replacing what an earlier run left. A reader that still
    /// has the earlier file keeps reading its last values.
    ///
    /// # Errors
    /// [`MapError`]; an earlier file is then still in place.
    ///
    /// # Panics
    /// If a name is empty or longer than [`NAME_BYTES`].
    pub fn create(path: &Path, names: &[&str]) -> Result<CountersWriter, MapError> {
        Self::create_for("", path, names)
    }

    /// The same, of which readers hear whose they are.
    ///
    /// # Errors
    /// As [`CountersWriter::create`].
    ///
    /// # Panics
    /// If a name is empty or longer than [`NAME_BYTES`], or the owner's is longer than [`OWNER_BYTES`].
    pub fn create_for(owner: &str, path: &Path, names: &[&str]) -> Result<CountersWriter, MapError> {
        assert!(owner.len() <= OWNER_BYTES, "owner of counters {owner:?}");
        let fresh = path.with_extension("tmp");
        let fail = |step, path| move |source| MapError::Io { step, path, source };
        match std::fs::remove_file(&fresh) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(fail("remove", fresh)(e)),
            _ => {}
        }
        let mut map = Mapping::create(&fresh, HEADER_BYTES + names.len() * ENTRY_BYTES)?.without_file();
        map.write(OWNER_AT, owner.as_bytes());
        for (i, name) in names.iter().enumerate() {
            assert!((1..=NAME_BYTES).contains(&name.len()), "counter name {name:?}");
            map.write(HEADER_BYTES + i * ENTRY_BYTES, name.as_bytes());
        }
        let count = u32::try_from(names.len()).expect("a node has few counters");
        map.atomic_u32(8).store(VERSION, Ordering::Relaxed);
        map.atomic_u32(12).store(count, Ordering::Relaxed);
        map.atomic_u64(0).store(MAGIC, Ordering::Release);
        std::fs::rename(&fresh, path).map_err(fail("rename", path.to_owned()))?;
        Ok(CountersWriter { map, count: names.len() })
    }

    /// Sets counter `index` (its place in the list of names).
    ///
    /// # Panics
    /// If there is no such counter.
    #[inline]
    pub fn set(&self, index: usize, value: u64) {
        self.map.atomic_u64(self.offset(index)).store(value, Ordering::Relaxed);
    }

    /// Adds to counter `index`. A load and a store, not an atomic addition: one thread writes a counter.
    ///
    /// # Panics
    /// If there is no such counter.
    #[inline]
    pub fn add(&self, index: usize, increment: u64) {
        let word = self.map.atomic_u64(self.offset(index));
        word.store(word.load(Ordering::Relaxed).wrapping_add(increment), Ordering::Relaxed);
    }

    /// What counter `index` stands at.
    ///
    /// # Panics
    /// If there is no such counter.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        self.map.load_u64(self.offset(index), Ordering::Relaxed)
    }

    #[inline]
    fn offset(&self, index: usize) -> usize {
        assert!(index < self.count, "counter {index} of {}", self.count);
        HEADER_BYTES + index * ENTRY_BYTES + NAME_BYTES
    }
}

/// The end of all other processes.
#[derive(Debug)]
pub struct CountersReader {
    map: Mapping,
    count: usize,
}

/// Why counters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// The file cannot be mapped (most often: the node has not started yet).
    #[error(transparent)]
    Map(#[from] MapError),
    /// The file is something else, or of another version of Pares.
    #[error("not a counters file of this version")]
    Foreign,
}

impl CountersReader {
    /// Opens the counters of a node, running or not.
    ///
    /// # Errors
    /// [`CountersError`]; nothing is changed.
    pub fn open(path: &Path) -> Result<CountersReader, CountersError> {
        let map = Mapping::open_read_only(path)?;
        let known = map.len() >= HEADER_BYTES
            && map.load_u64(0, Ordering::Acquire) == MAGIC
            && map.load_u32(8, Ordering::Relaxed) == VERSION;
        if !known {
            return Err(CountersError::Foreign);
        }
        let count = map.load_u32(12, Ordering::Relaxed) as usize;
        if count > (map.len() - HEADER_BYTES) / ENTRY_BYTES {
            return Err(CountersError::Foreign);
        }
        Ok(CountersReader { map, count })
    }

    /// Name and present value of each counter, in the order they were declared.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        (0..self.count).map(|i| {
            let at = HEADER_BYTES + i * ENTRY_BYTES;
            (
                padded(self.map.bytes(at..at + NAME_BYTES)),
                self.map.load_u64(at + NAME_BYTES, Ordering::Relaxed),
            )
        })
    }

    /// Whose they are; empty if that is not said.
    pub fn owner(&self) -> &str {
        padded(self.map.bytes(OWNER_AT..HEADER_BYTES))
    }

    /// The present value of the counter called `name`, if there is one.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }
}

/// A text that zeros follow up to its end.
fn padded(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).unwrap_or("(damaged name)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_while_the_node_runs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("venue-1.counters");
        let node = CountersWriter::create(
            &path,
            &["applied", "a-name-of-just-the-longest-length-there-is-for-a-counter"],
        )
        .unwrap();
        let outside = CountersReader::open(&path).unwrap();
        node.set(0, 41);
        node.add(0, 1);
        node.add(1, 7);
        assert_eq!(outside.iter().map(|(_, v)| v).collect::<Vec<_>>(), [42, 7]);
        assert_eq!(outside.get("applied"), Some(node.get(0)));
    }

    #[test]
    fn restarted_node_counts_from_zero_old_file_keeps_values() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("counters");
        CountersWriter::create(&path, &["a"]).unwrap().set(0, 5);
        let before = CountersReader::open(&path).unwrap();
        CountersWriter::create(&path, &["a", "b"]).unwrap();
        assert_eq!(before.get("a"), Some(5));
        assert_eq!(CountersReader::open(&path).unwrap().get("a"), Some(0));
    }

    #[test]
    fn counters_say_whose_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("counters");
        CountersWriter::create(&path, &["a"]).unwrap();
        assert_eq!(CountersReader::open(&path).unwrap().owner(), "");
        let longest = "x".repeat(OWNER_BYTES);
        CountersWriter::create_for(&longest, &path, &["a"]).unwrap().set(0, 5);
        let read = CountersReader::open(&path).unwrap();
        assert_eq!((read.owner(), read.get("a")), (longest.as_str(), Some(5)));
    }

    #[test]
    fn a_foreign_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("counters");
        std::fs::write(&path, [7; 300]).unwrap();
        assert!(matches!(CountersReader::open(&path), Err(CountersError::Foreign)));
    }
}
