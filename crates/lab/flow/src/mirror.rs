//! The book as the exchange's answers tell it.
//!
//! Knows nothing of what was meant to happen: an order is here because its outcome said *resting*, and
//! leaves because a fill or an outcome said so. That makes it a fair witness against the recording.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use pares_types::{
    ClientOrderId, Event, InstrumentId, NewOrder, OrderKind, Outcome, Price, Quantity, Side, Status,
};

use crate::command::{FlowAction, FlowCommand};
use crate::recorded::{Depth, DepthLevel};

/// A resting order as reported.
#[derive(Clone, Copy, Debug)]
struct Resting {
    instrument: InstrumentId,
    side: Side,
    price: Price,
    remaining: Quantity,
}

/// Shares per price; never zero.
#[derive(Debug, Default)]
struct Levels {
    bids: BTreeMap<Price, Quantity>,
    asks: BTreeMap<Price, Quantity>,
}

impl Levels {
    fn side_mut(&mut self, side: Side) -> &mut BTreeMap<Price, Quantity> {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }

    fn add(&mut self, resting: &Resting) {
        let held = self.side_mut(resting.side).entry(resting.price).or_default();
        *held = held.plus(resting.remaining);
    }

    fn remove(&mut self, side: Side, price: Price, quantity: Quantity) {
        let Entry::Occupied(mut held) = self.side_mut(side).entry(price) else {
            panic!("the level of a resting order exists");
        };
        let left = held.get().minus(quantity);
        if left.is_zero() {
            held.remove();
        } else {
            *held.get_mut() = left;
        }
    }
}

/// Books rebuilt from outcomes and events alone.
#[derive(Debug, Default)]
pub struct BookMirror {
    orders: HashMap<ClientOrderId, Resting>,
    levels: BTreeMap<InstrumentId, Levels>,
    strangers: u64,
}

impl BookMirror {
    /// An empty book in every instrument.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in one answer. Answers must come in the order the exchange decided the commands.
    pub fn apply(&mut self, command: &FlowCommand, outcome: &Outcome, events: &[Event]) {
        for event in events {
            if let Event::Fill { resting_client_order_id, quantity, .. } = *event {
                self.fill(resting_client_order_id, quantity);
            }
        }
        match command.action {
            FlowAction::Enter(order) => self.entered(command, &order, outcome),
            FlowAction::Amend { original, price, .. } => self.amended(original, price, outcome),
            FlowAction::Cancel { original } => self.cancelled(original, outcome),
        }
    }

    /// The best `levels` of both sides.
    #[must_use]
    pub fn top(&self, instrument: InstrumentId, levels: usize) -> Depth {
        let Some(book) = self.levels.get(&instrument) else { return Depth::default() };
        let level = |(&price, &quantity): (&Price, &Quantity)| DepthLevel { price, quantity };
        Depth {
            bids: book.bids.iter().rev().take(levels).map(level).collect(),
            asks: book.asks.iter().take(levels).map(level).collect(),
        }
    }

    /// Orders resting in all instruments.
    #[must_use]
    pub fn resting_orders(&self) -> usize {
        self.orders.len()
    }

    /// Fills reported for orders that do not rest here or have fewer shares: another member trades in the
    /// instrument, or the exchange is wrong.
    #[must_use]
    pub fn strangers(&self) -> u64 {
        self.strangers
    }

    fn entered(&mut self, command: &FlowCommand, order: &NewOrder, outcome: &Outcome) {
        if let (Status::Resting, OrderKind::Limit { price }) = (outcome.status, order.kind) {
            let (instrument, side, remaining) = (command.instrument, order.side, outcome.remaining);
            self.insert(command.client_order_id, Resting { instrument, side, price, remaining });
        }
    }

    fn amended(&mut self, original: ClientOrderId, price: Price, outcome: &Outcome) {
        if outcome.status == Status::Refused {
            return;
        }
        let Some(held) = self.remove(original) else { return };
        if outcome.status == Status::Resting {
            self.insert(original, Resting { price, remaining: outcome.remaining, ..held });
        }
    }

    fn cancelled(&mut self, original: ClientOrderId, outcome: &Outcome) {
        if outcome.status != Status::Refused {
            self.remove(original);
        }
    }

    fn fill(&mut self, resting: ClientOrderId, quantity: Quantity) {
        match self.remove(resting) {
            Some(held) if held.remaining > quantity => {
                self.insert(resting, Resting { remaining: held.remaining.minus(quantity), ..held });
            }
            Some(held) if held.remaining == quantity => {}
            _ => self.strangers += 1,
        }
    }

    fn insert(&mut self, client_order_id: ClientOrderId, resting: Resting) {
        self.levels.entry(resting.instrument).or_default().add(&resting);
        self.orders.insert(client_order_id, resting);
    }

    fn remove(&mut self, client_order_id: ClientOrderId) -> Option<Resting> {
        let held = self.orders.remove(&client_order_id)?;
        let book = self.levels.get_mut(&held.instrument).expect("a resting order's book exists");
        book.remove(held.side, held.price, held.remaining);
        Some(held)
    }
}
