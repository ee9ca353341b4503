//! Matching an incoming order against the other side (docs/rules.md, sections 2 and 7).

use super::incoming::{End, Incoming};
use super::node::Node;
use super::{ANY_PRICE, FastBook, Step};
use crate::{RestingOrder, Unfinished};
use pares_table::SlabIndex;
use pares_types::{
    CancelCause, Event, EventSink, OrderKind, Phase, Price, Quantity, Reason, RestCause, SelfTrade, Side,
    TimeInForce,
};

/// Why matching went no further although shares are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Nothing is left.
    Filled,
    /// No price is accepted any more.
    NoPrice,
    /// The step may cause no more events.
    StepLimit,
    /// Self-trade prevention.
    SelfTrade,
}

impl FastBook {
    /// Matches an order, then rests or cancels what is left of it. A band breach begins a volatility call.
    #[inline]
    pub(super) fn execute<S: EventSink>(&mut self, incoming: &mut Incoming, step: &mut Step<'_, S>) -> End {
        incoming.begun.get_or_insert(self.priority_next);
        if incoming.gathers {
            return self.gather(incoming, step);
        }
        let stop = self.match_up(incoming, step);
        if stop == Stop::Filled {
            self.forget(incoming);
            return End::Filled;
        }
        if stop == Stop::NoPrice && !self.is_breach(incoming, step) {
            if incoming.may_rest {
                self.rest(incoming, incoming.limit);
                self.report_rest(incoming, step);
                return End::Rests;
            }
            return self.end_without_limit(incoming, step);
        }
        self.end_early(incoming, stop, step)
    }

    /// Nobody is left for an order that may not rest; one at market may get a limit.
    fn end_without_limit<S: EventSink>(&mut self, incoming: &mut Incoming, step: &mut Step<'_, S>) -> End {
        let market = incoming.terms.kind == OrderKind::Market && !incoming.executed.is_zero();
        let rests = market && incoming.terms.time_in_force != TimeInForce::Ioc;
        let latest =
            if rests && self.instrument.market_remainder_rests { self.trading.latest() } else { None };
        let Some(price) = latest else {
            return self.cancel_left(incoming, CancelCause::Remainder, Reason::NothingToTrade, step);
        };
        incoming.terms.kind = OrderKind::Limit { price };
        self.rest(incoming, price);
        let slot = incoming.node.expect("an order that rests has a node");
        step.emit(self.event_rested(slot, RestCause::Priced));
        End::Rests
    }

    #[inline]
    fn match_up<S: EventSink>(&mut self, incoming: &mut Incoming, step: &mut Step<'_, S>) -> Stop {
        let other = incoming.terms.side.opposite();
        let (lowest, highest) = self.bands(step);
        let closing = self.trading.closing.filter(|_| self.trading.phase == Phase::PostClose);
        // An order without wishes meets plain ones as they come, of which it has not met any yet.
        let meets_plainly = incoming.terms.self_trade == SelfTrade::Allow && closing.is_none();
        let begun = incoming.begun.unwrap_or(self.priority_next);
        let mut is_first = true;
        // Prices of the first and the last trade: all others lie between.
        let mut traded = None;
        let stop = loop {
            if incoming.left.is_zero() {
                break Stop::Filled;
            }
            let Some((price, level)) = self.store.ladder_mut(other).settle() else { break Stop::NoPrice };
            if !incoming.accepts(price) || price < lowest || price > highest {
                break Stop::NoPrice;
            }
            // However little is left of a step, an order that comes in does something.
            let room = step.events_max.saturating_sub(step.events).max(u32::from(is_first));
            if room == 0 {
                break Stop::StepLimit;
            }
            is_first = false;
            let met = (other, level);
            if meets_plainly
                && self.store.take_plain(met, &mut incoming.left, (room, begun), |node, quantity| {
                    incoming.executed = incoming.executed.plus(quantity);
                    step.emit(fill(node, other, price, quantity));
                }) > 0
            {
                traded = Some((traded.map_or(price, |(first, _)| first), price));
                continue;
            }
            let slot = self.store.levels[level].queue.front().expect("a level has orders");
            if incoming.terms.self_trade != SelfTrade::Allow
                && self.store.member(slot) == incoming.terms.member
            {
                if self.prevent(incoming, slot, step) {
                    break Stop::SelfTrade;
                }
                continue;
            }
            // After the close all trades are at the closing price, also with an order that would pay more.
            let price = closing.unwrap_or(price);
            self.fill(incoming, slot, price, step);
            traded = Some((traded.map_or(price, |(first, _)| first), price));
        };
        if let Some((first, last)) = traded {
            if self.store.lists.may_move() {
                self.elect(first);
                self.elect(last);
            }
            self.trading.last = Some(last);
        }
        stop
    }

