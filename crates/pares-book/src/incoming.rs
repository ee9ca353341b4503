//! An order on its way through the book, and the outcomes it can end with.

use crate::{Instrument, Priority, RestingOrder};
use pares_types::{
    CancelCause, ClientOrderId, Command, Event, MemberId, NewOrder, OrderId, OrderKind, Outcome, Price,
    Quantity, Reason, Request, RequestId, Side, Status, TimeInForce,
};

/// An order that is matching: entered just now, or taken off the book by an amend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(crate) order: OrderId,
    pub(crate) member: MemberId,
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) side: Side,
    /// The worst price accepted.
    pub(crate) limit: Price,
    /// Shares wanted in all, executed part included.
    total: Quantity,
    /// Shares still to trade.
    pub(crate) left: Quantity,
    executed: Quantity,
    /// Whether what is left in the end rests.
    rests: bool,
}

impl Incoming {
    /// The order a request enters.
    pub(crate) fn entered(request: &Request, order: &NewOrder) -> Self {
        let limit = match (order.kind, order.side) {
            (OrderKind::Limit { price }, _) => price,
            // A market order is a limit order whose limit no price exceeds.
            (OrderKind::Market, Side::Buy) => Price(i64::MAX),
            (OrderKind::Market, Side::Sell) => Price(i64::MIN),
        };
        let is_limit = matches!(order.kind, OrderKind::Limit { .. });
        Self {
            order: OrderId(request.id),
            member: request.member,
            client_order_id: request.client_order_id,
            side: order.side,
            limit,
            total: order.quantity,
            left: order.quantity,
            executed: Quantity::ZERO,
            rests: is_limit && order.time_in_force == TimeInForce::Day,
        }
    }

    /// What is left of a resting order at its new terms.
    ///
    /// # Panics
    /// If `total` is not above what the order has executed.
    pub(crate) fn amended(order: &RestingOrder, price: Price, total: Quantity) -> Self {
        assert!(total > order.executed, "an amend leaves something to trade");
        Self {
            order: order.order,
            member: order.member,
            client_order_id: order.client_order_id,
            side: order.side,
            limit: price,
            total,
            left: total.minus(order.executed),
            executed: order.executed,
            rests: true,
        }
    }

    /// Whether it may trade at a resting order's price.
    pub(crate) fn accepts(&self, resting: Price) -> bool {
        self.side.crosses(self.limit, resting)
    }

    /// Trades `quantity`.
    pub(crate) fn trade(&mut self, quantity: Quantity) {
        self.left = self.left.minus(quantity);
        self.executed = self.executed.plus(quantity);
    }

    /// Whether something is left that must come to rest.
    pub(crate) fn must_rest(&self) -> bool {
        self.rests && !self.left.is_zero()
    }

    /// The order as it rests.
    pub(crate) fn resting(&self, priority: Priority) -> RestingOrder {
        RestingOrder {
            order: self.order,
            member: self.member,
            client_order_id: self.client_order_id,
            side: self.side,
            price: self.limit,
            remaining: self.left,
            executed: self.executed,
            priority,
        }
    }

    /// The event that cancels what is left.
    pub(crate) fn cancel_left(&self, cause: CancelCause) -> Event {
        Event::Cancelled {
            order: self.order,
            member: self.member,
            client_order_id: self.client_order_id,
            quantity: self.left,
            cause,
        }
    }

    /// The outcome once matching is over.
    ///
    /// # Panics
    /// If shares were created or lost on the way (invariant I5).
    pub(crate) fn outcome(&self) -> Outcome {
        assert_eq!(self.executed.plus(self.left), self.total, "shares of {} are conserved", self.order);
        let (status, reason, remaining) = match (self.left.is_zero(), self.rests) {
            (true, _) => (Status::Filled, Reason::None, Quantity::ZERO),
            (false, true) => (Status::Resting, Reason::None, self.left),
            (false, false) => (Status::Cancelled, Reason::NothingToTrade, Quantity::ZERO),
        };
        Outcome { status, reason, order: self.order, executed: self.executed, remaining }
    }

    /// The outcome of a fill-or-kill order that could not be filled.
    pub(crate) fn killed(&self) -> Outcome {
        Outcome {
            status: Status::Cancelled,
            reason: Reason::CannotFillWhole,
            order: self.order,
            executed: Quantity::ZERO,
            remaining: Quantity::ZERO,
        }
    }
}

/// The outcome of a request refused for an order that does not rest.
pub(crate) fn refused(order: OrderId, reason: Reason) -> Outcome {
    Outcome { status: Status::Refused, reason, order, executed: Quantity::ZERO, remaining: Quantity::ZERO }
}

/// The outcome of a request that leaves `order` resting: carried out with [`Reason::None`], else refused.
pub(crate) fn still_resting(order: &RestingOrder, reason: Reason) -> Outcome {
    let status = if reason == Reason::None { Status::Resting } else { Status::Refused };
    Outcome { status, reason, order: order.order, executed: order.executed, remaining: order.remaining }
}

/// The outcome of a cancel.
pub(crate) fn cancelled(order: &RestingOrder) -> Outcome {
    Outcome {
        status: Status::Cancelled,
        reason: Reason::Requested,
        order: order.order,
        executed: order.executed,
        remaining: Quantity::ZERO,
    }
}

/// The outcome of a mass cancel.
pub(crate) fn mass_cancelled(request: RequestId) -> Outcome {
    Outcome {
        status: Status::MassCancelled,
        reason: Reason::None,
        order: OrderId(request),
        executed: Quantity::ZERO,
        remaining: Quantity::ZERO,
    }
}

/// The event that takes `quantity` shares off a resting order.
pub(crate) fn cancel_resting(order: &RestingOrder, quantity: Quantity, cause: CancelCause) -> Event {
    Event::Cancelled {
        order: order.order,
        member: order.member,
        client_order_id: order.client_order_id,
        quantity,
        cause,
    }
}

/// Checks the new terms of a resting order.
///
/// # Errors
/// The reason to refuse the amend with.
pub(crate) fn check_amend(
    instrument: &Instrument,
    order: &RestingOrder,
    price: Price,
    total: Quantity,
) -> Result<(), Reason> {
    instrument.validate_terms(price, total)?;
    if total <= order.executed {
        Err(Reason::QuantityBelowExecuted)
    } else if price == order.price && total == order.executed.plus(order.remaining) {
        Err(Reason::NothingChanged)
    } else {
        Ok(())
    }
}

/// # Panics
/// If the request does not belong in the book of `instrument`; see [`Book::apply`](crate::Book::apply).
pub(crate) fn assert_routed(instrument: &Instrument, request: &Request) {
    let to_all = request.instrument.0 == 0 && matches!(request.command, Command::MassCancel);
    assert!(
        to_all || request.instrument == instrument.id,
        "request {} for instrument {} came to the book of {}",
        request.id,
        request.instrument,
        instrument.id
    );
    assert!(request.id != RequestId::NONE, "a request has an id");
}
