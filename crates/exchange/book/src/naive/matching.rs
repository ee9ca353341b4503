//! Matching, and what happens when a member meets itself: docs/rules.md, sections 2 and 7.

use pares_types::{
    CancelCause, EventSink, OrderKind, Outcome, Phase, Price, Quantity, Reason, RestCause, SelfTrade, Side,
    Status, TimeInForce,
};

use super::{NaiveBook, Step, limit_of, there};
use crate::{Priority, RestingOrder, Unfinished};

/// An order on its way through the book.
#[derive(Clone, Copy)]
pub(super) struct Incoming {
    /// The order; `remaining` is what it has left.
    pub(super) order: RestingOrder,
    /// The worst price it accepts.
    pub(super) limit: Price,
    /// Whether it joins a call: it meets nobody but its owner, and rests.
    pub(super) gathers: bool,
    /// The priority that was next when it came in; `None` before it has met another order.
    pub(super) begun: Option<Priority>,
}

/// Why an incoming order stopped matching with something left, or a part of it gone without a trade.
#[derive(PartialEq, Eq)]
enum Stop {
    SelfTrade,
    /// The step is spent; the next one continues.
    StepLimit,
    /// Nothing more on the other side is at an accepted price, or nothing is left.
    Done,
}

impl Incoming {
    /// An order at the limit of its own terms; a market order accepts every price.
    pub(super) fn of(order: RestingOrder) -> Self {
        let every = if order.side == Side::Buy { Price(i64::MAX) } else { Price(i64::MIN) };
        let limit = match order.kind {
            OrderKind::Limit { price } => price,
            OrderKind::Market => every,
            OrderKind::Pegged { .. } => unreachable!("a pegged order comes in at its target"),
        };
        Self { order, limit, gathers: false, begun: None }
    }

    /// The price it is limited to; 0 at market.
    pub(super) fn price(&self) -> Price {
        limit_of(self.order.kind).map_or(Price(0), |_| self.limit)
    }
}

/// Whether what is left of an order may rest.
pub(super) fn may_rest(order: &RestingOrder) -> bool {
    let has_limit = !matches!(order.kind, OrderKind::Market);
    has_limit && !matches!(order.time_in_force, TimeInForce::Ioc | TimeInForce::Fok)
}

impl NaiveBook {
    /// Whether an order of `side` limited to `limit` may trade at `price` in this step.
    pub(super) fn accepts(
        &self,
        step: &Step<impl EventSink>,
        side: Side,
        limit: Price,
        price: Price,
    ) -> bool {
        let (low, high) = step.bands;
        let within_bands = self.trading.phase != Phase::Continuous || (low <= price && price <= high);
        side.crosses(limit, price) && within_bands
    }

    pub(super) fn can_trade(&self, step: &Step<impl EventSink>, side: Side, limit: Price) -> bool {
        let best = self.best_order(side.opposite());
        best.is_some_and(|best| self.accepts(step, side, limit, best.price))
    }

    /// Whether the best order of the other side is within the limit, whatever the bands say.
    pub(super) fn would_trade(&self, side: Side, limit: Price) -> bool {
        self.best_order(side.opposite()).is_some_and(|best| side.crosses(limit, best.price))
    }

