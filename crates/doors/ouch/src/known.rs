//! What a door knows of the orders that its connection has asked for and that live: for requests that leave out what the exchange needs.
//!
//! X and M change a quantity alone, and the exchange wants the price with it. What the connection asked for is not enough: an O or U may be
//! refused, or be one that was sent again, of an order that has another price by now. So a price is sure from the answer on, until
//! another session changes it, and while nothing that may change it is unanswered. An order that has ended is forgotten, so the map stays
//! small and near. Nothing of this goes into a message.

use std::collections::BTreeMap;

use pares_types::{Answer, OrderId, Price, Status};

use crate::names::OuchNames;

#[derive(Clone, Copy, Debug, Default)]
struct Order {
    /// Its price, if that is sure.
    price: Option<Price>,
    /// The price that its O asks for, as long as that is not answered.
    asked: Option<Price>,
    /// Requests of this connection that are not answered and may change it.
    open: u32,
    id: Option<OrderId>,
}

/// A U.
#[derive(Clone, Copy, Debug)]
struct Replacement {
    /// The UserRefNum of the order's O.
    entry: u32,
    /// The price that it asks for, as long as it is not answered.
    asked: Option<Price>,
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
    pub(crate) fn enter(&mut self, number: u32, price: Price) {
        self.replacements.remove(&number);
        let order = self.orders.entry(number).or_default();
        order.open += u32::from(order.asked.replace(price).is_none());
        self.keep_bounds();
    }

    /// A U was asked for: the order bears another UserRefNum as well, unless it is refused.
    pub(crate) fn replace(&mut self, original: u32, number: u32, price: Price) {
        let entry = self.entry(original);
        self.orders.entry(entry).or_default().open += 1;
        self.replacements.insert(number, Replacement { entry, asked: Some(price) });
        self.keep_bounds();
    }

    fn keep_bounds(&mut self) {
        while self.orders.len() > self.max {
            let oldest = self.orders.first_key_value().map(|(number, _)| *number);
            oldest.into_iter().for_each(|number| self.forget(number));
        }
        while self.replacements.len() > self.max {
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

    pub(crate) fn price(&self, entry: u32) -> Option<Price> {
        self.orders.get(&entry).filter(|order| order.open == 0)?.price
    }

    /// It was answered before this connection asked, if it is of this connection. Says whether it is.
    pub(crate) fn on_repeat(&mut self, number: u32) -> bool {
        let was_open = self.take_asked(number).is_some();
        if was_open {
            self.close(number, None);
        }
        was_open
    }

    /// It was refused, and nothing has changed.
    pub(crate) fn on_refused(&mut self, number: u32) {
        if self.take_asked(number).is_some() {
            let before = self.orders.get(&self.entry(number)).and_then(|order| order.price);
            self.close(number, before);
        }
        self.replacements.remove(&number);
    }

    /// The price that was asked for, if that is not answered; from now on it is.
    fn take_asked(&mut self, number: u32) -> Option<Price> {
        match self.replacements.get_mut(&number) {
            Some(replacement) => replacement.asked.take(),
            None => self.orders.get_mut(&number)?.asked.take(),
        }
    }

    /// A request of this connection is answered, and the order's price is that. An order of which nothing is known is forgotten.
    fn close(&mut self, number: u32, price: Option<Price>) {
        let entry = self.entry(number);
        let Some(order) = self.orders.get_mut(&entry) else { return };
        order.open = order.open.saturating_sub(1);
        order.price = price;
        if order.open == 0 && order.price.is_none() && order.id.is_none() {
            self.orders.remove(&entry);
        }
    }

    /// An answer of the stream; `is_live` unless it is sent again.
    pub(crate) fn on_answer(&mut self, names: &OuchNames, answer: &Answer, is_live: bool) {
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
        if let Some(asked) = self.take_asked(number) {
            self.close(number, Some(asked).filter(|_| is_live));
        } else if !names.is_change(answer.client_order_id) {
            // Another session has changed it, perhaps its price.
            let changed = self.by_id.get(&answer.order).and_then(|entry| self.orders.get_mut(entry));
            changed.into_iter().for_each(|order| order.price = None);
        }
    }

    /// A request has ended an order, perhaps at its entry.
    fn on_end(&mut self, number: u32, order: OrderId) {
        self.take_asked(number);
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
    fn what_has_ended_is_forgotten_and_has_no_price() {
        let (names, mut known) = (OuchNames::new(1, false), Known::new(16));
        for number in 1..9 {
            known.enter(number, Price(10));
            let status = if number % 2 == 0 { Status::Filled } else { Status::Resting };
            known.on_answer(&names, &answer(&names, number, status), true);
        }
        assert_eq!(known.orders.keys().copied().collect::<Vec<_>>(), [1, 3, 5, 7]);
        assert_eq!((known.price(1), known.price(2)), (Some(Price(10)), None));
        for number in [1, 3, 5, 7] {
            known.replace(number, number + 10, Price(11));
            known.on_ended(answer(&names, number, Status::Resting).order);
            known.on_refused(number + 10);
        }
        assert!(
            known.orders.is_empty() && known.by_id.is_empty() && known.replacements.is_empty(),
            "{known:?}"
        );
    }
}
