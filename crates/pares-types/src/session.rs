//! What crosses a client's session: [`ClientRequest`] in, [`Reply`] out.
//!
//! A client speaks of its orders by the names it gave them ([`ClientOrderId`]); the gateway turns names
//! into exchange ids on the way in and back into names on the way out.

use crate::{
    CancelCause, ClientOrderId, InstrumentId, NewOrder, OrderId, Position, Price, Quantity, Reason,
    RequestId, ShardId, Side, Status,
};

/// What a client asks of a gateway. Every request has a name of its own; repeating one is harmless and
/// returns the first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientRequest {
    /// Enter an order.
    Enter {
        /// The name of this request, and from then on of the order.
        client_order_id: ClientOrderId,
        /// The instrument; not 0.
        instrument: InstrumentId,
        /// The order.
        order: NewOrder,
    },
    /// Change a resting order.
    Amend {
        /// The name of this request.
        client_order_id: ClientOrderId,
        /// The name under which the order was entered.
        target: ClientOrderId,
        /// The new limit price.
        price: Price,
        /// The new total quantity, executed part included.
        quantity: Quantity,
    },
    /// Cancel what is left of a resting order.
    Cancel {
        /// The name of this request.
        client_order_id: ClientOrderId,
        /// The name under which the order was entered.
        target: ClientOrderId,
    },
    /// Cancel all the member's resting orders.
    MassCancel {
        /// The name of this request.
        client_order_id: ClientOrderId,
        /// The instrument, or 0 for all of them.
        instrument: InstrumentId,
    },
}

impl ClientRequest {
    /// The request's own name.
    #[must_use]
    pub fn client_order_id(&self) -> ClientOrderId {
        match *self {
            Self::Enter { client_order_id, .. }
            | Self::Amend { client_order_id, .. }
            | Self::Cancel { client_order_id, .. }
            | Self::MassCancel { client_order_id, .. } => client_order_id,
        }
    }
}

/// What a gateway tells a client about its requests and orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The request is in the gateway's journal and will be ordered.
    Journalled {
        /// The request's name.
        client_order_id: ClientOrderId,
        /// Its identity in the exchange.
        request: RequestId,
    },
    /// The one answer to a request; committed.
    Answer(Answer),
    /// One of the member's orders traded.
    Trade(Trade),
    /// Shares of one of the member's orders were cancelled.
    Cancelled(Cancellation),
    /// The gateway did not take the request in; nothing was recorded and the name is still free.
    Rejected {
        /// The request's name.
        client_order_id: ClientOrderId,
        /// Why.
        reason: Reason,
    },
}

/// The one answer to a request. What it says is recorded at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Answer {
    /// The request's name.
    pub client_order_id: ClientOrderId,
    /// Its identity in the exchange.
    pub request: RequestId,
    /// The order concerned; for a mass cancel the request itself.
    pub order: OrderId,
    /// The total order it was part of.
    pub shard: ShardId,
    /// Its place there.
    pub position: Position,
    /// The instrument; 0 for a mass cancel of all.
    pub instrument: InstrumentId,
    /// What became of it.
    pub status: Status,
    /// Why it was refused or cancelled.
    pub reason: Reason,
    /// Shares of the order executed so far; for a mass cancel the number of orders cancelled.
    pub executed: Quantity,
    /// Shares of the order still on the book.
    pub remaining: Quantity,
    /// Trades and cancels recorded at the same position, whoever they concern.
    pub events: u32,
    /// Whether it repeats an answer given, or due, before.
    pub repeat: bool,
}

/// One of the member's orders traded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trade {
    /// The name of the member's order.
    pub client_order_id: ClientOrderId,
    /// The order.
    pub order: OrderId,
    /// The total order in which it traded.
    pub shard: ShardId,
    /// Where in it.
    pub position: Position,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The side of the member's order.
    pub side: Side,
    /// Whether the member's order was on the book or came in.
    pub role: Role,
    /// The price: the resting order's.
    pub price: Price,
    /// Shares traded.
    pub quantity: Quantity,
    /// Shares of the member's order left after it: on the book, or for the incoming order to match.
    pub remaining: Quantity,
}

/// Which part an order played in a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// It was on the book (it made the liquidity).
    Resting = 1,
    /// It came in (it took the liquidity).
    Incoming = 2,
}

/// Shares of one of the member's orders left the book, or never reached it, without trading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cancellation {
    /// The name of the member's order.
    pub client_order_id: ClientOrderId,
    /// The order.
    pub order: OrderId,
    /// The total order in which it happened.
    pub shard: ShardId,
    /// Where in it.
    pub position: Position,
    /// The instrument; 0 if the gateway no longer knows it.
    pub instrument: InstrumentId,
    /// Shares cancelled.
    pub quantity: Quantity,
    /// Why.
    pub cause: CancelCause,
}
