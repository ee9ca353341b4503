//! The book that is obviously right: three vectors of orders, and docs/rules.md word for word.
//!
//! A fast book is a web of indexes, and its reader cannot see the rules for the links. Here
//! everything is a scan and every function is a sentence or two of the page. It is the oracle the fast book is
//! compared with, so it shares no data structure with it, and a reader who doubts a rule reads it here.
//!
//! | section of docs/rules.md | module |
//! |---|---|
//! | 1 the book | this one |
//! | 2 matching, 7 self-trade prevention | `matching` |
//! | 3 entering | `entering` |
//! | 4 amending, cancelling | `amending` |
//! | 5 stops and pegs | `settling` |
//! | 6 phases and time | `phases`, `time`, `auction` |
//! | 8 requests of the exchange | `exchange` |

mod amending;
mod auction;
mod entering;
mod exchange;
mod matching;
mod phases;
mod settling;
mod step;
mod time;

use crate::doomed::Doomed;
use pares_types::{
    CancelCause, Command, EventSink, MemberId, OrderId, OrderKind, Outcome, Price, Quantity, Reason, Request,
    RestCause, Side, Status, Timestamp,
};

use crate::book::{Book, Level, assert_routed};
use crate::{Indication, Instrument, Priority, RestingOrder, RestoreError, Snapshot, Trading, hash};
use step::Step;

/// The reference implementation of [`Book`]. Time per request grows with the orders that are there.
#[derive(Clone, Debug)]
pub struct NaiveBook {
    instrument: Instrument,
    trading: Trading,
    /// Highest price first; at one price lowest priority first.
    bids: Vec<RestingOrder>,
    /// Lowest price first; at one price lowest priority first.
    offers: Vec<RestingOrder>,
    /// Lowest priority first.
    held: Vec<RestingOrder>,
    priority_next: Priority,
}

