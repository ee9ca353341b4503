//! From the events of a committed record to those they concern: trades, cancels and news of their orders.
//!
//! Events say who was resting; who came in is the request's own order until an [`Event::Incoming`] names
//! another. So they are read in their order, with that order and the instrument at hand.

use pares_types::{
    CancelCause, Cancelled, ClientOrderId, Command, Event, IncomingCause, InstrumentId, MemberId,
    OrderChange, OrderId, OrderNews, Outcome, Position, Price, Quantity, Reply, Request, RestCause, Role,
    ShardId, Side, Trade, TradeBusted,
};

use crate::{Gateway, GatewaySink};

/// Where a record's events happened, as far as they have been read.
struct Reading {
    shard: ShardId,
    position: Position,
    /// Which of its events is read.
    index: u16,
    instrument: InstrumentId,
    incoming: Option<Incoming>,
}

/// The order that trades with those on the book.
#[derive(Clone, Copy)]
struct Incoming {
    order: OrderId,
    member: MemberId,
    client_order_id: ClientOrderId,
    left: Quantity,
}

impl Reading {
    /// News of an order that has `remaining` shares left.
    fn news(&self, (order, client_order_id): (OrderId, ClientOrderId), side: Side) -> OrderNews {
        OrderNews {
            client_order_id,
            order,
            shard: self.shard,
            position: self.position,
            instrument: self.instrument,
            side,
            change: OrderChange::Triggered,
            price: Price(0),
            remaining: Quantity::ZERO,
            shown: Quantity::ZERO,
        }
    }
}

impl Gateway {
    /// Tells all sessions of those concerned.
    pub(crate) fn report(
        &self,
        position: Position,
        request: &Request,
        outcome: &Outcome,
        events: &[Event],
        sink: &mut impl GatewaySink,
    ) {
        let mut reading = Reading {
            shard: request.shard,
            position,
            index: 0,
            instrument: request.instrument,
            incoming: self.own_incoming(request, outcome, events),
        };
        for (event, index) in events.iter().zip(0..) {
            reading.index = index;
            match *event {
                Event::Fill { .. } => self.report_fill(&mut reading, event, sink),
                Event::Cancelled { order, member, client_order_id, quantity, cause } => {
                    let Reading { shard, instrument, .. } = reading;
                    // The only shares that an order loses between two of its trades.
                    let own = |one: &&mut Incoming| cause == CancelCause::SelfTrade && one.order == order;
                    if let Some(incoming) = reading.incoming.as_mut().filter(own) {
                        incoming.left = left_after(incoming.left, quantity);
                    }
                    let cancelled =
                        Cancelled { client_order_id, order, shard, position, instrument, quantity, cause };
                    self.tell(member, Reply::Cancelled(cancelled), sink);
                }
                Event::Incoming { order, member, client_order_id, side, price, quantity, cause } => {
                    reading.incoming = Some(Incoming { order, member, client_order_id, left: quantity });
                    if cause == IncomingCause::Triggered {
                        let news = reading.news((order, client_order_id), side);
                        let news = OrderNews { price, remaining: quantity, ..news };
                        self.tell(member, Reply::News(news), sink);
                    }
                }
                Event::Rested { order, member, client_order_id, side, price, quantity, shown, cause } => {
                    let (change, remaining) = (change(cause), quantity);
                    let news = reading.news((order, client_order_id), side);
                    let news = OrderNews { change, price, remaining, shown, ..news };
                    self.tell(member, Reply::News(news), sink);
                }
                Event::Busted { resting, incoming, .. } => {
                    self.report_bust(&reading, resting, event, sink);
                    self.report_bust(&reading, incoming, event, sink);
                }
                Event::Instrument(instrument) => reading.instrument = instrument,
                // Of the market, not of an order.
                Event::PhaseEntered { .. }
                | Event::Auction { .. }
                | Event::DayPrices { .. }
                | Event::DayVolume { .. }
                | Event::DayEnded { .. } => {}
            }
        }
    }

