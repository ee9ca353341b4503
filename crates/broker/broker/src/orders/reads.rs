//! What can be read of orders.

use std::collections::BTreeMap;

use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Key, KeyRange};

use super::asked::CustomerOrderId;
use super::rows::{self as order_rows, Customer, Order, Queue};
use crate::coded::kinds;
use crate::command::{StockSymbol, UserName};
use crate::ledger::{BrokerError, Shelf};
use crate::request::TradeWay;
use crate::rows;

/// Most orders in an answer.
pub const ORDERS_PAGE_MAX: usize = 100;

/// What is asked for. Each answer is the bytes of what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderRead {
    /// A customer's orders, the newest first: `Vec<(u64, Order)>`, [`ORDERS_PAGE_MAX`] at most.
    Mine {
        /// Whose.
        user: UserName,
        /// Only those below this number.
        before: Option<u64>,
    },
    /// What counts against a customer's limits: a [`Customer`].
    Customer {
        /// Whose.
        user: UserName,
    },
    /// What waits for a name: `Vec<(CustomerOrderId, Order)>`, [`ORDERS_PAGE_MAX`] at most.
    Waiting {
        /// Only those behind this one.
        after: Option<CustomerOrderId>,
    },
    /// What is named and has not ended, from this name on: the same.
    Open {
        /// The first name.
        from: u64,
    },
    /// Cancels that are wished, from this name on: `Vec<u64>`, names, [`ORDERS_PAGE_MAX`] at most.
    Unwanted {
        /// The first name.
        from: u64,
    },
    /// Whose a name is: `Option<CustomerOrderId>`.
    Named {
        /// The name.
        name: u64,
    },
    /// How far each shard's stream is applied: `Vec<(u32, u64)>`, shards and numbers of the next message.
    Told,
    /// Which router is at work: `Option<(u64, u64)>`, its number and its term.
    Router,
}

kinds!(OrderRead, "read of orders" {
    1 => Mine { user, before },
    2 => Customer { user },
    3 => Waiting { after },
    4 => Open { from },
    5 => Unwanted { from },
    6 => Named { name },
    7 => Told,
    8 => Router,
});

pub(crate) fn answer<S: Shelf>(read: &OrderRead, shelf: &S) -> Result<Vec<u8>, BrokerError<S::Error>> {
    Ok(match read {
        OrderRead::Mine { user, before } => mine(shelf, user, *before)?.to_bytes(),
        OrderRead::Customer { user } => {
            let found: Option<Customer> = one(shelf, &order_rows::customer(user))?;
            found.unwrap_or_default().to_bytes()
        }
        OrderRead::Waiting { after } => {
            let mut range = KeyRange::prefix(order_rows::WAITING);
            if let Some(after) = after {
                range.from = behind(&order_rows::waiting(after));
            }
            let keys = first(shelf, &range)?;
            let orders = keys.iter().filter_map(|(key, _)| order_rows::waiting_order(key));
            with_orders(shelf, orders.collect())?.to_bytes()
        }
        OrderRead::Open { from } => {
            let found = first(shelf, &order_rows::queue_from(Queue::Open, *from))?;
            let orders: Result<Vec<CustomerOrderId>, _> =
                found.iter().map(|(_, value)| rows::row(value)).collect();
            with_orders(shelf, orders?)?.to_bytes()
        }
        OrderRead::Unwanted { from } => {
            let found = first(shelf, &order_rows::queue_from(Queue::Unwanted, *from))?;
            let names = found.iter().filter_map(|(key, _)| key.as_bytes().last_chunk());
            names.map(|name| u64::from_be_bytes(*name)).collect::<Vec<_>>().to_bytes()
        }
        OrderRead::Named { name } => {
            one::<CustomerOrderId, S>(shelf, &order_rows::queued(Queue::Named, *name))?.to_bytes()
        }
        OrderRead::Told => told(shelf)?.to_bytes(),
        OrderRead::Router => {
            let seat: Option<order_rows::Seat> = one(shelf, &order_rows::seat())?;
            seat.map(|seat| (seat.router, seat.term)).to_bytes()
        }
    })
}