    /// Trades as much as the incoming order wants and the resting one shows.
    #[inline]
    fn fill<S: EventSink>(
        &mut self,
        incoming: &mut Incoming,
        slot: SlabIndex<Node>,
        price: Price,
        step: &mut Step<'_, S>,
    ) {
        if self.instrument.iceberg_refill_fresh
            && Some(self.store.nodes[slot].rank.priority()) >= incoming.begun
        {
            return self.fill_whole(incoming, slot, price, step);
        }
        let shown = self.store.shown(slot);
        let quantity = incoming.left.min(shown);
        let refills = quantity == shown && self.store.nodes[slot].remaining > shown;
        incoming.trade(quantity);
        let resting = self.take(slot, price, quantity, incoming.terms.side.opposite());
        step.emit(resting);
        if refills {
            self.refill(slot, step);
        }
    }

    /// The fill that takes `quantity` shown shares of a resting order. One that nothing is left of is gone.
    #[inline]
    pub(super) fn take(
        &mut self,
        slot: SlabIndex<Node>,
        price: Price,
        quantity: Quantity,
        side: Side,
    ) -> Event {
        let node = &self.store.nodes[slot];
        let event = fill(node, side, price, quantity);
        if quantity == node.remaining {
            self.store.remove(slot);
        } else {
            self.store.reduce(slot, quantity, Quantity::ZERO);
        }
        event
    }

    /// Applies self-trade prevention; says whether it stops the incoming order.
    #[cold]
    pub(super) fn prevent<S: EventSink>(
        &mut self,
        incoming: &mut Incoming,
        slot: SlabIndex<Node>,
        step: &mut Step<'_, S>,
    ) -> bool {
        match incoming.terms.self_trade {
            SelfTrade::Allow => unreachable!("asked for prevention"),
            SelfTrade::CancelResting => {
                self.cancel_order(slot, CancelCause::SelfTrade, step);
                false
            }
            SelfTrade::CancelIncoming => true,
            SelfTrade::CancelBoth => {
                self.cancel_order(slot, CancelCause::SelfTrade, step);
                true
            }
            SelfTrade::Decrement => self.decrement(incoming, slot, step),
        }
    }

    fn decrement<S: EventSink>(
        &mut self,
        incoming: &mut Incoming,
        slot: SlabIndex<Node>,
        step: &mut Step<'_, S>,
    ) -> bool {
        let remaining = self.store.nodes[slot].remaining;
        let lost = incoming.left.min(remaining);
        if lost == remaining {
            self.cancel_order(slot, CancelCause::SelfTrade, step);
        } else {
            step.emit(self.event_cancelled(slot, lost, CancelCause::SelfTrade));
            self.store.reduce(slot, Quantity::ZERO, lost);
        }
        step.emit(incoming.cancel(lost, CancelCause::SelfTrade));
        incoming.lose(lost);
        incoming.left.is_zero()
    }

    /// Whether only a band keeps the order from its next trade.
    #[inline]
    pub(super) fn is_breach<S>(&self, incoming: &Incoming, step: &Step<'_, S>) -> bool {
        self.bands(step) != ANY_PRICE
            && self.best_price(incoming.terms.side.opposite()).is_some_and(|best| incoming.accepts(best))
    }

