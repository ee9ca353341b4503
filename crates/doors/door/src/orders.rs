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

/// Orders that live, and the latest that have ended. Two may have one name, in two shards: what was heard of is known by its id.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    heard_of: BTreeMap<OrderId, Known>,
    /// Of which nothing was heard.
    asked: BTreeMap<ClientOrderId, Known>,
    /// By the names under which they were entered.
    by_name: BTreeMap<ClientOrderId, OrderId>,
    /// By the newest names, of those that have two.
    renamed: BTreeMap<ClientOrderId, OrderId>,
    ended: EndedOrders,
    max: usize,
}

impl Orders {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    /// The order that was entered under a name.
    pub(crate) fn get(&self, entry: ClientOrderId) -> Option<&Known> {
        let heard_of = self.by_name.get(&entry).and_then(|id| self.heard_of.get(id));
        heard_of.or_else(|| self.asked.get(&entry))
    }

    pub(crate) fn get_mut(&mut self, entry: ClientOrderId) -> Option<&mut Known> {
        match self.by_name.get(&entry) {
            Some(id) => self.heard_of.get_mut(id),
            None => self.asked.get_mut(&entry),
        }
    }

    /// The order of a name, its first one or the newest, or of an id.
    pub(crate) fn by_key(&self, key: OrderKey) -> Option<&Known> {
        match key {
            OrderKey::Name(name) => match self.renamed.get(&name) {
                Some(id) => self.heard_of.get(id),
                None => self.get(name),
            },
            OrderKey::Id(id) => self.heard_of.get(&id),
        }
    }

    /// The order of that id; if it was not heard of, the one that was asked for under the name.
    pub(crate) fn find(&self, id: OrderId, entry: ClientOrderId) -> Option<&Known> {
        self.heard_of.get(&id).or_else(|| self.asked.get(&entry))
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
        let before = order.order.and_then(|id| self.heard_of.get(&id)).copied();
        if before.is_none() && self.heard_of.len() + self.asked.len() >= self.max {
            return;
        }
        let Some(id) = order.order else {
            self.asked.insert(order.entry, order);
            return;
        };
        if let Some(before) = before.filter(|before| before.newest != order.newest) {
            self.renamed.remove(&before.newest);
        }
        if order.newest != order.entry {
            self.renamed.insert(order.newest, id);
        }
        let other = self.by_name.insert(order.entry, id).filter(|other| *other != id);
        // One in flight, as another gateway numbered it, is this one.
        if let Some(other) =
            other.filter(|other| self.heard_of.get(other).is_some_and(|one| !one.is_answered))
        {
            self.heard_of.remove(&other);
        }
        self.heard_of.insert(id, order);
    }

    /// Forgets an order that has ended, but for how it did.
    pub(crate) fn end(&mut self, order: &Known, status: u8) {
        let Known { entry, newest, order, .. } = *order;
        self.ended.put(Ended { entry, newest, order, status });
        let Some(id) = order.filter(|id| self.heard_of.remove(id).is_some()) else { return };
        // Another order may have one of its names by now.
        for (names, name) in [(&mut self.by_name, entry), (&mut self.renamed, newest)] {
            if names.get(&name) == Some(&id) {
                names.remove(&name);
            }
        }
    }

    /// Forgets what was asked for under a name.
    pub(crate) fn forget_asked(&mut self, entry: ClientOrderId) {
        self.asked.remove(&entry);
    }
}

#[cfg(test)]
mod tests {
    use pares_types::{GatewayId, RequestId};

    use super::*;
    use crate::types::status;

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
        assert_eq!((orders.heard_of.len(), orders.by_name.len(), orders.renamed.len()), (10, 10, 10));
        let by_name = |name| orders.by_key(OrderKey::Name(ClientOrderId(name)));
        assert!(by_name(101).is_none(), "a name that was replaced");
        assert_eq!(by_name(201), orders.get(ClientOrderId(1)));
        let all: Vec<Known> = orders.heard_of.values().copied().collect();
        all.iter().for_each(|order| orders.end(order, status::FILLED));
        assert_eq!((orders.heard_of.len(), orders.by_name.len(), orders.renamed.len()), (0, 0, 0));
    }
}
