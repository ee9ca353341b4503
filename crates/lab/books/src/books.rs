//! Our own books as an engine.
//!
//! Messages are applied one by one, each told when it is due. Showing the book what comes some messages ahead, so that it can
//! call that to the cache, was measured and gained nothing: see docs/decisions.

use pares_book::{Book, Instrument, Symbol};
use pares_flow::{BookMessage, MessageKind};
use pares_types::{
    Amendment, ClientOrderId, Command, Event, EventSink, GatewayId, InstrumentId, MemberId, NewOrder,
    OrderId, Outcome, Price, Quantity, Reason, Request, RequestId, ShardId, TimeInForce, Timestamp,
};

use crate::{Engine, Output, Report, ReportKind};

/// Price units of one tick: a cent.
const TICK: i64 = 100;
/// Orders that may rest in one book; the deepest scenario has 42,108 of them.
const ORDERS_MAX: u32 = 65_536;
/// Who issues the requests that enter orders, and all others: an order is named by the request that entered it.
const ENTERING: GatewayId = GatewayId(1);
const OTHER: GatewayId = GatewayId(2);

/// One book per instrument, from 1.
#[derive(Debug)]
pub struct Books<B> {
    books: Vec<B>,
    /// Messages taken so far.
    taken: u64,
}

impl<B: Book> Books<B> {
    /// As many empty books.
    ///
    /// # Panics
    /// If there are 2^32 of them or more.
    #[must_use]
    pub fn with_instruments(count: usize) -> Self {
        let count = u32::try_from(count).expect("instrument ids are 32 bits wide");
        Self { books: (1..=count).map(|id| B::new(instrument(id))).collect(), taken: 0 }
    }

    /// The requests that these messages become when they are the first; what making them costs can so be counted apart.
    pub fn requests(messages: &[BookMessage]) -> impl Iterator<Item = Request> {
        messages.iter().zip(0..).map(|(message, number)| request(message, number))
    }

    fn book(&mut self, instrument: InstrumentId) -> &mut B {
        &mut self.books[instrument.0 as usize - 1]
    }

    #[inline(always)]
    fn take(&mut self, request: &Request, out: &mut impl Output) {
        let number = self.taken;
        self.taken += 1;
        let mut sink = Reporter { out, number, incoming: incoming(request) };
        let outcome = self.book(request.instrument).apply(request, &mut sink);
        out.report(of_outcome(&outcome, request.member, number));
        if outcome.reason == Reason::Unfinished {
            self.finish(request, number, out);
        }
    }

    /// An order of more trades than a step may make continues at the requests that follow; here no other request comes before it is done.
    #[cold]
    fn finish(&mut self, request: &Request, number: u64, out: &mut impl Output) {
        while self.book(request.instrument).trading().unfinished.is_some() {
            let time = Request { command: Command::TIME, member: MemberId(0), ..*request };
            let mut sink = Reporter { out, number, incoming: incoming(request) };
            self.book(request.instrument).apply(&time, &mut sink);
        }
    }
}

impl<B: Book> Engine for Books<B> {
    fn new() -> Self {
        Self::with_instruments(1)
    }

    fn apply(&mut self, messages: &[BookMessage], out: &mut impl Output, after: &mut impl FnMut()) {
        for message in messages {
            self.take(&request(message, self.taken), out);
            after();
        }
    }

    fn resting(&self) -> usize {
        self.books.iter().map(Book::orders_len).sum()
    }
}

fn instrument(id: u32) -> Instrument {
    let symbol = Symbol::new("BENCH").expect("a legal name");
    let listed = Instrument::listed(InstrumentId(id), symbol);
    Instrument::new(Instrument { orders_max: ORDERS_MAX, ..listed }).expect("within every bound")
}

#[inline(always)]
fn request(message: &BookMessage, number: u64) -> Request {
    let target = OrderId(RequestId::new(ENTERING, message.id));
    let (price, quantity) = (Price(message.price_ticks * TICK), Quantity(u64::from(message.quantity)));
    let (id, command) = match message.kind {
        MessageKind::New => {
            let time_in_force = if message.ioc { TimeInForce::Ioc } else { TimeInForce::Day };
            let order = NewOrder { time_in_force, ..NewOrder::limit(message.side, price, quantity) };
            (target.0, Command::Enter(order))
        }
        MessageKind::Cancel => (RequestId::new(OTHER, number + 1), Command::Cancel { target }),
        MessageKind::Amend => {
            (RequestId::new(OTHER, number + 1), Command::Amend(Amendment::new(target, price, quantity)))
        }
    };
    Request {
        id,
        stamp: Timestamp(number),
        member: MemberId(message.member),
        client_order_id: ClientOrderId(number + 1),
        instrument: InstrumentId(message.instrument),
        shard: ShardId(0),
        command,
    }
}

/// The order that trades first because of a request.
fn incoming(request: &Request) -> OrderId {
    match request.command {
        Command::Amend(Amendment { target, .. }) | Command::Cancel { target } => target,
        _ => OrderId(request.id),
    }
}

/// The number by which messages call an order.
fn number_of(order: OrderId) -> u64 {
    order.0.sequence()
}

/// Writes events as reports.
struct Reporter<'a, O> {
    out: &'a mut O,
    number: u64,
    incoming: OrderId,
}

impl<O: Output> EventSink for Reporter<'_, O> {
    #[inline]
    fn event(&mut self, event: Event) {
        let message = self.number;
        self.out.report(match event {
            Event::Fill {
                resting, resting_member, resting_side, price, quantity, resting_remaining, ..
            } => Report {
                kind: ReportKind::Trade,
                side: resting_side.opposite() as u8,
                member: resting_member.0,
                message,
                order: number_of(self.incoming),
                other: number_of(resting),
                price_ticks: price.0 / TICK,
                quantity: quantity.0,
                remaining: resting_remaining.0,
                ..Report::default()
            },
            Event::Cancelled { order, member, quantity, cause, .. } => Report {
                kind: ReportKind::Cancelled,
                status: cause as u8,
                member: member.0,
                message,
                order: number_of(order),
                quantity: quantity.0,
                ..Report::default()
            },
            _ => Report { kind: ReportKind::Other, message, ..Report::default() },
        });
    }
}

fn of_outcome(outcome: &Outcome, member: MemberId, message: u64) -> Report {
    Report {
        kind: ReportKind::Outcome,
        status: outcome.status as u8,
        reason: outcome.reason as u8,
        member: member.0,
        message,
        order: number_of(outcome.order),
        remaining: outcome.remaining.0,
        executed: outcome.executed.0,
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pares_book::NaiveBook;
    use pares_flow::BookScenario;

    use super::*;
    use crate::{Task, measure};

    #[test]
    fn an_engine_reports_every_message_at_least_once() {
        let messages = BookScenario::ALL[0].messages_of(1, 500);
        let tally = measure::<Books<NaiveBook>>(Task::Check, &messages, Duration::MAX).tally.unwrap();
        assert!(tally.reports >= messages.len() as u64);
    }
}
