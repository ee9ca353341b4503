//! A book at rest: what must be kept to build it again, and the proof that it can be built.

use pares_types::{OrderId, OrderKind, Price, Reason, RequestId, Side, TimeInForce, Timestamp};

use crate::{Instrument, Priority, RestingOrder, Trading, Unfinished};

/// The whole state of a book. An order carries its own place in the queue, so the list may come in
/// any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The priority the next order that joins a queue will get.
    pub priority_next: Priority,
    /// Phase, prices and time.
    pub trading: Trading,
    /// Every order, on the book or held.
    pub orders: Vec<RestingOrder>,
}

/// Why a snapshot cannot be a state of the instrument's book. Nothing was built: fetch another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// More orders than a book can hold.
    #[error("{0} orders are more than a book can hold")]
    TooManyOrders(usize),
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
    /// The best bid is not below the best offer, in a phase in which orders match.
    #[error("the book is crossed: bid {bid}, offer {offer}")]
    Crossed {
        /// The best bid.
        bid: Price,
        /// The best offer.
        offer: Price,
    },
    /// A trading state that no book can be in.
    #[error("the trading state holds {0} that no book can have")]
    Trading(&'static str),
}

impl Snapshot {
    /// Checks that a book of `instrument` can be in this state. Maxima do not count: they may have been
    /// lowered since the orders came.
    ///
    /// # Errors
    /// The first rule broken, see [`RestoreError`].
    pub fn check(&self, instrument: &Instrument) -> Result<(), RestoreError> {
        if u32::try_from(self.orders.len()).is_err() {
            return Err(RestoreError::TooManyOrders(self.orders.len()));
        }
        for order in &self.orders {
            check_terms(order, instrument)?;
        }
        if let Some(unfinished) = &self.trading.unfinished {
            check_unfinished(unfinished, instrument)?;
        }
        self.check_ids()?;
        self.check_priorities()?;
        self.check_trading()?;
        self.check_uncrossed()
    }

    /// The orders, oldest first, whatever their price: put to rest in this order they make the book.
    pub(crate) fn oldest_first(&self) -> Vec<RestingOrder> {
        let mut orders = self.orders.clone();
        orders.sort_unstable_by_key(|order| order.priority);
        orders
    }

    fn check_ids(&self) -> Result<(), RestoreError> {
        let unfinished = self.trading.unfinished.iter().map(|unfinished| unfinished.order.order);
        let mut ids: Vec<OrderId> = self.orders.iter().map(|order| order.order).chain(unfinished).collect();
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
            None if self.priority_next > Priority::MAX => Err(RestoreError::Trading("a priority")),
            None => Ok(()),
        }
    }

    fn check_trading(&self) -> Result<(), RestoreError> {
        let busts = &self.trading.busts;
        if busts.len() > Trading::BUSTS_MAX || busts.windows(2).any(|two| two[0] >= two[1]) {
            return Err(RestoreError::Trading("busted trades"));
        }
        if self.trading.until != Timestamp::NEVER && !self.trading.phase.is_call() {
            return Err(RestoreError::Trading("the end of a call"));
        }
        if self.orders.iter().filter(|order| order.is_pegged()).count() > Trading::PEGS_MAX {
            return Err(RestoreError::Trading("pegged orders"));
        }
        Ok(())
    }

    fn check_uncrossed(&self) -> Result<(), RestoreError> {
        let prices = |side| {
            let on_book = self.orders.iter().filter(|order| !order.is_held());
            on_book.filter(move |order| order.side == side).map(|order| order.price)
        };
        // On the way from continuous trading into a closing call the orders for the close are let in.
        let orders_match = self.trading.phase.matches() && self.trading.transition.is_none();
        match (prices(Side::Buy).max(), prices(Side::Sell).min()) {
            (Some(bid), Some(offer)) if bid >= offer && orders_match => {
                Err(RestoreError::Crossed { bid, offer })
            }
            _ => Ok(()),
        }
    }
}

fn check_terms(order: &RestingOrder, instrument: &Instrument) -> Result<(), RestoreError> {
    let illegal = |reason| RestoreError::IllegalTerms { order: order.order, reason };
    check_amounts(order, instrument)?;
    let is_iceberg = !order.display.is_zero();
    let waits = order.trigger.is_some() || order.is_pegged() || order.time_in_force == TimeInForce::AtClose;
    let legal_stay = !matches!(order.time_in_force, TimeInForce::Ioc | TimeInForce::Fok);
    let legal_shown = if order.is_held() { waits } else { is_iceberg || order.shown == order.remaining };
    let legal_place = match (order.is_held(), order.kind) {
        (true, _) => order.price == Price(0),
        (false, OrderKind::Limit { price }) => order.price == price,
        (false, OrderKind::Market) => order.price == instrument.market_price(order.side),
        (false, OrderKind::Pegged { limit, .. }) => order.side.crosses(limit, order.price),
    };
    let legal_election = !order.elected || order.trigger.is_some();
    let is_legal = legal_stay && legal_shown && legal_place && legal_election;
    if is_legal { Ok(()) } else { Err(illegal(Reason::InvalidCombination)) }
}

/// An order between two steps is nowhere, and has shares left.
fn check_unfinished(unfinished: &Unfinished, instrument: &Instrument) -> Result<(), RestoreError> {
    let order = &unfinished.order;
    check_amounts(order, instrument)?;
    let is_nowhere = order.is_held() && order.price == Price(0) && order.priority == Priority(0);
    let is_in = order.trigger.is_none() && !order.elected;
    let illegal = RestoreError::IllegalTerms { order: order.order, reason: Reason::InvalidCombination };
    if is_nowhere && is_in { Ok(()) } else { Err(illegal) }
}

/// Quantities and prices.
fn check_amounts(order: &RestingOrder, instrument: &Instrument) -> Result<(), RestoreError> {
    let illegal = |reason| RestoreError::IllegalTerms { order: order.order, reason };
    if order.remaining.is_zero() || order.shown > order.remaining {
        return Err(illegal(Reason::ZeroQuantity));
    }
    // Sums of quantities must not overflow, whatever the maxima are now.
    if order.executed.0.checked_add(order.remaining.0).is_none_or(|total| total > 1 << 62) {
        return Err(illegal(Reason::QuantityTooLarge));
    }
    // Trades are between orders on the lot, so what is left is on the lot too.
    let lots = [order.remaining, order.shown, order.executed, order.display];
    if !lots.into_iter().all(|quantity| instrument.on_lot(quantity)) {
        return Err(illegal(Reason::OffLot));
    }
    let limit = match order.kind {
        OrderKind::Limit { price } | OrderKind::Pegged { limit: price, .. } => Some(price),
        OrderKind::Market => None,
    };
    let place = Some(order.price).filter(|_| !order.is_held());
    for price in [limit, place, order.trigger].into_iter().flatten() {
        instrument.validate_price(price).map_err(illegal)?;
    }
    Ok(())
}
