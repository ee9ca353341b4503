//! What a door knows of its member's orders.

use std::collections::BTreeMap;

use pares_types::{
    ClientOrderId, InstrumentId, OrderId, OrderKey, OrderState, OrderStatus, Position, Quantity, Side,
};

use crate::ended::{Ended, EndedOrders};
use crate::types::Terms;

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The name under which it was entered.
    pub(crate) entry: ClientOrderId,
    /// The name of the last change that was accepted, or the same.
    pub(crate) newest: ClientOrderId,
    pub(crate) order: Option<OrderId>,
    pub(crate) instrument: InstrumentId,
    pub(crate) side: Option<Side>,
    pub(crate) total: Option<Quantity>,
    pub(crate) executed: Quantity,
    pub(crate) terms: Option<Terms>,
    /// What lies before is counted in already.
    pub(crate) counted: Position,
    /// Whether its entry was answered.
    pub(crate) is_answered: bool,
    /// Changes of it that this door has asked for.
    pub(crate) amending: u32,
}

impl Known {
    /// One of which nothing is known but its name.
    pub(crate) fn unknown(entry: ClientOrderId, instrument: InstrumentId) -> Self {
        Self {
            entry,
            newest: entry,
            order: None,
            instrument,
            side: None,
            total: None,
            executed: Quantity::ZERO,
            terms: None,
            counted: Position(0),
            is_answered: false,
            amending: 0,
        }
    }

    /// One as a gateway says that it is.
    pub(crate) fn listed(status: &OrderStatus) -> Self {
        Self {
            order: Some(status.order),
            side: status.side,
            total: Some(Quantity(status.executed.0.saturating_add(status.remaining.0))),
            executed: status.executed,
            counted: status.next,
            is_answered: status.state == OrderState::Working,
            ..Self::unknown(status.client_order_id, status.instrument)
        }
    }

    /// Whether anything was heard of it. Until then its name may turn out to be another order's.
    pub(crate) fn is_heard_of(&self) -> bool {
        self.order.is_some()
    }

    /// Shares that are left, as far as its total is known.
    pub(crate) fn leaves(&self) -> Quantity {
        Quantity(self.total.map_or(0, |total| total.0.saturating_sub(self.executed.0)))
    }
}

/// How an order stands: its id, and OrdStatus (39).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) order: Option<OrderId>,
    pub(crate) status: u8,
}

/// Orders that live, by the names under which they were entered, and the latest that have ended.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    known: BTreeMap<ClientOrderId, Known>,
    /// From the newest name to the first, of those that have two.
    renamed: BTreeMap<ClientOrderId, ClientOrderId>,
    by_id: BTreeMap<OrderId, ClientOrderId>,
    ended: EndedOrders,
    max: usize,
}

impl Orders {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    pub(crate) fn get(&self, entry: ClientOrderId) -> Option<&Known> {
        self.known.get(&entry)
    }

    pub(crate) fn get_mut(&mut self, entry: ClientOrderId) -> Option<&mut Known> {
        self.known.get_mut(&entry)
    }

    /// The order of a name, its first one or the newest, or of an id.
    pub(crate) fn by_key(&self, key: OrderKey) -> Option<&Known> {
        let entry = match key {
            OrderKey::Name(name) => self.renamed.get(&name).copied().unwrap_or(name),
            OrderKey::Id(order) => *self.by_id.get(&order)?,
        };
        self.known.get(&entry)
    }

    /// The newest name and the first one of an order that lives or has ended.
    pub(crate) fn names_of(&self, key: OrderKey) -> Option<(ClientOrderId, ClientOrderId)> {
        let living = self.by_key(key).map(|order| (order.newest, order.entry));
        living.or_else(|| self.ended.get(key).map(|order| (order.newest, order.entry)))
    }

    /// How an order stands that lives or has ended.
    pub(crate) fn standing(&self, key: OrderKey) -> Option<Standing> {
        let living = self.by_key(key).map(|order| Standing { order: order.order, status: order.status() });
        let ended = || self.ended.get(key).map(|one| Standing { order: one.order, status: one.status });
        living.or_else(ended)
    }

    /// Remembers how an order is now. Beyond the most that are remembered it is not.
    pub(crate) fn put(&mut self, order: Known) {
        let before = self.known.get(&order.entry).copied();
        if before.is_none() && self.known.len() >= self.max {
            return;
        }
        if let Some(before) = before.filter(|before| before.newest != order.newest) {
            self.renamed.remove(&before.newest);
        }
        if order.newest != order.entry {
            self.renamed.insert(order.newest, order.entry);
        }
        if let Some(id) = order.order {
            self.by_id.insert(id, order.entry);
        }
        self.known.insert(order.entry, order);
    }

    /// Forgets an order that has ended, but for how it did.
    pub(crate) fn end(&mut self, order: &Known, status: u8) {
        let Known { entry, newest, order, .. } = *order;
        self.ended.put(Ended { entry, newest, order, status });
        // One that waits for its answer under the same name is another one.
        if self.known.get(&entry).is_some_and(Known::is_heard_of) {
            self.remove(entry);
        }
    }

    /// Forgets an order.
    pub(crate) fn remove(&mut self, entry: ClientOrderId) {
        let Some(order) = self.known.remove(&entry) else { return };
        // One that is refused since another order has its name leaves that as it is.
        if order.newest != entry {
            self.renamed.remove(&order.newest);
        }
        if let Some(id) = order.order {
            self.by_id.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_types::{GatewayId, RequestId};

    use super::*;

    #[test]
    fn ended_orders_are_forgotten_within_bounds() {
        let mut orders = Orders::new(10);
        for name in 1..=50 {
            let order = Some(OrderId(RequestId::new(GatewayId(1), name)));
            let known = Known { order, ..Known::unknown(ClientOrderId(name), InstrumentId(1)) };
            orders.put(known);
            orders.put(Known { newest: ClientOrderId(100 + name), ..known });
            orders.put(Known { newest: ClientOrderId(200 + name), ..known });
        }
        assert_eq!((orders.known.len(), orders.renamed.len(), orders.by_id.len()), (10, 10, 10));
        let by_name = |name| orders.by_key(OrderKey::Name(ClientOrderId(name)));
        assert!(by_name(101).is_none(), "a name that was replaced");
        assert_eq!(by_name(201), orders.get(ClientOrderId(1)));
        (1..=50).for_each(|name| orders.remove(ClientOrderId(name)));
        assert_eq!((orders.known.len(), orders.renamed.len(), orders.by_id.len()), (0, 0, 0));
    }
}
