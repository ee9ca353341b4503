//! The book that is fast: flat arrays, 32-bit links, and no allocation in steady state.
//!
//! What a request costs here is cache misses, not instructions. So an order is one cache line, found
//! by one probe of a flat table; the level it is in and the best price are small and hot; and a
//! request touches nothing else but the order's neighbours. [`store`] draws the structures.
//!
//! The rules follow the naive book line by line; the property tests hold them to it.

mod ladder;
mod node;
mod slab;
mod store;
mod table;

use crate::book::{Book, Level, Priority, RestingOrder};
use crate::incoming::{self, Incoming};
use crate::{Instrument, RestoreError, Snapshot, hash};
use node::{Node, PriceLevel};
use pares_types::{
    CancelCause, Command, Event, EventSink, MemberId, NewOrder, OrderId, Outcome, Price, Quantity, Reason,
    Request, Side, TimeInForce,
};
use slab::Slot;
use store::Store;

/// The implementation of [`Book`] to run. Every request but a mass cancel and a fill-or-kill takes
/// constant time apart from the trades it makes and, for the first or last order at a price far from
/// the best, the search for that price.
#[derive(Clone, Debug)]
pub struct FastBook {
    instrument: Instrument,
    store: Store,
    priority_next: Priority,
}

impl FastBook {
    fn find_of(&self, member: MemberId, order: OrderId) -> Option<(Slot<Node>, RestingOrder)> {
        let slot = self.store.find(order)?;
        let order = self.store.order(slot);
        (order.member == member).then_some((slot, order))
    }

    fn enter(&mut self, request: &Request, order: &NewOrder, sink: &mut impl EventSink) -> Outcome {
        let incoming = Incoming::entered(request, order);
        assert!(self.store.find(incoming.order).is_none(), "order {} is on the book already", incoming.order);
        if let Err(reason) = self.check_enter(request, order, &incoming) {
            return incoming::refused(incoming.order, reason);
        }
        if order.time_in_force == TimeInForce::Fok && !self.can_fill(&incoming) {
            sink.event(incoming.cancel_left(CancelCause::FillOrKill));
            return incoming.killed();
        }
        self.execute(incoming, sink)
    }

    fn check_enter(&self, request: &Request, order: &NewOrder, incoming: &Incoming) -> Result<(), Reason> {
        self.instrument.validate(&request.command)?;
        if order.post_only && self.would_trade(incoming) {
            return Err(Reason::WouldTrade);
        }
        // An order that trades either is filled or empties at least one price: then there is room.
        let full = self.orders_len() >= self.instrument.orders_max as usize;
        if full && incoming.must_rest() && !self.would_trade(incoming) {
            return Err(Reason::BookFull);
        }
        Ok(())
    }

    fn would_trade(&self, incoming: &Incoming) -> bool {
        let best = self.store.ladder(incoming.side.opposite()).best();
        best.is_some_and(|(price, _)| incoming.accepts(price))
    }

    /// Whether the other side offers all that is wanted at prices accepted.
    fn can_fill(&self, incoming: &Incoming) -> bool {
        let mut wanted = incoming.left;
        for level in self.store.ladder(incoming.side.opposite()).best_first() {
            let level = &self.store.levels[level];
            if !incoming.accepts(level.price) {
                return false;
            }
            if level.quantity >= wanted {
                return true;
            }
            wanted = wanted.minus(level.quantity);
        }
        false
    }

    /// Matches an order, then rests or cancels what is left of it.
    fn execute(&mut self, mut incoming: Incoming, sink: &mut impl EventSink) -> Outcome {
        while let Some(slot) = self.next_to_trade(&incoming) {
            self.fill(&mut incoming, slot, sink);
        }
        if incoming.must_rest() {
            self.store.insert(&incoming.resting(self.priority_next));
            self.priority_next = self.priority_next.next();
        } else if !incoming.left.is_zero() {
            sink.event(incoming.cancel_left(CancelCause::Remainder));
        }
        incoming.outcome()
    }

    /// The resting order to trade with next, while something is left and the price is accepted.
    fn next_to_trade(&self, incoming: &Incoming) -> Option<Slot<Node>> {
        if incoming.left.is_zero() {
            return None;
        }
        let (price, level) = self.store.ladder(incoming.side.opposite()).best()?;
        if !incoming.accepts(price) {
            return None;
        }
        self.store.levels[level].queue.front()
    }

