//! The book that is fast: flat arrays, 32-bit links, and no allocation in steady state.
//!
//! What a request costs in a large book is cache misses. So an order is one cache line, found
//! by one probe of a flat table; the level it is in and the best price are small and hot; and a
//! request touches nothing else but the order's neighbours. [`store`] draws the structures.
//!
//! The rules follow docs/rules.md, section by section, in the modules of the same names; what only few
//! orders or instruments use is a branch that is not taken for the others.
//!
//! | section | module |
//! |---|---|
//! | 2 matching, 7 self-trades | `matching` |
//! | 3 entering | `entering`, in a call `gathering` |
//! | 4 amending, cancelling | `amending` |
//! | 5 stops and pegs | `settling` |
//! | 6 phases, time | `phases`, `auction` |
//! | 8 requests of the exchange | `exchange` |
//!
//! What nearly all orders are, plain and meeting nothing, in an instrument where nothing special happens, takes a short way
//! of its own (`calm`). It must come to the same, and the comparison with the naive book runs through both.

mod amending;
mod auction;
mod available;
mod calm;
mod entering;
mod exchange;
mod few;
mod gathering;
mod holdings;
mod icebergs;
mod incoming;
mod ladder;
mod matching;
mod node;
mod numbering;
mod phases;
mod plain;
mod settling;
mod side_lists;
mod specials;
mod store;
mod terms;
mod tree;
mod trunk;

use crate::book::{Book, Level, assert_routed};
use crate::{Indication, Instrument, Priority, RestingOrder, RestoreError, Snapshot, Trading, hash};
use node::{Node, PriceLevel};
use pares_table::SlabIndex;
use pares_types::{
    Command, Event, EventSink, InstrumentId, MemberId, OrderId, Outcome, Price, Quantity, Reason, Request,
    RestCause, Side, Status, Timestamp,
};
use store::Store;
use terms::Terms;

/// The implementation of [`Book`] to run. A plain request takes constant time apart from the trades it makes; the
/// first or last order at a price takes a search of a few steps.
#[derive(Clone, Debug)]
#[repr(C)] // what every order asks for comes first
pub struct FastBook {
    id: InstrumentId,
    /// Whether a plain order needs no look at phase, bands, stops or pegs: continuous trading with none of these.
    calm: bool,
    /// Whether a price on the ladder's grid and a quantity up to the largest are all it takes to be legal.
    flat: bool,
    orders_max: u32,
    step_max: u32,
    quantity_max: u64,
    priority_next: Priority,
    store: Store,
    instrument: Box<Instrument>,
    trading: Box<Trading>,
    /// Orders of a member on their way out: kept to be used again.
    scratch: Vec<SlabIndex<Node>>,
}

/// One step: where its events go, how many there were, and what held when it began.
struct Step<'a, S> {
    sink: &'a mut S,
    events: u32,
    events_max: u32,
    /// The lowest and highest price to trade at.
    bands: (Price, Price),
    /// The larger of the book's time and the request's stamp.
    now: Timestamp,
    /// Whether an order that comes to rest is reported, and why: all but the request's own.
    reports_rest: Option<RestCause>,
    /// The buy order whose trades in an auction are reported now.
    auction_buy: Option<OrderId>,
}

impl<S: EventSink> Step<'_, S> {
    #[inline]
    fn emit(&mut self, event: Event) {
        self.events += 1;
        self.sink.event(event);
    }

    /// Whether it may cause no more events.
    #[inline]
    fn is_full(&self) -> bool {
        self.events >= self.events_max
    }
}

const ANY_PRICE: (Price, Price) = (Price(i64::MIN), Price(i64::MAX));

impl FastBook {
    #[inline]
    fn step<'a, S: EventSink>(&self, request: &Request, sink: &'a mut S) -> Step<'a, S> {
        let banded = self.instrument.is_banded();
        let goes_on = self.trading.unfinished.is_some();
        let bands = if banded || goes_on { self.trading.bands(&self.instrument) } else { ANY_PRICE };
        let now = self.trading.time.max(request.stamp);
        Step {
            sink,
            events: 0,
            events_max: self.instrument.step_max,
            bands,
            now,
            reports_rest: None,
            auction_buy: None,
        }
    }

    /// The whole rule book.
    #[inline(never)]
    fn apply_any(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        assert_routed(&self.instrument, request);
        let mut step = self.step(request, sink);
        let outcome = match &request.command {
            Command::Enter(order) => self.enter(request, order, &mut step),
            Command::Cancel { target } => self.cancel(request, *target, &mut step),
            Command::Amend(amendment) => self.amend(request, amendment, &mut step),
            _ => self.apply_rare(request, &mut step),
        };
        if self.store.lists.may_move() || self.trading.is_busy() {
            self.go_on(&mut step);
        }
        self.take_stock();
        outcome
    }

    /// Notes what spares plain orders a look at everything else.
    #[inline]
    fn take_stock(&mut self) {
        let banded = self.instrument.is_banded();
        self.calm = self.is_continuous() && !banded && !self.store.lists.may_move();
        self.flat = self.instrument.ticks.rows().len() == 1
            && self.instrument.lot.0 == 1
            && self.instrument.value_max == 0;
        (self.orders_max, self.step_max) = (self.instrument.orders_max, self.instrument.step_max);
        self.quantity_max = self.instrument.quantity_max.0;
    }

    #[inline]
    fn next_priority(&mut self) -> Priority {
        let priority = self.priority_next;
        self.priority_next = priority.next();
        priority
    }

    #[inline]
    fn event_cancelled(
        &self,
        slot: SlabIndex<Node>,
        quantity: Quantity,
        cause: pares_types::CancelCause,
    ) -> Event {
        let node = &self.store.nodes[slot];
        Event::Cancelled {
            order: node.order,
            member: node.member,
            client_order_id: node.client_order_id,
            side: node.rank.traits().side(),
            price: self.price_of(slot),
            quantity,
            cause,
        }
    }

    /// Where an order rests; its limit, if it has one, while it is held.
    #[inline]
    fn price_of(&self, slot: SlabIndex<Node>) -> Price {
        let level = self.store.nodes[slot].level;
        if level == SlabIndex::NONE { self.price_held(slot) } else { self.store.levels[level].price }
    }

    #[cold]
    #[inline(never)]
    fn price_held(&self, slot: SlabIndex<Node>) -> Price {
        self.store.special(slot).and_then(|special| Self::limit_of(special.kind)).unwrap_or_default()
    }

    /// Cancels all that is left of an order that is there.
    #[inline]
    fn cancel_order<S: EventSink>(
        &mut self,
        slot: SlabIndex<Node>,
        cause: pares_types::CancelCause,
        step: &mut Step<'_, S>,
    ) {
        step.emit(self.event_cancelled(slot, self.store.nodes[slot].remaining, cause));
        self.store.remove(slot);
    }

    fn level(&self, slot: SlabIndex<PriceLevel>) -> Level {
        let PriceLevel { price, shown, orders, .. } = self.store.levels[slot];
        Level { price, quantity: shown, orders }
    }

    #[inline]
    fn best_price(&self, side: Side) -> Option<Price> {
        self.store.ladder(side).best().map(|(price, _)| price)
    }
}

