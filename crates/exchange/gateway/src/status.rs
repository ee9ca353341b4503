//! How an order is, for its member.
//!
//! It is said of what the gateway knows of the committed stream, and up to which position of the shard that is. Nothing is recorded for it.
//! An order that lives is never forgotten; one that ended long ago is unknown, as one that never was.

use pares_types::{OrderId, OrderKey, OrderState, OrderStatus, Position, Quantity, Reason};

use crate::names::Name;
use crate::{Gateway, SessionId};

impl Gateway {
    /// How the order is, if it is of the member whose streams the session receives; `None` if nothing is known of it, or it is another member's.
    ///
    /// # Errors
    /// [`Reason::NotSignedOn`] if the session speaks for no member.
    pub fn order_status(&self, session: SessionId, key: OrderKey) -> Result<Option<OrderStatus>, Reason> {
        let member = self.sessions.told_of(session).ok_or(Reason::NotSignedOn)?;
        let index = match key {
            OrderKey::Name(name) => self.names.find(member, name),
            OrderKey::Id(order) => self.names.find_order(order),
        };
        let entry = index.map(|index| self.names.get(index));
        let own = entry.filter(|entry| entry.member == member && entry.kind.is_order());
        Ok(own.and_then(|entry| self.status_of(entry)))
    }

    pub(crate) fn status_of(&self, entry: &Name) -> Option<OrderStatus> {
        let shard = &self.shards[self.shard_of(entry.instrument)?];
        let state = match (entry.is_answered(), entry.remaining) {
            (false, _) => OrderState::InFlight,
            (true, Quantity::ZERO) => OrderState::Ended,
            (true, _) => OrderState::Working,
        };
        Some(OrderStatus {
            client_order_id: entry.client_order_id,
            order: OrderId(entry.id),
            instrument: entry.instrument,
            shard: shard.id,
            next: shard.next.unwrap_or(Position(0)),
            state,
            remaining: entry.remaining,
            side: entry.kind.side(),
            executed: entry.executed,
        })
    }
}
