//! An order on its way through the book, and the outcomes it can end with.

use super::node::Node;
use super::terms::Terms;
use crate::{Priority, RestingOrder};
use pares_table::SlabIndex;
use pares_types::{
    CancelCause, Event, NewOrder, OrderId, OrderKind, Outcome, Price, Quantity, Reason, Request, Side,
    Status, TimeInForce,
};

/// An order that is matching: entered just now, or taken off its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    pub(super) terms: Terms,
    /// The worst price accepted.
    pub(super) limit: Price,
    /// Shares wanted in all, executed part included.
    pub(super) total: Quantity,
    /// Shares still to trade.
    pub(super) left: Quantity,
    pub(super) executed: Quantity,
    /// Whether what is left in the end may rest.
    pub(super) may_rest: bool,
    /// Whether it joins a call: it meets nobody but its owner.
    pub(super) gathers: bool,
    /// The priority that was next when it came in; `None` before it has met another order.
    pub(super) begun: Option<Priority>,
    /// Its node, if it was there before: detached.
    pub(super) node: Option<SlabIndex<Node>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Filled,
    Rests,
    Cancelled(Reason),
    /// The step is spent; the next one continues.
    Interrupted,
}

impl Incoming {
    #[inline]
    pub(super) fn entered(request: &Request, order: &NewOrder) -> Self {
        let terms = Terms {
            order: OrderId(request.id),
            member: request.member,
            client_order_id: request.client_order_id,
            side: order.side,
            kind: order.kind,
            remaining: order.quantity,
            executed: Quantity::ZERO,
            display: order.display,
            time_in_force: order.time_in_force,
            self_trade: order.self_trade,
            trigger: order.trigger,
            elected: false,
            post_only: order.post_only,
        };
        Self::new(terms, None)
    }

    /// An order with so much left of it, limited by its own price.
    #[inline]
    pub(super) fn new(terms: Terms, node: Option<SlabIndex<Node>>) -> Self {
        let (limit, priced) = match terms.kind {
            OrderKind::Limit { price } | OrderKind::Pegged { limit: price, .. } => (price, true),
            // A market order is a limit order whose limit no price exceeds.
            OrderKind::Market if terms.side == Side::Buy => (Price(i64::MAX), false),
            OrderKind::Market => (Price(i64::MIN), false),
        };
        let may_rest = priced && !matches!(terms.time_in_force, TimeInForce::Ioc | TimeInForce::Fok);
        let (left, executed) = (terms.remaining, terms.executed);
        Self {
            terms,
            limit,
            total: left.plus(executed),
            left,
            executed,
            may_rest,
            gathers: false,
            begun: None,
            node,
        }
    }

    /// Whether its limit accepts a resting order's price.
    #[inline]
    pub(super) fn accepts(&self, resting: Price) -> bool {
        self.terms.side.crosses(self.limit, resting)
    }

    #[inline]
    pub(super) fn trade(&mut self, quantity: Quantity) {
        self.left = self.left.minus(quantity);
        self.executed = self.executed.plus(quantity);
    }

    /// Loses `quantity` shares without trading them.
    pub(super) fn lose(&mut self, quantity: Quantity) {
        self.left = self.left.minus(quantity);
        self.total = self.total.minus(quantity);
    }

    /// The event that cancels `quantity` of it.
    pub(super) fn cancel(&self, quantity: Quantity, cause: CancelCause) -> Event {
        Event::Cancelled {
            order: self.terms.order,
            member: self.terms.member,
            client_order_id: self.terms.client_order_id,
            side: self.terms.side,
            price: self.price(),
            quantity,
            cause,
        }
    }

    /// The price it is limited to; 0 at market.
    pub(super) fn price(&self) -> Price {
        if self.terms.kind == OrderKind::Market { Price(0) } else { self.limit }
    }

    /// It as it waits for the next step: nowhere.
    pub(super) fn set_aside(&self) -> RestingOrder {
        let Terms { order, member, client_order_id, side, kind, .. } = self.terms;
        let Terms { display, time_in_force, self_trade, trigger, elected, post_only, .. } = self.terms;
        RestingOrder {
            order,
            member,
            client_order_id,
            side,
            kind,
            price: Price(0),
            remaining: self.left,
            shown: Quantity::ZERO,
            executed: self.executed,
            display,
            time_in_force,
            self_trade,
            trigger,
            elected,
            post_only,
            priority: Priority(0),
        }
    }

    /// Its terms with what is left of it.
    #[inline]
    pub(super) fn terms_left(&self) -> Terms {
        Terms { remaining: self.left, executed: self.executed, ..self.terms }
    }

    /// The outcome once matching is over.
    ///
    /// # Panics
    /// If shares were created or lost on the way (invariant I5).
    #[inline]
    pub(super) fn outcome(&self, end: End) -> Outcome {
        assert!(self.executed.plus(self.left) == self.total, "shares of an order are conserved");
        let (status, reason, remaining) = match end {
            End::Filled => (Status::Filled, Reason::None, Quantity::ZERO),
            End::Rests => (Status::Resting, Reason::None, self.left),
            End::Cancelled(reason) => (Status::Cancelled, reason, Quantity::ZERO),
            End::Interrupted => (Status::Held, Reason::Unfinished, self.left),
        };
        Outcome { status, reason, order: self.terms.order, executed: self.executed, remaining }
    }
}