/// The outcome of a request refused for an order that is not there, or for none.
fn refused(order: OrderId, reason: Reason) -> Outcome {
    Outcome { status: Status::Refused, reason, order, executed: Quantity::ZERO, remaining: Quantity::ZERO }
}

impl Book for FastBook {
    fn new(instrument: Instrument) -> Self {
        let instrument = Instrument::new(instrument).expect("the instrument is consistent");
        let mut book = Self {
            store: Store::new(&instrument),
            priority_next: Priority(0),
            id: instrument.id,
            calm: false,
            flat: false,
            orders_max: 0,
            step_max: 0,
            quantity_max: 0,
            trading: Box::new(Trading::new(instrument.first_phase())),
            instrument: Box::new(instrument),
            scratch: Vec::new(),
        };
        book.take_stock();
        book
    }

    fn restore(instrument: Instrument, snapshot: &Snapshot) -> Result<Self, RestoreError> {
        let mut book = Self::new(instrument);
        snapshot.check(&instrument)?;
        for order in &snapshot.oldest_first() {
            let slot = book.store.create(&Terms::of(order));
            if order.is_held() {
                book.store.hold(slot, order.priority);
            } else {
                book.store.attach_showing(slot, order.price, order.priority, order.shown);
            }
        }
        book.priority_next = snapshot.priority_next;
        *book.trading = snapshot.trading.clone();
        book.take_stock();
        Ok(book)
    }

    fn instrument(&self) -> &Instrument {
        &self.instrument
    }

    fn trading(&self) -> &Trading {
        &self.trading
    }

    #[inline(always)]
    fn apply(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        let is_calm = self.calm && request.instrument == self.id;
        if is_calm { self.apply_calm(request, sink) } else { self.apply_any(request, sink) }
    }

    fn best(&self, side: Side) -> Option<Level> {
        self.store.ladder(side).best().map(|(_, level)| self.level(level))
    }

    fn depth(&self, side: Side, levels: usize, visit: &mut impl FnMut(Level)) {
        let best = self.store.ladder(side).best_first().take(levels);
        best.for_each(|level| visit(self.level(level)));
    }

    fn order(&self, order: OrderId) -> Option<RestingOrder> {
        let unfinished = self.trading.unfinished.as_ref().map(|unfinished| unfinished.order);
        let there = self.store.find(order).map(|slot| self.store.order(slot));
        there.or(unfinished.filter(|unfinished| unfinished.order == order))
    }

    fn front(&self, side: Side, price: Price) -> Option<OrderId> {
        if !self.store.ladder(side).numbering.is_legal(price) {
            return None;
        }
        let level = self.store.ladder(side).get(price)?;
        let slot = self.store.levels[level].queue.front().expect("a level has orders");
        Some(self.store.nodes[slot].order)
    }

    fn orders_len(&self) -> usize {
        self.store.nodes.len()
    }

    fn has_orders_of(&self, member: MemberId) -> bool {
        self.store.orders_of(member).next().is_some()
    }

    fn for_each_order(&self, side: Side, visit: &mut impl FnMut(&RestingOrder)) {
        for level in self.store.ladder(side).best_first() {
            self.store.queue(level).for_each(|slot| visit(&self.store.order(slot)));
        }
    }

    fn for_each_held(&self, visit: &mut impl FnMut(&RestingOrder)) {
        self.store.lists.held.values().for_each(|&slot| visit(&self.store.order(slot)));
    }

    fn priority_next(&self) -> Priority {
        self.priority_next
    }

    fn indication(&self) -> Option<Indication> {
        self.auction()
    }

    fn deadline(&self) -> Timestamp {
        self.next_deadline()
    }

    fn make_room(&mut self) {
        self.store.make_room();
    }

    fn state_hash(&self) -> u64 {
        hash::finish(self.store.hash_sum, self.priority_next, &self.trading, &self.instrument)
    }
}
