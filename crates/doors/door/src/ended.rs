//! What a door knows of its member's orders that have ended: enough to answer who changes one too late.
//!
//! A refusal to change an order says how the order stands. To call a filled order rejected, because it is forgotten, would make its owner's
//! system believe so. The latest are remembered; how others ended their earlier reports say.

use std::collections::{BTreeMap, VecDeque};

use pares_types::{ClientOrderId, OrderId, OrderKey};

/// Orders that are remembered.
const ENDED_MAX: usize = 512;

/// An order that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) entry: ClientOrderId,
    pub(crate) newest: ClientOrderId,
    pub(crate) order: Option<OrderId>,
    /// OrdStatus (39).
    pub(crate) status: u8,
}

/// The latest that have.
#[derive(Debug, Default)]
pub(crate) struct EndedOrders {
    orders: BTreeMap<ClientOrderId, Ended>,
    /// From other names and ids to the names under which they were entered.
    keys: BTreeMap<OrderKey, ClientOrderId>,
    oldest: VecDeque<ClientOrderId>,
}

impl EndedOrders {
    /// By its id, or by its first name or the last one.
    pub(crate) fn get(&self, key: OrderKey) -> Option<&Ended> {
        let entry = match key {
            OrderKey::Name(name) if self.orders.contains_key(&name) => name,
            key => *self.keys.get(&key)?,
        };
        self.orders.get(&entry)
    }

    /// Remembers one, in place of the oldest.
    pub(crate) fn put(&mut self, ended: Ended) {
        match self.orders.insert(ended.entry, ended) {
            Some(before) => keys(&before).for_each(|key| _ = self.keys.remove(&key)),
            None => self.oldest.push_back(ended.entry),
        }
        self.keys.extend(keys(&ended).map(|key| (key, ended.entry)));
        if self.oldest.len() > ENDED_MAX
            && let Some(oldest) = self.oldest.pop_front().and_then(|entry| self.orders.remove(&entry))
        {
            keys(&oldest).for_each(|key| _ = self.keys.remove(&key));
        }
    }
}

/// By what it is found beside its first name.
fn keys(ended: &Ended) -> impl Iterator<Item = OrderKey> + use<> {
    let newest = Some(ended.newest).filter(|newest| *newest != ended.entry).map(OrderKey::Name);
    newest.into_iter().chain(ended.order.map(OrderKey::Id))
}

#[cfg(test)]
mod tests {
    use pares_types::{GatewayId, RequestId};

    use super::*;

    #[test]
    fn the_latest_ended_orders_are_remembered_within_bounds() {
        let id = |name| OrderId(RequestId::new(GatewayId(1), name));
        let newest = |name| ClientOrderId(1_000_000 + name);
        let mut ended = EndedOrders::default();
        for name in (1..=10_000).chain(9_990..=10_000) {
            let (entry, order) = (ClientOrderId(name), Some(id(name)));
            ended.put(Ended { entry, newest: newest(name), order, status: b'2' });
        }
        let found = |key| ended.get(key).map(|one| one.entry.0);
        assert_eq!((ended.orders.len(), ended.keys.len(), ended.oldest.len()), (512, 1_024, 512));
        for key in
            [OrderKey::Name(ClientOrderId(9_999)), OrderKey::Name(newest(9_999)), OrderKey::Id(id(9_999))]
        {
            assert_eq!(found(key), Some(9_999), "{key:?}");
        }
        assert_eq!([OrderKey::Name(newest(1)), OrderKey::Id(id(1))].map(found), [None, None]);
    }
}
