//! An exchange without a network: the book alone, driven the way a client drives the whole.

#![allow(dead_code)] // each test file uses its part

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{BufReader, Cursor, Read};
use std::path::PathBuf;

use pares_book::{Book, Instrument, Symbol, TickTable};
use pares_flow::{FlowAction, FlowCommand, RecordedEvents, Replay, ReplayReport, TranslatorConfig};
use pares_types::{
    ClientOrderId, Event, GatewayId, InstrumentId, MemberId, OrderId, Outcome, Price, Quantity, Reason,
    Request, RequestId, ShardId, Status, Timestamp,
};

/// Books by instrument, and the names a gateway would keep.
pub(crate) struct Exchange<B> {
    books: BTreeMap<InstrumentId, B>,
    orders: HashMap<ClientOrderId, OrderId>,
    sequence: u64,
}

impl<B: Book> Exchange<B> {
    pub(crate) fn new() -> Self {
        Self { books: BTreeMap::new(), orders: HashMap::new(), sequence: 0 }
    }

    pub(crate) fn apply(&mut self, command: &FlowCommand) -> (Outcome, Vec<Event>) {
        self.sequence += 1;
        let id = RequestId::new(GatewayId(1), self.sequence);
        if let FlowAction::Enter(_) = command.action {
            self.orders.insert(command.client_order_id, OrderId(id));
        }
        let Some(asked) = command.action.to_command(|name| self.orders.get(&name).copied()) else {
            return (refused(id), Vec::new());
        };
        let request = Request {
            id,
            stamp: Timestamp(0),
            member: command.member,
            client_order_id: command.client_order_id,
            instrument: command.instrument,
            shard: ShardId(0),
            command: asked,
        };
        let book =
            self.books.entry(command.instrument).or_insert_with(|| B::new(any_stock(command.instrument)));
        let mut events = Vec::new();
        let outcome = book.apply(&request, &mut events);
        (outcome, events)
    }

    pub(crate) fn audit(&self) {
        self.books.values().for_each(B::audit);
    }

    pub(crate) fn resting_orders(&self) -> usize {
        self.books.values().map(B::orders_len).sum()
    }
}

fn refused(id: RequestId) -> Outcome {
    Outcome {
        status: Status::Refused,
        reason: Reason::UnknownClientOrderId,
        order: OrderId(id),
        executed: Quantity::ZERO,
        remaining: Quantity::ZERO,
    }
}

/// An instrument that takes any order of a US stock.
pub(crate) fn any_stock(id: InstrumentId) -> Instrument {
    Instrument::new(Instrument {
        ticks: TickTable::flat(Price(1)),
        quantity_max: Quantity(10_000_000),
        price_min: Price(1),
        price_max: Price(1_000_000_000),
        orders_max: 1_000_000,
        ..Instrument::listed(id, Symbol::new("ANY").unwrap())
    })
    .unwrap()
}

pub(crate) fn config(levels: usize) -> TranslatorConfig {
    TranslatorConfig {
        resting_member: MemberId(1),
        incoming_member: MemberId(2),
        first_client_order_id: ClientOrderId(1),
        levels,
    }
}

/// Replays a day with up to `in_flight` commands unanswered, and leaves the replay for a closer look.
pub(crate) fn replay<B: Book, S: RecordedEvents>(source: S, levels: usize, in_flight: usize) -> Replay<S> {
    let mut replay = Replay::new(source, config(levels));
    let mut exchange = Exchange::<B>::new();
    let mut answers = VecDeque::new();
    while let Some(command) = replay.next_command().unwrap() {
        answers.push_back((command.client_order_id, exchange.apply(&command)));
        if answers.len() >= in_flight {
            let (name, (outcome, events)) = answers.pop_front().unwrap();
            replay.on_answer(name, &outcome, &events);
        }
    }
    for (name, (outcome, events)) in answers {
        replay.on_answer(name, &outcome, &events);
    }
    exchange.audit();
    replay
}

/// Prints the figures (seen with `--nocapture`) and the first things that went wrong.
pub(crate) fn show<S: RecordedEvents>(what: &str, replay: &Replay<S>) -> ReplayReport {
    let report = replay.report();
    println!("{what}: {report:#?}");
    for mismatch in replay.checker().mismatches().iter().take(3) {
        println!("{mismatch:#?}");
    }
    for surprise in replay.checker().surprises().iter().take(3) {
        println!("{surprise:#?}");
    }
    report
}

/// A file of the published samples, or `None` (said aloud) where they are not at hand.
pub(crate) fn sample(path: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/data");
    let root = std::env::var_os("PARES_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let path = root.join(path);
    if !path.exists() {
        println!("skipped: {} is not there (set PARES_DATA to the samples' folder)", path.display());
        return None;
    }
    Some(path)
}

/// The file of a zip whose name contains `part`.
pub(crate) fn unzip(path: &PathBuf, part: &str) -> BufReader<Cursor<Vec<u8>>> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let named = |name: &str| name.contains(part);
    let place = (0..archive.len()).find(|&at| named(&archive.name_for_index(at).unwrap().unwrap()));
    let mut bytes = Vec::new();
    archive.by_index(place.unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
    BufReader::new(Cursor::new(bytes))
}
