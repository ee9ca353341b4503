//! The order books, as any process can rebuild them from the committed stream.
//!
//! Nothing here asks the exchange anything: the recorders' logs are read as they grow, and every recorded
//! request is executed on a book of our own. So the books on the screen are a third replica, and
//! each recorded result that it does not reproduce is counted: matching is deterministic, or it is not.

use std::collections::BTreeMap;

use pares_book::{Book, FastBook, Level, Market as Books};
use pares_log::Offset;
use pares_node::committed::{Committed, CommittedStream};
use pares_node::{HostWorld, Layout, NodeError, SystemConfig};
use pares_types::{Event, InstrumentId, Outcome, Phase, Price, Quantity, ShardId, Side, Status};
use pares_wire::record::ResultRecord;

use super::day::log::DayLog;

/// Records read from each recorder at a time: about a millisecond's work.
const BATCH_MAX: usize = 2_048;

/// The market, rebuilt.
pub(crate) struct Market {
    stream: CommittedStream<HostWorld>,
    books: BTreeMap<ShardId, Books<FastBook>>,
    trading: BTreeMap<InstrumentId, Trading>,
    events: Vec<Event>,
    tally: Tally,
    /// By venue: positions recorded from it first.
    firsts: Vec<u64>,
    /// Of a trading day: what it has come to.
    day: Option<DayLog>,
}

/// What the record came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Results read.
    pub results: u64,
    /// Those that executing the request again did not reproduce.
    pub differing: u64,
    /// Trades.
    pub trades: u64,
}

/// What is known of an instrument besides its book.
#[derive(Clone, Copy, Default)]
struct Trading {
    last: Option<Trade>,
    trades: u64,
}

/// A trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trade {
    /// At what price.
    pub price: Price,
    /// How many shares.
    pub quantity: Quantity,
    /// Who was impatient: the incoming order's side.
    pub aggressor: Side,
}

/// The top of one book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top {
    /// What people call the instrument.
    pub symbol: String,
    /// The best bid.
    pub bid: Option<Level>,
    /// The best offer.
    pub ask: Option<Level>,
    /// The last trade.
    pub last: Option<Trade>,
    /// Trades so far.
    pub trades: u64,
    /// Orders there, held ones included.
    pub orders: usize,
    /// The phase.
    pub phase: Phase,
    /// In a call, what its auction would do.
    pub indicative: Option<(Price, Quantity)>,
}

impl Market {
    /// The market of a system, from the beginning of its record.
    ///
    /// # Errors
    /// If the configuration has no valid shards.
    pub fn open(config: &SystemConfig, layout: &Layout) -> Result<Self, NodeError> {
        let shards = config.shards()?.into_iter();
        let books = shards.map(|(shard, instruments)| (shard, Books::new(&instruments))).collect();
        let firsts = vec![0; usize::from(config.venues)];
        let stream = CommittedStream::new(&HostWorld::new(layout)?, config, |_| Offset::START)?;
        let (trading, events) = (BTreeMap::new(), Vec::new());
        Ok(Self { stream, books, trading, events, tally: Tally::default(), firsts, day: None })
    }

    /// Keeps a log of the trading day, from here on.
    pub fn log_day(&mut self) {
        self.day = Some(DayLog::default());
    }

    /// The log of the trading day, if one is kept.
    pub fn day(&mut self) -> Option<&mut DayLog> {
        self.day.as_mut()
    }

    /// The book of an instrument.
    pub fn book(&self, instrument: InstrumentId) -> Option<&FastBook> {
        self.books.values().find_map(|books| books.book(instrument))
    }

    /// All books, shard by shard.
    pub fn books(&self) -> impl Iterator<Item = &FastBook> {
        self.books.values().flat_map(|books| books.books())
    }

    /// Reads on, a bounded amount. Says whether there may be more.
    ///
    /// # Errors
    /// If the record is damaged.
    pub fn read(&mut self) -> Result<bool, NodeError> {
        let Self { stream, books, trading, events, tally, firsts, day } = self;
        let read = stream.poll(BATCH_MAX, |item| match item {
            Committed::Result { record, .. } => {
                // A record may be of a time when the system had more venues.
                if let Some(count) = firsts.get_mut(usize::from(record.venue().0)) {
                    *count += 1;
                }
                replay(books, trading, events, tally, day.as_mut(), &record)
            }
            Committed::Shown { .. } | Committed::Moved { .. } | Committed::CheckpointStored { .. } => Ok(()),
        })?;
        Ok(read >= BATCH_MAX)
    }

    /// Reads all there is.
    ///
    /// # Errors
    /// If the record is damaged.
    pub fn read_all(&mut self) -> Result<(), NodeError> {
        while self.read()? {}
        Ok(())
    }

    /// What the record came to so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// By venue: how many positions were recorded from it, because it was first with them.
    pub fn firsts(&self) -> &[u64] {
        &self.firsts
    }

    /// The top of every book, in order of instrument id.
    pub fn tops(&self) -> Vec<Top> {
        let mut books: Vec<&FastBook> = self.books().collect();
        books.sort_unstable_by_key(|book| book.instrument().id);
        books.into_iter().map(|book| self.top(book)).collect()
    }

    fn top(&self, book: &FastBook) -> Top {
        let trading = self.trading.get(&book.instrument().id).copied().unwrap_or_default();
        Top {
            symbol: book.instrument().symbol.to_string(),
            bid: book.best(Side::Buy),
            ask: book.best(Side::Sell),
            last: trading.last,
            trades: trading.trades,
            orders: book.orders_len(),
            phase: book.trading().phase,
            indicative: book.trading().indicated.filter(|(_, quantity)| !quantity.is_zero()),
        }
    }
}

/// Notes the trades of a request for that instrument, or for all of them; says how many there were.
fn note_trades(
    trading: &mut BTreeMap<InstrumentId, Trading>,
    mut instrument: InstrumentId,
    events: &[Event],
) -> u64 {
    let mut count = 0;
    for event in events {
        match *event {
            Event::Instrument(id) => instrument = id,
            Event::Fill { price, quantity, resting_side, .. } => {
                let trading = trading.entry(instrument).or_default();
                trading.last = Some(Trade { price, quantity, aggressor: resting_side.opposite() });
                trading.trades += 1;
                count += 1;
            }
            _ => {}
        }
    }
    count
}

fn replay(
    books: &mut BTreeMap<ShardId, Books<FastBook>>,
    trading: &mut BTreeMap<InstrumentId, Trading>,
    events: &mut Vec<Event>,
    tally: &mut Tally,
    day: Option<&mut DayLog>,
    record: &ResultRecord<'_>,
) -> Result<(), NodeError> {
    let (request, recorded) = (record.request()?, record.outcome()?);
    tally.results += 1;
    if !reaches_a_book(&recorded) {
        return Ok(());
    }
    let Some(books) = books.get_mut(&request.shard) else {
        tally.differing += 1;
        return Ok(());
    };
    events.clear();
    let outcome = books.apply(&request, events);
    let events_agree = record.events().eq(events.iter().map(|event| Ok(*event)));
    tally.differing += u64::from(outcome != recorded || !events_agree);
    tally.trades += note_trades(trading, request.instrument, events);
    if let Some(day) = day {
        day.note(&request, &outcome, events, books);
    }
    Ok(())
}

/// Whether a request came as far as the books: a repeat is refused before.
fn reaches_a_book(recorded: &Outcome) -> bool {
    recorded.status != Status::Refused || recorded.reason.reaches_book()
}
