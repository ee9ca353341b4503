//! A log that is tailed from before it exists, and goes on in another one that takes its place.
//!
//! Nodes start in any order and any of them may be dead, so a log that is not there yet is no error: it
//! is an empty one. A node whose disk was replaced begins a new log where the old one lay, and whoever still has the old
//! one mapped would wait there for ever. Looking for either costs system calls, so it is done only now and then, and only by a
//! reader that has nothing to read.

use std::path::PathBuf;

use pares_log::{Offset, ReadError, Reader, Record};

/// Polls with nothing to read between two looks for a log that is not there, or for another in its place.
const LOOK_EVERY: u32 = 64;

/// A reader of a log that may not exist yet.
pub struct Tail {
    dir: PathBuf,
    from: Offset,
    reader: Option<Reader>,
    polls: u32,
    skipped: bool,
    /// Whether the last record could not be read: a part of another log, perhaps.
    troubled: bool,
    replaced: bool,
}

impl Tail {
    /// Will read the log in `dir` from `from`.
    pub fn new(dir: impl Into<PathBuf>, from: Offset) -> Self {
        Self {
            dir: dir.into(),
            from,
            reader: None,
            polls: 0,
            skipped: false,
            troubled: false,
            replaced: false,
        }
    }

    /// The next published record. A log whose beginning is released is read from what is left.
    ///
    /// # Errors
    /// As [`Reader::next`]; the reader stays where it is.
    // Not an Iterator: the record borrows the reader.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        self.look_for_another();
        if self.reader.is_none() && !self.open()? {
            return Ok(None);
        }
        let reader = self.reader.as_mut().expect("just opened");
        if reader.offset() < reader.released() {
            let first = reader.released();
            reader.seek(first)?;
            self.skipped = true;
        }
        let next = reader.next();
        self.troubled = next.is_err();
        next
    }

    /// The next record that is durable as the writer's setting promises.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn next_durable(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        self.look_for_another();
        match &self.reader {
            Some(reader) if reader.offset() >= reader.durable() => Ok(None),
            _ => self.next(),
        }
    }

    /// With nothing left to read, now and then, and in trouble at once: another log in the place of this one is read from
    /// its beginning.
    fn look_for_another(&mut self) {
        let Some(reader) = &self.reader else { return };
        if !self.troubled && reader.offset() < reader.durable() {
            return;
        }
        self.polls = self.polls.wrapping_add(1);
        if (self.troubled || self.polls.is_multiple_of(LOOK_EVERY)) && reader.is_replaced() {
            (self.reader, self.from, self.replaced) = (None, Offset::START, true);
            (self.troubled, self.polls) = (false, 0);
        }
    }

    /// Whether another log took the place of the one read, since this was last asked. What is read from now on may have been
    /// read before.
    pub fn take_replaced(&mut self) -> bool {
        std::mem::take(&mut self.replaced)
    }

    /// Steps back to `offset`, which the reader has passed: the record there is read again.
    ///
    /// # Errors
    /// If it is released meanwhile.
    pub fn seek(&mut self, offset: Offset) -> Result<(), ReadError> {
        self.from = offset;
        self.reader.as_mut().map_or(Ok(()), |reader| reader.seek(offset))
    }

    /// Whether records were passed over, since this was last asked, because they were released.
    pub fn take_skipped(&mut self) -> bool {
        std::mem::take(&mut self.skipped)
    }

    /// Where the next record is expected.
    #[must_use]
    pub fn offset(&self) -> Offset {
        self.reader.as_ref().map_or(self.from, Reader::offset)
    }

    /// Bytes published and not read.
    #[must_use]
    pub fn behind_bytes(&self) -> u64 {
        self.reader.as_ref().map_or(0, |reader| reader.written().since(reader.offset()))
    }

    fn open(&mut self) -> Result<bool, ReadError> {
        self.polls = self.polls.wrapping_add(1);
        if self.polls % LOOK_EVERY != 1 {
            return Ok(false);
        }
        self.reader = match Reader::open(&self.dir, self.from) {
            Ok(reader) => Some(reader),
            Err(ReadError::NotYet { .. }) => None,
            Err(ReadError::Released { .. }) => Some(Reader::at_start(&self.dir)?),
            // Made anew since the place was written down.
            Err(ReadError::BeyondEnd { .. }) => {
                self.replaced = true;
                Some(Reader::at_start(&self.dir)?)
            }
            Err(error) => return Err(error),
        };
        Ok(self.reader.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_log::{Config, Writer};

    /// All that can be read, looking often enough to notice another log.
    fn read(tail: &mut Tail) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for _ in 0..4 * LOOK_EVERY {
            while let Ok(Some(record)) = tail.next() {
                all.push(record.payload.to_vec());
            }
        }
        all
    }

    fn write(dir: &std::path::Path, records: &[&[u8]]) {
        let (mut writer, _) = Writer::open(dir, Config::default().segment_bytes(1 << 16)).unwrap();
        for record in records {
            writer.append(record).unwrap();
        }
        writer.publish();
    }

    #[test]
    fn another_log_in_the_place_of_one_that_was_taken_away_is_read_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut tail = Tail::new(&log, Offset::START);
        assert!(read(&mut tail).is_empty(), "there is none yet");
        write(&log, &[b"one", b"two"]);
        assert_eq!(read(&mut tail), [b"one", b"two"]);
        std::fs::remove_dir_all(&log).unwrap();
        assert!(read(&mut tail).is_empty() && !tail.take_replaced());
        write(&log, &[b"one again"]);
        assert_eq!(read(&mut tail), [b"one again"]);
        assert!(tail.take_replaced() && !tail.take_replaced());
    }

    #[test]
    fn a_log_that_does_not_reach_as_far_as_it_once_did_is_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        write(&log, &[b"new"]);
        let mut tail = Tail::new(&log, Offset(1 << 12));
        assert_eq!(read(&mut tail), [b"new"]);
        assert!(tail.take_replaced());
    }

    #[test]
    fn it_is_noticed_also_by_a_reader_that_had_something_left_to_read() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        write(&log, &[b"one", b"two"]);
        let mut tail = Tail::new(&log, Offset::START);
        tail.open().unwrap();
        std::fs::remove_dir_all(&log).unwrap();
        // What was not mapped yet is gone, or is a part of the other log at the same place.
        assert!(read(&mut tail).is_empty());
        write(&log, &[b"new"]);
        assert_eq!(read(&mut tail).last().map(Vec::as_slice), Some(&b"new"[..]));
        assert!(tail.take_replaced());
    }
}
