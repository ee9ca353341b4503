//! What a door knows of the orders that its connection has entered: for requests that leave out what the exchange needs.
//!
//! X and M change a quantity alone, and the exchange wants the price with it. It is known for sure from the order's answer on,
//! as long as nobody has changed it. Before the answer the O may be one that was sent again, of an order that has another price by
//! now. Nothing of this goes into what is told.

use std::collections::BTreeMap;

use pares_types::{Answer, OrderId, Price, Status};

use crate::names::Names;

#[derive(Clone, Copy, Debug)]
struct Order {
    /// The UserRefNum of its O.
    entry: u32,
    /// The price it was entered at, until that is answered.
    asked: Option<Price>,
    /// Its price, if that is sure.
    price: Option<Price>,
    id: Option<OrderId>,
}

/// The latest orders and replacements of a connection, by UserRefNum.
#[derive(Debug, Default)]
pub(crate) struct Known {
    orders: BTreeMap<u32, Order>,
    by_id: BTreeMap<OrderId, u32>,
    max: usize,
}

impl Known {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    pub(crate) fn enter(&mut self, entry: u32, price: Price) {
        self.put(entry, Order { entry, asked: Some(price), price: None, id: None });
    }

    /// It goes on under another UserRefNum, at a price that is not sure.
    pub(crate) fn replace(&mut self, original: u32, user_ref_num: u32) {
        let entry = self.entry(original);
        if let Some(order) = self.orders.get_mut(&entry) {
            (order.asked, order.price) = (None, None);
        }
        self.put(user_ref_num, Order { entry, asked: None, price: None, id: None });
    }

    fn put(&mut self, user_ref_num: u32, order: Order) {
        self.orders.insert(user_ref_num, order);
        while self.orders.len() > self.max {
            let oldest = self.orders.pop_first();
            if let Some(id) = oldest.and_then(|(_, order)| order.id) {
                self.by_id.remove(&id);
            }
        }
    }

    /// The UserRefNum under which it was entered.
    pub(crate) fn entry(&self, user_ref_num: u32) -> u32 {
        self.orders.get(&user_ref_num).map_or(user_ref_num, |order| order.entry)
    }

    pub(crate) fn price(&self, entry: u32) -> Option<Price> {
        self.orders.get(&entry)?.price
    }

    /// Whether it was entered by this connection and is not answered.
    pub(crate) fn is_open(&self, entry: u32) -> bool {
        self.orders.get(&entry).is_some_and(|order| order.asked.is_some())
    }

    /// The order may have another price than the one it was entered at.
    pub(crate) fn forget_price(&mut self, entry: u32) {
        if let Some(order) = self.orders.get_mut(&entry) {
            (order.asked, order.price) = (None, None);
        }
    }

    /// An answer of the stream; `is_live` unless it is told again.
    pub(crate) fn on_answer(&mut self, names: &Names, answer: &Answer, is_live: bool) {
        let name = answer.client_order_id;
        let number = names.user_ref_num(name);
        if answer.status == Status::Refused || names.is_change(name) {
            return;
        }
        if answer.order.0 != answer.request {
            // Somebody has changed it, perhaps its price.
            let changed = self.by_id.get(&answer.order).and_then(|entry| self.orders.get_mut(entry));
            changed.into_iter().for_each(|order| order.price = None);
        } else if let Some(order) = self.orders.get_mut(&number) {
            order.price = order.asked.take().filter(|_| is_live);
            order.id = Some(answer.order);
            self.by_id.insert(answer.order, number);
        }
    }
}
