//! The book that is obviously right: per side one vector of orders, the next to trade first.
//!
//! Everything is a scan. It is the oracle the fast book is compared with, so it shares no data
//! structure with it, and whoever doubts a rule reads it here.

use crate::book::{Book, Level, Priority, RestingOrder};
use crate::incoming::{self, Incoming};
use crate::{Instrument, RestoreError, Snapshot, hash};
use pares_types::{
    CancelCause, Command, Event, EventSink, MemberId, NewOrder, OrderId, Outcome, Price, Quantity, Reason,
    Request, Side, TimeInForce,
};

/// The reference implementation of [`Book`]. Time per request grows with the orders on the book.
#[derive(Clone, Debug)]
pub struct NaiveBook {
    instrument: Instrument,
    /// Highest price first; at one price oldest first.
    bids: Vec<RestingOrder>,
    /// Lowest price first; at one price oldest first.
    offers: Vec<RestingOrder>,
    priority_next: Priority,
}

impl NaiveBook {
    fn side(&self, side: Side) -> &Vec<RestingOrder> {
        match side {
            Side::Buy => &self.bids,
            Side::Sell => &self.offers,
        }
    }

    fn side_mut(&mut self, side: Side) -> &mut Vec<RestingOrder> {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.offers,
        }
    }

    fn find(&self, order: OrderId) -> Option<&RestingOrder> {
        self.bids.iter().chain(&self.offers).find(|resting| resting.order == order)
    }

    fn find_of(&self, member: MemberId, order: OrderId) -> Option<RestingOrder> {
        self.find(order).filter(|resting| resting.member == member).copied()
    }

    fn enter(&mut self, request: &Request, order: &NewOrder, sink: &mut impl EventSink) -> Outcome {
        let incoming = Incoming::entered(request, order);
        assert!(self.find(incoming.order).is_none(), "order {} is on the book already", incoming.order);
        if let Err(reason) = self.check_enter(request, order, &incoming) {
            return incoming::refused(incoming.order, reason);
        }
        if order.time_in_force == TimeInForce::Fok && self.tradable(&incoming) < order.quantity {
            sink.event(incoming.cancel_left(CancelCause::FillOrKill));
            return incoming.killed();
        }
        self.execute(incoming, sink)
    }

    fn check_enter(&self, request: &Request, order: &NewOrder, incoming: &Incoming) -> Result<(), Reason> {
        self.instrument.validate(&request.command)?;
        let would_trade = !self.tradable(incoming).is_zero();
        if order.post_only && would_trade {
            return Err(Reason::WouldTrade);
        }
        // An order that trades either is filled or empties at least one price: then there is room.
        let full = self.orders_len() >= self.instrument.orders_max as usize;
        if full && incoming.must_rest() && !would_trade {
            return Err(Reason::BookFull);
        }
        Ok(())
    }

    /// Shares on the other side that the order may trade with.
    fn tradable(&self, incoming: &Incoming) -> Quantity {
        let resting = self.side(incoming.side.opposite()).iter();
        let accepted = resting.filter(|order| incoming.accepts(order.price));
        accepted.fold(Quantity::ZERO, |sum, order| sum.plus(order.remaining))
    }

    /// Matches an order, then rests or cancels what is left of it.
    fn execute(&mut self, mut incoming: Incoming, sink: &mut impl EventSink) -> Outcome {
        let resting = self.side_mut(incoming.side.opposite());
        while !incoming.left.is_zero() && resting.first().is_some_and(|best| incoming.accepts(best.price)) {
            let best = &mut resting[0];
            sink.event(fill(&mut incoming, best));
            if best.remaining.is_zero() {
                resting.remove(0);
            }
        }
        if incoming.must_rest() {
            self.rest(incoming.resting(self.priority_next));
            self.priority_next = self.priority_next.next();
        } else if !incoming.left.is_zero() {
            sink.event(incoming.cancel_left(CancelCause::Remainder));
        }
        incoming.outcome()
    }

    /// Puts an order behind all orders at its price or a better one.
    fn rest(&mut self, order: RestingOrder) {
        let orders = self.side_mut(order.side);
        let at_least_as_good = |resting: &&RestingOrder| order.side.crosses(resting.price, order.price);
        let place = orders.iter().take_while(at_least_as_good).count();
        orders.insert(place, order);
    }

    fn remove(&mut self, order: &RestingOrder) {
        self.side_mut(order.side).retain(|resting| resting.order != order.order);
    }

    fn amend(
        &mut self,
        request: &Request,
        (target, price, total): (OrderId, Price, Quantity),
        sink: &mut impl EventSink,
    ) -> Outcome {
        let Some(order) = self.find_of(request.member, target) else {
            return incoming::refused(target, Reason::UnknownOrder);
        };
        if let Err(reason) = incoming::check_amend(&self.instrument, &order, price, total) {
            return incoming::still_resting(&order, reason);
        }
        let total_before = order.executed.plus(order.remaining);
        if total < total_before {
            let reduced = total_before.minus(total);
            sink.event(incoming::cancel_resting(&order, reduced, CancelCause::Reduced));
        }
        if price == order.price && total < total_before {
            return self.reduce(&order, total.minus(order.executed));
        }
        self.remove(&order);
        self.execute(Incoming::amended(&order, price, total), sink)
    }

    fn reduce(&mut self, order: &RestingOrder, remaining: Quantity) -> Outcome {
        let orders = self.side_mut(order.side);
        let resting = orders.iter_mut().find(|resting| resting.order == order.order);
        let resting = resting.expect("the order was found just now");
        resting.remaining = remaining;
        incoming::still_resting(resting, Reason::None)
    }

    fn cancel(&mut self, request: &Request, target: OrderId, sink: &mut impl EventSink) -> Outcome {
        let Some(order) = self.find_of(request.member, target) else {
            return incoming::refused(target, Reason::UnknownOrder);
        };
        self.remove(&order);
        sink.event(incoming::cancel_resting(&order, order.remaining, CancelCause::Requested));
        incoming::cancelled(&order)
    }

    fn mass_cancel(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        let all = self.bids.iter().chain(&self.offers);
        let mut orders: Vec<RestingOrder> =
            all.filter(|order| order.member == request.member).copied().collect();
        orders.sort_by_key(|order| order.priority);
        for order in &orders {
            self.remove(order);
            sink.event(incoming::cancel_resting(order, order.remaining, CancelCause::MassCancel));
        }
        incoming::mass_cancelled(request.id)
    }
}

