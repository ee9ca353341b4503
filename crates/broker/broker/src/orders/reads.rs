//! What can be read of orders.

use std::collections::BTreeMap;

use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Key, KeyRange, Value, fields, kinds};

use super::rows::{self as order_rows, Customer, Order, Queue};
use super::terms::CustomerOrderId;
use crate::command::{StockSymbol, TradeWay, UserName};
use crate::ledger::{BrokerError, Found, Shelf};
use crate::rows::{self, behind, one};

/// Most orders in an answer.
pub const ORDERS_PAGE_MAX: usize = 100;

/// What is asked for. Each answer is the bytes of what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderRead {
    /// A customer's orders, the newest first: `Vec<OrderListed>`, [`ORDERS_PAGE_MAX`] at most.
    Mine {
        /// Whose.
        user: UserName,
        /// Only those before this place.
        before: Option<u64>,
    },
    /// A customer's orders that have not ended, the newest first: `Vec<(u64, Order)>`, numbers and orders,
    /// [`OPEN_ORDERS_MAX`](super::OPEN_ORDERS_MAX) at most.
    Working {
        /// Whose.
        user: UserName,
    },
    /// An order: `Option<Order>`.
    One {
        /// Which.
        of: CustomerOrderId,
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
    /// Which router is active: `Option<RouterSeat>`.
    Router,
}

/// One of a customer's orders, in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderListed {
    /// Its place among all that he ever placed, from 0: numbers of several fronts do not rise with time.
    pub place: u64,
    /// Its number.
    pub number: u64,
    /// The order.
    pub order: Order,
}

/// Which router is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterSeat {
    /// Its number.
    pub router: u64,
    /// Its term.
    pub term: u64,
    /// How often a router has claimed, whichever: while it rises, this one lives.
    pub claims: u64,
}

fields! {
    OrderListed { place, number, order }
    RouterSeat { router, term, claims }
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
    9 => Working { user },
    10 => One { of },
});

pub(crate) fn answer<S: Shelf>(read: &OrderRead, shelf: &S) -> Found<Vec<u8>, S> {
    Ok(match read {
        OrderRead::Mine { user, before } => mine(shelf, user, *before)?.to_bytes(),
        OrderRead::Working { user } => working(shelf, user)?.to_bytes(),
        OrderRead::One { of } => one::<Order, S>(shelf, &order_rows::order(of))?.to_bytes(),
        OrderRead::Customer { user } => customer(shelf, user)?.to_bytes(),
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
            seat.map(|seat| RouterSeat { router: seat.router, term: seat.term, claims: seat.claims })
                .to_bytes()
        }
    })
}

fn first<S: Shelf>(shelf: &S, range: &KeyRange) -> Found<Vec<(Key, Value)>, S> {
    shelf.first(range, ORDERS_PAGE_MAX).map_err(BrokerError::Items)
}

/// Cash, and shares of each stock, that a customer's orders hold.
pub(crate) fn held<S: Shelf>(shelf: &S, user: &UserName) -> Found<HeldByOrders, S> {
    let mut held = HeldByOrders::default();
    for (_, order) in working(shelf, user)? {
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

fn with_orders<S: Shelf>(shelf: &S, orders: Vec<CustomerOrderId>) -> Found<Vec<(CustomerOrderId, Order)>, S> {
    let mut found = Vec::with_capacity(orders.len());
    for of in orders {
        let order = known(shelf, &of)?;
        found.push((of, order));
    }
    Ok(found)
}

/// An order that must be there.
fn known<S: Shelf>(shelf: &S, of: &CustomerOrderId) -> Found<Order, S> {
    one(shelf, &order_rows::order(of))?.ok_or(BrokerError::Damaged(DecodeError::Length))
}

fn customer<S: Shelf>(shelf: &S, user: &UserName) -> Found<Customer, S> {
    Ok(one(shelf, &order_rows::customer(user))?.unwrap_or_default())
}

fn working<S: Shelf>(shelf: &S, user: &UserName) -> Found<Vec<(u64, Order)>, S> {
    let open = customer(shelf, user)?.open.into_iter().rev();
    open.map(|number| Ok((number, known(shelf, &CustomerOrderId { user: user.clone(), number })?))).collect()
}

/// Ranges are read upwards. Places have no gaps, so the page is known before it is read: a customer's first order is as far as his latest.
fn mine<S: Shelf>(shelf: &S, user: &UserName, before: Option<u64>) -> Found<Vec<OrderListed>, S> {
    let end = customer(shelf, user)?.placed;
    let end = before.map_or(end, |before| before.min(end));
    let begin = end.saturating_sub(ORDERS_PAGE_MAX as u64);
    let range = KeyRange { from: order_rows::place(user, begin), to: Some(order_rows::place(user, end)) };
    let numbers = first(shelf, &range)?;
    let places = (begin..end).rev().zip(numbers.iter().rev());
    let listed = places.map(|(place, (_, value))| {
        let number = rows::row(value)?;
        Ok(OrderListed {
            place,
            number,
            order: known(shelf, &CustomerOrderId { user: user.clone(), number })?,
        })
    });
    listed.collect()
}

fn told<S: Shelf>(shelf: &S) -> Found<Vec<(u32, u64)>, S> {
    let seat = order_rows::seat();
    let found = first(shelf, &KeyRange::prefix(seat.as_bytes()))?;
    let shards = found.iter().filter(|(key, _)| *key != seat);
    let of = |(key, value): &(Key, Value)| {
        let shard = key.as_bytes().last_chunk().ok_or(BrokerError::Damaged(DecodeError::Length))?;
        Ok((u32::from_be_bytes(*shard), rows::row(value)?))
    };
    shards.map(of).collect()
}
