//! The day's record once more, as market data: after every position the book that a receiver makes of the messages must be the
//! venue's, order by order in their queues, and show the rows that were published.
//!
//! ```text
//!  record --> rule book ------------------> the venue's book  \
//!         \-> publication --> messages --> a receiver's book  -- equal?   the best levels: the published row?
//! ```
//! What real receivers got of those messages is held against them elsewhere (`crate::feed`).

use std::collections::{BTreeMap, HashMap};

use pares_book::{Book, FastBook, Market};
use pares_feed::books::{ReceivedBook, ReceivedBooks};
use pares_feed::itch;
use pares_feed::publication::{FeedSink, Publication, Session};
use pares_flow::{Action, Actions, Depth, DepthLevel, RowCheck};
use pares_load::LabError;
use pares_node::committed::{Committed, CommittedStream};
use pares_node::{HostWorld, Layout, NodeError, SystemConfig};
use pares_types::{
    ClientOrderId, Command, Event, InstrumentId, OrderKind, Outcome, Price, Quantity, Request, ShardId, Side,
    Status,
};
use pares_wire::record::ResultRecord;
use serde::Serialize;

use super::day::{Recording, Survey};
use super::driver;

/// Records read at a time.
const BATCH_MAX: usize = 2_048;
/// How many differences are described in words; all are counted.
const TOLD_MAX: usize = 3;

/// What was compared.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Compared {
    /// Positions after which the receiver's book was held against the venue's.
    pub books_compared: u64,
    /// Of those, after which they were not equal.
    pub books_differing: u64,
    /// Published rows held against the receiver's book.
    pub rows_compared: u64,
    /// Of those, which it does not show.
    pub rows_differing: u64,
    /// The first differences, in words.
    #[serde(skip)]
    pub complaints: Vec<String>,
}

/// The rows of the day, by the command after which each is due.
struct Rows {
    /// Those that are due before anything is sent.
    first: Vec<RowCheck>,
    after: HashMap<ClientOrderId, Vec<RowCheck>>,
}

impl Rows {
    fn read(recording: &Recording, survey: &Survey) -> Result<Self, LabError> {
        let mut actions = Actions::new(recording.open()?, driver::translation(survey));
        let mut rows = Self { first: Vec::new(), after: HashMap::new() };
        let mut last: BTreeMap<InstrumentId, ClientOrderId> = BTreeMap::new();
        while let Some(action) = actions.next_action()? {
            match action {
                Action::Send(step) => {
                    last.insert(step.command.instrument, step.command.client_order_id);
                }
                Action::Check(row) => match last.get(&row.instrument) {
                    Some(name) => rows.after.entry(*name).or_default().push(row),
                    None => rows.first.push(row),
                },
            }
        }
        Ok(rows)
    }
}

/// A shard: its book at the venue, and as it is received.
struct Shard {
    market: Market<FastBook>,
    publication: Publication,
    received: ReceivedBooks,
}

/// What takes in messages as a receiver does that misses nothing.
struct Receives<'a>(&'a mut ReceivedBooks);

impl FeedSink for Receives<'_> {
    fn begin(&mut self, _: Session) {
        *self.0 = ReceivedBooks::with_seed(0);
    }

    fn message(&mut self, bytes: &[u8]) {
        self.0.on_message(bytes);
    }

    fn end(&mut self) {}
}

/// Follows the record of a system that a day was replayed at.
///
/// # Errors
/// If the record or the recording cannot be read, or the rule book gives something else than is recorded.
pub(crate) fn compare(
    layout: &Layout,
    config: &SystemConfig,
    (recording, survey): (&Recording, &Survey),
) -> Result<Compared, LabError> {
    let (mut stream, _) = CommittedStream::of_all_kept(&HostWorld::new(layout)?, config)?;
    let mut shards: BTreeMap<ShardId, Shard> = BTreeMap::new();
    for (shard, instruments) in config.shards()? {
        let (market, publication) = (Market::new(&instruments), Publication::new(shard, &instruments));
        shards.insert(shard, Shard { market, publication, received: ReceivedBooks::with_seed(0) });
    }
    let mut rows = Rows::read(recording, survey)?;
    let mut compared = Compared::default();
    rows.first.drain(..).for_each(|row| compared.row(&row, None));
    let mut broken = None;
    while broken.is_none()
        && stream.poll(BATCH_MAX, |item| {
            if let Committed::Result { record, .. } = item
                && let Some(shard) = shards.get_mut(&record.shard())
            {
                broken = broken.take().or(shard.follow(&record, &mut rows, &mut compared)?);
            }
            Ok(())
        })? > 0
    {}
    broken.map_or(Ok(compared), |why| Err(LabError::Failed(why)))
}

