//! A book at rest: what must be kept to build it again, and the proof that it can be built.

use crate::{Instrument, Priority, RestingOrder};
use pares_types::{OrderId, Price, Reason, RequestId, Side};

/// The whole state of a book. An order carries its own place in the queue, so the list may come in
/// any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The priority the next order put to rest will get.
    pub priority_next: Priority,
    /// Every resting order.
    pub orders: Vec<RestingOrder>,
}

/// Why a snapshot cannot be a state of the instrument's book. Nothing was built: fetch another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// More orders than the instrument allows.
    #[error("{orders} orders, but the instrument allows {orders_max}")]
    TooManyOrders {
        /// Orders in the snapshot.
        orders: usize,
        /// The instrument's limit.
        orders_max: u32,
    },
    /// Price or quantities that no order of this instrument can have.
    #[error("order {order} has terms the instrument does not allow: {reason:?}")]
    IllegalTerms {
        /// The order.
        order: OrderId,
        /// What is wrong with it.
        reason: Reason,
    },
    /// An order without an id, or an id that occurs twice.
    #[error("order id {0} is missing or occurs twice")]
    OrderIds(OrderId),
    /// A priority that occurs twice or was not given out yet.
    #[error("order {0} has a priority that occurs twice or was never given out")]
    Priorities(OrderId),
    /// The best bid is not below the best offer.
    #[error("the book is crossed: bid {bid}, offer {offer}")]
    Crossed {
        /// The best bid.
        bid: Price,
        /// The best offer.
        offer: Price,
    },
}

impl Snapshot {
    /// Checks that a book of `instrument` can be in this state.
    ///
    /// # Errors
    /// The first rule broken, see [`RestoreError`].
    pub fn check(&self, instrument: &Instrument) -> Result<(), RestoreError> {
        self.check_len(instrument)?;
        for order in &self.orders {
            check_terms(order, instrument)?;
        }
        self.check_ids()?;
        self.check_priorities()?;
        self.check_uncrossed()
    }

    /// The orders, oldest first, whatever their price: put to rest in this order they make the book.
    pub(crate) fn oldest_first(&self) -> Vec<RestingOrder> {
        let mut orders = self.orders.clone();
        orders.sort_unstable_by_key(|order| order.priority);
        orders
    }

    fn check_len(&self, instrument: &Instrument) -> Result<(), RestoreError> {
        let (orders, orders_max) = (self.orders.len(), instrument.orders_max);
        if orders > orders_max as usize {
            return Err(RestoreError::TooManyOrders { orders, orders_max });
        }
        Ok(())
    }

    fn check_ids(&self) -> Result<(), RestoreError> {
        let mut ids: Vec<OrderId> = self.orders.iter().map(|order| order.order).collect();
        ids.push(OrderId(RequestId::NONE)); // so that "no id" counts as a repeated one
        ids.sort_unstable();
        match ids.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(RestoreError::OrderIds(pair[0])),
            None => Ok(()),
        }
    }

    fn check_priorities(&self) -> Result<(), RestoreError> {
        let orders = self.oldest_first();
        let repeated = orders.windows(2).find(|pair| pair[0].priority == pair[1].priority);
        let newest = orders.last().filter(|order| order.priority >= self.priority_next);
        match repeated.map(|pair| &pair[1]).or(newest) {
            Some(order) => Err(RestoreError::Priorities(order.order)),
            None => Ok(()),
        }
    }

    fn check_uncrossed(&self) -> Result<(), RestoreError> {
        let prices = |side| self.orders.iter().filter(move |o| o.side == side).map(|o| o.price);
        match (prices(Side::Buy).max(), prices(Side::Sell).min()) {
            (Some(bid), Some(offer)) if bid >= offer => Err(RestoreError::Crossed { bid, offer }),
            _ => Ok(()),
        }
    }
}

fn check_terms(order: &RestingOrder, instrument: &Instrument) -> Result<(), RestoreError> {
    let illegal = |reason| RestoreError::IllegalTerms { order: order.order, reason };
    if order.remaining.is_zero() {
        return Err(illegal(Reason::ZeroQuantity));
    }
    let total = order.executed.0.checked_add(order.remaining.0);
    let total = total.ok_or(illegal(Reason::QuantityTooLarge))?;
    instrument.validate_terms(order.price, pares_types::Quantity(total)).map_err(illegal)?;
    // Trades are between orders on the lot, so what is left is on the lot too.
    instrument.validate_terms(order.price, order.remaining).map_err(illegal)
}
