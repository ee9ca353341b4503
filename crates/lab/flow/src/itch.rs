//! ITCH 5.0 days: the exchange's own feed, order by order, in a file of length-prefixed messages.
//!
//! ```text
//!  +-----------------+---------------------+-----------------+---- - -
//!  | length, 2 bytes | message             | length, 2 bytes | ...
//!  +-----------------+---------------------+-----------------+---- - -
//!   big-endian; length 0 ends the session
//! ```
//! A day from its beginning names every order, so nothing needs seeding, and no rows are published: the
//! book the messages imply is what the exchange's is compared with. A file cut out of the day starts with
//! orders it does not name; events of those are counted and left out.

mod message;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use pares_types::InstrumentId;

use crate::recorded::{RecordedEvent, RecordedEvents, SourceError};
use message::{ItchMessage, StockLocate};

/// Which instruments of a file to replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItchSelect {
    /// All.
    All,
    /// The one of this symbol.
    Symbol(String),
}

/// What a file held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItchCounts {
    /// Messages read.
    pub messages: u64,
    /// Messages of instruments not selected.
    pub not_selected: u64,
    /// Messages of types the specification does not have.
    pub unknown_types: u64,
}

/// An ITCH day, read as it is consumed.
#[derive(Debug)]
pub struct ItchSource<R> {
    reader: R,
    select: ItchSelect,
    /// Instruments met, by stock locate; numbered from `first` in order of appearance.
    instruments: BTreeMap<StockLocate, InstrumentId>,
    symbols: BTreeMap<StockLocate, [u8; 8]>,
    first: InstrumentId,
    counts: ItchCounts,
    offset: u64,
    buffer: Vec<u8>,
}

impl ItchSource<BufReader<File>> {
    /// Opens a file. Instruments get the ids `first`, `first + 1`, ... as they appear.
    ///
    /// # Errors
    /// [`SourceError::Open`] if it cannot be opened.
    pub fn open(path: &Path, select: ItchSelect, first: InstrumentId) -> Result<Self, SourceError> {
        let file = File::open(path).map_err(|source| SourceError::Open { path: path.to_owned(), source })?;
        Ok(Self::new(BufReader::with_capacity(1 << 16, file), select, first))
    }
}

impl<R: Read> ItchSource<R> {
    /// A day from any reader (buffer it).
    pub fn new(reader: R, select: ItchSelect, first: InstrumentId) -> Self {
        Self {
            reader,
            select,
            instruments: BTreeMap::new(),
            symbols: BTreeMap::new(),
            first,
            counts: ItchCounts::default(),
            offset: 0,
            buffer: Vec::new(),
        }
    }

    /// What was read so far.
    #[must_use]
    pub fn counts(&self) -> &ItchCounts {
        &self.counts
    }

    /// The instruments replayed so far and their symbols, where the file gave one.
    pub fn instruments(&self) -> impl Iterator<Item = (InstrumentId, Option<String>)> + '_ {
        self.instruments.iter().map(|(locate, &id)| (id, self.symbols.get(locate).map(symbol_text)))
    }

    /// Reads the next message into the buffer; false at the end of the session.
    fn read_message(&mut self) -> Result<bool, SourceError> {
        let mut prefix = [0; 2];
        if !self.fill(&mut prefix, true)? {
            return Ok(false);
        }
        let length = usize::from(u16::from_be_bytes(prefix));
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(length, 0);
        self.fill(&mut buffer, false)?;
        self.buffer = buffer;
        Ok(length > 0)
    }

    /// Fills `bytes`. The file may end before the first of them if `may_end`: then false.
    fn fill(&mut self, bytes: &mut [u8], may_end: bool) -> Result<bool, SourceError> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.reader.read(&mut bytes[filled..]) {
                Ok(0) if filled == 0 && may_end => return Ok(false),
                Ok(0) => return Err(self.error("the file ends inside it".to_owned())),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(SourceError::Read { read: self.counts.messages, source }),
            }
        }
        Ok(true)
    }

    /// The id of a selected instrument.
    fn instrument(&mut self, locate: StockLocate) -> InstrumentId {
        let next =
            InstrumentId(self.first.0 + u32::try_from(self.instruments.len()).expect("65,536 at most"));
        *self.instruments.entry(locate).or_insert(next)
    }

    /// Whether the instrument is to be replayed. By symbol that is known once its directory message or
    /// its first order was seen; events before that name no order of ours anyway.
    fn is_selected(&self, locate: StockLocate) -> bool {
        match &self.select {
            ItchSelect::All => true,
            ItchSelect::Symbol(symbol) => {
                self.symbols.get(&locate).is_some_and(|found| symbol_text(found) == *symbol)
            }
        }
    }

    /// The event in a message; `None` if it changes no selected book.
    fn event(&mut self, message: ItchMessage) -> Option<RecordedEvent> {
        let ItchMessage { locate, time_ns, symbol, change, .. } = message;
        self.symbols.extend(symbol.map(|symbol| (locate, symbol)));
        let change = change?;
        if !self.is_selected(locate) {
            self.counts.not_selected += 1;
            return None;
        }
        let instrument = self.instrument(locate);
        Some(RecordedEvent { time_ns, instrument, change, published: None })
    }

    fn error(&self, what: String) -> SourceError {
        SourceError::Itch { message: self.counts.messages + 1, offset: self.offset, what }
    }
}