    /// Matches an order, then rests or cancels what is left of it. `report` is the cause under which its
    /// coming to rest is reported; `None` if the outcome reports it.
    pub(super) fn execute(
        &mut self,
        step: &mut Step<impl EventSink>,
        mut incoming: Incoming,
        report: Option<RestCause>,
    ) -> Outcome {
        let mut prices = Vec::new();
        let mut stop = self.match_incoming(step, &mut incoming, &mut prices);
        prices.into_iter().for_each(|price| self.elect(price));
        if stop == Stop::Done && self.rests_crossing(&incoming) {
            // In the auction that follows it must not meet its owner either.
            let mut own = Incoming { gathers: true, ..incoming };
            stop = self.match_incoming(step, &mut own, &mut Vec::new());
            incoming.order = own.order;
        }
        let Incoming { order, limit, gathers, .. } = incoming;
        if order.remaining.is_zero() {
            return match stop {
                Stop::SelfTrade => there(&order, Status::Cancelled, Reason::SelfTrade),
                Stop::StepLimit | Stop::Done => there(&order, Status::Filled, Reason::None),
            };
        }
        match stop {
            Stop::SelfTrade => cancel_left(step, &incoming, CancelCause::SelfTrade, Reason::SelfTrade),
            Stop::StepLimit => self.interrupt(step, incoming, report),
            Stop::Done if gathers => self.rest_left(step, order, self.price_in_a_call(&order), report),
            Stop::Done if self.would_trade(order.side, limit) => self.breach(step, &incoming, report),
            Stop::Done if may_rest(&order) => self.rest_left(step, order, limit, report),
            Stop::Done => match self.limit_of_the_rest(&order) {
                Some(price) => {
                    let priced = RestingOrder { kind: OrderKind::Limit { price }, ..order };
                    self.rest_left(step, priced, price, Some(RestCause::Priced))
                }
                None => cancel_left(step, &incoming, CancelCause::Remainder, Reason::NothingToTrade),
            },
        }
    }

    /// Trades while it can; `prices` gets those of its trades. However little is left of a step, it does something.
    fn match_incoming(
        &mut self,
        step: &mut Step<impl EventSink>,
        incoming: &mut Incoming,
        prices: &mut Vec<Price>,
    ) -> Stop {
        let begun = *incoming.begun.get_or_insert(self.priority_next);
        let mut is_first = true;
        while !incoming.order.remaining.is_zero()
            && let Some(resting) = self.opponent(step, incoming)
        {
            if step.is_spent(self.instrument.step_max) && !is_first {
                return Stop::StepLimit;
            }
            is_first = false;
            let own = resting.member == incoming.order.member;
            if own && incoming.order.self_trade != SelfTrade::Allow {
                if self.prevent_self_trade(step, incoming, &resting) {
                    return Stop::SelfTrade;
                }
                continue;
            }
            // An iceberg that has its turn again gives all it has.
            let again = self.instrument.iceberg_refill_fresh && resting.priority >= begun;
            let offered = if again { resting.remaining } else { resting.shown };
            let quantity = incoming.order.remaining.min(offered);
            trade(&mut incoming.order, quantity);
            let mut resting = self.trade_resting(&resting, quantity);
            if again {
                resting.shown = Quantity::ZERO;
            }
            let price = self.trade_price(resting.price);
            prices.push(price);
            step.filled(&resting, price, quantity);
            self.refill(step, &resting);
        }
        Stop::Done
    }

    /// The order it meets next, if there is one: the best, or in a call the best of its owner if they must not trade.
    fn opponent(&self, step: &Step<impl EventSink>, incoming: &Incoming) -> Option<RestingOrder> {
        let Incoming { order, limit, gathers, .. } = incoming;
        let mut others = self.side(order.side.opposite()).iter();
        if *gathers {
            let wished = order.self_trade != SelfTrade::Allow;
            let own = |there: &&RestingOrder| {
                wished && there.member == order.member && order.side.crosses(*limit, there.price)
            };
            return others.find(own).copied();
        }
        others.next().filter(|best| self.accepts(step, order.side, *limit, best.price)).copied()
    }

    /// Whether it will rest although it crosses: a volatility call begins.
    fn rests_crossing(&self, incoming: &Incoming) -> bool {
        let Incoming { order, limit, gathers, .. } = incoming;
        let calls = !gathers && self.instrument.call_ns > 0 && may_rest(order);
        calls && !order.remaining.is_zero() && self.would_trade(order.side, *limit)
    }

    /// The step is spent in the middle of an order.
    fn interrupt(
        &mut self,
        step: &mut Step<impl EventSink>,
        incoming: Incoming,
        report: Option<RestCause>,
    ) -> Outcome {
        let Incoming { order, limit, gathers, begun } = incoming;
        let begun = begun.expect("it has met an order");
        let order = RestingOrder { price: Price(0), shown: Quantity::ZERO, priority: Priority(0), ..order };
        if report.is_some() {
            step.rested(&order, RestCause::Unfinished);
        }
        self.trading.unfinished = Some(Unfinished { order, limit, bands: step.bands, gathers, begun });
        there(&order, Status::Held, Reason::Unfinished)
    }

