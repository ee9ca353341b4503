//! Where a replica keeps what it must not forget: records, appended and made durable in batches.

use std::path::{Path, PathBuf};

use pares_log::{Config, Durability, MarksReader, Offset, OpenError, ReadError, Reader, Writer};

use crate::error::JournalError;

/// A place in a journal; later records have higher ones.
pub type Place = u64;

/// Records in order. What is appended is kept after a crash only if a [`sync`](Journal::sync) returned since; of what came later
/// any beginning may be kept.
pub trait Journal {
    /// Gives every record kept, oldest first, with its place.
    ///
    /// # Errors
    /// [`JournalError`], or what `each` refused with.
    fn replay<E: From<JournalError>>(
        &mut self,
        each: impl FnMut(Place, &[u8]) -> Result<(), E>,
    ) -> Result<(), E>;

    /// Appends a record: `head`, then `body`.
    ///
    /// # Errors
    /// [`JournalError`]; nothing was appended.
    fn append(&mut self, head: &[u8], body: &[u8]) -> Result<Place, JournalError>;

    /// Ends a batch that need not be durable.
    fn publish(&mut self);

    /// Ends a batch, and makes it and all before it durable, as the journal's setting promises.
    ///
    /// # Errors
    /// [`JournalError`]: it is not known what is durable. Append no more.
    fn sync(&mut self) -> Result<(), JournalError>;

    /// As [`Journal::sync`], on the device whatever the journal's setting promises.
    ///
    /// # Errors
    /// As [`Journal::sync`].
    fn settle(&mut self) -> Result<(), JournalError> {
        self.sync()
    }

    /// Records before `place` are not needed any more; some may stay.
    fn release_before(&mut self, place: Place);

    /// Longest record, in bytes.
    fn record_bytes_max(&self) -> usize;
}

/// A journal in a `pares-log` directory.
#[derive(Debug)]
pub struct Files {
    dir: PathBuf,
    writer: Writer,
    durability: Durability,
}

impl Files {
    /// Opens the log in `dir`, creating it as needed; cuts a torn tail, and after a failed write or sync what was not durable.
    /// `segment_bytes` is for a log that is new: a multiple of 4,096 up to 1 GiB, four times the longest record at least.
    ///
    /// # Errors
    /// [`JournalError::Damaged`]; [`JournalError::Device`] if it fails again; [`JournalError::Read`] with what `pares-log` said: locked
    /// or not to be read.
    pub fn open(dir: &Path, durability: Durability, segment_bytes: u64) -> Result<Files, JournalError> {
        let config = Config::default().segment_bytes(segment_bytes).durability(durability);
        Files::open_with(dir, durability, config)
    }

    /// As [`Files::open`], with all of the log's settings, its device among them.
    ///
    /// # Errors
    /// As [`Files::open`].
    pub fn open_with(dir: &Path, durability: Durability, config: Config) -> Result<Files, JournalError> {
        let config = config.durability(durability);
        let opened = match Writer::open(dir, config.clone()) {
            Err(OpenError::Poisoned { .. }) => {
                cut_to_durable(dir)?;
                Writer::open(dir, config)
            }
            opened => opened,
        };
        let (writer, _recovery) = opened.map_err(not_opened)?;
        Ok(Files { dir: dir.to_owned(), writer, durability })
    }
}

/// Lifts the poison of a write or sync that failed. A replica votes, acknowledges and commits only when [`Journal::sync`] has
/// returned, so nothing above `durable` was promised: on the device with `disk`, written with `os`.
fn cut_to_durable(dir: &Path) -> Result<(), JournalError> {
    let durable = MarksReader::open(dir).map_err(not_read)?.stats().durable;
    match pares_log::cut(dir, durable) {
        Ok(_cut_bytes) => Ok(()),
        Err(OpenError::NotABoundary { offset }) => {
            Err(JournalError::Damaged { what: format!("the durable log ends before offset {offset}") })
        }
        Err(error) => Err(not_opened(error)),
    }
}

/// What `pares-log` advises is for the exchange, whose logs can be repaired or cut.
fn not_opened(error: OpenError) -> JournalError {
    match error {
        OpenError::Damaged { offset, promised, what } => {
            JournalError::Damaged { what: format!("{what} at offset {offset}, below {promised}") }
        }
        OpenError::Poisoned { errno, .. } => JournalError::Device { errno },
        error if error.is_damage() => JournalError::Damaged { what: error.to_string() },
        error => JournalError::Read { what: error.to_string() },
    }
}

fn not_read(error: ReadError) -> JournalError {
    match error {
        ReadError::Damaged { offset, what } => {
            JournalError::Damaged { what: format!("{what} at offset {offset}") }
        }
        error if error.is_damage() => JournalError::Damaged { what: error.to_string() },
        error => JournalError::Read { what: error.to_string() },
    }
}

impl Journal for Files {
    fn replay<E: From<JournalError>>(
        &mut self,
        mut each: impl FnMut(Place, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut reader = Reader::at_start(&self.dir).map_err(not_read)?;
        while let Some(record) = reader.next().map_err(not_read)? {
            each(record.offset.0, record.payload)?;
        }
        Ok(())
    }

    fn append(&mut self, head: &[u8], body: &[u8]) -> Result<Place, JournalError> {
        let offset = self.writer.append_with(head.len() + body.len(), |bytes| {
            bytes[..head.len()].copy_from_slice(head);
            bytes[head.len()..].copy_from_slice(body);
        })?;
        Ok(offset.0)
    }

    fn publish(&mut self) {
        self.writer.publish();
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        match self.durability {
            Durability::Os => self.writer.publish(),
            Durability::Disk => self.writer.sync()?,
        };
        Ok(())
    }

    fn settle(&mut self) -> Result<(), JournalError> {
        self.writer.sync()?;
        Ok(())
    }

    fn release_before(&mut self, place: Place) {
        self.writer.release_before(Offset(place));
    }

    fn record_bytes_max(&self) -> usize {
        self.writer.payload_bytes_max()
    }
}
