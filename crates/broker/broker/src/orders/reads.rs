//! What can be read of orders.

use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Key, KeyRange};

use super::asked::CustomerOrderId;
use super::rows::{self as order_rows, Customer, Order, Queue};
use crate::coded::kinds;
use crate::command::UserName;
use crate::ledger::{BrokerError, Shelf};
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
    /// What waits for a name: `Vec<(CustomerOrderId, Order)>`.
    Waiting,
    /// What is named and has not ended, from this name on: the same.
    Open {
        /// The first name.
        from: u64,
    },
    /// Cancels that are wished: `Vec<u64>`, names.
    Unwanted,
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
    3 => Waiting,
    4 => Open { from },
    5 => Unwanted,
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
        OrderRead::Waiting => {
            let keys = first(shelf, &KeyRange::prefix(order_rows::WAITING))?;
            let orders = keys.iter().filter_map(|(key, _)| order_rows::waiting_order(key));
            with_orders(shelf, orders.collect())?.to_bytes()
        }
        OrderRead::Open { from } => {
            let range = KeyRange {
                from: order_rows::queued(Queue::Open, *from),
                to: order_rows::queue_all(Queue::Open).to,
            };
            let found = first(shelf, &range)?;
            let orders: Result<Vec<CustomerOrderId>, _> =
                found.iter().map(|(_, value)| rows::row(value)).collect();
            with_orders(shelf, orders?)?.to_bytes()
        }
        OrderRead::Unwanted => {
            let found = first(shelf, &order_rows::queue_all(Queue::Unwanted))?;
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
    let to = Key::new([key.as_bytes(), &[0]].concat());
    let found = shelf.first(&KeyRange { from: key.clone(), to: Some(to) }, 1).map_err(BrokerError::Items)?;
    found.first().map(|(_, value)| rows::row(value)).transpose()
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
