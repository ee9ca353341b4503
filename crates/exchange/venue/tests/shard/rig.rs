//! Two instruments, a window in memory, and a venue that keeps what it hands out.

use pares_book::{Book, Instrument, Symbol, TickTable};
use pares_sequencer::{LocalWindow, Overruled, ProposeError, Sequencer, Voiding};
use pares_types::{
    ClientOrderId, Command, Epoch, Event, GatewayId, InstrumentId, MemberId, NewOrder, OrderId, Outcome,
    Position, Price, Quantity, Request, RequestId, ShardId, Side, Timestamp,
};
use pares_venue::{Gap, Progress, Recorded, ResultAt, Shard, VenueSink};

pub(crate) const SHARD: ShardId = ShardId(3);

pub(crate) fn instruments() -> Vec<Instrument> {
    [2, 1]
        .map(|id| Instrument {
            ticks: TickTable::flat(Price(1)),
            quantity_max: Quantity(1_000),
            price_min: Price(1),
            price_max: Price(1_000),
            orders_max: 64,
            ..Instrument::listed(InstrumentId(id), Symbol::new("TEST").unwrap())
        })
        .to_vec()
}

pub(crate) fn window(capacity: usize) -> LocalWindow {
    LocalWindow::new(capacity, Epoch(1), Position(0))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Result {
    pub(crate) at: ResultAt,
    pub(crate) request: Request,
    pub(crate) outcome: Outcome,
    pub(crate) events: Vec<Event>,
}

#[derive(Default)]
pub(crate) struct Results {
    pub(crate) all: Vec<Result>,
    pub(crate) full: bool,
}

impl VenueSink for Results {
    fn has_room(&mut self) -> bool {
        !self.full
    }

    fn result(&mut self, at: ResultAt, request: &Request, outcome: &Outcome, events: &[Event]) {
        self.all.push(Result { at, request: *request, outcome: *outcome, events: events.to_vec() });
    }
}

/// A shard, its handle on the window, and what it handed out.
pub(crate) struct Venue<B> {
    pub(crate) shard: Shard<B>,
    pub(crate) window: LocalWindow,
    pub(crate) out: Results,
}

impl<B: Book> Venue<B> {
    pub(crate) fn new(window: &LocalWindow) -> Self {
        let shard = Shard::new(SHARD, &instruments());
        Self { shard, window: window.clone(), out: Results::default() }
    }

    pub(crate) fn restore(window: &LocalWindow, checkpoint: &[u8]) -> Self {
        let shard = Shard::restore(SHARD, checkpoint).unwrap();
        Self { shard, window: window.clone(), out: Results::default() }
    }

    pub(crate) fn receive<'a>(&mut self, requests: impl IntoIterator<Item = &'a Request>) {
        requests.into_iter().for_each(|request| {
            self.shard.on_request(request);
        });
    }

    pub(crate) fn step(&mut self) -> Progress {
        self.shard.step(&mut self.window, &mut self.out)
    }

    /// Proposes one request at most.
    pub(crate) fn step_one(&mut self) -> Progress {
        self.shard.step(&mut OneAtATime(&mut self.window), &mut self.out)
    }

    /// Takes what another venue handed out as the committed stream would bring it.
    pub(crate) fn follow(&mut self, result: &Result) -> std::result::Result<bool, Gap> {
        let Result { at, request, outcome, .. } = result;
        let record = Recorded { position: at.position, request, reason: outcome.reason };
        self.shard.on_committed(record, at.epoch, &mut self.out)
    }

    pub(crate) fn checkpoint(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert_eq!(self.shard.checkpoint(&mut bytes), self.shard.position());
        bytes
    }

    /// What it executed, position by position, as far as it handed that out.
    pub(crate) fn order(&self) -> Vec<RequestId> {
        self.out.all.iter().map(|result| result.request.id).collect()
    }
}

/// A handle that proposes and learns one position per call: the steps of the paper's example.
struct OneAtATime<'a>(&'a mut LocalWindow);

impl Sequencer for OneAtATime<'_> {
    fn propose(
        &mut self,
        first: Position,
        requests: &[RequestId],
        _: usize,
        decided: &mut Vec<RequestId>,
    ) -> std::result::Result<(), ProposeError> {
        self.0.propose(first, &requests[..requests.len().min(1)], 1, decided)
    }

    fn recorded(&self) -> Position {
        self.0.recorded()
    }

    fn raise_recorded(&mut self, to: Position) {
        self.0.raise_recorded(to);
    }

    fn is_void(&mut self, position: Position) -> bool {
        self.0.is_void(position)
    }

    fn vouch(&mut self, from: Position, to: Position) -> std::result::Result<(), Overruled> {
        self.0.vouch(from, to)
    }

    fn void(&mut self, position: Position) -> Voiding {
        self.0.void(position)
    }

    fn epoch(&self) -> Epoch {
        self.0.epoch()
    }

    fn won(&self) -> u64 {
        self.0.won()
    }
}

/// A request of the gateway; its name is its own unless given by [`named`].
pub(crate) fn request(gateway: u16, sequence: u64, command: Command) -> Request {
    Request {
        id: RequestId::new(GatewayId(gateway), sequence),
        stamp: Timestamp(sequence),
        member: MemberId(u32::from(gateway)),
        client_order_id: ClientOrderId(sequence),
        instrument: InstrumentId(1),
        shard: SHARD,
        command,
    }
}

pub(crate) fn named(member: u32, name: u64, request: Request) -> Request {
    Request { member: MemberId(member), client_order_id: ClientOrderId(name), ..request }
}

pub(crate) fn enter(gateway: u16, sequence: u64, side: Side, price: i64, quantity: u64) -> Request {
    let order = NewOrder::limit(side, Price(price), Quantity(quantity));
    request(gateway, sequence, Command::Enter(order))
}

pub(crate) fn cancel(gateway: u16, sequence: u64, target: RequestId) -> Request {
    request(gateway, sequence, Command::Cancel { target: OrderId(target) })
}
