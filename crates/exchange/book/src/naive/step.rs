//! One step: the application of one request. It counts its events on their way to the caller's sink.

use pares_types::{
    CancelCause, Event, EventSink, IncomingCause, OrderId, Price, Quantity, RestCause, Timestamp,
};

use super::limit_of;
use crate::RestingOrder;

/// What is known while a request is applied, and where its events go.
pub(super) struct Step<'a, S> {
    sink: &'a mut S,
    events: u64,
    /// The larger of the book's time and the request's stamp.
    pub(super) now: Timestamp,
    /// Lowest and highest price of a trade in continuous trading, as they were when the step began.
    pub(super) bands: (Price, Price),
    /// The buy order of the auction whose fills are being told.
    pub(super) auction_buy: Option<OrderId>,
}

impl<'a, S: EventSink> Step<'a, S> {
    pub(super) fn new(sink: &'a mut S, now: Timestamp, bands: (Price, Price)) -> Self {
        Self { sink, events: 0, now, bands, auction_buy: None }
    }

    pub(super) fn event(&mut self, event: Event) {
        self.events += 1;
        self.sink.event(event);
    }

    /// Whether it has caused `step_max` events or more.
    pub(super) fn is_spent(&self, step_max: u32) -> bool {
        self.events >= u64::from(step_max)
    }

    /// `quantity` shares of an order that is there, on the book or held, are gone without a trade.
    pub(super) fn cancelled(&mut self, order: &RestingOrder, quantity: Quantity, cause: CancelCause) {
        let limit = limit_of(order.kind).unwrap_or(Price(0));
        self.cancelled_at(order, if order.is_held() { limit } else { order.price }, quantity, cause);
    }

    /// The same of one on its way through the book.
    pub(super) fn cancelled_at(
        &mut self,
        order: &RestingOrder,
        price: Price,
        quantity: Quantity,
        cause: CancelCause,
    ) {
        self.event(Event::Cancelled {
            order: order.order,
            member: order.member,
            client_order_id: order.client_order_id,
            side: order.side,
            price,
            quantity,
            cause,
        });
    }

    /// An order joined the end of a queue, or was put aside.
    pub(super) fn rested(&mut self, order: &RestingOrder, cause: RestCause) {
        self.event(Event::Rested {
            order: order.order,
            member: order.member,
            client_order_id: order.client_order_id,
            side: order.side,
            price: order.price,
            quantity: order.remaining,
            shown: order.shown,
            cause,
        });
    }

    /// From here on `order` is the incoming one.
    pub(super) fn incoming(&mut self, order: &RestingOrder, price: Price, cause: IncomingCause) {
        self.event(Event::Incoming {
            order: order.order,
            member: order.member,
            client_order_id: order.client_order_id,
            side: order.side,
            price,
            quantity: order.remaining,
            cause,
        });
    }

    /// A trade; `resting` as it is after it.
    pub(super) fn filled(&mut self, resting: &RestingOrder, price: Price, quantity: Quantity) {
        self.event(Event::Fill {
            resting: resting.order,
            resting_member: resting.member,
            resting_client_order_id: resting.client_order_id,
            resting_side: resting.side,
            price,
            quantity,
            resting_remaining: resting.remaining,
        });
    }
}
