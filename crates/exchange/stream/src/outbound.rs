//! From a committed record to those it concerns: trades, cancels and news of their orders, and the answer.
//!
//! Events say who was resting; who came in is the request's own order until an [`Event::Incoming`] names
//! another. So they are read in their order, with that order and the instrument at hand.

use pares_types::{
    Answer, CancelCause, Cancelled, ClientOrderId, Command, Event, IncomingCause, InstrumentId, MemberId,
    OrderChange, OrderId, OrderNews, Outcome, Position, Price, Quantity, Reason, Reply, Request, RestCause,
    Role, ShardId, Side, Status, Trade, TradeBusted,
};

use crate::{Positions, StreamNumbers};

/// The answer a committed record gives, without a number.
#[must_use]
pub fn answer(position: Position, request: &Request, outcome: &Outcome, events: usize) -> Answer {
    Answer {
        client_order_id: request.client_order_id,
        request: request.id,
        order: outcome.order,
        shard: request.shard,
        position,
        instrument: request.instrument,
        status: outcome.status,
        reason: outcome.reason,
        executed: outcome.executed,
        remaining: outcome.remaining,
        events: u32::try_from(events).expect("a record holds at most 65,535 events"),
        repeat: false,
        number: 0,
        asked: request.command.asked(),
    }
}

/// A committed record, to be told.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// Its place in the shard's total order.
    pub position: Position,
    /// The request there.
    pub request: &'a Request,
    /// What became of it.
    pub outcome: &'a Outcome,
    /// What it caused.
    pub events: &'a [Event],
}

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

impl Told<'_> {
    /// Hands each member its messages of the record, in order, without numbers. A refusal comes before what else its step did, every
    /// other answer after what it led to.
    pub fn read(&self, mut tell: impl FnMut(MemberId, Reply)) {
        let is_refused = self.outcome.status == Status::Refused;
        if is_refused {
            self.read_answer(&mut tell);
        }
        let mut reading = Reading {
            shard: self.request.shard,
            position: self.position,
            index: 0,
            instrument: self.request.instrument,
            incoming: self.own_incoming(),
        };
        for (event, index) in self.events.iter().zip(0..) {
            reading.index = index;
            match event {
                Event::Busted { .. } => self.read_bust(&reading, event, &mut tell),
                _ => reading.read(event, &mut tell),
            }
        }
        if !is_refused {
            self.read_answer(&mut tell);
        }
    }

    fn read_answer(&self, tell: &mut impl FnMut(MemberId, Reply)) {
        if self.is_answered() {
            let answer = answer(self.position, self.request, self.outcome, self.events.len());
            tell(self.request.member, Reply::Answer(answer));
        }
    }

    /// Counts the record, and hands out what [`read`](Self::read) does, with its number.
    pub fn count(
        &self,
        numbers: &mut StreamNumbers,
        positions: &mut Positions,
        mut tell: impl FnMut(MemberId, Reply, u64),
    ) {
        positions.follow(self.position, self.request, self.outcome);
        self.read(|member, reply| {
            positions.tell(member, &reply);
            tell(member, reply, numbers.next(member));
        });
    }

    /// Whether the answer counts. Not these:
    ///
    /// - what a gateway asks by itself: nobody waits for it;
    /// - `duplicate_request` and `too_old`: the first answer was counted, and gateways look for that before they tell;
    /// - `too_many_series`: a member without a series has no order, and is not worth remembering;
    /// - changes of the register: one shard answers for all, and it would be taken for its part.
    fn is_answered(&self) -> bool {
        let Request { member, client_order_id, .. } = *self.request;
        let unasked = member == MemberId(0) && client_order_id.is_of_gateways();
        let for_all = matches!(self.request.command, Command::Register(_));
        let uncounted = [Reason::DuplicateRequest, Reason::TooOld, Reason::TooManySeries];
        !unasked && !for_all && !uncounted.contains(&self.outcome.reason)
    }

    /// The request's own order, if it may trade at once: it has the total less what was executed before.
    fn own_incoming(&self) -> Option<Incoming> {
        let Self { request, outcome, .. } = *self;
        let own = self.events.iter().take_while(|event| !matches!(event, Event::Incoming { .. }));
        let fills = own.filter_map(|event| match *event {
            Event::Fill { quantity, .. } => Some(quantity),
            _ => None,
        });
        let filled_now = fills.reduce(|sum, quantity| Quantity(sum.0.saturating_add(quantity.0)))?;
        let (total, client_order_id) = match request.command {
            Command::Enter(order) => (order.quantity, request.client_order_id),
            // An amend has a name of its own.
            Command::Amend(amendment) if amendment.target_name != ClientOrderId(0) => {
                (amendment.quantity, amendment.target_name)
            }
            Command::Amend(amendment) => (amendment.quantity, request.client_order_id),
            _ => return None,
        };
        let left = left_after(total, left_after(outcome.executed, filled_now));
        Some(Incoming { order: outcome.order, member: request.member, client_order_id, left })
    }

    /// Both owners of a busted trade, whom the request names.
    fn read_bust(&self, reading: &Reading, busted: &Event, tell: &mut impl FnMut(MemberId, Reply)) {
        let Event::Busted { resting, incoming, position: traded_at, index, price, quantity } = *busted else {
            return;
        };
        let Command::Bust(asked) = self.request.command else { return };
        for (order, owner) in [(resting, asked.resting_owner), (incoming, asked.incoming_owner)] {
            let (member, client_order_id) = owner;
            let Reading { shard, position, instrument, .. } = *reading;
            let bust = TradeBusted {
                client_order_id,
                order,
                shard,
                position,
                traded_at,
                index,
                instrument,
                price,
                quantity,
                number: 0,
            };
            tell(member, Reply::Busted(bust));
        }
    }
}

