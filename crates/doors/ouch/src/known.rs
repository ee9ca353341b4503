//! What a door knows of the orders that its connection has asked for and that live: under which numbers they go, and which of its requests are
//! not answered. An order that has ended is forgotten, so the maps stay small and near. Nothing of this goes into a message.

use std::collections::BTreeMap;

use pares_types::{Answer, OrderId, Status};

use crate::names::OuchNames;

#[derive(Clone, Copy, Debug, Default)]
struct Order {
    /// Its O was asked for, and is not answered.
    is_open: bool,
    id: Option<OrderId>,
}

/// A U.
#[derive(Clone, Copy, Debug)]
struct Replacement {
    /// The UserRefNum of the order's O.
    entry: u32,
    is_open: bool,
}

/// The latest orders and replacements of a connection, by their UserRefNums.
#[derive(Debug, Default)]
pub(crate) struct Known {
    orders: BTreeMap<u32, Order>,
    by_id: BTreeMap<OrderId, u32>,
    replacements: BTreeMap<u32, Replacement>,
    max: usize,
}

impl Known {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    /// An O was asked for.
    pub(crate) fn enter(&mut self, number: u32) {
        self.replacements.remove(&number);
        self.orders.entry(number).or_default().is_open = true;
        if self.orders.len() > self.max {
            let oldest = self.orders.first_key_value().map(|(number, _)| *number);
            oldest.into_iter().for_each(|number| self.forget(number));
        }
    }

    /// A U was asked for: the order bears another UserRefNum as well, unless it is refused.
    pub(crate) fn replace(&mut self, original: u32, number: u32) {
        let entry = self.entry(original);
        self.replacements.insert(number, Replacement { entry, is_open: true });
        if self.replacements.len() > self.max {
            self.replacements.pop_first();
        }
    }

    fn forget(&mut self, entry: u32) {
        let order = self.orders.remove(&entry);
        if let Some(id) = order.and_then(|order| order.id) {
            self.by_id.remove(&id);
        }
    }

    /// The UserRefNum under which it was entered.
    pub(crate) fn entry(&self, number: u32) -> u32 {
        self.replacements.get(&number).map_or(number, |replacement| replacement.entry)
    }

    /// The order's id, if its answer has arrived.
    pub(crate) fn id(&self, entry: u32) -> Option<OrderId> {
        self.orders.get(&entry)?.id
    }

    /// It is answered. Says whether this connection waited for that.
    fn close(&mut self, number: u32) -> bool {
        match self.replacements.get_mut(&number) {
            Some(replacement) => std::mem::take(&mut replacement.is_open),
            None => self.orders.get_mut(&number).is_some_and(|order| std::mem::take(&mut order.is_open)),
        }
    }

    /// It was answered before this connection asked, if it is of this connection. Says whether it is.
    pub(crate) fn on_repeat(&mut self, number: u32) -> bool {
        let was_open = self.close(number);
        if self.orders.get(&number).is_some_and(|order| !order.is_open && order.id.is_none()) {
            self.orders.remove(&number);
        }
        was_open
    }

    /// It was refused, and nothing has changed.
    pub(crate) fn on_refused(&mut self, number: u32) {
        self.on_repeat(number);
        self.replacements.remove(&number);
    }

    /// An answer of the stream.
    pub(crate) fn on_answer(&mut self, names: &OuchNames, answer: &Answer) {
        let number = names.user_ref_num(answer.client_order_id);
        match answer.status {
            Status::Refused => return self.on_refused(number),
            Status::Filled | Status::Cancelled => return self.on_end(number, answer.order),
            _ => {}
        }
        if answer.order.0 == answer.request
            && let Some(order) = self.orders.get_mut(&number)
        {
            order.id = Some(answer.order);
            self.by_id.insert(answer.order, number);
        }
        self.close(number);
    }

    /// A request has ended an order, perhaps at its entry.
    fn on_end(&mut self, number: u32, order: OrderId) {
        self.close(number);
        self.on_ended(order);
        let entry = self.entry(number);
        if self.orders.get(&entry).is_some_and(|order| order.id.is_none()) {
            self.forget(entry);
        }
    }

    /// An order has nothing left.
    pub(crate) fn on_ended(&mut self, order: OrderId) {
        if let Some(entry) = self.by_id.get(&order).copied() {
            self.forget(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_exercise::replies;
    use pares_types::Quantity;

    use super::*;

    fn answer(names: &OuchNames, number: u32, status: Status) -> Answer {
        let (client_order_id, remaining) = (names.of(number), Quantity(0));
        Answer { client_order_id, status, remaining, ..replies::answer(number.into(), number.into()) }
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let (names, mut known) = (OuchNames::new(1, false), Known::new(16));
        for number in 1..9 {
            known.enter(number);
            let status = if number % 2 == 0 { Status::Filled } else { Status::Resting };
            known.on_answer(&names, &answer(&names, number, status));
        }
        assert_eq!(known.orders.keys().copied().collect::<Vec<_>>(), [1, 3, 5, 7]);
        for number in [1, 3, 5, 7] {
            known.replace(number, number + 10);
            known.on_ended(answer(&names, number, Status::Resting).order);
            known.on_refused(number + 10);
        }
        assert!(
            known.orders.is_empty() && known.by_id.is_empty() && known.replacements.is_empty(),
            "{known:?}"
        );
    }
}
