//! A log that is tailed from before it exists.
//!
//! Nodes start in any order and any of them may be dead, so a log that is not there yet is no error: it
//! is an empty one. Looking for it costs system calls, so it is looked for only now and then.

use std::path::PathBuf;

use pares_log::{Offset, ReadError, Reader, Record};

/// Polls between two looks for a log that is not there.
const LOOK_EVERY: u32 = 64;

/// A reader of a log that may not exist yet.
pub struct Tail {
    dir: PathBuf,
    from: Offset,
    reader: Option<Reader>,
    polls: u32,
    skipped: bool,
}

impl Tail {
    /// Will read the log in `dir` from `from`.
    pub fn new(dir: impl Into<PathBuf>, from: Offset) -> Self {
        Self { dir: dir.into(), from, reader: None, polls: 0, skipped: false }
    }

    /// The next published record. A log whose beginning is released is read from what is left.
    ///
    /// # Errors
    /// As [`Reader::next`]; the reader stays where it is.
    // Not an Iterator: the record borrows the reader.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        if self.reader.is_none() && !self.open()? {
            return Ok(None);
        }
        let reader = self.reader.as_mut().expect("just opened");
        if reader.offset() < reader.released() {
            let first = reader.released();
            reader.seek(first)?;
            self.skipped = true;
        }
        reader.next()
    }

    /// The next record that is durable as the writer's setting promises.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn next_durable(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        match &self.reader {
            Some(reader) if reader.offset() >= reader.durable() => Ok(None),
            _ => self.next(),
        }
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
            Err(error) => return Err(error),
        };
        Ok(self.reader.is_some())
    }
}