impl Shard {
    /// The next record; what the rule book gives, if that is not what was recorded.
    fn follow(
        &mut self,
        record: &ResultRecord<'_>,
        rows: &mut Rows,
        compared: &mut Compared,
    ) -> Result<Option<String>, NodeError> {
        let (request, outcome) = (record.request()?, record.outcome()?);
        let events = record.events().collect::<Result<Vec<Event>, _>>()?;
        let (own, own_events) = self.carry_out(&request, &outcome);
        if (own, &own_events) != (outcome, &events) {
            let place = (record.shard(), record.position());
            return Ok(Some(format!("{place:?}: recorded {outcome:?} {events:?}, but it gives {own:?}")));
        }
        let mut sink = Receives(&mut self.received);
        self.publication.on_record(record.position(), &request, &outcome, &events, &mut sink);
        if let Some(book) = self.market.book(request.instrument) {
            let received = received(&self.received, request.instrument);
            let is_equal = received.is_some_and(|received| is_equal(received, book));
            let misfits = self.received.misfits;
            compared.book(is_equal && misfits == 0, || format!("after {request:?}: {received:?}"));
        }
        for row in rows.after.remove(&request.client_order_id).into_iter().flatten() {
            compared.row(&row, received(&self.received, row.instrument));
        }
        Ok(None)
    }

    fn carry_out(&mut self, request: &Request, recorded: &Outcome) -> (Outcome, Vec<Event>) {
        let mut events = Vec::new();
        let is_shards = recorded.status == Status::Refused && !recorded.reason.reaches_book();
        let outcome = match request.command {
            // Neither who may trade nor what a shard refuses by itself is a book's to know.
            Command::Register(_) => {
                Outcome { status: recorded.status, ..self.market.refuse(request, recorded.reason) }
            }
            _ if is_shards => self.market.refuse(request, recorded.reason),
            _ => self.market.apply(request, &mut events),
        };
        (outcome, events)
    }
}

fn received(books: &ReceivedBooks, instrument: InstrumentId) -> Option<ReceivedBook<'_>> {
    itch::locate(instrument).and_then(|at| books.book(at))
}

/// Whether a receiver sees what is displayed of a book, each order in its place.
fn is_equal(received: ReceivedBook<'_>, book: &FastBook) -> bool {
    [Side::Buy, Side::Sell].into_iter().all(|side| {
        let mut told = received.orders(side).map(|(price, shares, _)| (price, shares));
        let mut is_equal = true;
        book.for_each_order(side, &mut |order| {
            if order.kind != OrderKind::Market {
                is_equal &= told.next() == Some((order.price, order.shown));
            }
        });
        is_equal && told.next().is_none()
    })
}

/// The best levels that a receiver sees.
fn top(received: Option<ReceivedBook<'_>>, levels: usize) -> Depth {
    let level = |(price, quantity, _): (Price, Quantity, u64)| DepthLevel { price, quantity };
    let side = |side| {
        let levels = received.into_iter().flat_map(|book| book.levels(side)).take(levels);
        levels.map(level).collect()
    };
    Depth { bids: side(Side::Buy), asks: side(Side::Sell) }
}

impl Compared {
    fn book(&mut self, is_equal: bool, found: impl FnOnce() -> String) {
        self.books_compared += 1;
        if !is_equal {
            self.books_differing += 1;
            self.complain(found);
        }
    }

    fn row(&mut self, row: &RowCheck, received: Option<ReceivedBook<'_>>) {
        self.rows_compared += 1;
        let found = top(received, row.levels);
        if found != row.published {
            self.rows_differing += 1;
            let RowCheck { event, published, .. } = row;
            self.complain(|| format!("event {event}: published {published:?}, received {found:?}"));
        }
    }

    fn complain(&mut self, what: impl FnOnce() -> String) {
        if self.complaints.len() < TOLD_MAX {
            self.complaints.push(what());
        }
    }
}
