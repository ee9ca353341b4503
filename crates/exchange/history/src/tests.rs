//! History looked up in logs written here, with outcomes from a real book.

mod following;
mod indexing;
mod looking_up;

use std::path::PathBuf;

use pares_book::{Book, Instrument, NaiveBook, RestingOrder, Symbol};
use pares_log::{Config, Durability, Writer};
use pares_types::{
    Amendment, BustedTrade, ClientOrderId, Command, Epoch, GatewayId, InstrumentId, MemberId, NewOrder,
    OrderId, OrderKind, Peg, Phase, Position, Price, Quantity, Request, RequestId, Rule, SelfTrade, ShardId,
    Side, TimeInForce, Timestamp, VenueId,
};
use pares_wire::record::{self, ResultPlace};
use tempfile::TempDir;

use crate::{Filter, HistoryError, Index, OrderRow, TradeRow, Updated};

const SEGMENT_BYTES: u64 = 16 << 10;

/// A recorder's log being written: instruments 1 and 2, each its own shard.
struct Day {
    dir: TempDir,
    writer: Writer,
    books: [NaiveBook; 2],
    positions: [u64; 2],
    sequence: u64,
}

fn instrument(id: u32) -> Instrument {
    Instrument {
        quantity_max: Quantity(1_000),
        price_max: Price(10_000_000),
        orders_max: 1_000,
        ..Instrument::listed(InstrumentId(id), Symbol::new("ALFA").unwrap())
    }
}

impl Day {
    fn new() -> Self {
        Self::with(Config::default().segment_bytes(SEGMENT_BYTES))
    }

    fn with(config: Config) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (writer, _) = Writer::open(&dir.path().join("recorder-0"), config).unwrap();
        let books = [1, 2].map(|id| NaiveBook::new(instrument(id)));
        Self { dir, writer, books, positions: [0, 0], sequence: 0 }
    }

    /// Executes and records a request; its stamp is its sequence in seconds.
    fn ask(&mut self, member: u32, instrument: u32, command: Command) -> OrderId {
        self.sequence += 1;
        let seat = instrument as usize - 1;
        let request = Request {
            id: RequestId::new(GatewayId(0), self.sequence),
            stamp: Timestamp(self.sequence * 1_000_000_000),
            member: MemberId(member),
            client_order_id: ClientOrderId(1_000 * u64::from(member) + self.sequence),
            instrument: InstrumentId(instrument),
            shard: ShardId(seat as u16),
            command,
        };
        let mut events = Vec::new();
        let outcome = self.books[seat].apply(&request, &mut events);
        let place = ResultPlace {
            shard: request.shard,
            epoch: Epoch(1),
            position: Position(self.positions[seat]),
            venue: VenueId(0),
            state_hash: 0,
        };
        self.positions[seat] += 1;
        let fill = |out: &mut [u8]| record::write_result(out, &place, &request, &outcome, &events);
        self.writer.append_with(record::result_bytes(&request, events.len()), fill).unwrap();
        self.writer.publish();
        OrderId(request.id)
    }

    fn limit(&mut self, member: u32, instrument: u32, side: Side, quantity: u64, price: i64) -> OrderId {
        let order = NewOrder::limit(side, Price(price), Quantity(quantity));
        self.ask(member, instrument, Command::Enter(order))
    }

    fn amend(&mut self, member: u32, target: OrderId, quantity: u64, price: i64) {
        let amendment = Amendment::new(target, Price(price), Quantity(quantity));
        self.ask(member, 1, Command::Amend(amendment));
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("recorder-0")
    }

    fn index_path(&self) -> PathBuf {
        self.dir.path().join("history-0.sqlite")
    }

    fn update(&self) -> Result<(Index, Updated), HistoryError> {
        let mut index = Index::open(&self.index_path())?;
        let updated = index.update(&self.log(), &mut |_, _| {})?;
        Ok((index, updated))
    }

    fn index(&self) -> Index {
        self.update().unwrap().0
    }

    fn order(&self, id: OrderId) -> OrderRow {
        self.index().story(id).unwrap().unwrap().order
    }
}

/// Status, executed, remaining.
fn standing(order: &OrderRow) -> (&str, u64, u64) {
    (&order.status, order.executed.0, order.remaining.0)
}

fn content(index: &Index) -> (Vec<OrderRow>, Vec<TradeRow>) {
    let all = Filter { limit: usize::MAX, ..Filter::default() };
    (index.orders(&all).unwrap().rows, index.trades(&all).unwrap().rows)
}

/// Some of everything: two instruments, three members.
fn busy_day() -> Day {
    let mut day = Day::new();
    day.limit(1, 1, Side::Sell, 100, 10_000);
    day.limit(2, 1, Side::Buy, 60, 10_000);
    day.limit(1, 2, Side::Buy, 5, 20_000);
    day.limit(3, 2, Side::Sell, 5, 20_000);
    day.limit(3, 1, Side::Buy, 10, 9_000);
    day.limit(3, 1, Side::Buy, 10, 9_100);
    day
}

/// Sequence of each trade's buying and selling order.
fn trades(index: &Index, filter: Filter) -> Vec<(u64, u64)> {
    let rows = index.trades(&filter).unwrap().rows;
    rows.iter().map(|trade| (trade.buy.0.0.sequence(), trade.sell.0.0.sequence())).collect()
}

/// Sequences of the orders found.
fn orders(index: &Index, filter: Filter) -> Vec<u64> {
    index.orders(&filter).unwrap().rows.iter().map(|order| order.id.0.sequence()).collect()
}