fn symbol_text(symbol: &[u8; 8]) -> String {
    String::from_utf8_lossy(symbol).trim_end().to_owned()
}

impl<R: Read> RecordedEvents for ItchSource<R> {
    fn next_event(&mut self) -> Result<Option<RecordedEvent>, SourceError> {
        while self.read_message()? {
            let message = message::parse(&self.buffer).map_err(|what| self.error(what))?;
            self.offset += 2 + self.buffer.len() as u64;
            self.counts.messages += 1;
            self.counts.unknown_types += u64::from(message.is_unknown);
            if let Some(event) = self.event(message) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn published_levels(&self) -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::{BookChange, OrderRef, RecordedId};

    fn framed(message: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(message.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend_from_slice(message);
        bytes
    }

    fn delete(locate: u8, id: u8) -> Vec<u8> {
        framed(&[b'D', 0, locate, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, id])
    }

    fn source(bytes: &[u8], select: ItchSelect) -> ItchSource<&[u8]> {
        ItchSource::new(bytes, select, InstrumentId(5))
    }

    #[test]
    fn instruments_are_numbered_as_they_appear() {
        let bytes = [delete(9, 1), delete(4, 2), delete(9, 3)].concat();
        let mut day = source(&bytes, ItchSelect::All);
        let ids: Vec<_> = std::iter::from_fn(|| day.next_event().unwrap()).map(|e| e.instrument.0).collect();
        assert_eq!(ids, [5, 6, 5]);
    }

    #[test]
    fn types_nobody_specified_are_skipped_and_counted() {
        let bytes = [framed(b"z???"), delete(1, 1)].concat();
        let mut day = source(&bytes, ItchSelect::All);
        let order = OrderRef { id: RecordedId(1), at: None };
        assert_eq!(day.next_event().unwrap().unwrap().change, BookChange::Delete { order, quantity: None });
        assert_eq!(*day.counts(), ItchCounts { messages: 2, not_selected: 0, unknown_types: 1 });
    }

    #[test]
    fn a_length_of_zero_ends_the_session() {
        let bytes = [vec![0, 0], delete(1, 1)].concat();
        assert_eq!(source(&bytes, ItchSelect::All).next_event().unwrap(), None);
    }

    #[test]
    fn a_file_cut_inside_a_message_says_where() {
        let bytes = [delete(1, 1), delete(1, 2)].concat();
        for length in 22..bytes.len() {
            let mut day = source(&bytes[..length], ItchSelect::All);
            day.next_event().unwrap();
            let error = day.next_event().unwrap_err().to_string();
            assert!(error.starts_with("ITCH message 2 at byte 21: the file ends inside it"), "{error}");
        }
    }

    #[test]
    fn other_symbols_are_left_out() {
        let mut directory = b"R\0\x07\0\0\0\0\0\0\0\0AAPL    ".to_vec();
        directory.resize(39, 0);
        let bytes = [framed(&directory), delete(7, 1), delete(8, 2)].concat();
        let mut day = source(&bytes, ItchSelect::Symbol("AAPL".to_owned()));
        assert!(day.next_event().unwrap().is_some());
        assert_eq!(day.next_event().unwrap(), None);
        assert_eq!(day.counts().not_selected, 1);
    }
}
