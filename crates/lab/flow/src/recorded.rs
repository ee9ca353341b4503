//! The common form of recorded days: what changed on the book, and what was published after it.

use std::io;
use std::path::PathBuf;

use pares_types::{InstrumentId, Price, Quantity, Side};

/// The id a recording gives an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordedId(pub u64);

/// An order a recording names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderRef {
    /// Its id.
    pub id: RecordedId,
    /// Where it rests, where the recording says so with every event (LOBSTER does, ITCH does not).
    pub at: Option<(Side, Price)>,
}

/// What an event changed on the visible book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookChange {
    /// An order (or what was left of it after matching) came to rest.
    Submit {
        /// The id later events name it by.
        id: RecordedId,
        /// Buy or sell.
        side: Side,
        /// Limit price.
        price: Price,
        /// Shares that rest.
        quantity: Quantity,
    },
    /// Part of an order was cancelled.
    Reduce {
        /// Which.
        order: OrderRef,
        /// Shares cancelled.
        quantity: Quantity,
    },
    /// All that was left of an order was cancelled.
    Delete {
        /// Which.
        order: OrderRef,
        /// Shares cancelled, if the recording says.
        quantity: Option<Quantity>,
    },
    /// An order was executed, in part or whole.
    Execute {
        /// The resting order.
        order: OrderRef,
        /// Shares executed.
        quantity: Quantity,
    },
    /// An order was replaced by another of the same side, which queues last at its price.
    Replace {
        /// The order that is gone.
        old: OrderRef,
        /// The id of the one in its place.
        new: RecordedId,
        /// Its limit price.
        price: Price,
        /// Its shares.
        quantity: Quantity,
    },
    /// An order nobody sees was executed: the visible book stays.
    HiddenExecution,
    /// Anything else that leaves the visible book alone (halts, auctions' totals).
    Nothing,
}

/// One event of a recorded day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// When, in nanoseconds after midnight.
    pub time_ns: u64,
    /// The instrument.
    pub instrument: InstrumentId,
    /// What changed.
    pub change: BookChange,
    /// The published book after it, if the recording has one.
    pub published: Option<Depth>,
}

/// All shares at one price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthLevel {
    /// The price.
    pub price: Price,
    /// Shares open; never zero.
    pub quantity: Quantity,
}

/// The best levels of a book, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Bids, highest first.
    pub bids: Vec<DepthLevel>,
    /// Offers, lowest first.
    pub asks: Vec<DepthLevel>,
}

impl Depth {
    /// One side of it.
    #[must_use]
    pub fn side(&self, side: Side) -> &[DepthLevel] {
        match side {
            Side::Buy => &self.bids,
            Side::Sell => &self.asks,
        }
    }
}

/// Whether `a` is a better price than `b` for a resting order of `side` (would trade first).
pub(crate) fn is_better(side: Side, a: Price, b: Price) -> bool {
    match side {
        Side::Buy => a > b,
        Side::Sell => a < b,
    }
}

/// Where recorded events come from, in the order they happened.
pub trait RecordedEvents {
    /// The next event; `None` at the end of the day.
    ///
    /// # Errors
    /// [`SourceError`] if the recording cannot be read or makes no sense; it is not usable afterwards.
    fn next_event(&mut self) -> Result<Option<RecordedEvent>, SourceError>;

    /// How many levels per side are published with each event, if any are.
    fn published_levels(&self) -> Option<usize>;
}

/// A recording that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file cannot be opened.
    #[error("cannot open {}: {source}; give the unpacked file (`unzip` the published .zip first)", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Reading failed on the way.
    #[error("reading failed after {read} records: {source}")]
    Read {
        /// Lines or messages read before it.
        read: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A line of a LOBSTER file is not what it should be.
    #[error("{file} file, line {line}: {what}; is this the LOBSTER {file} file?")]
    Line {
        /// `message` or `orderbook`.
        file: &'static str,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// One LOBSTER file ends before the other.
    #[error("the {file} file ends after {lines} lines, before its partner: the two do not belong together")]
    EndsEarly {
        /// `message` or `orderbook`.
        file: &'static str,
        /// How many lines it has.
        lines: u64,
    },
    /// An ITCH message is not what it should be.
    #[error("ITCH message {message} at byte {offset}: {what}; expected ITCH 5.0 with 2-byte length prefixes")]
    Itch {
        /// Its number, from 1.
        message: u64,
        /// Where its length prefix starts in the file.
        offset: u64,
        /// What is wrong.
        what: String,
    },
}