    /// The request's own order, if it may trade at once: it has the total less what was executed before.
    fn own_incoming(&self, request: &Request, outcome: &Outcome, events: &[Event]) -> Option<Incoming> {
        let (total, client_order_id) = match request.command {
            Command::Enter(order) => (order.quantity, request.client_order_id),
            Command::Amend(amendment) => {
                // An amend has a name of its own.
                let order = self.names.find_order(amendment.target).map(|name| self.names.get(name));
                let name = order.map_or(request.client_order_id, |entry| entry.client_order_id);
                (amendment.quantity, name)
            }
            _ => return None,
        };
        let own = events.iter().take_while(|event| !matches!(event, Event::Incoming { .. }));
        let fills = own.filter_map(|event| match *event {
            Event::Fill { quantity, .. } => Some(quantity),
            _ => None,
        });
        let filled_now = fills.reduce(|sum, quantity| Quantity(sum.0.saturating_add(quantity.0)))?;
        let left = left_after(total, left_after(outcome.executed, filled_now));
        Some(Incoming { order: outcome.order, member: request.member, client_order_id, left })
    }

    /// Both sides of a trade, the one that came in first.
    fn report_fill(&self, reading: &mut Reading, fill: &Event, sink: &mut impl GatewaySink) {
        let Event::Fill {
            resting,
            resting_member,
            resting_client_order_id,
            resting_side,
            price,
            quantity,
            resting_remaining,
        } = *fill
        else {
            return;
        };
        // An order comes in before it trades; nobody can be told of a trade of which that is not recorded.
        let Some(incoming) = reading.incoming.as_mut() else { return };
        incoming.left = left_after(incoming.left, quantity);
        let resting = Trade {
            client_order_id: resting_client_order_id,
            order: resting,
            shard: reading.shard,
            position: reading.position,
            index: reading.index,
            instrument: reading.instrument,
            side: resting_side,
            role: Role::Resting,
            price,
            quantity,
            remaining: resting_remaining,
        };
        let taken = Trade {
            client_order_id: incoming.client_order_id,
            order: incoming.order,
            side: resting_side.opposite(),
            role: Role::Incoming,
            remaining: incoming.left,
            ..resting
        };
        self.tell(incoming.member, Reply::Trade(taken), sink);
        self.tell(resting_member, Reply::Trade(resting), sink);
    }

    /// Tells the owner of one side of a busted trade, whom only the order's name gives away.
    fn report_bust(&self, reading: &Reading, order: OrderId, busted: &Event, sink: &mut impl GatewaySink) {
        let Event::Busted { position: traded_at, index, price, quantity, .. } = *busted else { return };
        let Some(entry) = self.names.find_order(order).map(|name| self.names.get(name)) else { return };
        let bust = TradeBusted {
            client_order_id: entry.client_order_id,
            order,
            shard: reading.shard,
            position: reading.position,
            traded_at,
            index,
            instrument: reading.instrument,
            price,
            quantity,
        };
        self.tell(entry.member, Reply::Busted(bust), sink);
    }

    /// All sessions of the member.
    fn tell(&self, member: MemberId, reply: Reply, sink: &mut impl GatewaySink) {
        for &session in self.sessions.of_member(member) {
            sink.reply(session, reply);
        }
    }
}

fn change(cause: RestCause) -> OrderChange {
    match cause {
        RestCause::Triggered => OrderChange::Rested,
        RestCause::Repriced => OrderChange::Repriced,
        RestCause::Refilled => OrderChange::Refilled,
        RestCause::Released => OrderChange::Released,
        RestCause::Withdrawn => OrderChange::Withdrawn,
    }
}

/// What is left of an order after that many shares of it are gone. Until a wrong venue is found its results are recorded like all
/// others and need not add up; a gateway passes on what is recorded, and does not die of it.
pub(crate) fn left_after(left: Quantity, gone: Quantity) -> Quantity {
    Quantity(left.0.saturating_sub(gone.0))
}
