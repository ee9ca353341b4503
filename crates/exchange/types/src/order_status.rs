//! How an order is, as a gateway knows it from the committed stream.

use crate::coded::coded;
use crate::{ClientOrderId, InstrumentId, OrderId, Position, Quantity, ShardId, Side};

/// What an order is asked for by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderKey {
    /// The name under which its member entered it.
    Name(ClientOrderId),
    /// Its id in the exchange.
    Id(OrderId),
}

coded! {
    /// What became of an order.
    pub enum OrderState {
        /// Journalled by a gateway, and not committed yet.
        InFlight = 1 "in_flight",
        /// Shares of it are on the book, or held.
        Working = 2 "working",
        /// Nothing of it is left: executed, cancelled, expired or refused.
        Ended = 3 "ended",
    }
}

/// How an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderStatus {
    /// The name under which it was entered.
    pub client_order_id: ClientOrderId,
    /// Its id; while it is in flight, that of the first request seen under its name.
    pub order: OrderId,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Its shard.
    pub shard: ShardId,
    /// The position to come there: what lies before it is counted in.
    pub next: Position,
    /// What became of it.
    pub state: OrderState,
    /// Shares that are still there; of one in flight, those it asks for.
    pub remaining: Quantity,
    /// Which side it is on; `None` from a gateway that does not say.
    pub side: Option<Side>,
    /// Shares of it that have traded.
    pub executed: Quantity,
}