/// What the queues can do.
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

    /// The next order of a side to trade.
    fn best_order(&self, side: Side) -> Option<&RestingOrder> {
        self.side(side).first()
    }

    /// Every order: bids as they would trade, offers as they would trade, held ones by priority.
    fn all(&self) -> impl Iterator<Item = &RestingOrder> {
        self.bids.iter().chain(&self.offers).chain(&self.held)
    }

    fn find(&self, order: OrderId) -> Option<RestingOrder> {
        self.all().find(|there| there.order == order).copied()
    }

    fn find_mut(&mut self, order: OrderId) -> &mut RestingOrder {
        let all = self.bids.iter_mut().chain(&mut self.offers).chain(&mut self.held);
        all.into_iter().find(|there| there.order == order).expect("the order was found just now")
    }

    fn find_of(&self, member: MemberId, order: OrderId) -> Option<RestingOrder> {
        self.with_unfinished().find(|there| there.order == order && there.member == member).copied()
    }

    /// The pegged orders, on the book and held, by priority.
    fn pegged(&self) -> Vec<RestingOrder> {
        let mut pegged: Vec<RestingOrder> = self.all().filter(|order| order.is_pegged()).copied().collect();
        pegged.sort_by_key(|order| order.priority);
        pegged
    }

    fn take_priority(&mut self) -> Priority {
        let priority = self.priority_next;
        self.priority_next = priority.next();
        priority
    }

    /// Trades took place at `price`: the stops it reaches are elected, in the order in which they will come in.
    fn elect(&mut self, price: Price) {
        self.trading.last = Some(price);
        let reached = |order: &&RestingOrder| {
            !order.elected && order.trigger.is_some_and(|trigger| order.side.crosses(price, trigger))
        };
        let mut reached: Vec<RestingOrder> = self.held.iter().filter(reached).copied().collect();
        // Buys by lowest trigger, then sells by highest.
        reached.sort_by_key(|order| {
            let trigger = i128::from(order.trigger.map_or(0, |trigger| trigger.0));
            (order.side, if order.side == Side::Buy { trigger } else { -trigger }, order.priority)
        });
        for order in reached {
            self.remove(&order);
            self.hold(RestingOrder { elected: true, ..order });
        }
    }

    /// Puts an order at the end of the queue at its price.
    fn rest(&mut self, mut order: RestingOrder, price: Price) -> RestingOrder {
        let display = if order.display.is_zero() { order.remaining } else { order.display };
        order.price = price;
        order.shown = display.min(order.remaining);
        order.priority = self.take_priority();
        self.place(order);
        order
    }

    /// Puts an order aside. A stop whose trigger was reached before is elected at once.
    fn hold(&mut self, mut order: RestingOrder) -> RestingOrder {
        order.elected |= order.trigger.is_some_and(|trigger| self.trading.reaches(order.side, trigger));
        order.price = Price(0);
        order.shown = Quantity::ZERO;
        order.priority = self.take_priority();
        self.place(order);
        order
    }

    /// Puts an order behind all that come before it.
    fn place(&mut self, order: RestingOrder) {
        if order.is_held() {
            let older = self.held.iter().take_while(|there| there.priority < order.priority).count();
            return self.held.insert(older, order);
        }
        let orders = self.side_mut(order.side);
        let comes_first = |there: &&RestingOrder| order.side.crosses(there.price, order.price);
        let ahead = orders.iter().take_while(comes_first).count();
        orders.insert(ahead, order);
    }

    fn remove(&mut self, order: &RestingOrder) {
        self.bids.retain(|there| there.order != order.order);
        self.offers.retain(|there| there.order != order.order);
        self.held.retain(|there| there.order != order.order);
    }

    /// Every order that is there, the unfinished one too.
    fn with_unfinished(&self) -> impl Iterator<Item = &RestingOrder> {
        self.all().chain(self.trading.unfinished.iter().map(|unfinished| &unfinished.order))
    }

    /// Takes shares off an order, hidden ones first; without any left it is gone.
    fn reduce(&mut self, order: OrderId, quantity: Quantity) {
        let there = self.find_mut(order);
        there.remaining = there.remaining.minus(quantity);
        there.shown = there.shown.min(there.remaining);
        if there.remaining.is_zero() {
            let gone = *there;
            self.remove(&gone);
        }
    }

    /// Cancels all that is left of an order.
    fn cancel_whole(&mut self, step: &mut Step<impl EventSink>, order: &RestingOrder, cause: CancelCause) {
        self.remove(order);
        step.cancelled(order, order.remaining, cause);
    }

    fn withdraw_pegs(&mut self, step: &mut Step<impl EventSink>) {
        for order in self.pegged().into_iter().filter(|order| !order.is_held()) {
            self.withdraw(step, &order);
        }
    }

    fn withdraw(&mut self, step: &mut Step<impl EventSink>, order: &RestingOrder) {
        self.remove(order);
        step.rested(&RestingOrder { shown: Quantity::ZERO, ..*order }, RestCause::Withdrawn);
        self.hold(*order);
    }

    fn is_crossed(&self) -> bool {
        match (self.best_order(Side::Buy), self.best_order(Side::Sell)) {
            (Some(bid), Some(offer)) => bid.price >= offer.price,
            _ => false,
        }
    }
}

/// The limit of an order's terms; `None` for a market order.
fn limit_of(kind: OrderKind) -> Option<Price> {
    match kind {
        OrderKind::Limit { price } | OrderKind::Pegged { limit: price, .. } => Some(price),
        OrderKind::Market => None,
    }
}

fn refused(order: OrderId, reason: Reason) -> Outcome {
    let (executed, remaining) = (Quantity::ZERO, Quantity::ZERO);
    Outcome { status: Status::Refused, reason, order, executed, remaining }
}

