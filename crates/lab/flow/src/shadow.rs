//! The shadow book: what the exchange's book will hold once it has carried out everything translated so
//! far. The translator needs it without waiting for answers, or nothing could be pipelined.
//!
//! It holds the order of each queue, but never matches: an execution is only translated into an incoming
//! order after asking here who would be hit.

use std::collections::btree_map::BTreeMap;
use std::collections::{HashMap, VecDeque};

use pares_types::{ClientOrderId, Price, Quantity, Side};

use crate::recorded::{Depth, DepthLevel, RecordedId};

/// An order we entered and that still rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShadowOrder {
    /// Our name for it.
    pub(crate) client_order_id: ClientOrderId,
    /// The recording's name; `None` for a seed, which stands for orders the recording never named.
    pub(crate) recorded: Option<RecordedId>,
    pub(crate) side: Side,
    pub(crate) price: Price,
    /// As amended last, executed part included.
    pub(crate) total: Quantity,
    pub(crate) executed: Quantity,
}

impl ShadowOrder {
    pub(crate) fn remaining(&self) -> Quantity {
        self.total.minus(self.executed)
    }
}

/// The orders at one price, first to trade in front.
#[derive(Debug, Default)]
struct Queue {
    orders: VecDeque<ShadowOrder>,
    quantity: Quantity,
}

/// One instrument's shadow book.
#[derive(Debug, Default)]
pub(crate) struct ShadowBook {
    bids: BTreeMap<Price, Queue>,
    asks: BTreeMap<Price, Queue>,
    named: HashMap<RecordedId, (Side, Price)>,
}

impl ShadowBook {
    fn queues(&self, side: Side) -> &BTreeMap<Price, Queue> {
        match side {
            Side::Buy => &self.bids,
            Side::Sell => &self.asks,
        }
    }

    fn queues_mut(&mut self, side: Side) -> &mut BTreeMap<Price, Queue> {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }

    /// Adds an order at the end of its queue.
    pub(crate) fn add(&mut self, order: ShadowOrder) {
        if let Some(recorded) = order.recorded {
            self.named.insert(recorded, (order.side, order.price));
        }
        let queue = self.queues_mut(order.side).entry(order.price).or_default();
        queue.quantity = queue.quantity.plus(order.remaining());
        queue.orders.push_back(order);
    }

    /// The order the recording calls `id`, if it rests here.
    pub(crate) fn named(&self, id: RecordedId) -> Option<ShadowOrder> {
        let &(side, price) = self.named.get(&id)?;
        let queue = self.queues(side).get(&price).expect("a named order's queue exists");
        queue.orders.iter().find(|order| order.recorded == Some(id)).copied()
    }

    /// The first seed at a price.
    pub(crate) fn seed_at(&self, side: Side, price: Price) -> Option<ShadowOrder> {
        let queue = self.queues(side).get(&price)?;
        queue.orders.iter().find(|order| order.recorded.is_none()).copied()
    }

    /// The last order at a price.
    pub(crate) fn last_at(&self, side: Side, price: Price) -> Option<ShadowOrder> {
        self.queues(side).get(&price)?.orders.back().copied()
    }

    /// All shares at a price.
    pub(crate) fn quantity_at(&self, side: Side, price: Price) -> Quantity {
        self.queues(side).get(&price).map_or(Quantity::ZERO, |queue| queue.quantity)
    }

    /// The best price of a side.
    pub(crate) fn best(&self, side: Side) -> Option<Price> {
        match side {
            Side::Buy => self.bids.last_key_value(),
            Side::Sell => self.asks.first_key_value(),
        }
        .map(|(&price, _)| price)
    }

    /// The order an incoming order would hit first on `side`.
    pub(crate) fn next_to_trade(&self, side: Side) -> Option<ShadowOrder> {
        let queue = self.queues(side).get(&self.best(side)?)?;
        queue.orders.front().copied()
    }

    /// Takes shares out of an order: executed ones, or cancelled ones (the total shrinks). The order
    /// leaves when nothing remains.
    ///
    /// # Panics
    /// If the order does not rest here or has fewer shares.
    pub(crate) fn take(&mut self, order: &ShadowOrder, quantity: Quantity, executed: bool) {
        let queues = self.queues_mut(order.side);
        let queue = queues.get_mut(&order.price).expect("the order's queue exists");
        let place = queue.orders.iter().position(|held| held.client_order_id == order.client_order_id);
        let place = place.expect("the order rests in its queue");
        let held = &mut queue.orders[place];
        if executed {
            held.executed = held.executed.plus(quantity);
            assert!(held.executed <= held.total, "executed beyond the order's total");
        } else {
            held.total = held.total.minus(quantity);
        }
        let is_gone = held.remaining().is_zero();
        queue.quantity = queue.quantity.minus(quantity);
        if is_gone {
            queue.orders.remove(place);
            if queue.orders.is_empty() {
                queues.remove(&order.price);
            }
            if let Some(recorded) = order.recorded {
                self.named.remove(&recorded);
            }
        }
    }

    /// The prices of a side, best first.
    pub(crate) fn prices(&self, side: Side) -> Vec<Price> {
        self.levels(side).map(|level| level.price).collect()
    }

    fn levels(&self, side: Side) -> Box<dyn Iterator<Item = DepthLevel> + '_> {
        let level = |(&price, queue): (&Price, &Queue)| DepthLevel { price, quantity: queue.quantity };
        match side {
            Side::Buy => Box::new(self.bids.iter().rev().map(level)),
            Side::Sell => Box::new(self.asks.iter().map(level)),
        }
    }

    /// The best `levels` of both sides.
    pub(crate) fn top(&self, levels: usize) -> Depth {
        let side = |side| self.levels(side).take(levels).collect();
        Depth { bids: side(Side::Buy), asks: side(Side::Sell) }
    }
}