/// Trades as much as both orders allow.
fn fill(incoming: &mut Incoming, resting: &mut RestingOrder) -> Event {
    let quantity = incoming.left.min(resting.remaining);
    incoming.trade(quantity);
    resting.remaining = resting.remaining.minus(quantity);
    resting.executed = resting.executed.plus(quantity);
    Event::Fill {
        resting: resting.order,
        resting_member: resting.member,
        resting_side: resting.side,
        resting_client_order_id: resting.client_order_id,
        price: resting.price,
        quantity,
        resting_remaining: resting.remaining,
    }
}

impl Book for NaiveBook {
    fn new(instrument: Instrument) -> Self {
        let instrument = Instrument::new(instrument).expect("the instrument is consistent");
        Self { instrument, bids: Vec::new(), offers: Vec::new(), priority_next: Priority(0) }
    }

    fn restore(instrument: Instrument, snapshot: &Snapshot) -> Result<Self, RestoreError> {
        let mut book = Self::new(instrument);
        snapshot.check(&instrument)?;
        for order in snapshot.oldest_first() {
            book.rest(order);
        }
        book.priority_next = snapshot.priority_next;
        Ok(book)
    }

    fn instrument(&self) -> &Instrument {
        &self.instrument
    }

    fn apply(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        incoming::assert_routed(&self.instrument, request);
        match request.command {
            Command::Enter(order) => self.enter(request, &order, sink),
            Command::Amend { target, price, quantity } => {
                self.amend(request, (target, price, quantity), sink)
            }
            Command::Cancel { target } => self.cancel(request, target, sink),
            Command::MassCancel => self.mass_cancel(request, sink),
        }
    }

    fn best(&self, side: Side) -> Option<Level> {
        let mut best = None;
        self.depth(side, 1, &mut |level| best = Some(level));
        best
    }

    fn depth(&self, side: Side, levels: usize, visit: &mut impl FnMut(Level)) {
        for orders in self.side(side).chunk_by(|a, b| a.price == b.price).take(levels) {
            let quantity = orders.iter().fold(Quantity::ZERO, |sum, order| sum.plus(order.remaining));
            let count = u32::try_from(orders.len()).expect("at most orders_max orders");
            visit(Level { price: orders[0].price, quantity, orders: count });
        }
    }

    fn order(&self, order: OrderId) -> Option<RestingOrder> {
        self.find(order).copied()
    }

    fn front(&self, side: Side, price: Price) -> Option<OrderId> {
        self.side(side).iter().find(|order| order.price == price).map(|order| order.order)
    }

    fn orders_len(&self) -> usize {
        self.bids.len() + self.offers.len()
    }

    fn for_each_order(&self, side: Side, visit: &mut impl FnMut(&RestingOrder)) {
        self.side(side).iter().for_each(visit);
    }

    fn priority_next(&self) -> Priority {
        self.priority_next
    }

    fn state_hash(&self) -> u64 {
        hash::state(&self.snapshot().orders, self.priority_next)
    }
}