/// The outcome of a request of the exchange that was carried out.
fn accepted(request: &Request, unfinished: bool) -> Outcome {
    let reason = if unfinished { Reason::Unfinished } else { Reason::None };
    Outcome { status: Status::Accepted, ..refused(OrderId(request.id), reason) }
}

fn there(order: &RestingOrder, status: Status, reason: Reason) -> Outcome {
    Outcome { status, reason, order: order.order, executed: order.executed, remaining: order.remaining }
}

impl Book for NaiveBook {
    fn new(instrument: Instrument) -> Self {
        let instrument = Instrument::new(instrument).expect("the instrument is consistent");
        let (bids, offers, held) = (Vec::new(), Vec::new(), Vec::new());
        let trading = Trading::new(instrument.first_phase());
        Self { instrument, trading, bids, offers, held, priority_next: Priority(0) }
    }

    fn restore(instrument: Instrument, snapshot: &Snapshot) -> Result<Self, RestoreError> {
        let mut book = Self::new(instrument);
        snapshot.check(&instrument)?;
        for order in snapshot.oldest_first() {
            book.place(order);
        }
        book.trading = snapshot.trading.clone();
        book.priority_next = snapshot.priority_next;
        Ok(book)
    }

    fn instrument(&self) -> &Instrument {
        &self.instrument
    }

    fn trading(&self) -> &Trading {
        &self.trading
    }

    fn apply(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        assert_routed(&self.instrument, request);
        let now = self.trading.time.max(request.stamp);
        let step = &mut Step::new(sink, now, self.trading.bands(&self.instrument));
        let outcome = match request.command {
            Command::Enter(order) => self.enter(step, request, &order),
            Command::Amend(amendment) => self.amend(step, request, &amendment),
            Command::Cancel { target } => self.cancel(step, request, target),
            Command::MassCancel { .. } => {
                let doomed = Doomed::by(request).expect("a mass cancel cancels");
                self.mass_cancel(step, request, &doomed)
            }
            _ => self.apply_of_the_exchange(step, request),
        };
        // What an earlier step had to leave is done by the next one of any kind.
        self.go_on(step);
        outcome
    }

    fn best(&self, side: Side) -> Option<Level> {
        let mut best = None;
        self.depth(side, 1, &mut |level| best = Some(level));
        best
    }

    fn depth(&self, side: Side, levels: usize, visit: &mut impl FnMut(Level)) {
        for orders in self.side(side).chunk_by(|a, b| a.price == b.price).take(levels) {
            let quantity = orders.iter().fold(Quantity::ZERO, |sum, order| sum.plus(order.shown));
            let count = u32::try_from(orders.len()).expect("a book holds fewer than 2^32 orders");
            visit(Level { price: orders[0].price, quantity, orders: count });
        }
    }

    fn order(&self, order: OrderId) -> Option<RestingOrder> {
        self.with_unfinished().find(|there| there.order == order).copied()
    }

    fn front(&self, side: Side, price: Price) -> Option<OrderId> {
        self.side(side).iter().find(|order| order.price == price).map(|order| order.order)
    }

    fn orders_len(&self) -> usize {
        self.all().count()
    }

    fn has_orders_of(&self, member: MemberId) -> bool {
        self.all().any(|order| order.member == member)
    }

    fn for_each_order(&self, side: Side, visit: &mut impl FnMut(&RestingOrder)) {
        self.side(side).iter().for_each(visit);
    }

    fn for_each_held(&self, visit: &mut impl FnMut(&RestingOrder)) {
        self.held.iter().for_each(visit);
    }

    fn priority_next(&self) -> Priority {
        self.priority_next
    }

    fn indication(&self) -> Option<Indication> {
        self.auction_price()
    }

    fn deadline(&self) -> Timestamp {
        self.next_deadline()
    }

    fn state_hash(&self) -> u64 {
        let orders = self.all().map(hash::order).fold(0, u64::wrapping_add);
        hash::finish(orders, self.priority_next, &self.trading, &self.instrument)
    }
}
