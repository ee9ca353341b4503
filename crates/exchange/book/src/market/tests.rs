//! A market rule by rule, and against a model that has no tables beside its books.

mod copying;
mod days;
mod model;
mod rules;

use pares_types::{
    ClientOrderId, Command, Event, GatewayId, InstrumentId, MemberId, NewOrder, OrderId, Outcome, Price,
    Quantity, Reason, Request, RequestId, ShardId, Side, Status, Symbol, Timestamp,
};

use super::Market;
use crate::{Book, Instrument, NaiveBook};

fn instrument(id: u32) -> Instrument {
    Instrument::listed(InstrumentId(id), Symbol::new("TEST").unwrap())
}

struct Rig {
    market: Market<NaiveBook>,
    sequence: u64,
    /// Of the last request.
    events: Vec<Event>,
}

impl Rig {
    fn new(ids: &[u32]) -> Self {
        Self::of(&ids.iter().map(|&id| instrument(id)).collect::<Vec<_>>())
    }

    fn of(instruments: &[Instrument]) -> Self {
        Self { market: Market::new(instruments), sequence: 0, events: Vec::new() }
    }

    fn request(&mut self, member: u32, instrument: u32, command: Command) -> Request {
        self.sequence += 1;
        Request {
            id: RequestId::new(GatewayId(1), self.sequence),
            stamp: Timestamp(self.sequence),
            member: MemberId(member),
            client_order_id: ClientOrderId(self.sequence),
            instrument: InstrumentId(instrument),
            shard: ShardId(0),
            command,
        }
    }

    fn ask(&mut self, member: u32, instrument: u32, command: Command) -> Outcome {
        let request = self.request(member, instrument, command);
        self.apply(&request)
    }

    fn apply(&mut self, request: &Request) -> Outcome {
        self.events.clear();
        let before = self.market.state_hash();
        let outcome = self.market.apply(request, &mut self.events);
        if outcome.status == Status::Refused {
            // Work an earlier step left over may be done on the way, and is seen.
            let same = self.market.state_hash() == before;
            assert!(same || !self.events.is_empty(), "a refusal leaves all as it was");
        }
        if self.sequence.is_multiple_of(3) {
            self.market.refresh_hash();
        }
        self.market.audit();
        outcome
    }

    /// A plain bid or offer; the order's id.
    fn rests(&mut self, member: u32, instrument: u32, side: Side, price: i64) -> OrderId {
        let order = NewOrder::limit(side, Price(price), Quantity(10));
        let outcome = self.ask(member, instrument, Command::Enter(order));
        assert_eq!(outcome.status, Status::Resting);
        outcome.order
    }

    /// Tells all books the time.
    fn time(&mut self, ns: u64) -> Outcome {
        let request = Request { stamp: Timestamp(ns), ..self.request(0, 0, Command::TIME) };
        self.apply(&request)
    }

    fn orders(&self) -> Vec<usize> {
        self.market.books().iter().map(Book::orders_len).collect()
    }

    /// Whose events came, and how many each.
    fn announced(&self) -> Vec<(u32, usize)> {
        let mut found: Vec<(u32, usize)> = Vec::new();
        for event in &self.events {
            match (event, found.last_mut()) {
                (Event::Instrument(id), _) => found.push((id.0, 0)),
                (_, Some((_, count))) => *count += 1,
                (_, None) => panic!("an event before it is said whose"),
            }
        }
        found
    }
}

fn why(outcome: Outcome) -> (Status, Reason) {
    (outcome.status, outcome.reason)
}

fn refused(reason: Reason) -> (Status, Reason) {
    (Status::Refused, reason)
}

const MASS_CANCELLED: (Status, Reason) = (Status::MassCancelled, Reason::None);
const ACCEPTED: (Status, Reason) = (Status::Accepted, Reason::None);
