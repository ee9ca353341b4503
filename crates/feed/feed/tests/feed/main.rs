//! The feed of random records: the receiver's books are the venue's, the bytes are the same from any publisher, and a decoder that is not
//! ours reads them.

#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

mod books;
mod client;
mod equal;
mod publishers;
mod serving;
mod stored;
mod strangers;
mod subscriptions;
mod twin;
mod world;

use pares_book::{FastBook, Market};
use pares_exercise::requests::Requests;
use pares_feed::publication::{FeedSink, Publication, Session};
use pares_random::Random;
use pares_types::{
    ClientOrderId, Command, Event, GatewayId, InstrumentId, MemberId, Outcome, Position, Request, RequestId,
    Rule, ShardId, Timestamp,
};

/// A session as it was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) session: Session,
    pub(crate) messages: Vec<Vec<u8>>,
    pub(crate) over: bool,
}

/// All sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tape(pub(crate) Vec<Published>);

impl FeedSink for Tape {
    fn begin(&mut self, session: Session) {
        self.0.push(Published { session, messages: Vec::new(), over: false });
    }

    fn message(&mut self, bytes: &[u8]) {
        let session = self.0.last_mut().expect("a session has begun");
        assert!(!session.over, "nothing follows the end of a session");
        session.messages.push(bytes.to_vec());
    }

    fn end(&mut self) {
        self.0.last_mut().expect("a session has begun").over = true;
    }
}

/// A venue, and its record.
pub(crate) struct Venue {
    pub(crate) market: Market<FastBook>,
    pub(crate) position: Position,
}

/// One record.
pub(crate) struct Recorded {
    pub(crate) position: Position,
    pub(crate) request: Request,
    pub(crate) outcome: Outcome,
    pub(crate) events: Vec<Event>,
}

impl Venue {
    pub(crate) fn apply(&mut self, request: Request) -> Recorded {
        let mut events = Vec::new();
        let outcome = self.market.apply(&request, &mut events);
        let position = self.position;
        self.position.0 += 1;
        Recorded { position, request, outcome, events }
    }
}

impl Recorded {
    pub(crate) fn publish(&self, publication: &mut Publication, sink: &mut impl FeedSink) {
        publication.on_record(self.position, &self.request, &self.outcome, &self.events, sink);
    }
}

/// Runs a venue over random requests, and hands out each record, the venue after it, and a publication to tell it to. That publication in the end.
pub(crate) fn run(seed: u64, mut each: impl FnMut(&mut Publication, &Recorded, &Venue)) -> Publication {
    let bytes = Random::new(seed).bytes(3_000);
    let requests = Requests::of_a_market(&bytes);
    let mut publication = Publication::new(SHARD, requests.instruments());
    let mut venue = Venue { market: Market::new(requests.instruments()), position: Position(0) };
    let seldom = [Rule::IcebergRefill { fresh: true }, Rule::MarketRemainder { rests: true }];
    let rules = (1..).zip(seldom).filter(|_| seed % 2 == 1).map(|(sequence, rule)| set_rule(sequence, rule));
    for request in rules.chain(requests) {
        let recorded = venue.apply(request);
        each(&mut publication, &recorded, &venue);
    }
    publication
}

/// A choice of the first instrument that random requests seldom make.
fn set_rule(sequence: u64, rule: Rule) -> Request {
    Request {
        id: RequestId::new(GatewayId(9), sequence),
        stamp: Timestamp(0),
        member: MemberId(0),
        client_order_id: ClientOrderId(1 << 40 | sequence),
        instrument: InstrumentId(1),
        shard: SHARD,
        command: Command::SetRule(rule),
    }
}

pub(crate) const SHARD: ShardId = ShardId(3);

/// The whole tape of a seed.
pub(crate) fn tape(seed: u64) -> Tape {
    let mut tape = Tape::default();
    run(seed, |publication, recorded, _| recorded.publish(publication, &mut tape));
    tape
}