type Found = Vec<(Key, pares_wice::Value)>;

fn first<S: Shelf>(shelf: &S, range: &KeyRange) -> Result<Found, BrokerError<S::Error>> {
    shelf.first(range, ORDERS_PAGE_MAX).map_err(BrokerError::Items)
}

fn one<T: Coded, S: Shelf>(shelf: &S, key: &Key) -> Result<Option<T>, BrokerError<S::Error>> {
    let found =
        shelf.first(&KeyRange { from: key.clone(), to: Some(behind(key)) }, 1).map_err(BrokerError::Items)?;
    found.first().map(|(_, value)| rows::row(value)).transpose()
}

/// The least key behind that one.
fn behind(key: &Key) -> Key {
    Key::new([key.as_bytes(), &[0]].concat())
}

/// Cash, and shares of each stock, that a customer's orders hold.
pub(crate) fn held<S: Shelf>(shelf: &S, user: &UserName) -> Result<HeldByOrders, BrokerError<S::Error>> {
    let customer: Customer = one(shelf, &order_rows::customer(user))?.unwrap_or_default();
    let mut held = HeldByOrders::default();
    for number in customer.open {
        let of = CustomerOrderId { user: user.clone(), number };
        let order: Option<Order> = one(shelf, &order_rows::order(&of))?;
        let order = order.ok_or(BrokerError::Damaged(DecodeError::Length))?;
        held.cents = held.cents.saturating_add(order.held_cents());
        if order.terms.way == TradeWay::Sell {
            let shares = held.shares.entry(order.terms.symbol).or_default();
            *shares = shares.saturating_add(order.left);
        }
    }
    Ok(held)
}

/// What a customer's orders hold.
#[derive(Default)]
pub(crate) struct HeldByOrders {
    pub(crate) cents: u64,
    pub(crate) shares: BTreeMap<StockSymbol, u64>,
}

fn with_orders<S: Shelf>(
    shelf: &S,
    orders: Vec<CustomerOrderId>,
) -> Result<Vec<(CustomerOrderId, Order)>, BrokerError<S::Error>> {
    let mut found = Vec::with_capacity(orders.len());
    for of in orders {
        let order = one(shelf, &order_rows::order(&of))?;
        found.push((of, order.ok_or(BrokerError::Damaged(DecodeError::Length))?));
    }
    Ok(found)
}

/// Ranges are read upwards, and the newest are at the end: so many more are read than are shown only of one who has very many.
fn mine<S: Shelf>(
    shelf: &S,
    user: &UserName,
    before: Option<u64>,
) -> Result<Vec<(u64, Order)>, BrokerError<S::Error>> {
    let mut range = order_rows::orders_of(user);
    if let Some(number) = before {
        range.to = Some(order_rows::order(&CustomerOrderId { user: user.clone(), number }));
    }
    let found = shelf.first(&range, usize::MAX).map_err(BrokerError::Items)?;
    let mut orders = Vec::new();
    for (key, value) in found.iter().rev().take(ORDERS_PAGE_MAX) {
        let number = key.as_bytes().last_chunk().ok_or(BrokerError::Damaged(DecodeError::Length))?;
        orders.push((u64::from_be_bytes(*number), rows::row(value)?));
    }
    Ok(orders)
}

fn told<S: Shelf>(shelf: &S) -> Result<Vec<(u32, u64)>, BrokerError<S::Error>> {
    let seat = order_rows::seat();
    let found = first(shelf, &KeyRange::prefix(seat.as_bytes()))?;
    let shards = found.iter().filter(|(key, _)| *key != seat);
    let of = |(key, value): &(Key, pares_wice::Value)| {
        let shard = key.as_bytes().last_chunk().ok_or(BrokerError::Damaged(DecodeError::Length))?;
        Ok((u32::from_be_bytes(*shard), rows::row(value)?))
    };
    shards.map(of).collect()
}