    /// Something other than the prices ended matching.
    #[cold]
    pub(super) fn end_early<S: EventSink>(
        &mut self,
        incoming: &mut Incoming,
        stop: Stop,
        step: &mut Step<'_, S>,
    ) -> End {
        match stop {
            Stop::Filled => unreachable!("a filled order has ended"),
            Stop::SelfTrade => self.cancel_left(incoming, CancelCause::SelfTrade, Reason::SelfTrade, step),
            Stop::StepLimit => self.interrupt(incoming, step),
            Stop::NoPrice => {
                let call = self.instrument.call_ns > 0;
                if call && incoming.may_rest {
                    return self.rest_crossing(incoming, step);
                }
                let end = self.cancel_left(incoming, CancelCause::PriceBand, Reason::PriceBand, step);
                if call {
                    self.begin_volatility_call(step);
                }
                end
            }
        }
    }

    /// The step is spent in the middle of an order.
    fn interrupt<S: EventSink>(&mut self, incoming: &mut Incoming, step: &mut Step<'_, S>) -> End {
        let order = incoming.set_aside();
        let begun = incoming.begun.expect("it has met an order");
        if step.reports_rest.is_some() {
            step.emit(rested_event(&order, RestCause::Unfinished));
        }
        self.trading.unfinished = Some(Unfinished {
            order,
            limit: incoming.limit,
            bands: step.bands,
            gathers: incoming.gathers,
            begun,
        });
        self.forget(incoming);
        End::Interrupted
    }

    fn cancel_left<S: EventSink>(
        &mut self,
        incoming: &mut Incoming,
        cause: CancelCause,
        reason: Reason,
        step: &mut Step<'_, S>,
    ) -> End {
        // Decrementing reports what it takes by itself.
        if !incoming.left.is_zero() {
            step.emit(incoming.cancel(incoming.left, cause));
        }
        self.forget(incoming);
        End::Cancelled(reason)
    }

    /// An order that will not rest again needs no node.
    #[inline]
    pub(super) fn forget(&mut self, incoming: &mut Incoming) {
        if let Some(slot) = incoming.node.take() {
            self.store.discard(slot);
        }
    }

    /// Puts what is left of an order behind all others at a price.
    #[inline]
    pub(super) fn rest(&mut self, incoming: &mut Incoming, price: Price) {
        let terms = incoming.terms_left();
        let slot = match incoming.node {
            Some(slot) => {
                self.store.set_terms(slot, &terms);
                slot
            }
            None => self.store.create(&terms),
        };
        incoming.node = Some(slot);
        let priority = self.next_priority();
        self.store.attach(slot, price, priority);
    }

    #[inline]
    pub(super) fn report_rest<S: EventSink>(&self, incoming: &Incoming, step: &mut Step<'_, S>) {
        if let Some(cause) = step.reports_rest {
            let slot = incoming.node.expect("an order that rests has a node");
            step.emit(self.event_rested(slot, cause));
        }
    }

    pub(super) fn event_rested(&self, slot: SlabIndex<Node>, cause: RestCause) -> Event {
        rested_event(&self.store.order(slot), cause)
    }

    /// The lowest and highest price to trade at now.
    #[inline]
    pub(super) fn bands<S>(&self, step: &Step<'_, S>) -> (Price, Price) {
        if self.trading.phase == Phase::Continuous { step.bands } else { ANY_PRICE }
    }

    /// Whether the order is one of those that live until they are ended.
    pub(super) fn stays(time_in_force: TimeInForce) -> bool {
        matches!(time_in_force, TimeInForce::Day | TimeInForce::Gtc | TimeInForce::Gtd { .. })
    }

    /// Whether orders match as they come.
    pub(super) fn is_continuous(&self) -> bool {
        self.trading.phase == Phase::Continuous && !self.trading.is_busy()
    }
}

/// A resting order of `side`, as it is before, gives `quantity` shares.
#[inline(always)]
pub(super) fn fill(resting: &Node, side: Side, price: Price, quantity: Quantity) -> Event {
    Event::Fill {
        resting: resting.order,
        resting_member: resting.member,
        resting_client_order_id: resting.client_order_id,
        resting_side: side,
        price,
        quantity,
        resting_remaining: resting.remaining.minus(quantity),
    }
}

/// An order joins a queue, or is set aside.
pub(super) fn rested_event(order: &RestingOrder, cause: RestCause) -> Event {
    Event::Rested {
        order: order.order,
        member: order.member,
        client_order_id: order.client_order_id,
        side: order.side,
        price: order.price,
        quantity: order.remaining,
        shown: order.shown,
        cause,
    }
}