    /// The price of a trade with an order that rests at `resting`.
    fn trade_price(&self, resting: Price) -> Price {
        match (self.trading.phase, self.trading.closing) {
            (Phase::PostClose, Some(closing)) => closing,
            _ => resting,
        }
    }

    /// The next trade would be outside the bands.
    fn breach(
        &mut self,
        step: &mut Step<impl EventSink>,
        incoming: &Incoming,
        report: Option<RestCause>,
    ) -> Outcome {
        if self.instrument.call_ns == 0 {
            return cancel_left(step, incoming, CancelCause::PriceBand, Reason::PriceBand);
        }
        let outcome = if may_rest(&incoming.order) {
            self.rest_left(step, incoming.order, incoming.limit, report)
        } else {
            cancel_left(step, incoming, CancelCause::PriceBand, Reason::PriceBand)
        };
        self.begin_volatility_call(step);
        outcome
    }

    /// The limit of a market order with nobody left to trade with, if it is to rest then.
    fn limit_of_the_rest(&self, order: &RestingOrder) -> Option<Price> {
        let market = order.kind == OrderKind::Market && order.time_in_force != TimeInForce::Ioc;
        let rests = self.instrument.market_remainder_rests && market && !order.executed.is_zero();
        self.trading.latest().filter(|_| rests)
    }

    fn rest_left(
        &mut self,
        step: &mut Step<impl EventSink>,
        order: RestingOrder,
        limit: Price,
        report: Option<RestCause>,
    ) -> Outcome {
        let rested = self.rest(order, limit);
        if let Some(cause) = report {
            step.rested(&rested, cause);
        }
        there(&rested, Status::Resting, Reason::None)
    }

    /// A resting order trades so many of its shown shares.
    pub(super) fn trade_resting(&mut self, resting: &RestingOrder, quantity: Quantity) -> RestingOrder {
        let resting = self.find_mut(resting.order);
        trade(resting, quantity);
        resting.shown = resting.shown.minus(resting.shown.min(quantity));
        *resting
    }

    /// After a trade: an order with nothing remaining is gone, an iceberg shows more. Says whether it did.
    pub(super) fn refill(&mut self, step: &mut Step<impl EventSink>, resting: &RestingOrder) -> bool {
        if !resting.shown.is_zero() {
            return false;
        }
        self.remove(resting);
        if resting.remaining.is_zero() {
            return false;
        }
        let refilled = self.rest(*resting, resting.price);
        step.rested(&refilled, RestCause::Refilled);
        true
    }

    /// An order meets one of the same member. Says whether it stops.
    fn prevent_self_trade(
        &mut self,
        step: &mut Step<impl EventSink>,
        incoming: &mut Incoming,
        resting: &RestingOrder,
    ) -> bool {
        let price = incoming.price();
        let order = &mut incoming.order;
        match order.self_trade {
            SelfTrade::Allow => unreachable!("they trade"),
            SelfTrade::CancelIncoming => true,
            SelfTrade::CancelResting => {
                self.cancel_whole(step, resting, CancelCause::SelfTrade);
                false
            }
            SelfTrade::CancelBoth => {
                self.cancel_whole(step, resting, CancelCause::SelfTrade);
                true
            }
            SelfTrade::Decrement => {
                let quantity = order.remaining.min(resting.remaining);
                self.reduce(resting.order, quantity);
                step.cancelled(resting, quantity, CancelCause::SelfTrade);
                order.remaining = order.remaining.minus(quantity);
                step.cancelled_at(order, price, quantity, CancelCause::SelfTrade);
                order.remaining.is_zero()
            }
        }
    }
}

fn trade(order: &mut RestingOrder, quantity: Quantity) {
    order.remaining = order.remaining.minus(quantity);
    order.executed = order.executed.plus(quantity);
}

pub(super) fn cancel_left(
    step: &mut Step<impl EventSink>,
    incoming: &Incoming,
    cause: CancelCause,
    reason: Reason,
) -> Outcome {
    let order = incoming.order;
    step.cancelled_at(&order, incoming.price(), order.remaining, cause);
    there(&RestingOrder { remaining: Quantity::ZERO, ..order }, Status::Cancelled, reason)
}
