//! The order books, as anybody can rebuild them from the committed stream.
//!
//! Nothing here asks the exchange anything: the recorders' logs are read as they grow, and every recorded
//! request is executed on a book of our own. So the books on the screen are a third replica, and
//! each recorded result that it does not reproduce is counted: matching is deterministic, or it is not.

use std::collections::BTreeMap;

use pares_book::{Book, FastBook, Level};
use pares_log::Offset;
use pares_node::committed::{Committed, CommittedStream};
use pares_node::{Layout, NodeError, SystemConfig};
use pares_types::{Event, InstrumentId, Outcome, Price, Quantity, Reason, Request, ShardId, Side, Status};
use pares_wire::record::ResultRecord;

/// Records read from each recorder at a time: about a millisecond's work.
const BATCH_MAX: usize = 2_048;
/// In a mass cancel: all instruments of the shard.
const WHOLE_SHARD: InstrumentId = InstrumentId(0);

/// The market, rebuilt.
pub struct Market {
    stream: CommittedStream,
    listings: BTreeMap<InstrumentId, Listing>,
    events: Vec<Event>,
    tally: Tally,
    /// By venue: positions recorded from it first.
    firsts: Vec<u64>,
}

/// What the record came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Results read.
    pub results: u64,
    /// Those that executing the request again did not reproduce.
    pub differing: u64,
    /// Trades.
    pub trades: u64,
}

struct Listing {
    symbol: String,
    shard: ShardId,
    book: FastBook,
    last: Option<Trade>,
    trades: u64,
}

/// A trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
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
    /// Orders on the book.
    pub orders: usize,
}

impl Market {
    /// The market of a system, from the beginning of its record.
    ///
    /// # Errors
    /// If the configuration has no valid shards.
    pub fn open(config: &SystemConfig, layout: &Layout) -> Result<Self, NodeError> {
        let mut listings = BTreeMap::new();
        for (shard, instruments) in config.shards()? {
            for instrument in instruments {
                let symbol = instrument.symbol.to_string();
                let (id, book) = (instrument.id, FastBook::new(instrument));
                listings.insert(id, Listing { symbol, shard, book, last: None, trades: 0 });
            }
        }
        let firsts = vec![0; usize::from(config.venues)];
        let stream = CommittedStream::new(config, layout, |_| Offset::START)?;
        Ok(Self { stream, listings, events: Vec::new(), tally: Tally::default(), firsts })
    }

    /// Reads on, a bounded amount. Says whether there may be more.
    ///
    /// # Errors
    /// If the record is damaged.
    pub fn read(&mut self) -> Result<bool, NodeError> {
        let Self { stream, listings, events, tally, firsts } = self;
        let read = stream.poll(BATCH_MAX, |item| match item {
            Committed::Result { record, .. } => {
                // A record may be of a time when the system had more venues.
                if let Some(count) = firsts.get_mut(usize::from(record.venue().0)) {
                    *count += 1;
                }
                replay(listings, events, tally, &record)
            }
            Committed::Shown { .. } | Committed::CheckpointStored { .. } => Ok(()),
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

    /// The top of every book.
    pub fn tops(&self) -> Vec<Top> {
        self.listings.values().map(Listing::top).collect()
    }
}

impl Listing {
    fn top(&self) -> Top {
        Top {
            symbol: self.symbol.clone(),
            bid: self.book.best(Side::Buy),
            ask: self.book.best(Side::Sell),
            last: self.last,
            trades: self.trades,
            orders: self.book.orders_len(),
        }
    }

    fn note_trades(&mut self, events: &[Event]) -> u64 {
        let before = self.trades;
        for event in events {
            if let Event::Fill { price, quantity, resting_side, .. } = *event {
                self.last = Some(Trade { price, quantity, aggressor: resting_side.opposite() });
                self.trades += 1;
            }
        }
        self.trades - before
    }
}

fn replay(
    listings: &mut BTreeMap<InstrumentId, Listing>,
    events: &mut Vec<Event>,
    tally: &mut Tally,
    record: &ResultRecord<'_>,
) -> Result<(), NodeError> {
    let (request, recorded) = (record.request()?, record.outcome()?);
    tally.results += 1;
    if !reaches_a_book(&recorded) {
        return Ok(());
    }
    if request.instrument == WHOLE_SHARD {
        cancel_everywhere(listings, events, &request);
        return Ok(());
    }
    let Some(listing) = listings.get_mut(&request.instrument) else {
        tally.differing += 1;
        return Ok(());
    };
    events.clear();
    let outcome = listing.book.apply(&request, events);
    let events_agree = record.events().eq(events.iter().map(|event| Ok(*event)));
    tally.differing += u64::from(outcome != recorded || !events_agree);
    tally.trades += listing.note_trades(events);
    Ok(())
}

/// Whether a request came as far as a book: a repeat or an unknown instrument is refused before.
fn reaches_a_book(recorded: &Outcome) -> bool {
    let before = [Reason::DuplicateRequest, Reason::UnknownInstrument, Reason::Halted];
    recorded.status != Status::Refused || !before.contains(&recorded.reason)
}

/// A mass cancel over a whole shard.
fn cancel_everywhere(
    listings: &mut BTreeMap<InstrumentId, Listing>,
    events: &mut Vec<Event>,
    request: &Request,
) {
    for (&instrument, listing) in listings.iter_mut().filter(|(_, listing)| listing.shard == request.shard) {
        events.clear();
        listing.book.apply(&Request { instrument, ..*request }, events);
    }
}