impl Reading {
    fn read(&mut self, event: &Event, tell: &mut impl FnMut(MemberId, Reply)) {
        match *event {
            Event::Fill { .. } => self.read_fill(event, tell),
            Event::Cancelled { order, member, client_order_id, side, price, quantity, cause } => {
                // The only shares that an order loses between two of its trades.
                let own = |one: &&mut Incoming| cause == CancelCause::SelfTrade && one.order == order;
                if let Some(incoming) = self.incoming.as_mut().filter(own) {
                    incoming.left = left_after(incoming.left, quantity);
                }
                let Self { shard, position, instrument, .. } = *self;
                let number = 0;
                let cancelled = Cancelled {
                    client_order_id,
                    order,
                    shard,
                    position,
                    instrument,
                    side,
                    price,
                    quantity,
                    cause,
                    number,
                };
                tell(member, Reply::Cancelled(cancelled));
            }
            Event::Incoming { order, member, client_order_id, side, price, quantity, cause } => {
                self.incoming = Some(Incoming { order, member, client_order_id, left: quantity });
                if cause == IncomingCause::Triggered {
                    let news = self.news((order, client_order_id), side);
                    tell(member, Reply::News(OrderNews { price, remaining: quantity, ..news }));
                }
            }
            Event::Rested { order, member, client_order_id, side, price, quantity, shown, cause } => {
                let Some(change) = change(cause) else { return };
                let news = self.news((order, client_order_id), side);
                tell(member, Reply::News(OrderNews { change, price, remaining: quantity, shown, ..news }));
            }
            Event::Instrument(instrument) => self.instrument = instrument,
            // Of the market, not of an order; a bust is read with its request.
            Event::PhaseEntered { .. }
            | Event::Auction { .. }
            | Event::DayPrices { .. }
            | Event::DayVolume { .. }
            | Event::DayEnded { .. }
            | Event::Busted { .. } => {}
        }
    }

    /// News of an order, a triggered one until more is said.
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
            number: 0,
        }
    }

    /// Both sides of a trade, the one that came in first.
    fn read_fill(&mut self, fill: &Event, tell: &mut impl FnMut(MemberId, Reply)) {
        let Event::Fill { resting, resting_member, resting_client_order_id, .. } = *fill else { return };
        let Event::Fill { resting_side, price, quantity, resting_remaining, .. } = *fill else { return };
        // An order comes in before it trades; nobody can be told of a trade of which that is not recorded.
        let Some(incoming) = self.incoming.as_mut() else { return };
        incoming.left = left_after(incoming.left, quantity);
        let resting = Trade {
            client_order_id: resting_client_order_id,
            order: resting,
            shard: self.shard,
            position: self.position,
            index: self.index,
            instrument: self.instrument,
            side: resting_side,
            role: Role::Resting,
            price,
            quantity,
            remaining: resting_remaining,
            number: 0,
        };
        let taken = Trade {
            client_order_id: incoming.client_order_id,
            order: incoming.order,
            side: resting_side.opposite(),
            role: Role::Incoming,
            remaining: incoming.left,
            ..resting
        };
        tell(incoming.member, Reply::Trade(taken));
        tell(resting_member, Reply::Trade(resting));
    }
}

/// `None` of an order that continues at once in the next step.
fn change(cause: RestCause) -> Option<OrderChange> {
    match cause {
        RestCause::Triggered | RestCause::Continued | RestCause::Priced => Some(OrderChange::Rested),
        RestCause::Repriced => Some(OrderChange::Repriced),
        RestCause::Refilled => Some(OrderChange::Refilled),
        RestCause::Released => Some(OrderChange::Released),
        RestCause::Withdrawn => Some(OrderChange::Withdrawn),
        RestCause::Unfinished => None,
    }
}

/// What is left of an order after that many shares of it are gone. Until a wrong venue is found its results are recorded like all
/// others and need not add up; a gateway passes on what is recorded, and does not die of it.
#[must_use]
pub fn left_after(left: Quantity, gone: Quantity) -> Quantity {
    Quantity(left.0.saturating_sub(gone.0))
}
