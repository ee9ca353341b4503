//! The recording of a day, read through once before anything is started: a broken file is found before it
//! costs anything, and the exchange must know its instruments when it starts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use pares_book::Symbol;
use pares_config::InstrumentConfig;
use pares_flow::{ItchSelect, ItchSource, LobsterSource, RecordedEvent, RecordedEvents, SourceError};
use pares_load::LabError;
use pares_types::InstrumentId;

use super::Args;

/// The first instrument's id.
const FIRST: InstrumentId = InstrumentId(1);
/// Levels of each side compared where the recording publishes no rows.
const ITCH_LEVELS: usize = 10;
/// Total orders the instruments are spread over, at most.
const SHARDS_MAX: usize = 16;
/// Orders a book has room for: more than any stock's has had.
const ORDERS_MAX: u32 = 131_072;

/// Where the day lies.
#[derive(Clone, Debug)]
pub enum Recording {
    /// Two files, line by line.
    Lobster {
        /// What happened.
        messages: PathBuf,
        /// The book after it.
        book: PathBuf,
    },
    /// One file.
    Itch {
        /// The messages.
        file: PathBuf,
        /// Which of them.
        select: ItchSelect,
    },
}

/// What a day holds.
#[derive(Clone, Debug)]
pub struct Survey {
    /// How many events.
    pub events: u64,
    /// Levels of each side compared after each.
    pub levels: usize,
    /// Its instruments and what people call them.
    symbols: BTreeMap<InstrumentId, String>,
}

impl Recording {
    /// The recording the arguments name.
    ///
    /// # Errors
    /// If they name none.
    pub fn new(args: &Args) -> Result<Self, LabError> {
        match (args.lobster_messages.clone(), args.lobster_book.clone(), args.itch.clone()) {
            (Some(messages), Some(book), None) => Ok(Self::Lobster { messages, book }),
            (None, None, Some(file)) => {
                let select = args.symbol.clone().map_or(ItchSelect::All, ItchSelect::Symbol);
                Ok(Self::Itch { file, select })
            }
            _ => {
                let what = "give --lobster-messages and --lobster-book, or --itch";
                Err(LabError::Usage(what.into()))
            }
        }
    }

    /// Whether every order was on the feed, so that every execution of a known one must be at the head
    /// of its queue. (A LOBSTER day starts in the middle and shows the best levels only.)
    #[must_use]
    pub fn names_every_order(&self) -> bool {
        matches!(self, Self::Itch { .. })
    }

    /// Opens the day at its beginning.
    ///
    /// # Errors
    /// If a file cannot be opened or is something else.
    pub fn open(&self) -> Result<Day, LabError> {
        Ok(match self {
            Self::Lobster { messages, book } => Day::Lobster(LobsterSource::open(messages, book, FIRST)?),
            Self::Itch { file, select } => Day::Itch(ItchSource::open(file, select.clone(), FIRST)?),
        })
    }

    /// Reads the whole day.
    ///
    /// # Errors
    /// If it cannot be read to its end, or holds nothing.
    pub fn survey(&self) -> Result<Survey, LabError> {
        let mut day = self.open()?;
        let mut events = 0;
        while day.next_event()?.is_some() {
            events += 1;
        }
        if events == 0 {
            return Err(LabError::Usage(self.is_empty()));
        }
        let levels = day.published_levels().unwrap_or(ITCH_LEVELS);
        Ok(Survey { events, levels, symbols: self.symbols(&day) })
    }

    fn is_empty(&self) -> String {
        match self {
            Self::Itch { file, select: ItchSelect::Symbol(symbol) } => {
                format!("{} has no order of `{symbol}` (symbols are case sensitive)", file.display())
            }
            Self::Itch { file, .. } => format!("{} has no order messages", file.display()),
            Self::Lobster { messages, .. } => format!("{} has no events", messages.display()),
        }
    }

    fn symbols(&self, day: &Day) -> BTreeMap<InstrumentId, String> {
        let legal = |symbol: &String| Symbol::new(symbol).is_ok();
        match (self, day) {
            (_, Day::Itch(source)) => source
                .instruments()
                .map(|(id, symbol)| (id, symbol.filter(legal).unwrap_or(format!("INSTRUMENT-{id}"))))
                .collect(),
            (Self::Lobster { messages, .. }, _) => {
                // Published files are named SYMBOL_DATE_...
                let name = messages.file_name().map(|name| name.to_string_lossy().into_owned());
                let symbol = name.as_deref().and_then(|name| name.split('_').next()).map(str::to_owned);
                BTreeMap::from([(FIRST, symbol.filter(legal).unwrap_or("LOBSTER".into()))])
            }
            (Self::Itch { .. }, Day::Lobster(_)) => unreachable!("a recording opens as what it is"),
        }
    }
}

impl Survey {
    /// The instruments to configure, with limits that keep no order of a US stock out, spread evenly
    /// over a few total orders.
    pub fn instruments(&self) -> Vec<InstrumentConfig> {
        let shards = self.symbols.len().min(SHARDS_MAX);
        let instrument = |(index, (id, symbol)): (usize, (&InstrumentId, &String))| InstrumentConfig {
            shard: Some(u16::try_from(index % shards).expect("few shards")),
            tick: 1,
            quantity_max: u64::from(u32::MAX),
            price_min: 1,
            price_max: 1_000_000_000,
            orders_max: ORDERS_MAX,
            ..InstrumentConfig::new(id.0, symbol)
        };
        self.symbols.iter().enumerate().map(instrument).collect()
    }

    /// How many instruments.
    #[must_use]
    pub fn instruments_len(&self) -> usize {
        self.symbols.len()
    }
}

/// A day being read.
#[derive(Debug)]
pub(crate) enum Day {
    /// A LOBSTER day.
    Lobster(LobsterSource<BufReader<File>>),
    /// An ITCH day.
    Itch(ItchSource<BufReader<File>>),
}

impl RecordedEvents for Day {
    fn next_event(&mut self) -> Result<Option<RecordedEvent>, SourceError> {
        match self {
            Self::Lobster(source) => source.next_event(),
            Self::Itch(source) => source.next_event(),
        }
    }

    fn published_levels(&self) -> Option<usize> {
        match self {
            Self::Lobster(source) => source.published_levels(),
            Self::Itch(source) => source.published_levels(),
        }
    }
}