    /// Trades as much as both orders allow.
    fn fill(&mut self, incoming: &mut Incoming, slot: Slot<Node>, sink: &mut impl EventSink) {
        let resting = self.store.order(slot);
        let quantity = incoming.left.min(resting.remaining);
        let resting_remaining = resting.remaining.minus(quantity);
        incoming.trade(quantity);
        if resting_remaining.is_zero() {
            self.store.remove(slot, &resting);
        } else {
            self.store.change(slot, &resting, resting_remaining, resting.executed.plus(quantity));
        }
        sink.event(Event::Fill {
            resting: resting.order,
            resting_member: resting.member,
            resting_side: resting.side,
            resting_client_order_id: resting.client_order_id,
            price: resting.price,
            quantity,
            resting_remaining,
        });
    }

    fn amend(
        &mut self,
        request: &Request,
        (target, price, total): (OrderId, Price, Quantity),
        sink: &mut impl EventSink,
    ) -> Outcome {
        let Some((slot, order)) = self.find_of(request.member, target) else {
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
            self.store.change(slot, &order, total.minus(order.executed), order.executed);
            return incoming::still_resting(&self.store.order(slot), Reason::None);
        }
        self.store.remove(slot, &order);
        self.execute(Incoming::amended(&order, price, total), sink)
    }

    fn cancel(&mut self, request: &Request, target: OrderId, sink: &mut impl EventSink) -> Outcome {
        let Some((slot, order)) = self.find_of(request.member, target) else {
            return incoming::refused(target, Reason::UnknownOrder);
        };
        self.store.remove(slot, &order);
        sink.event(incoming::cancel_resting(&order, order.remaining, CancelCause::Requested));
        incoming::cancelled(&order)
    }

    fn mass_cancel(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        // A member's list is in priority order: an order joins it at the end, with the highest number.
        while let Some(slot) = self.store.oldest_of(request.member) {
            let order = self.store.order(slot);
            self.store.remove(slot, &order);
            sink.event(incoming::cancel_resting(&order, order.remaining, CancelCause::MassCancel));
        }
        incoming::mass_cancelled(request.id)
    }

    fn level(&self, slot: Slot<PriceLevel>) -> Level {
        let PriceLevel { price, quantity, orders, .. } = self.store.levels[slot];
        Level { price, quantity, orders }
    }
}

impl Book for FastBook {
    fn new(instrument: Instrument) -> Self {
        let instrument = Instrument::new(instrument).expect("the instrument is consistent");
        Self { instrument, store: Store::new(instrument.orders_max), priority_next: Priority(0) }
    }

    fn restore(instrument: Instrument, snapshot: &Snapshot) -> Result<Self, RestoreError> {
        let mut book = Self::new(instrument);
        snapshot.check(&instrument)?;
        for order in &snapshot.oldest_first() {
            book.store.insert(order);
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
        self.store.ladder(side).best().map(|(_, level)| self.level(level))
    }

    fn depth(&self, side: Side, levels: usize, visit: &mut impl FnMut(Level)) {
        let best = self.store.ladder(side).best_first().take(levels);
        best.for_each(|level| visit(self.level(level)));
    }

    fn order(&self, order: OrderId) -> Option<RestingOrder> {
        self.store.find(order).map(|slot| self.store.order(slot))
    }

    fn front(&self, side: Side, price: Price) -> Option<OrderId> {
        let level = self.store.ladder(side).get(price)?;
        let slot = self.store.levels[level].queue.front().expect("a level has orders");
        Some(self.store.nodes[slot].order)
    }

    fn orders_len(&self) -> usize {
        self.store.nodes.len()
    }

    fn for_each_order(&self, side: Side, visit: &mut impl FnMut(&RestingOrder)) {
        for level in self.store.ladder(side).best_first() {
            self.store.queue(level).for_each(|slot| visit(&self.store.order(slot)));
        }
    }

    fn priority_next(&self) -> Priority {
        self.priority_next
    }

    fn state_hash(&self) -> u64 {
        hash::finish(self.store.hash_sum, self.priority_next)
    }
}
