//! Orders that must be found other than by id or price: held ones, stops by trigger, pegs, dates.
//!
//! Ordered maps beside the book, empty on most days; a plain order never comes here.

use super::node::Node;
use crate::{Priority, RestingOrder};
use pares_table::SlabIndex;
use pares_types::{Price, Side, TimeInForce, Timestamp};
use std::collections::BTreeMap;

type Slots<K> = BTreeMap<K, SlabIndex<Node>>;

/// The lists.
#[derive(Clone, Debug, Default)]
pub(super) struct SideLists {
    /// Held orders.
    pub(super) held: Slots<Priority>,
    /// Held stop orders whose trigger was reached, in the order in which they come in.
    pub(super) elected: Slots<Priority>,
    /// The others that buy, lowest trigger first.
    pub(super) buy_stops: Slots<(Price, Priority)>,
    /// The others that sell, highest trigger first: by its negative.
    pub(super) sell_stops: Slots<(i128, Priority)>,
    /// Pegged orders, held or on the book.
    pub(super) pegs: Slots<Priority>,
    /// Orders with a date.
    pub(super) dated: Slots<(Timestamp, Priority)>,
}

impl SideLists {
    /// Adds an order at the place it has now; `held` says whether it is held, since an iceberg about to
    /// show more shows nothing either.
    pub(super) fn add(&mut self, order: &RestingOrder, held: bool, slot: SlabIndex<Node>) {
        self.each(order, held, |list| list.insert(slot));
    }

    /// Takes an order off, with the place it was added at.
    pub(super) fn remove(&mut self, order: &RestingOrder, held: bool) {
        self.each(order, held, |list| list.remove());
    }

    fn each(&mut self, order: &RestingOrder, held: bool, change: impl Fn(Place<'_>)) {
        let priority = order.priority;
        if held {
            change(Place::ByPriority(&mut self.held, priority));
            match (order.trigger, order.side) {
                (Some(_), _) if order.elected => change(Place::ByPriority(&mut self.elected, priority)),
                (Some(price), Side::Buy) => change(Place::BuyStop(&mut self.buy_stops, (price, priority))),
                (Some(price), Side::Sell) => {
                    change(Place::SellStop(&mut self.sell_stops, (-i128::from(price.0), priority)));
                }
                (None, _) => {}
            }
        }
        if order.is_pegged() {
            change(Place::ByPriority(&mut self.pegs, priority));
        }
        if let TimeInForce::Gtd { until } = order.time_in_force {
            change(Place::Dated(&mut self.dated, (until, priority)));
        }
    }

    /// Whether a trade or a new best price could set anything here in motion.
    #[inline]
    pub(super) fn may_move(&self) -> bool {
        let no_stops = self.buy_stops.is_empty() && self.sell_stops.is_empty() && self.elected.is_empty();
        !(no_stops && self.pegs.is_empty())
    }

    /// The next stop order to elect when there was a trade at `price`.
    pub(super) fn reached(&self, price: Price) -> Option<SlabIndex<Node>> {
        let buy = self.buy_stops.first_key_value().filter(|((trigger, _), _)| price >= *trigger);
        let due = -i128::from(price.0);
        let sell = || self.sell_stops.first_key_value().filter(|((trigger, _), _)| due >= *trigger);
        buy.map(|(_, slot)| *slot).or_else(|| sell().map(|(_, slot)| *slot))
    }
}

/// One list, and where in it.
enum Place<'a> {
    ByPriority(&'a mut Slots<Priority>, Priority),
    BuyStop(&'a mut Slots<(Price, Priority)>, (Price, Priority)),
    SellStop(&'a mut Slots<(i128, Priority)>, (i128, Priority)),
    Dated(&'a mut Slots<(Timestamp, Priority)>, (Timestamp, Priority)),
}

impl Place<'_> {
    fn insert(self, slot: SlabIndex<Node>) {
        let before = match self {
            Self::ByPriority(list, key) => list.insert(key, slot),
            Self::BuyStop(list, key) => list.insert(key, slot),
            Self::SellStop(list, key) => list.insert(key, slot),
            Self::Dated(list, key) => list.insert(key, slot),
        };
        assert!(before.is_none(), "an order is added once");
    }

    fn remove(self) {
        let there = match self {
            Self::ByPriority(list, key) => list.remove(&key),
            Self::BuyStop(list, key) => list.remove(&key),
            Self::SellStop(list, key) => list.remove(&key),
            Self::Dated(list, key) => list.remove(&key),
        };
        assert!(there.is_some(), "an order is where it was added");
    }
}
