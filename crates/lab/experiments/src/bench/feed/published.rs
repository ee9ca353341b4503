//! Records become messages and packets.
//!
//! A shard of 1,000 instruments and up to 200,000 resting orders; the flow is the one that systems are loaded with. The first half of the record fills
//! the books and is not timed.

use std::time::Instant;

use pares_book::{FastBook, Instrument, Market, Symbol};
use pares_feed::mold::Packing;
use pares_feed::publication::{FeedSink, Publication, Session};
use pares_flow::{FlowInstrument, SyntheticConfig, SyntheticFlow};
use pares_text::progress;
use pares_types::{
    ClientOrderId, Event, GatewayId, InstrumentId, MemberId, OrderId, Outcome, Position, Price, Quantity,
    Request, RequestId, ShardId, Timestamp,
};

use super::Rates;

const SEED: u64 = 1;
const SHARD: ShardId = ShardId(0);
const INSTRUMENTS: u32 = 1_000;
const LIVING: usize = 200;
const RECORDS: usize = 1_200_000;
const TICK: Price = Price(100);

/// A record, as its readers decode it.
struct Record {
    request: Request,
    outcome: Outcome,
    /// Where its events end among all.
    end: usize,
}

/// Records from the first position on.
struct Recorded {
    instruments: Vec<Instrument>,
    records: Vec<Record>,
    events: Vec<Event>,
}

/// A line that counts what it carries.
struct Counting {
    packing: Packing,
    messages: u64,
    bytes: u64,
}

impl Counting {
    fn send(&mut self) {
        self.bytes += self.packing.take().len() as u64;
    }
}

impl FeedSink for Counting {
    fn begin(&mut self, session: Session) {
        self.packing = Packing::new(session, 1);
    }

    fn message(&mut self, bytes: &[u8]) {
        self.messages += 1;
        if !self.packing.push(bytes) {
            self.send();
            assert!(self.packing.push(bytes), "a message fits an empty packet");
        }
    }

    fn end(&mut self) {
        self.send();
    }
}

/// Messages per second, the median of the rounds.
pub(super) fn measure(runs: u32) -> Option<u64> {
    let recorded = Recorded::new();
    let mut rates = Rates::default();
    progress::over("publishing", 0..runs).for_each(|_| recorded.round(&mut rates));
    rates.median()
}

impl Recorded {
    fn new() -> Self {
        let ids = (1..=INSTRUMENTS).map(InstrumentId);
        let listed = |id: InstrumentId| {
            let symbol = Symbol::new(&format!("S{id}")).expect("letters and digits");
            Instrument { ticks: pares_book::TickTable::flat(TICK), ..Instrument::listed(id, symbol) }
        };
        let instruments: Vec<Instrument> = ids.clone().map(listed).collect();
        let flow = |id| FlowInstrument { id, tick: TICK, lot: Quantity(1), start: Price(1_000_000) };
        let mut flow = SyntheticFlow::new(&SyntheticConfig {
            seed: SEED,
            instruments: ids.map(flow).collect(),
            members: (1..=20).map(MemberId).collect(),
            first_client_order_id: ClientOrderId(1),
            live_orders_max: LIVING,
        });
        let mut market: Market<FastBook> = Market::new(&instruments);
        let (mut records, mut events) = (Vec::with_capacity(RECORDS), Vec::new());
        let id = |name: ClientOrderId| RequestId::new(GatewayId(1), name.0);
        for number in 0..RECORDS as u64 {
            let asked = flow.next_command();
            let command =
                asked.action.to_command(|name| Some(OrderId(id(name)))).expect("every name is known");
            let request = Request {
                id: id(asked.client_order_id),
                stamp: Timestamp(number * 1_000),
                member: asked.member,
                client_order_id: asked.client_order_id,
                instrument: asked.instrument,
                shard: SHARD,
                command,
            };
            let outcome = market.apply(&request, &mut events);
            records.push(Record { request, outcome, end: events.len() });
        }
        Self { instruments, records, events }
    }

    fn round(&self, rates: &mut Rates) {
        let mut publication = Publication::new(SHARD, &self.instruments);
        let packing = Packing::new(Session(*b"0000000000"), 1);
        let mut line = Counting { packing, messages: 0, bytes: 0 };
        let half = self.records.len() / 2;
        self.publish(0..half, &mut publication, &mut line);
        let before = line.messages;
        let begun = Instant::now();
        self.publish(half..self.records.len(), &mut publication, &mut line);
        rates.add(line.messages - before, begun.elapsed().as_nanos());
        assert!(line.bytes > 0, "packets were sent");
    }

    fn publish(&self, records: std::ops::Range<usize>, publication: &mut Publication, line: &mut Counting) {
        let mut start = records.start.checked_sub(1).map_or(0, |before| self.records[before].end);
        for at in records {
            let Record { request, outcome, end } = &self.records[at];
            let events = &self.events[start..*end];
            publication.on_record(Position(at as u64), request, outcome, events, line);
            start = *end;
        }
    }
}
