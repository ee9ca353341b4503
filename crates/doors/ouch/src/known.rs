//! What a door knows of the orders that its connection has asked for: for requests that leave out what the exchange needs.
//!
//! X and M change a quantity alone, and the exchange wants the price with it. What the connection asked for is not enough: an O or U may be
//! refused, or be one that was sent again, of an order that has another price by now. So a price is sure from the answer on, until
//! somebody else changes it, and while nothing that may change it is unanswered. Nothing of this goes into what is told.

use std::collections::BTreeMap;

use pares_types::{Answer, OrderId, Price, Status};

use crate::names::Names;

#[derive(Clone, Copy, Debug, Default)]
struct Order {
    /// Its price, if that is sure.
    price: Option<Price>,
    /// Requests of this connection that are not answered and may change it.
    open: u32,
    id: Option<OrderId>,
}

/// The latest orders and replacements of a connection.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// By the UserRefNum of its O.
    orders: BTreeMap<u32, Order>,
    by_id: BTreeMap<OrderId, u32>,
    /// Of a replacement: the order's O.
    entries: BTreeMap<u32, u32>,
    /// What is not answered: the price it asks for.
    asked: BTreeMap<u32, Price>,
    max: usize,
}

impl Known {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    /// An O was asked for.
    pub(crate) fn enter(&mut self, number: u32, price: Price) {
        self.ask(number, number, price);
    }

    /// A U was asked for: the order bears another UserRefNum as well, unless it is refused.
    pub(crate) fn replace(&mut self, original: u32, number: u32, price: Price) {
        let entry = self.entry(original);
        self.entries.insert(number, entry);
        self.ask(entry, number, price);
    }

    fn ask(&mut self, entry: u32, number: u32, price: Price) {
        self.orders.entry(entry).or_default().open += 1;
        self.asked.insert(number, price);
        while self.orders.len() > self.max {
            let oldest = self.orders.pop_first();
            if let Some(id) = oldest.and_then(|(_, order)| order.id) {
                self.by_id.remove(&id);
            }
        }
        while self.entries.len() > self.max {
            self.entries.pop_first();
        }
        while self.asked.len() > self.max {
            self.asked.pop_first();
        }
    }

    /// The UserRefNum under which it was entered.
    pub(crate) fn entry(&self, number: u32) -> u32 {
        self.entries.get(&number).copied().unwrap_or(number)
    }

    /// The order's id, if its answer was told.
    pub(crate) fn id(&self, entry: u32) -> Option<OrderId> {
        self.orders.get(&entry)?.id
    }

    pub(crate) fn price(&self, entry: u32) -> Option<Price> {
        self.orders.get(&entry).filter(|order| order.open == 0)?.price
    }

    /// It was answered before this connection asked, if it is of this connection. Says whether it is.
    pub(crate) fn on_repeat(&mut self, number: u32) -> bool {
        self.close(number, None)
    }

    /// It was refused, and nothing has changed.
    pub(crate) fn on_refused(&mut self, number: u32) {
        let before = self.price_of(number);
        self.close(number, before);
        self.entries.remove(&number);
    }

    fn price_of(&self, number: u32) -> Option<Price> {
        self.orders.get(&self.entry(number))?.price
    }

    /// A request of this connection is answered, and the order's price is that; or it is none of this connection.
    fn close(&mut self, number: u32, price: Option<Price>) -> bool {
        let was_open = self.asked.remove(&number).is_some();
        if let Some(order) = self.orders.get_mut(&self.entry(number)).filter(|_| was_open) {
            order.open = order.open.saturating_sub(1);
            order.price = price;
        }
        was_open
    }

    /// An answer of the stream; `is_live` unless it is told again.
    pub(crate) fn on_answer(&mut self, names: &Names, answer: &Answer, is_live: bool) {
        let number = names.user_ref_num(answer.client_order_id);
        let asked = self.asked.get(&number).copied();
        if answer.status == Status::Refused {
            return self.on_refused(number);
        }
        if answer.order.0 == answer.request
            && let Some(order) = self.orders.get_mut(&number)
        {
            order.id = Some(answer.order);
            self.by_id.insert(answer.order, number);
        }
        if asked.is_some() {
            self.close(number, asked.filter(|_| is_live));
        } else if !names.is_change(answer.client_order_id) {
            // Somebody else has changed it, perhaps its price.
            let changed = self.by_id.get(&answer.order).and_then(|entry| self.orders.get_mut(entry));
            changed.into_iter().for_each(|order| order.price = None);
        }
    }
}
